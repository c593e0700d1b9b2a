"""Probes determine the request form of a server; a run does not depend on the order of replies."""

import hashlib
import json
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import finish, select, set_up
from hypothesis import given, strategies as st
from loopback import Answer, FakeServer, ReceivedRequest, Script, completion, refusal, token
from test_server_backend import backend

from distract.core.backend import ProbingBackend
from distract.core.errors import BackendError
from distract.core.exchange import ask_probes
from distract.core.records import Message, Reply, Request
from distract.core.runs import load
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.server.capabilities import PROBES, Capabilities
from distract.studies.attack import session

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")


def judge(
    *,
    start: str = "continued",
    likely: int = 20,
    logprobs: str = "reported",
    system: bool = True,
    reasons: bool = False,
    odd: bool = False,
) -> Script:
    """A judge whose verdict depends on the prompt.

    It may continue, ignore, refuse (by name) or reject (without a reason) the ``start`` of an answer, and report, leave
    out or refuse ``logprobs``, for at most so many ``likely`` tokens. Every other answer of an ``odd`` one looks as if
    it handled the start in the other way.
    """

    def script(request: ReceivedRequest) -> dict[str, Any] | Answer:
        body, begun = request.body, request.body["messages"][-1]["role"] == "assistant"
        if not system and body["messages"][0]["role"] == "system":
            return refusal(400, "System role not supported")
        if reasons and "max_tokens" in body:
            return refusal(400, "'max_tokens' is not supported with this model", param="max_tokens")
        if reasons and "temperature" in body:
            return refusal(400, "'temperature' does not support this value", param="temperature")
        if begun and start == "refused":
            return refusal(400, "Unrecognized request argument supplied: continue_final_message")
        if begun and start == "rejected":
            return refusal(400, "Bad request")
        if body.get("logprobs") and logprobs == "refused":
            return refusal(403, "You are not allowed to request logprobs from this model")
        if body.get("top_logprobs", 0) > likely:
            return refusal(400, f"Requested sample logprobs of 20, which is greater than max allowed: {likely}")
        labels = [label for label in "1234567" if f"[[{label}]]" in request.content] or ["A", "B", "C"]
        # The verdict changes if the answer has a given start.
        number = int.from_bytes(hashlib.sha256(f"{begun} {request.content}".encode()).digest()[:4], "big")
        first = "A" if request.is_probe else labels[number % len(labels)]
        share = 0.9 if request.is_probe else 0.5 + number % 400 / 1000
        likes = {**{name: (1 - share) / len(labels) for name in labels}, first: share}
        is_odd = odd and number % 2 == 0 and not request.is_probe
        if is_odd and start == "continued":
            likes = {name: value / 3 for name, value in likes.items()}
        choice = token(first, likes)
        tells = bool(body.get("logprobs")) and logprobs == "reported"
        if begun and start == "continued":
            text = first if body.get("max_tokens") == 1 else f"{first}]]"
            return completion(text, logprobs=[choice] if tells else None)
        whole = f"[[{first}]]"
        if body.get("max_tokens") == 1:
            likes = {first: 0.6} if is_odd else {"[[": 0.9, first: 0.05}
            begin = max(likes, key=likes.__getitem__)
            return completion(begin, logprobs=[token(begin, likes)] if tells else None, finish="length")
        spelled = [token("[["), choice, token("]]")]
        return completion(whole, logprobs=spelled if tells else None)

    return script


MANNERS = {
    "continues": judge(),
    "refuses the start": judge(start="refused"),
    "rejects the start": judge(start="rejected"),
    "ignores the start": judge(start="ignored"),
    "continues without log-probabilities": judge(logprobs="left out"),
    "ignores the start, without log-probabilities": judge(start="ignored", logprobs="left out"),
    "refuses log-probabilities": judge(logprobs="refused"),
    "continues, is not always sure": judge(odd=True),
    "ignores the start, begins with a choice at times": judge(start="ignored", odd=True),
    "5 likely tokens": judge(likely=5),
    "5 likely tokens, ignores the start": judge(likely=5, start="ignored"),
    "no system role": judge(system=False),
    "reasons": judge(reasons=True, start="refused", logprobs="refused"),
}
FILES = ("rows.jsonl", "summary.json", "rewrites.jsonl")


