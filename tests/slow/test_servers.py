"""Several servers for one judge: a slow one, one that dies and comes back, and one with another model."""

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, FakeServer, ReceivedRequest, refusal
from processes import count_replies, opinion, run_process

pytest.importorskip("openai")

ATTACK = ("attack", "--protocol", "pairwise", "--attack", "assertiveness", "--generator", "rules")
STORE = Path(".distract/replies.sqlite")
FAST, SLOW, AT_ONCE = 0.1, 0.4, 4


class Timed(FakeServer):
    """Answers by the request alone after a time, dies after a number of answers, and notes when it began."""

    def __init__(self, seconds: float = 0.0, dies_after: int | None = None, other: bool = False) -> None:
        super().__init__(self.reply)
        self.seconds, self.dies_after, self.other = seconds, dies_after, other
        self.answered: Counter[bytes] = Counter()
        self.times: list[float] = []

    def reply(self, request: ReceivedRequest) -> dict[str, Any]:
        completion = opinion(request)
        if self.other:  # the same tokens with their probabilities exchanged
            likely = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            likely[0]["logprob"], likely[1]["logprob"] = likely[1]["logprob"], likely[0]["logprob"]
        return completion

    async def answer(self, request: ReceivedRequest) -> Answer:
        answer = await super().answer(request)
        if request in self.chats:
            if self.dies_after is not None and len(self.times) >= self.dies_after:
                threading.Thread(target=self.die).start()
                return Answer(stalled=True)
            self.times.append(time.monotonic())
            self.answered[request.raw] += 1
            return Answer(answer.body, delay=self.seconds)
        return answer


def judge(*servers: FakeServer) -> str:
    return f"{','.join(server.url for server in servers)}#m"


def rows(folder: Path) -> bytes:
    (run,) = (folder / ".distract/runs").iterdir()
    return (run / "rows.jsonl").read_bytes()


def test_all_verdicts_arrive_once_and_nearly_as_soon_as_they_could(tmp_path: Path) -> None:
    """Three servers, one four times as slow, one that dies after a third of its share."""
    many = (*ATTACK, "--limit", 60, "--concurrency", AT_ONCE)
    (tmp_path / "one").mkdir()
    (tmp_path / "three").mkdir()
    with Timed() as alone:
        assert run_process(*many, "--judge", judge(alone), folder=tmp_path / "one").code == 0
    with Timed(FAST) as fast, Timed(SLOW) as slow, Timed(FAST, dies_after=30) as dying:
        name = judge(fast, slow, dying)
        result = run_process(*many, "--judge", name, folder=tmp_path / "three")
    assert result.code == 0, result.err
    assert f"the server {dying.url} does not answer" in result.err
    stored = count_replies(tmp_path / "three" / STORE)
    assert stored == count_replies(tmp_path / "one" / STORE)
    replies = json.loads((next((tmp_path / "three/.distract/runs").iterdir()) / "manifest.json").read_text())["replies"]
    assert (replies["unanswered"], replies["made"]) == (0, stored)
    # Two are probes. Eight went to each server first, to compare them; every other one was answered once.
    total = fast.answered + slow.answered + dying.answered
    cut = AT_ONCE  # what the third was answering when it died was answered again
    assert Counter(total.values())[1] >= stored - 2 - 8 - cut
    assert min(len(fast.times), len(slow.times)) > 20
    # The best split: all three until the third dies, and then two.
    work = stored - 2
    rates = {server: AT_ONCE / server.seconds for server in (fast, slow, dying)}
    begin = sorted(fast.times)[8]  # the first request after the comparison
    died = max(dying.times) + FAST - begin
    best = died + max(0.0, work - died * sum(rates.values())) / (rates[fast] + rates[slow])
    # The last eight of each are the comparison at the end.
    took = max(t + server.seconds for server in (fast, slow) for t in sorted(server.times)[:-8]) - begin
    assert took <= 1.3 * best, (took, best)
    identity = json.loads((next((tmp_path / "three/.distract/runs").iterdir()) / "run.json").read_text())
    assert identity["parameters"]["identity"]["server"] == fast.url


