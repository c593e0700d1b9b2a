"""Test answers of any size: oversized ones are cut off, and large ones delay no other."""

import asyncio
import contextlib
import gzip
import json
import math
import re
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from builders import request
from hypothesis import given, strategies as st
from loopback import Answer, FakeServer, ReceivedRequest, Script, completion, refusal
from loops import each
from test_server_backend import ask, backend, words

from distract.core.backend import Batch
from distract.core.errors import BackendError, JudgeChanged, UsageError
from distract.core.exchange import settle
from distract.core.records import Message, Reply, Request, Role
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.server.backend import OpenAI, ThreadedStream
from distract.models.server.calls import LARGE, MOST, PLACES, STEP
from distract.models.server.completions import read_completion as read_completion
from distract.models.server.faults import LONGEST_PAUSE, retry_after
from distract.models.server.places import Place
from distract.models.server.requests import Session
from distract.models.server.secrets import scrub_values

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")

TOO_LARGE = "the reply is larger than 16 MB"


def ask_texts(url: str, *contents: str, **more: Any) -> list[Reply]:
    """The replies to text requests, in order."""
    return ask(backend(url, **{"backoff": 0.0, "attempts": 2, "concurrency": 1, **more}), *map(words, contents))


def compress_answer(body: object, encoding: str = "gzip") -> Answer:
    compress = gzip.compress if "gzip" in encoding else zlib.compress
    return Answer(compress(json.dumps(body).encode()), headers={"content-encoding": encoding})


def reply_oddly(answer: Answer) -> Script:
    """An unusual answer to ``odd``."""
    return lambda request: answer if request.content == "odd" else completion("fine")


def serve_odd(answer: Answer) -> FakeServer:
    return FakeServer(reply_oddly(answer))


class Endless(FakeServer):
    """A server with an endless answer to ``odd``, which counts the bytes it sends."""

    sent = 0
    step = b"x" * 2**16
    pace = 0.0

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.raw == b"headers":
            writer.write(b"HTTP/1.1 200 X\r\n" + b"x: y\r\n" * 2**16)
            await writer.drain()
            return False
        if answer.raw != b"endless":
            return await super()._send(answer, reader, writer)
        status = f"HTTP/1.1 {answer.status} X\r\ntransfer-encoding: chunked\r\n"
        writer.write(f'{status}content-type: application/json\r\n\r\n1\r\n"\r\n'.encode())
        while not writer.transport.is_closing():
            writer.write(b"%x\r\n%s\r\n" % (len(self.step), self.step))
            await writer.drain()
            await asyncio.sleep(self.pace)
            self.sent += len(self.step)
        return False


@each("status", 200, 400, 429, 500)
def test_endless_answer_fails_after_the_usual_attempts(status: int) -> None:
    with Endless(reply_oddly(Answer(b"endless", status))) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
        assert [request.content for request in server.chats].count("odd") == 2
    assert (odd.failure, fine.text) == (f"no reply: {TOO_LARGE}, 2 attempts", "fine")
    # The bound allows for data in the buffers of both machines.
    assert server.sent < 2 * (MOST + 2**24)


def test_endless_headers_fail_after_the_usual_attempts() -> None:
    with Endless(reply_oddly(Answer(b"headers"))) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
    assert (odd.failure or "").startswith("no reply: ")
    assert len(odd.failure or "") < 100
    assert fine.text == "fine"


def test_trickling_answer_times_out_like_any_other() -> None:
    with Endless(reply_oddly(Answer(b"endless"))) as server:
        server.step, server.pace = b"x", 0.02
        odd, fine = ask_texts(server.url, "odd", "fine", timeout=0.5)
    assert (odd.failure, fine.text) == ("no reply: no reply in time, 2 attempts", "fine")


@each("encoding", "gzip", "X-GZIP", "deflate")
def test_answer_may_be_compressed(encoding: str) -> None:
    text = "".join(chr(97 + i * i % 23) for i in range(300_000))
    with serve_odd(compress_answer(completion(text), encoding)) as server:
        assert ask_texts(server.url, "odd")[0].text == text
        for name, value in (("accept-encoding", "gzip"), ("content-type", "application/json")):
            assert {request.headers[name] for request in server.asked} == {value}