def shuffle(script: Script, seed: int) -> Script:
    draw = random.Random(seed)

    def late(request: ReceivedRequest) -> Answer:
        answer = script(request)
        answered = answer if isinstance(answer, Answer) else Answer(answer)
        return Answer(answered.body, answered.status, answered.headers, delay=draw.random() * 0.004)

    return late


def run_attack(url: str, folder: Path, *, concurrency: int = 16, **more: Any) -> Tally:
    """A run with its own store in ``folder``."""
    selected = select(data="tweakset", limit=2, attacks=("assertiveness",))
    judge = backend(url, concurrency=concurrency, **more)
    job = session.prepare(selected, set_up("j", judge, folder / "r", ["pairwise", "absolute", "prepair"]))
    tally = Tally()
    finish(job, folder / "store", tally)
    return tally


def contents(folder: Path) -> list[bytes]:
    return [(folder / "r" / name).read_bytes() for name in FILES]


def manifest(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "r" / "manifest.json").read_text())
    return document


@pytest.mark.parametrize("kind", MANNERS)
def test_run_is_independent_of_reply_order_and_concurrency(kind: str, tmp_path: Path) -> None:
    result = list[list[bytes]]()
    for number, concurrency in enumerate((1, 4, 16)):
        script = shuffle(MANNERS[kind], number)
        with FakeServer(script, owner="someone", probed=script) as server:
            tally = run_attack(server.url, tmp_path / str(number), concurrency=concurrency)
            # Features that the probes ruled out are not sent again.
            assert len(server.chats) == tally.made - len(PROBES)
        result.append(contents(tmp_path / str(number)))
        assert manifest(tmp_path / str(number))["complete"] is True
    assert result[0] == result[1] == result[2]
    reads = {judgment.read for row in load(tmp_path / "0" / "r").rows for judgment in row.judgments}
    manners = manifest(tmp_path / "0")["replies"]["manners"]["judge"]
    assert ("choices" in reads) is ("log-prob" not in kind and kind != "reasons")
    assert manners["continues"] is ("start" not in kind and kind != "reasons")
    special = {"top": 5 if "5 likely" in kind else 20, "systemless": kind == "no system role"}
    assert manners | {**special, "reasons": kind == "reasons"} == manners
    assert "manners" not in (tmp_path / "0" / "r" / "run.json").read_text()


@pytest.mark.parametrize("kind", ["continues", "ignores the start", "5 likely tokens, ignores the start"])
@pytest.mark.parametrize("others", [-1, 0, 7])
def test_killed_run_resumes_without_a_second_probe(kind: str, others: int, tmp_path: Path) -> None:
    script, left = MANNERS[kind], 10**6

    def mortal(request: ReceivedRequest) -> dict[str, Any] | Answer:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionResetError
        return script(request)

    with FakeServer(mortal, owner="someone", probed=mortal) as server:
        run_attack(server.url, tmp_path / "whole")
        probes = [request.content for request in server.probes]
        left = len(probes) + others
        with pytest.raises(BackendError, match="does not answer"):
            run_attack(server.url, tmp_path / "killed", concurrency=1, attempts=1)
        left = 10**6
        run_attack(server.url, tmp_path / "killed")
        # After a kill between the probes, the second probe is repeated, because it got no answer.
        assert len(server.probes) == 2 * len(probes) + (others < 0)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_probes_are_kept_per_store(tmp_path: Path) -> None:
    script = MANNERS["ignores the start"]
    with FakeServer(script, owner="someone", probed=script) as server:
        run_attack(server.url, tmp_path / "one")
        probes = len(server.probes)
        (tmp_path / "one" / "r").rename(tmp_path / "one" / "before")
        tally = run_attack(server.url, tmp_path / "one")
        assert (tally.made, len(server.probes)) == (0, probes)
        run_attack(server.url, tmp_path / "two")
        assert len(server.probes) == 2 * probes
        # The stored probe result alone must suffice.
        with sqlite3.connect(tmp_path / "one" / "store") as db:
            db.execute("delete from replies where reply not like '%systemless%'")
        db.close()
        (tmp_path / "one" / "r").rename(tmp_path / "one" / "after")
        run_attack(server.url, tmp_path / "one")
        assert len(server.probes) == 2 * probes
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