def test_a_server_that_returns_gets_requests_again(tmp_path: Path) -> None:
    """It refuses for a while in the middle of the run."""
    begin: list[float] = []

    def moody(request: ReceivedRequest) -> Answer:
        begin.append(time.monotonic())
        is_out = len(begin) > 20 and time.monotonic() - begin[19] < 1.0
        return Answer({"error": {"message": "restarting"}}, 503) if is_out else Answer(opinion(request), delay=FAST)

    with Timed(FAST) as steady, FakeServer(moody) as other:
        name = judge(steady, other)
        result = run_process(*ATTACK, "--limit", 60, "--concurrency", AT_ONCE, "--judge", name, folder=tmp_path)
    assert result.code == 0, result.err
    assert "got no answer" not in result.err
    # While it was out it was tried a few times; afterwards it took its part again.
    out = [t for t in begin[20:] if t - begin[19] < 1.0]
    assert len(out) < 20
    assert len([t for t in begin if t - begin[19] > 1.0]) > 40


def test_two_servers_that_fail_every_other_time_do_what_one_would(tmp_path: Path) -> None:
    """Both fail while they are compared, which was the end after one answer."""

    def flap() -> FakeServer:
        calls: list[int] = []

        def reply(request: ReceivedRequest) -> Answer:
            calls.append(1)
            return Answer(opinion(request)) if len(calls) % 6 < 3 else Answer({"error": {"message": "restarting"}}, 503)

        return FakeServer(reply)

    with flap() as one, flap() as two:
        result = run_process(
            *ATTACK, "--limit", 8, "--concurrency", AT_ONCE, "--judge", judge(one, two), folder=tmp_path
        )
    assert result.code == 0, result.err
    assert len(rows(tmp_path)) > 1000


@pytest.mark.parametrize("answer", [refusal(400, "model not loaded"), Answer(b"<html>")])
def test_requests_that_a_broken_server_refuses_go_to_the_other(answer: Answer, tmp_path: Path) -> None:
    """It answers at once, and must neither swallow the run nor hold up the server that works."""
    calls: list[int] = []

    def break_down(request: ReceivedRequest) -> Answer:
        calls.append(1)
        return answer if len(calls) > 20 else Answer(opinion(request), delay=FAST)

    with Timed(FAST) as steady, FakeServer(break_down) as other:
        name, begin = judge(steady, other), time.monotonic()
        result = run_process(*ATTACK, "--limit", 30, "--concurrency", AT_ONCE, "--judge", name, folder=tmp_path)
    assert result.code == 0, result.err
    assert "got no answer" not in result.err
    assert time.monotonic() - begin < 25  # alone, it takes five seconds
    assert len(calls) < 60


def test_a_run_ends_when_no_server_is_left(tmp_path: Path) -> None:
    with Timed(FAST, dies_after=30) as one, Timed(FAST, dies_after=30) as two:
        options = ("--limit", 60, "--concurrency", AT_ONCE, "--model-option", "attempts=2")
        result = run_process(*ATTACK, *options, "--judge", judge(one, two), folder=tmp_path)
    assert result.code == 4
    assert f"the servers {one.url}, {two.url} do not answer" in result.err.splitlines()[-1]
    assert count_replies(tmp_path / STORE) > 20


