"""Test unreliable claims of a server: the answering model, delays, token probabilities."""

import json
import math
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Answer, FakeServer, ReceivedRequest, completion, refusal
from loops import each
from test_server_backend import ask, words

from distract.core.errors import BackendError, UsageError
from distract.models.server.backend import OpenAI
from distract.models.server.completions import read_completion as read_completion
from distract.models.server.endpoint import Endpoint
from distract.models.server.faults import LONGEST_PAUSE, retry_after
from distract.models.server.places import Place

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")

FIRST = "[[A]]"


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
    assert [retry_after({"retry-after": value}, 1.8e9) for value in ODD_TIMES[:2]] == [None, None]
    assert retry_after({"retry-after": "1e12"}, 1.8e9) == LONGEST_PAUSE
    assert retry_after({"retry-after": "-1e12"}, 1.8e9) == 0.0


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
    times = 0

    def busy(asked_: ReceivedRequest) -> Answer | dict[str, Any]:
        nonlocal times
        times += 1
        return (
            Answer({"error": {"message": "slow down"}}, 429, {"retry-after": delay}) if times < 4 else completion("hi")
        )

    with FakeServer(busy) as server:
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
        return {**completion(FIRST), "model": next(names), "system_fingerprint": "fp_1"}

    with FakeServer(chat) as server:
        arguments = ("attack", "--judge", f"{server.url}#m", "--generator", "rules", "--limit", "1")
        ran = run(*arguments, "--protocol", "pairwise", "--attack", "prolixity", "--out", "r", "--store", "s")
        assert ran.err.count("says that 'x-2' answered") == 1
        assert "'x-1'" not in ran.err
        manifest = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
        assert sorted(manifest["reported"]["judge"]) == ["x-1", "x-2"]
        assert manifest["fingerprints"] == {"judge": ["fp_1"]}
        for name in ("rows.jsonl", "summary.json", "run.json"):
            assert "x-1" not in Path("r", name).read_text(encoding="utf-8")
        # Stored replies do not name the answering model.
        assert (
            run(*arguments, "--protocol", "pairwise", "--attack", "prolixity", "--out", "t", "--store", "s").code
            == ran.code
        )
        assert "reported" not in json.loads(Path("t/manifest.json").read_text(encoding="utf-8"))
        assert Path("r/rows.jsonl").read_bytes() == Path("t/rows.jsonl").read_bytes()


@each(
    "logprob, taken",
    (-(10**400), True),
    (10**400, False),
    (-1e308, True),
    (math.nan, False),
    (math.inf, False),
    (-math.inf, True),
    (True, False),
    (False, False),
    ("-0.1", False),
    (None, False),
    ([], False),
    (-0.5, True),
    (0, True),
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
    with (
        FakeServer(lambda request: completion("hi"), probed=lambda request: refusal(401, "who are you?")) as server,
        pytest.raises(UsageError, match=message),
    ):
        ask(OpenAI("m", base_url=server.url, key_names=("FIRST", "SECOND")), words())


def test_key_over_an_open_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", "k-123456789")
    message = Endpoint("http://judge.example/v1", ("FIRST",))._key_words()
    assert message == "no key was sent: that in FIRST would be sent unencrypted; use https"


@each("path, message", ("", "check the address and the model's name, 'm'$"), ("x", "most end in /v1$"))
def test_wrong_address_path_is_explained(path: str, message: str) -> None:
    with FakeServer(lambda request: completion("hi"), probed=lambda request: refusal(404, "Not found")) as server:
        server.probed = lambda request: refusal(404, "Not found")
        with pytest.raises(UsageError, match=message) as error:
            ask(OpenAI("m", base_url=server.url + path), words())
    assert ("most end in /v1" in str(error.value)) == bool(path)


def test_single_attempt_uses_the_singular() -> None:
    with FakeServer(lambda request: completion("hi")) as server:
        server.die()
        with pytest.raises(BackendError, match=r"\(1 attempt\)$"):
            ask(OpenAI("m", base_url=server.url, attempts=1), words())


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