PICKY = ("continue_final_message", "logprobs", "temperature", "top_p", "seed", "stop")


def picky(request: ReceivedRequest) -> dict[str, Any] | Answer:
    """Accepts all options of probes, and refuses those that the digits of other requests name."""
    for number, name in enumerate(PICKY):
        if str(number) in request.content and name in request.body:
            return refusal(400, f"{name} is not taken here", param=name)
    begun = "A]]" if request.body["messages"][-1]["role"] == "assistant" else "[[A]]"
    return completion(f"{begun} {sorted(request.body)}")


REQUESTS = st.builds(
    lambda digits, reads, more: Request(
        (Message("user", f"q {digits}"),),
        choices=("A", "B") if reads else (),
        prefill="[[" if reads else "",
        temperature=0.0 if reads else 0.7,
        stop=("x",) if more else (),
    ),
    st.sets(st.sampled_from("012345")).map(sorted),
    st.booleans(),
    st.booleans(),
)


@given(requests=st.lists(REQUESTS, min_size=2, max_size=8, unique=True), draw=st.randoms(use_true_random=False))
def test_one_refused_feature_does_not_affect_other_requests(requests: list[Request], draw: random.Random) -> None:
    def replies(group: Sequence[Request], concurrency: int) -> dict[Request, Reply]:
        model = backend(server.url, concurrency=concurrency)
        pairs = [pair for batch in model.reply(group, frozenset(range(len(group)))) for pair in batch]
        return {group[index]: reply for index, reply in pairs}

    with FakeServer(picky, owner="someone") as server:
        alone = {one: replies([one], 1)[one] for one in requests}
        shuffled = draw.sample(requests, len(requests))
        assert replies(shuffled, 4) == alone
        assert all(reply.answered for reply in alone.values())


@given(
    st.builds(
        Capabilities,
        continues=st.booleans(),
        engine=st.booleans(),
        tokenizes=st.booleans(),
        omit=st.frozensets(st.sampled_from(PICKY)),
        top=st.sampled_from((5, 20)),
    )
)
def test_capabilities_round_trip(manners: Capabilities) -> None:
    assert Capabilities.read(manners.write()) == manners


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"omit": 1}', '{"omit": [], "odd": 1}', "\u0000"])
def test_damaged_probe_is_one_clear_line(text: str, tmp_path: Path) -> None:
    with FakeServer(judge()) as server:
        model = backend(server.url)
        assert isinstance(model, ProbingBackend)
        with Store(tmp_path / "s", model.identity) as store, store.claims() as claims:
            store.put([(store.key(PROBES[0]), Reply(text=text))])
            with pytest.raises(BackendError, match="a stored probe of a server is damaged"):
                ask_probes("judge", (model, store), Tally(), claims)
        assert not server.asked


def test_probes_count_for_the_model_they_are_sent_to(tmp_path: Path) -> None:
    with FakeServer(judge()) as server:
        model, tally = backend(server.url), Tally()
        with Store(tmp_path / "s", model.identity) as store, store.claims() as claims:
            ask_probes("verifier", (model, store), tally, claims)
            ask_probes("verifier", (model, store), tally, claims)
            assert len(store) == 2
    assert (tally.made, tally.tokens, tally.stored) == (2, {"verifier": (22, 4)}, 0)
    assert tally.document()["asked"] == {"verifier": {"choices": 1, "text": 1}}