@each(
    "answer, message",
    (Answer(b"{}", headers={"content-encoding": "br"}), "compressed in a way that was not requested"),
    (Answer(b"{}", headers={"content-encoding": "gzip, gzip"}), "compressed in a way that was not requested"),
    (Answer(b"{}", headers={"content-encoding": "gzip"}), "not compressed as the server says"),
    *((Answer(raw), "the reply is nested too deeply") for raw in (b"[" * 200_000, b"[" * 2_000 + b"]" * 2_000)),
    *((Answer(raw), "the reply is not JSON") for raw in (b"\xff{", b"9" * 5000, b"")),
    (Answer(b"x" * 2**20, 500), "500: xxxx"),
    (Answer(b"[" * 200_000, 503), "503: [[[["),
)
def test_undecodable_answer_is_one_line(answer: Answer, message: str) -> None:
    with serve_odd(answer) as server:
        odd, fine = ask_texts(server.url, "odd", "fine")
    assert message in (odd.failure or "")
    assert (len((odd.failure or "").splitlines()), len(odd.failure or "") < 300) == (1, True)
    assert fine.text == "fine"


@each("path", "/v1/models", "/tokenize")
def test_model_and_token_lists_are_bounded(path: str) -> None:
    class Full(FakeServer):
        async def answer(self, request: ReceivedRequest) -> Answer:
            if request.path != path:
                return await super().answer(request)
            return Answer(b'{"data":[' + b"{}," * (MOST // 3) + b"{}]}")

    with Full(lambda request: completion("x")) as server, pytest.raises(BackendError, match=TOO_LARGE):
        ask_texts(server.url, "a")
    assert len(server.asked) <= 4


def test_large_answers_are_read_off_the_timing_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[bool, set[str]] = {False: set(), True: set()}

    def noted(value: object, scrub: Any) -> object:
        places[len(json.dumps(value)) > LARGE].add(threading.current_thread().name)
        return scrub_values(value, scrub)

    monkeypatch.setattr("distract.models.server.calls.scrub_values", noted)
    with FakeServer(lambda request: completion(request.content * (200_000 if request.content == "L" else 1))) as server:
        large, small = ask_texts(server.url, "L", "s")
    assert (len(large.text), small.text, places[False]) == (200_000, "s", {"distract-server"})
    assert places[True]
    assert "distract-server" not in places[True]


def test_documented_memory_limit_holds() -> None:
    assert PLACES * (MOST + STEP) + 1000 * (LARGE + STEP) < 256 * 2**20


def test_redirect_is_reported_and_not_followed() -> None:
    with FakeServer(lambda request: completion("elsewhere")) as other:
        to = other.url.replace("//", "//user:pass-word@") + "/chat/completions"
        moved = Answer({}, 307, {"location": to})
        there = FakeServer(lambda request: moved, probed=lambda request: moved)
        with there as server, pytest.raises((BackendError, UsageError), match="307 it has moved to http") as error:
            ask_texts(server.url, "a")
        assert other.asked == []
    assert "pass-word" not in str(error.value)


ODD_TIMES = (
    "Fri, 01 Jan 2027 00:00:00 +9999",
    "Fri, 01 Jan 2027 00:00:00 +99999999999999999999",
    "Fri, 01 Jan 99999 00:00:00 GMT",
    "Fri, 01 Jan 0001 00:00:00 +2300",
    "Fri, 99 Foo 2027 99:99:99 GMT",
    *("1e12", "-1e12", "1e999", "9" * 5000, "-5", "nan", "1 Jan", ", , ,", "\udcff"),
)


@given(
    st.sampled_from(ODD_TIMES)
    | st.text()
    | st.floats().map(str)
    | st.datetimes().map("{:%a, %d %b %Y %H:%M:%S}".format)
)
def test_every_requested_delay_is_bounded(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        wait = retry_after({name: value}, 1.8e9)
        assert wait is None or 0.0 <= wait <= LONGEST_PAUSE


def test_absurd_delays_are_ignored_or_capped() -> None:
    delays = [retry_after({"retry-after": value}, 1.8e9) for value in (*ODD_TIMES[:2], "1e12", "-1e12")]
    assert delays == [None, None, LONGEST_PAUSE, 0.0]


@each(
    "delay, message",
    ("1e12", "300 s or longer (429: slow down); waiting 300 s"),
    ("45", "45 s (429: slow down); waiting"),
)
def test_long_delay_is_announced_once(
    delay: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(Place, "pause", lambda self, seconds: pauses.append(seconds))
    busy = Answer({"error": {"message": "slow down"}}, 429, {"retry-after": delay})
    answers = iter([busy] * 3 + [Answer(completion("hi"))])
    with FakeServer(lambda request: next(answers)) as server:
        assert [one.text for one in ask(OpenAI("m", base_url=server.url, backoff=0.001), words())] == ["hi"]
    assert pauses == [min(float(delay), LONGEST_PAUSE)] * 3
    output = capsys.readouterr().err
    assert output.count("asks for a pause") == 1
    assert f"asks for a pause of {message}" in output


NAMES = {
    "m": "",
    "m-2024-08-06": "with its snapshot 'm-2024-08-06'; name that one to stay with it",
    "m-20240806": "with its snapshot 'm-20240806'",
    "other": "warning: the server {url} was asked for 'm' and says that 'other' answered",
    "m-2024-08-06-evil": "says that 'm-2024-08-06-evil' answered",
    "\x1b[31m\nred\u202e": "answered",
}


@each("name", *NAMES)
def test_answering_model_is_compared_with_the_requested_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(lambda request: {**completion("hi"), "model": name}) as server:
        judge = OpenAI("m", base_url=server.url)
        ask(judge, *map(words, "abc"))
        output = capsys.readouterr().err
        assert NAMES[name].format(url=server.url) in output
        assert len(output.splitlines()) == bool(NAMES[name])
    assert len(judge.reported) == 1
    assert "".join(judge.reported).isprintable()


@each("name", None, 7, ["m"], {"m": 1}, "", " ", True)
def test_server_may_omit_the_answering_model(name: object, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(lambda request: {**completion("hi"), "model": name, "system_fingerprint": name}) as server:
        judge = OpenAI("m", base_url=server.url)
        assert ask(judge, words())[0].text == "hi"
    assert (judge.reported, judge.fingerprints, capsys.readouterr().err) == ([], [], "")


def test_recorded_model_names_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(lambda request: {**completion("hi"), "model": request.content * 10_000}) as server:
        judge = OpenAI("m", base_url=server.url)
        ask(judge, *(words(f"{index:02}") for index in range(40)))
    assert len(judge.reported) == 20
    assert max(map(len, judge.reported)) <= 200
    assert capsys.readouterr().err.count("\n") == 1


def test_manifest_and_no_row_lists_answering_models(run: Any) -> None:
    names = iter(["x-2", "x-1"] * 1000)

    def chat(request: ReceivedRequest) -> dict[str, Any]:
        return {**completion("[[A]]"), "model": next(names), "system_fingerprint": "fp_1"}

    with FakeServer(chat) as server:
        options = ("--generator", "rules", "--limit", "1", "--protocol", "pairwise", "--attack", "prolixity")
        arguments = ("attack", "--judge", f"{server.url}#m", *options, "--store", "s")
        ran = run(*arguments, "--out", "r")
        assert ran.err.count("says that 'x-2' answered") == 1
        assert "'x-1'" not in ran.err
        manifest = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
        assert sorted(manifest["reported"]["judge"]) == ["x-1", "x-2"]
        assert manifest["fingerprints"] == {"judge": ["fp_1"]}
        for name in ("rows.jsonl", "summary.json", "run.json"):
            assert "x-1" not in Path("r", name).read_text(encoding="utf-8")
        # Stored replies do not name the answering model.
        assert run(*arguments, "--out", "t").code == ran.code
        assert "reported" not in json.loads(Path("t/manifest.json").read_text(encoding="utf-8"))
        assert Path("r/rows.jsonl").read_bytes() == Path("t/rows.jsonl").read_bytes()


@each(
    "logprob, taken",
    *((logprob, True) for logprob in (-(10**400), -1e308, -math.inf, -0.5, 0)),
    *((logprob, False) for logprob in (10**400, math.nan, math.inf, True, False, "-0.1", None, [-0.5])),
)
def test_invalid_probability_is_left_out(logprob: object, taken: bool) -> None:
    item = {"token": "A", "logprob": logprob, "top_logprobs": [{"token": "B", "logprob": logprob}]}
    data = {"choices": [{"message": {"content": "A"}, "logprobs": {"content": [item]}}]}
    (token,) = read_completion(data, str).tokens
    assert dict(token.likely).keys() == ({"A", "B"} if taken else set())
    assert all(0.0 <= math.exp(value) <= 1.0 for _, value in token.likely)


@each(
    "keys, message",
    ({}, "no key was sent; set FIRST or SECOND in the environment"),
    ({"SECOND": "k-123456789"}, "the key in SECOND was sent"),
    ({"FIRST": "k-1", "SECOND": "k-2"}, "the key in FIRST was sent"),
)
def test_refused_key_is_named(keys: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    message = f"refuses: 401 who are you\\?; {message}$"
    with FakeServer(lambda request: completion("hi"), probed=lambda request: refusal(401, "who are you?")) as server:
        with pytest.raises(UsageError, match=message):
            ask(OpenAI("m", base_url=server.url, key_names=("FIRST", "SECOND")), words())
        sent = keys.get("FIRST", keys.get("SECOND", "none"))
        assert server.probes[0].headers["authorization"] == f"Bearer {sent}"


@each("path, message", ("", "check the address and the model's name, 'm'$"), ("x", "most end in /v1$"))
def test_wrong_address_path_is_explained(path: str, message: str) -> None:
    there = FakeServer(lambda request: completion("hi"), probed=lambda request: refusal(404, "Not found"))
    with there as server, pytest.raises(UsageError, match=message) as error:
        ask(OpenAI("m", base_url=server.url + path), words())
    assert ("most end in /v1" in str(error.value)) == bool(path)


@each("attempts", 1, 6)
def test_unreachable_server_fails_after_all_attempts(attempts: int) -> None:
    with FakeServer(lambda request: completion("hi")) as server:
        server.die()
        message = rf"connection refused \({attempts} attempt{'s' * (attempts > 1)}\)$"
        with pytest.raises(BackendError, match=message):
            ask(backend(server.url, attempts=attempts), *(words(str(number)) for number in range(30)))


def test_durations_do_not_depend_on_the_wall_clock(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(2_000_000_000, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(ticks)))
    command = ("--judge", "planted:fair", "--generator", "rules", "--limit", "2", "--attack", "prolixity")
    assert run("attack", *command, "--out", "r").code == 0
    times = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))["times"]
    assert times["began"] > 1e9
    assert 0.0 <= times["seconds"] < 600.0
    run("gate", "r", "--max-flip-rate", "0.5", "--junit", "j.xml")
    assert 'time="-' not in Path("j.xml").read_text(encoding="utf-8")


def test_no_duration_uses_the_wall_clock() -> None:
    for path in (Path(__file__).parents[2] / "distract").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"time\.time\(\)\s*-|-\s*(?:time\.time\(\)|self\.began)", text), path


PROBE = Request((Message("user", "probe"),))
PAIR = Request((Message("user", "which?"),), choices=("A", "B"))


@dataclass
class Member:
    """A server that prefers A, or does not answer."""

    share: float = 0.9
    form: str = "plain"
    is_down: bool = False
    identity: Mapping[str, str] = field(default_factory=lambda: {"model": "m"})
    name: str = "m"
    reads_slots: bool = False
    probes: tuple[Request, ...] = (PROBE,)

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        if self.is_down:
            raise BackendError("it does not answer")
        for index in wanted:
            probabilities = None if requests[index] == PROBE else (self.share, 1 - self.share)
            yield [(index, Reply(text=self.form, probabilities=probabilities, tokens_in=1))]

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        return {"form": reply.text}


class Pool(Member):
    """Servers that share requests; the pool itself answers as the first."""

    def __init__(self, *members: Member) -> None:
        super().__init__(members[0].share, members[0].form)
        self.all = {f"s{number}": member for number, member in enumerate(members)}

    @property
    def members(self) -> Mapping[str, Member]:
        return self.all

    def hurry(self) -> "Pool":
        return self

    def leave_out(self, member: str) -> None:
        del self.all[member]


def settle_pool(pool: Pool, role: Role, tally: Tally, folder: Path, choices: tuple[str, ...] = ("A", "B")) -> bool:
    request = replace(PAIR, choices=choices, to=role)
    with Store(folder / "s", pool.identity) as store, store.claims() as claims:
        return settle(role, (pool, store), [request], tally, claims)


def test_each_role_checks_its_own_servers(tmp_path: Path) -> None:
    """A verifier's servers that agree say nothing about the judge's."""
    tally = Tally()
    assert settle_pool(Pool(Member(), Member()), "verifier", tally, tmp_path)
    with pytest.raises(JudgeChanged, match="s1 beside the first server: replaced: 1 of 1 verdict differ"):
        settle_pool(Pool(Member(), Member(0.1)), "judge", tally, tmp_path)
    statuses = {name: check["status"] for name, check in tally.checks.items()}
    assert statuses == {"servers of the verifier": "unchanged", "servers": "replaced"}


def test_forms_are_compared_although_no_reply_is_comparable(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        settle_pool(Pool(Member(), Member(form="odd")), "judge", Tally(), tmp_path, choices=())
    assert 's1 takes requests in another form than s0 (form "odd" instead of "plain")' in str(error.value)


def test_members_that_are_down_are_left_out_and_not_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, tally = Pool(Member(), Member(is_down=True), Member()), Tally()
    assert not settle_pool(pool, "judge", tally, tmp_path, choices=())
    assert settle_pool(pool, "judge", tally, tmp_path)
    assert capsys.readouterr().err == "distract: it does not answer; this run goes on without s1\n"
    reading = {"verdict": 0, "shares": [0.9, 0.1]}
    answers = [{"key": PAIR.key, "before": reading, "now": reading}]
    counts = {"asked": 2, "differing": 0, "moved": 0, "largest_move": 0.0}
    assert tally.checks["servers"] == {"status": "unchanged", **counts, "servers": ["s0", "s2"], "answers": answers}
    # The pool's own probe, one of each of two servers, and one comparison of each.
    assert tally.tokens == {"judge": (5, 0)}


def test_a_pool_without_an_answering_member_ends(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="it does not answer"):
        settle_pool(Pool(Member(is_down=True), Member(is_down=True)), "judge", Tally(), tmp_path)


class Slow(Session):
    """Answers at once and closes slowly."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    async def answer(self, request: Request) -> Reply:
        return Reply(text="x")

    def halt(self) -> set[asyncio.Task[Any] | None]:
        return set()

    async def close(self) -> None:
        await asyncio.sleep(1.2)
        self.gone.set()


def test_slow_connections_are_closed_completely() -> None:
    # The garbage collector reports an open connection later, as a warning in another test.
    session = Slow()
    stream = ThreadedStream(session, capacity=1)
    stream.submit(0, request("x"))
    assert stream.collect(20.0) == [(0, Reply(text="x"))]
    assert stream.close() == []
    assert session.gone.wait(20.0)


class Failing(Session):
    """Fails one request at once, and answers the others when told."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.sent: set[asyncio.Task[Any] | None] = set()

    async def answer(self, request: Request) -> Reply:
        self.sent.add(asyncio.current_task())
        if request.messages[-1].content == "fails":
            raise BackendError("out of order")
        await self.answers.wait()
        return Reply(text="x")

    def halt(self) -> set[asyncio.Task[Any] | None]:
        return self.sent

    async def close(self) -> None:
        pass


def test_replies_that_arrive_after_a_failure_are_kept() -> None:
    # They are paid for.
    session = Failing()
    stream = ThreadedStream(session, capacity=3)
    for ticket, text in enumerate(("slow", "fails", "slow")):
        stream.submit(ticket, request(text))
    with pytest.raises(BackendError, match="out of order"):
        stream.collect(20.0)
    assert (stream.halt(), stream.collect(0.01)) == ([], [])
    stream._loop.call_soon_threadsafe(session.answers.set)
    received: list[int] = []
    with contextlib.suppress(BackendError):
        while True:
            received += [ticket for ticket, _ in stream.collect(0.1)]
    assert (received, stream.close()) == ([0, 2], [])
