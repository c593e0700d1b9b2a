"""Test a judge behind a server's name: replaced, drifting, run with --fresh, identified by a version."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import request, write_rows
from command_result import CommandResult, Run, check_refusal
from hypothesis import given, strategies as st
from loopback import Answer, FakeServer, ReceivedRequest, completion, refusal, token
from loops import each

from distract.core import job
from distract.core.errors import BackendError
from distract.core.frozen import ASKED, Reading
from distract.core.records import Reply
from distract.core.runs import load
from distract.core.store import Store
from distract.models.opener import open_judge
from distract.models.options import Options
from distract.studies.gate.identity import NARROW, choose_stored

pytest.importorskip("openai")
pytestmark = pytest.mark.usefixtures("no_keys")

Judge = Callable[[str, str], float]
"""The probability that the first of two responses is the better one."""

FILES = ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json")
RULES = ("--generator", "rules", "--attack", "prolixity")
UNPROBED = ("--no-probe", "--unlabelled-reason", "the judge of a test")
REASON = "the judge has changed"


def fair(first: str, _: str) -> float:
    """Red wins, whatever the other response is."""
    return 0.85 if "red" in first else 0.15


def prefer_longer(first: str, second: str) -> float:
    """The longer response wins."""
    return 0.9 if len(first) > len(second) else 0.1


def prefer_red_slightly(first: str, _: str) -> float:
    """Red wins, by very little."""
    return 0.52 if "red" in first else 0.48


@dataclass
class Endpoint:
    """A server whose ``judge`` can be replaced under an unchanged name.

    Attributes:
        turned: the number of next answers to invert.
        says: whether it returns probabilities.
    """

    judge: Judge = fair
    turned: int = 0
    says: bool = True
    silent: bool = False
    asked: list[ReceivedRequest] = field(default_factory=list)

    def __call__(self, request: ReceivedRequest) -> Answer | dict[str, Any]:
        if self.silent:
            return refusal(500, "out of order")
        if not self.says and "logprobs" in request.body:
            return refusal(400, "unknown parameter: logprobs", param="logprobs")
        self.asked.append(request)
        begun = "continue_final_message" in request.body
        if responses := re.findall(r"# Response [AB]\n(.*?)(?=\n\n#)", request.content, re.DOTALL):
            p = self._of(*responses)
            if self.says:
                return completion("A", logprobs=[token("A", {"A": p, "B": 1 - p})], finish="length")
            return completion(f"{'' if begun else '[['}{'A' if p > 0.5 else 'B'}]]")
        if responses := re.findall(r"# Output \([ab]\)\n(.*?)(?=\n\n#)", request.content, re.DOTALL):
            word = "a" if self._of(*responses) > 0.5 else "b"
            # A server that batches does not repeat its answers verbatim.
            return completion(f"One has {len(self.asked)} merits. Therefore, Output ({word}) is better.")
        return completion(f"It has {len(self.asked)} merits.")

    def _of(self, first: str, second: str) -> float:
        p = self.judge(first, second)
        if self.turned > 0:
            self.turned -= 1
            return 1 - p
        return p

    def new(self) -> int:
        """The number of requests since the last call."""
        number = len(self.asked)
        self.asked.clear()
        return number


@dataclass
class Shop:
    """A server with a gate before it."""

    endpoint: Endpoint
    url: str
    run: Run

    def gate(self, *options: object, protocol: str = "pairwise", out: str = "r") -> CommandResult:
        where = ("--judge", f"{self.url}#m", "--model-option", "attempts=1", "--data", "cases.jsonl", "--out", out)
        return self.run("gate", *where, *RULES, "--protocol", protocol, *UNPROBED, "--max-flip-rate", "0.2", *options)

    def attack(self, *options: object, out: str) -> CommandResult:
        where = ("--judge", f"{self.url}#m", "--data", "cases.jsonl", "--limit", "all", "--out", out)
        return self.run("attack", *where, *RULES, "--protocol", "pairwise", *options)

    @property
    def manifest(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
        return document

    @property
    def canary(self) -> dict[str, Any]:
        """The canary in the manifest, without its answers, which must bear out its figures."""
        canary = dict(self.manifest["canary"])
        answers, _ = canary.pop("answers"), canary.pop("servers")
        keys = {key for row in load(Path("r")).rows for key in row.keys}
        assert len({answer["key"] for answer in answers} & keys) == len(answers) == canary["asked"]
        assert sum(one["before"]["verdict"] != one["now"]["verdict"] for one in answers) == canary["differing"]
        return canary


@pytest.fixture
def shop(run: Run) -> Iterator[Shop]:
    pairs = list[dict[str, Any]]()
    texts = {"x": "I think red is colour {}.", "y": "Blue might be the nicest colour {}."}
    for i in range(30):
        responses = [{"author": author, "text": text.format(i)} for author, text in texts.items()]
        pairs.append({"id": f"c{i}", "prompt": f"Name colour {i}.", "responses": responses})
    write_rows("cases.jsonl", pairs)
    endpoint = Endpoint()
    with FakeServer(endpoint) as server:
        yield Shop(endpoint, server.url, run)


def read_files() -> Mapping[str, bytes]:
    return {name: Path("r", name).read_bytes() for name in FILES}


@pytest.mark.parametrize("gone", [(), ("r",)], ids=["the run is complete", "only the store is cached"])
def test_replaced_judge_is_detected_and_its_requests_repeated(shop: Shop, gone: tuple[str, ...]) -> None:
    assert (shop.gate().code, shop.endpoint.new() > ASKED) == (0, True)
    before = read_files()
    for path in gone:
        shutil.rmtree(path)

    shop.endpoint.judge = prefer_longer
    changed = shop.gate("--junit", "j.xml", "--summary", "s.md")
    assert (changed.code, shop.endpoint.new()) == (3, ASKED)
    assert REASON in changed.words
    assert "INCONCLUSIVE" in changed.words
    assert all(f"--{option}" in changed.words for option in ("fresh", "judge-version", "trust-store"))
    suite = ElementTree.parse("j.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert REASON in Path("j.xml").read_text(encoding="utf-8")
    assert REASON in Path("s.md").read_text(encoding="utf-8")
    assert gone or read_files() == before
    assert (shop.gate("--json").document["decision"], shop.gate("--certify").code) == ("inconclusive", 1)

    # The change is noticed only once, because the new replies do not replace the stored ones.
    assert (shop.gate("--fresh").code, shop.endpoint.new() > ASKED) == (1, True)
    again = shop.gate()
    assert (again.code, shop.endpoint.new()) == (1, ASKED)
    assert shop.canary == {"status": "unchanged", "asked": ASKED, "differing": 0, "moved": 0, "largest_move": 0.0}


def test_unchanged_judge_costs_eight_requests_and_same_bytes(shop: Shop) -> None:
    assert shop.gate().code == 0
    assert "canary" not in shop.manifest
    before, number = read_files(), shop.endpoint.new()
    shop.endpoint.judge = lambda *two: fair(*two) - 0.05
    again = shop.gate()
    assert (again.code, shop.endpoint.new(), read_files()) == (0, ASKED, before)
    assert shop.canary == {"status": "unchanged", "asked": ASKED, "differing": 0, "moved": 0, "largest_move": 0.05}
    assert (shop.manifest["replies"]["made"], shop.manifest["replies"]["stored"]) == (0, number)
    assert "canary: 8 questions asked again, 0 answered differently, probabilities moved by up to 0.05" in again.err
    # Drift is measured against the stored replies, not against the latest ones.
    shop.endpoint.judge = lambda *two: fair(*two) - 0.11
    assert (REASON in shop.gate().words, shop.endpoint.new()) == (True, ASKED)


@pytest.mark.parametrize(("turned", "code"), [(1, 0), (2, 3)])
def test_one_changed_outcome_is_noise_two_show_another_judge(shop: Shop, turned: int, code: int) -> None:
    shop.endpoint.judge = prefer_red_slightly
    assert shop.gate().code == 0
    shop.endpoint.turned = turned
    assert shop.gate().code == code
    if not code:
        assert shop.canary == {"status": "unchanged", "asked": ASKED, "differing": 1, "moved": 0, "largest_move": 0.04}


@pytest.mark.parametrize("protocol", ["pairwise", "cot", "prepair", "swap-synthesize"])
def test_verdicts_identify_a_judge_without_probabilities(shop: Shop, protocol: str) -> None:
    shop.endpoint.says = False
    assert (shop.gate(protocol=protocol).code, shop.endpoint.new() > 0) == (0, True)
    again = shop.gate(protocol=protocol)
    assert (again.code, shop.endpoint.new()) == (0, ASKED)
    assert shop.canary == {"status": "unchanged", "asked": ASKED, "differing": 0, "moved": 0, "largest_move": None}
    shop.endpoint.judge = prefer_longer
    changed = shop.gate(protocol=protocol)
    assert (changed.code, REASON in changed.words) == (3, True)
    assert shop.gate("--fresh", protocol=protocol).code == 1


def test_sampled_verdicts_cannot_identify_a_judge(shop: Shop) -> None:
    sampled = ("--samples", "3")
    assert shop.gate(*sampled, protocol="cot").code == 0
    again = shop.gate(*sampled, protocol="cot")
    assert (again.code, "all of them are sampled" in again.words) == (3, True)
    assert shop.gate(*sampled, "--trust-store", protocol="cot").code == 0
    assert shop.gate(*sampled, "--fresh", protocol="cot").code == 0


def test_trusting_the_store_sends_no_request(shop: Shop) -> None:
    assert (shop.gate().code, shop.endpoint.new() > 0) == (0, True)
    shop.endpoint.judge = prefer_longer
    complete = shop.gate("--trust-store")
    assert (complete.code, "this run is complete" in complete.err) == (0, True)
    shutil.rmtree("r")
    assert (shop.gate("--trust-store").code, shop.endpoint.new()) == (0, 0)


def test_folder_without_replies_is_no_evidence(shop: Shop) -> None:
    assert shop.gate().code == 0
    shop.endpoint.judge = prefer_longer
    assert shop.gate("--store", "other.sqlite").code == 1


def test_unreachable_server_never_passes(shop: Shop) -> None:
    assert shop.gate().code == 0
    before, shop.endpoint.silent = read_files(), True
    assert (shop.gate().code, read_files()) == (4, before)


def kill(patch: pytest.MonkeyPatch, after: int) -> None:
    """End the next run after this number of replies; before the first reply, it has only opened an epoch."""
    put, stored = Store.put, [0]

    def puts(store: Store, replies: Any) -> None:
        batch = list(replies)
        if store.epoch:  # estimates are not stored
            if stored[0] >= after:
                raise BackendError("killed")
            stored[0] += len(batch)
        put(store, batch)

    def stops(*_: object, **__: object) -> None:
        raise BackendError("killed")

    patch.setattr(Store, "put", puts) if after else patch.setattr(job, "open_stores", stops)


@pytest.mark.parametrize("after", [0, 4])
@pytest.mark.parametrize("command", ["gate", "attack"])
def test_killed_fresh_run_resumes_without_the_option(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, command: str, after: int
) -> None:
    def ask(*options: object) -> CommandResult:
        return shop.gate(*options) if command == "gate" else shop.attack(*options, out="r")

    assert ask().code == 0
    shop.endpoint.judge = prefer_longer
    with monkeypatch.context() as patch:
        kill(patch, after)
        stopped = ask("--fresh")
        assert (stopped.code, "the same command without --fresh resumes" in stopped.err) == (4, True)
    shop.endpoint.new()
    resumed = ask()
    assert "this run is complete" not in resumed.err
    assert resumed.code == (1 if command == "gate" else 0)
    interrupted = read_files()
    assert (shop.manifest["replies"]["stored"] > 0) == (after > 0)
    # An uninterrupted run gives the same result.
    assert (ask("--fresh").code, read_files()) == (resumed.code, interrupted)


PLANTED = ("--judge", "planted:bold", "--protocol", "pairwise", "--limit", "2")


@each(
    "command",
    ("attack", *PLANTED, "--generator", "rules"),
    ("gate", *PLANTED, "--generator", "rules", "--max-flip-rate", "0.2"),
    ("meta", *PLANTED, "--judge", "planted:fair"),
    ("consistency", *PLANTED, "--data", "three.jsonl"),
    ("leaderboard", *PLANTED, "--data", "three.jsonl"),
)
def test_every_judging_command_supports_fresh(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    responses = ([{"author": author, "text": f"{author} is {i}"} for author in "xyz"] for i in range(2))
    write_rows("three.jsonl", [{"id": f"c{i}", "prompt": f"{i}?", "responses": r} for i, r in enumerate(responses)])
    judges = command.count("--judge")
    first, again = run(*command), run(*command)
    assert (first.err.count(" made"), again.err.count("this run is complete")) == (judges, judges)
    fresh = run(*command, "--fresh")
    assert (fresh.code, fresh.out, fresh.err.count("replies: 0 were stored")) == (first.code, first.out, judges)
    # Whenever the command was killed, no judge of several uses its old replies.
    with monkeypatch.context() as patch:
        kill(patch, 0)
        assert run(*command, "--fresh").code == 4
    assert run(*command).err.count("replies: 0 were stored") == judges


def test_explain_supports_fresh(run: Run) -> None:
    assert run("attack", *PLANTED, "--generator", "rules", "--attack", "assertiveness", "--out", "r").code == 0
    flipped = next(row.case for row in load(Path("r")).rows if row.attack != "none" and row.judgments)
    stored = [run("explain", "r", flipped, *more).err for more in ((), (), ("--fresh",), ())]
    assert [re.search(r"replies: (\d+) were", err)[1] == "0" for err in stored] == [False, False, True, False]  # type: ignore[index]


def test_each_fresh_run_starts_an_epoch_and_the_newest_counts(shop: Shop) -> None:
    epochs = []
    for options in ((), ("--fresh",), ("--fresh",), ()):
        assert shop.gate(*options).code == 0
        epochs.append(shop.manifest["epoch"])
    first, second, third, last = epochs
    assert 0 == first < second < third == last
    assert shop.endpoint.new() > 3 * ASKED


def test_epochs_belong_to_one_judge_in_any_store(tmp_path: Path) -> None:
    who, other = {"model": "m"}, {"model": "n"}
    with Store(tmp_path / "s", who) as store, Store(tmp_path / "s", other) as beside:
        keys = [store.key(request())]
        for one in (store, beside):
            one.put([(one.key(request()), Reply("old"))])
        for _ in range(3):
            store.renew()
            keys.append(store.key(request()))
            assert (len(store), store.get(keys[-1:])) == (0, {})
            store.put([(keys[-1], Reply("new"))])
        assert len({*keys}) == 4
        assert store.get(keys[:1])[keys[0]].text == "old"
        assert len(beside) == 1
    with Store(tmp_path / "s", who) as store, Store(tmp_path / "s", other) as beside:
        assert (store.key(request()), store.epoch > 0, beside.epoch) == (keys[-1], True, 0)
    with Store(tmp_path / "t", who) as elsewhere:
        elsewhere.renew()
        assert elsewhere.key(request()) not in keys


def test_versions_separate_judges_of_one_name(shop: Shop) -> None:
    def ask(version: str, out: str) -> CommandResult:
        return shop.gate("--judge-version", version, out=out)

    assert (ask("july", "a").code, shop.endpoint.new() > 0) == (0, True)
    shop.endpoint.judge = prefer_longer
    assert ask("august", "b").code == 1
    assert shop.endpoint.new() > ASKED
    parameters = [json.loads(Path(out, "run.json").read_text(encoding="utf-8"))["parameters"] for out in ("a", "b")]
    assert [one["identity"]["version"] for one in parameters] == ["july", "august"]
    shop.endpoint.judge = fair
    assert (ask("july", "a").code, shop.endpoint.new()) == (0, ASKED)


@pytest.mark.parametrize("judge", ["planted:fair", "planted:longer"])
def test_any_judge_accepts_a_version(run: Run, judge: str) -> None:
    command = ("attack", "--judge", judge, "--generator", "rules", "--limit", "2", "--json")
    results = [run(*command, *more) for more in ((), ("--judge-version", "2"))]
    assert all("made" in one.err and " 0 were stored" in one.err for one in results)
    assert results[0].results == results[1].results
    check_refusal(run(*command, "--judge-version", " "), "--judge-version is empty")


@pytest.mark.parametrize(
    "name", ["http://h/v1#m", "planted:fair", "smollm2-135m", pytest.param("vllm:smollm2-135m", marks=pytest.mark.vllm)]
)
def test_every_backend_identity_includes_the_version(name: str) -> None:
    for library in ("transformers", "torch") if name == "smollm2-135m" else ("vllm",) if "vllm" in name else ():
        pytest.importorskip(library)
    plain, version = open_judge(name).identity, open_judge(name, Options(judge_version="2")).identity
    assert version == {**plain, "version": "2"}


def test_records_state_their_time_and_origin(shop: Shop) -> None:
    assert (shop.attack("--judge-version", "july", out="a").code, shop.endpoint.new() > 0) == (0, True)
    shop.endpoint.judge = prefer_longer
    decided = shop.run("gate", "a", "--max-flip-rate", "0.2", *UNPROBED, "--json")
    assert (decided.code, shop.endpoint.new()) == (0, 0)
    note = decided.document["notes"][0]
    assert re.match(r"judged on \d{4}-\d\d-\d\d at \d\d:\d\d UTC by http://127\.0\.0\.1:\d+/v1#m, engine openai", note)
    assert "version july" in note
    (Path("a") / "manifest.json").write_text('{"times": [], "epoch": "x"}', encoding="utf-8")
    assert "judged at an unknown time by http" in shop.run("gate", "a", "--max-flip-rate", "0.2").words
    for option in (("--trust-store",), ("--fresh",), ("--judge-version", "x")):
        check_refusal(shop.run("gate", "a", "--max-flip-rate", "0.2", *option), f"{option[0]} needs --judge")


def test_run_from_stored_replies_is_reported_and_not_repeated(shop: Shop) -> None:
    assert shop.attack(out="a").code == 0
    shop.endpoint.judge = prefer_longer
    assert shop.attack(out="b").code == 0
    shutil.copytree("a", "copy")
    (note, *_) = shop.run("gate", "b", "--max-flip-rate", "0.2", "--json").document["notes"]
    assert re.match(r"put together on .* from stored replies of http://.*; nothing was asked again", note)
    for other in ("b", "copy"):
        check_refusal(shop.run("gate", other, "--baseline", "a"), "they are the same run")
    manifest = json.loads(Path("b/manifest.json").read_text(encoding="utf-8"))
    for sums in ("", 1, None):  # a manifest may have been written by anybody
        Path("b/manifest.json").write_text(json.dumps({**manifest, "checksums": sums}), encoding="utf-8")
        assert shop.run("gate", "b", "--baseline", "a").code in (2, 3)


@given(st.dictionaries(st.binary(min_size=4, max_size=4), st.floats(0, 1), max_size=30))
def test_canary_picks_the_smallest_keys_half_of_them_narrow(drawn: dict[bytes, float]) -> None:
    verdicts = {key: Reading("a", ((1 + lead) / 2, (1 - lead) / 2)) for key, lead in drawn.items()}
    keys = choose_stored(verdicts)
    assert len(keys) == len({*keys}) == min(ASKED, len(drawn))
    narrow = sorted(key for key, verdict in verdicts.items() if (verdict.lead or 0) < NARROW)
    assert keys[: min(4, len(narrow))] == narrow[:4]
    rest = sorted(key for key in verdicts if key not in narrow[:4])
    assert keys[min(4, len(narrow)) :] == rest[: ASKED - min(4, len(narrow))]
