"""Test refusals of a server: content faults are stored, other faults are asked again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, FakeServer, ReceivedRequest, Script, completion, refusal, token
from loops import each
from test_server_backend import CALL, TEXTLESS, backend, words

from distract.core.errors import BackendError, UsageError
from distract.core.loop import answer
from distract.core.records import Reply
from distract.core.runs import load
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.server.capabilities import PROBES

pytest.importorskip("openai")

pytestmark = pytest.mark.usefixtures("no_keys")


def is_complete(folder: Path) -> bool:
    document: bool = json.loads((folder / "r" / "manifest.json").read_text())["complete"]
    return document


def ask(url: str, folder: Path, *contents: str, **more: Any) -> tuple[list[Reply], int]:
    """The replies to text requests, in order, and the number of them in the store."""
    model = backend(url, concurrency=1, **more)
    with Store(folder / "s", model.identity) as store:
        models: dict[Any, Any] = {"judge": (model, store)}
        replies = answer([words(content) for content in contents], models, {}, Tally())
        return replies, len(store) - len(PROBES)


CONTENT = [
    (refusal(400, "x", code="content_filter"), "refused by the server: x"),
    (refusal(400, "This violates our content policy"), "refused by the server: This"),
    (
        refusal(400, "Filtered by the content management policy. Modify your prompt and retry."),
        "refused by the server: F",
    ),
    (refusal(403, "Your input was flagged"), "refused by the server: Your input"),
    (refusal(451, "Blocked by the content filter"), "refused by the server: Blocked"),
    (refusal(400, "Input data may contain inappropriate content."), "refused by the server: Input"),
    (refusal(400, "maximum context length is 10 tokens"), "too long: maximum"),
    (refusal(400, "x", code="context_length_exceeded"), "too long: x"),
    (refusal(413, "Request Entity Too Large"), "too long: Request"),
    (Answer(completion("half a", finish="content_filter")), "refused"),
    *TEXTLESS,
]
OTHERWISE = [
    (refusal(400, "Your credit balance is too low to access the API."), "no reply: 400 Your credit"),
    (refusal(400, "Bad request"), "no reply: 400 Bad request"),
    (refusal(401, "Invalid key"), "no reply: 401 Invalid key"),
    (refusal(402, "Payment required"), "no reply: 402 Payment"),
    (refusal(403, "Forbidden"), "no reply: 403 Forbidden"),
    (refusal(403, "Your account was blocked for content policy violations"), "no reply: 403 Your account"),
    (refusal(404, "Not found"), "no reply: 404 Not found"),
    (refusal(413, "Request too large: limit 6000 tokens per minute (TPM)"), "no reply: 413 Request"),
    (refusal(418, "I'm a teapot"), "no reply: 418 I'm a teapot"),
    (refusal(422, "Unprocessable"), "no reply: 422 Unprocessable"),
    (refusal(429, "You exceeded your quota", code="insufficient_quota"), "no reply: 429 You exceeded"),
    (refusal(429, "You exceeded your quota", type="insufficient_quota"), "no reply: 429 You exceeded"),
    (refusal(451, "Unavailable for legal reasons"), "no reply: 451 Unavailable"),
    (refusal(400, "The request took too long"), "no reply: 400 The request"),
    (refusal(400, "request is taking too long, upstream busy"), "no reply: 400 request is taking"),
    (refusal(400, "The moderation service is unavailable, try again later"), "no reply: 400 The moderation"),
    (refusal(501, "Not implemented"), "no reply: 501 Not implemented"),
    (Answer(b"", 304), "no reply: 304"),
    (Answer(completion(None)), "no reply: empty reply"),
    (Answer(completion(" \n")), "no reply: empty reply"),
    (Answer(completion([])), "no reply: empty reply"),  # type: ignore[arg-type]
    (Answer(completion(None, finish="tool_calls", tool_calls=[])), "no reply: empty reply"),
    (Answer(completion("", reasoning_content="\n\n", tool_calls=None)), "no reply: empty reply"),
    (Answer(completion(["A", None, {"type": "text"}])), "no reply: empty reply"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    ("answer", "expected", "is_stored"), [(*one, True) for one in CONTENT] + [(*one, False) for one in OTHERWISE]
)
def test_only_content_refusals_are_stored(answer: Answer, expected: str, is_stored: bool, tmp_path: Path) -> None:
    with FakeServer(lambda request: answer if request.content == "odd" else completion("fine")) as server:
        replies, stored = ask(server.url, tmp_path, "one", "odd", "two")
        assert [reply.text for reply in replies[::2]] == ["fine", "fine"]
        assert (replies[1].failure or "").startswith(expected)
        assert (replies[1].answered, stored) == (is_stored, 2 + is_stored)
        # The same command repeats exactly the requests without a stored reply.
        before = len(server.chats)
        ask(server.url, tmp_path, "one", "odd", "two")
        assert {request.content for request in server.chats[before:]} == (set() if is_stored else {"odd"})


def test_text_in_parts_is_joined() -> None:
    parts: Any = [
        {"type": "thinking", "thinking": "B?"},
        {"type": "text", "text": "[[A"},
        {"type": "text", "text": "]]"},
    ]
    with FakeServer(lambda request: completion(parts)) as server:
        ((_, reply),) = [pair for batch in backend(server.url).reply([words("x")], frozenset({0})) for pair in batch]
    assert (reply.text, reply.failure) == ("[[A]]", None)


ACCOUNT = [answer_ for answer_, said in OTHERWISE if said[10:13] in ("401", "402", "403", "429") or "credit" in said]


@pytest.mark.parametrize("fault", ACCOUNT)
def test_five_account_faults_in_a_row_end_the_run(fault: Answer, tmp_path: Path) -> None:
    with FakeServer(lambda request: fault if request.content.startswith("odd") else completion("fine")) as server:
        for number in (4, 5):
            contents = ["fine 0", *(f"odd {i}" for i in range(number)), "fine 1", *(f"odd {i}x" for i in range(4))]
            if number == 4:
                replies, _ = ask(server.url, tmp_path, *contents)
                assert [reply.answered for reply in replies] == [c.startswith("fine") for c in contents]
            else:
                with pytest.raises(BackendError, match=f"has stopped answering: {fault.status} "):
                    ask(server.url, tmp_path, "fine 2", *contents)
                model = backend(server.url)
                with Store(tmp_path / "s", model.identity) as store:
                    assert len(store) == len(PROBES) + 3, "what came before is kept"


@pytest.mark.parametrize("status", [400, 418, 422, 451])
def test_other_faults_do_not_end_the_run(status: int, tmp_path: Path) -> None:
    with FakeServer(
        lambda request: refusal(status, "No.") if request.content != "fine" else completion("fine")
    ) as server:
        replies, stored = ask(server.url, tmp_path, "fine", *map(str, range(12)))
    assert ([reply.answered for reply in replies], stored) == ([True, *[False] * 12], 1)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 410])
def test_wrong_key_or_address_ends_the_run_at_once(status: int, tmp_path: Path) -> None:
    with FakeServer(
        lambda request: completion("fine"), probed=lambda request: refusal(status, "Not for you")
    ) as server:
        with pytest.raises(UsageError, match=str(status)):
            ask(server.url, tmp_path, "one", "two")
        assert (len(server.probes), len(server.chats)) == (1, 0)


def rating(request: ReceivedRequest) -> dict[str, Any]:
    """Rates a response by a hash of its words."""
    number = hashlib.sha256(request.content.encode()).digest()[0] % 7 + 1
    return completion(str(number), logprobs=[token(str(number), {str(number): 0.9})], finish="length")


def fail_share(share: float, fault: Answer) -> Script:
    """Rejects a share of all requests."""
    return lambda request: (
        fault if hashlib.sha256(request.content.encode()).digest()[1] < 256 * share else rating(request)
    )


def command(server: FakeServer, *more: str) -> list[str]:
    where = ["--judge", f"{server.url}#m", "--protocol", "absolute", "--attack", "assertiveness", "--concurrency", "4"]
    return [*where, "--limit", "20", "--out", "r", *more]


@pytest.mark.parametrize("fault", [refusal(418, "I'm a teapot"), refusal(422, "No."), Answer(completion(None))])
def test_incomplete_run_is_completed_by_the_same_command(
    fault: Answer, run: Callable[..., Any], tmp_path: Path
) -> None:
    with FakeServer(rating) as server:
        server.chat = fail_share(0.1, fault)
        first = run("attack", *command(server))
        assert first.code == 0, first.err
        assert "the same command asks again" in first.err
        assert is_complete(tmp_path) is False
        assert load(tmp_path / "r").unanswered
        for command_line in (("gate", "r", "--max-flip-rate", "0.9"), ("report", "r")):
            ran = run(*command_line)
            assert "some requests got no reply" in ran.out + ran.err
        failures = {j.failure for row in load(tmp_path / "r").rows for j in row.judgments if j.failure}
        assert all(failure.startswith("no reply: ") for failure in failures)
        assert failures
        server.chat, before = rating, len(server.chats)
        second = run("attack", *command(server))
        assert "this run is complete" not in second.err
        assert (second.code, is_complete(tmp_path)) == (0, True)
        assert len(server.chats) > before
        third = run("attack", *command(server))
        assert "this run is complete" in third.err


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_gate_never_passes_with_too_many_unanswered_requests(
    share: float, live: bool, run: Callable[..., Any], tmp_path: Path
) -> None:
    with FakeServer(fail_share(share, refusal(418, "I'm a teapot"))) as server:
        if live:
            done = run("gate", *command(server), "--max-flip-rate", "0.9")
        else:
            run("attack", *command(server))
            done = run("gate", "r", "--max-flip-rate", "0.9")
    # With all answers, only the quality of this judge is in doubt.
    assert done.code == 3, done.out + done.err
    assert ("INCONCLUSIVE: absolute under assertiveness: this judge is not shown to tell good" in done.words) is (
        share == 0.0
    )
    assert is_complete(tmp_path) is (share == 0.0)


@each(
    "fault, code, part",
    (refusal(418, "I'm a teapot"), 3, "no verdict was valid"),
    (refusal(402, "Payment required"), 4, "has stopped answering: 402 Payment required"),
    (refusal(400, "Your credit balance is too low"), 4, "has stopped answering: 400 Your credit balance"),
    (refusal(400, "Flagged by the content filter"), 3, "no verdict was valid"),
    (Answer(completion(None, tool_calls=[CALL])), 3, "no verdict was valid"),
)
def test_fully_refused_run_ends_with_the_right_code(
    fault: Answer, code: int, part: str, run: Callable[..., Any]
) -> None:
    with FakeServer(lambda request: fault) as server:
        done = run("attack", *command(server))
    assert (done.code, part in done.err) == (code, True), done.err