def test_servers_that_disagree_end_before_any_verdict_counts(tmp_path: Path) -> None:
    with Timed() as one, Timed() as same, Timed(other=True) as other:
        result = run_process(*ATTACK, "--limit", 8, "--judge", judge(one, same, other), folder=tmp_path)
        assert result.code == 3
        last = result.err.splitlines()[-1]
        assert last.startswith(f"distract: the servers disagree: {other.url} beside the first server: replaced: ")
        assert " of 8 verdicts differ" in last
        assert count_replies(tmp_path / STORE) == 2  # the probes
        alike = run_process(*ATTACK, "--limit", 8, "--judge", judge(one, same), "--out", "run", folder=tmp_path)
        assert alike.code == 0, alike.err
        assert "servers: 16 questions asked again, 0 answered differently" in alike.err
        manifest = json.loads((tmp_path / "run/manifest.json").read_text())
        assert manifest["servers"]["servers"] == [one.url, same.url]
        sent = len(one.chats) + len(same.chats)
        # A complete run asks nothing, and neither does one whose replies are all stored.
        for out in ("run", "again"):
            again = run_process(*ATTACK, "--limit", 8, "--judge", judge(one, same), "--out", out, folder=tmp_path)
            assert again.code == 0
        assert len(one.chats) + len(same.chats) == sent
        gate = ("gate", *ATTACK[1:], "--limit", 8, "--max-flip-rate", 0.5)
        refused = run_process(*gate, "--judge", judge(one, other), folder=tmp_path)
        assert refused.code == 3
        assert f"the servers disagree: {other.url} beside its stored replies: replaced" in refused.words
        changed = run_process(*gate, "--judge", judge(other), "--same-as", one.url, folder=tmp_path)
        assert changed.code == 3
        assert "the judge has changed" in changed.words


def test_a_server_that_is_down_at_the_start_is_left_out(tmp_path: Path) -> None:
    with Timed() as one, Timed() as down:
        down.die()
        options = ("--limit", 8, "--model-option", "attempts=1")
        result = run_process(*ATTACK, *options, "--judge", judge(down, one), folder=tmp_path)
        assert result.code == 0, result.err
        assert f"{down.url} does not answer: " in result.err
        assert f"this run goes on without {down.url}" in result.err
    assert len(rows(tmp_path)) > 1000


def test_a_server_that_the_canary_misses_is_not_asked_again(tmp_path: Path) -> None:
    """More requests follow those of the canary, and nobody waits for the server that is down."""
    with Timed() as one, Timed() as down:
        gate = ("gate", *ATTACK[1:], "--max-flip-rate", 0.9, "--model-option", "attempts=1")
        stored = run_process(*gate, "--limit", 30, "--judge", judge(one, down), folder=tmp_path)
        assert stored.code == 3, stored.err  # inconclusive
        down.die()
        result = run_process(*gate, "--limit", 40, "--judge", judge(one, down), folder=tmp_path)
    assert result.code == 3, result.err
    assert "canary: 8 questions asked again" in result.err
    assert result.err.count(f"this run goes on without {down.url}") == 1


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [(404, "no model `m`", "has no such address or model: 404"), (401, "bad key", "refuses: 401 bad key")],
)
def test_errors_of_the_user_at_any_server_end_with_2(status: int, message: str, reason: str, tmp_path: Path) -> None:
    def refuse(request: ReceivedRequest) -> Answer:
        return refusal(status, message)

    with Timed() as one, FakeServer(refuse, probed=refuse) as other:
        result = run_process(*ATTACK, "--limit", 4, "--judge", judge(one, other), folder=tmp_path)
        assert not one.chats
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith(f"distract: the server {other.url} {reason}")


def test_words_and_probabilities_do_not_mix(tmp_path: Path) -> None:
    """One reports no log-probabilities, which shows before any request, even where the verdicts are words."""

    def wordy(request: ReceivedRequest) -> dict[str, Any]:
        answer = opinion(request)
        del answer["choices"][0]["logprobs"]
        return answer

    for protocol in ("pairwise", "cot"):
        attack = ("attack", "--protocol", protocol, *ATTACK[3:])
        with Timed() as one, FakeServer(wordy, probed=wordy) as other:
            result = run_process(*attack, "--limit", 4, "--judge", judge(one, other), folder=tmp_path)
            assert not one.chats
        assert result.code == 2
        line = f"distract: the servers disagree: {other.url} takes requests in another form than {one.url} ("
        last = result.err.splitlines()[-1]
        assert last.startswith(line)
        assert "probabilities false instead of true" in last
