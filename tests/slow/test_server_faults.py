"""Test commands against a faulty server: they end cleanly, lose no reply and reveal no key."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults import FAULTS, KEY, Fault, Faulty, redirect
from forks import Forks, Process
from fuzzer import Fuzz
from loopback import FakeServer, ReceivedRequest, completion, token
from test_kills import read_run_files

COMMON = "--judge openai:m --generator rules --attack sycophancy --protocol pairwise --limit all --out run --store s"
COMMANDS = {
    "attack": f"attack {COMMON}",
    # Without --trust-store, a gate repeats some stored requests to check that the judge is unchanged.
    "gate": f"gate --trust-store --max-flip-rate 0.5 --max-invalid-rate 0.5 {COMMON}",
}
CONCURRENCY = 2
REDIRECTS = {f"a redirect to another host, {status}": status for status in (301, 302, 307, 308)}


def fair(request: ReceivedRequest) -> dict[str, Any]:
    """A judge without bias, so that a gate can pass."""
    places = {author: request.content.find(f"what {author} would") for author in "xy"}
    winner = "C" if min(places.values()) < 0 else "AB"[places["x"] > places["y"]]
    return completion(winner, logprobs=[token(winner, {winner: 0.9, "A": 0.04, "B": 0.03} | {winner: 0.9})])


@dataclass(frozen=True)
class Reference:
    """The exit code and the files of a command without a fault."""

    code: int
    files: dict[str, bytes]


@dataclass
class House:
    """The servers and folders of the commands."""

    server: Faulty
    elsewhere: FakeServer
    forks: Forks
    data: Path
    references: dict[str, Reference] = field(default_factory=dict)

    def run(self, command: str, folder: Path, timeout: float = 30.0, attempts: int = 2) -> Process:
        more = ("--data", str(self.data), "--base-url", self.server.url, "--concurrency", str(CONCURRENCY))
        limits = ("--model-option", f"attempts={attempts}", "--model-option", f"timeout={timeout}")
        return self.forks.start(folder, (*COMMANDS[command].split(), *more, *limits), {"OPENAI_API_KEY": KEY})

    def reference(self, command: str) -> Reference:
        if command not in self.references:
            self.server.begin(None, lambda number: False)
            process = self.run(command, self.data.parent / command)
            assert process.wait() == 0, process.err
            self.references[command] = Reference(0, read_run_files(process.folder))
        return self.references[command]

    def fault(self, name: str) -> Fault:
        if name in REDIRECTS:
            return redirect(self.elsewhere.url, REDIRECTS[name])
        return FAULTS[name]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("faults")
    text = "I think that number {} might be what {} would perhaps take, since it seems to be one of them."
    lines = [
        {
            "id": f"c{index}",
            "prompt": f"Which number, and why? This is question {index}.",
            "responses": [{"author": one, "text": text.format(index, one)} for one in "xy"],
            "preferred": "x",
        }
        for index in range(8)
    ]
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    with Faulty(fair) as server, FakeServer(fair) as other, Forks() as forks:
        yield House(server, other, forks, data)


def draw_strikes(draw: Random) -> tuple[str, Callable[[int], bool]]:
    """The requests that a fault affects: all, one, all from some request on, a range, or random ones."""
    first, seed = draw.randint(1, 14), draw.random()
    return draw.choice(
        [
            ("always", lambda number: True),
            (f"with request {first}", lambda number: number == first),
            (f"from request {first} on", lambda number: number >= first),
            (f"with 6 from request {first} on", lambda number: first <= number < first + 6),
            ("at random", lambda number: Random(f"{seed}:{number}").random() < 0.3),
        ]
    )


def count_valid(folder: Path) -> int:
    """The number of verdicts in a run."""
    lines = (folder / "run" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return sum(judgment["failure"] is None for line in lines for judgment in json.loads(line)["judgments"])


def wait_for_end(process: Process, command: str) -> int:
    """The exit code, after checks that it is known and justified, and that no file reveals the key."""
    code = process.wait()
    assert "Traceback" not in process.err, process.err
    assert code in (0, 1, 2, 3, 4), process.err
    if command == "gate" and code == 0:
        assert count_valid(process.folder) >= 5, "green though hardly anything was judged"
    for file in process.folder.rglob("*"):
        held = file.read_bytes() if file.is_file() else b""
        assert KEY.encode() not in held, f"the key is in {file.name}"
    return code


def check(house: House, name: str, folder: Path, draw: Random) -> None:
    """Run a command against a server with a fault, and against the same server without it."""
    command = draw.choice([*COMMANDS])
    fault, reference = house.fault(name), house.reference(command)
    when, strikes = draw_strikes(draw)
    house.server.begin(fault, strikes)
    house.elsewhere.asked.clear()
    # On a busy machine, a kept connection may be closed under the same request twice.
    code = wait_for_end(house.run(command, folder, fault.timeout, 4 if fault.answers else 2), command)
    message = f"{name}, {when}: {command} ended with {code}: {(folder / 'err').read_text(encoding='utf-8')[-600:]}"
    assert all(KEY not in str(request.headers) + str(request.raw) for request in house.elsewhere.asked), message
    answered = set(house.server.answered)
    if fault.answers:
        assert (code, read_run_files(folder)) == (reference.code, reference.files), message

    house.server.begin(None, lambda number: False)
    again = wait_for_end(house.run(command, folder), command)
    lost = answered & set(house.server.answered)
    # Requests under way when a command gives up a server are lost.
    assert len(lost) <= (4 * CONCURRENCY if code == 4 else 0), f"{len(lost)} answers lost to {message}"
    if not fault.changes:
        assert again == reference.code, message
        assert read_run_files(folder) == reference.files, message


@pytest.fixture(scope="module")
def bound(request: pytest.FixtureRequest) -> Fuzz:
    """The bounds of all faults together."""
    return Fuzz.of(request.config)


@pytest.mark.parametrize("name", [*FAULTS, *REDIRECTS])
def test_faulty_server_loses_no_reply_and_gets_no_key(house: House, bound: Fuzz, name: str, tmp_path: Path) -> None:
    if bound.is_over:
        pytest.skip("the time of all faults is up; see --slow-seconds")
    for round in range(10 if bound.is_nightly else 1):
        check(house, name, tmp_path / str(round), Random(f"{bound.seed}:{name}:{round}"))
        bound.spent += 1
