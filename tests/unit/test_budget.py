"""Sizes that may only fall: lines of Python per room and per file; ``tests/slow/test_budget_slow.py`` counts calls.

A *room* is an entry of ``distract``, a folder of ``studies``, or another folder at the top of the repository. Each line
counts in one room: those of ``distract/studies`` are its own modules. The limit of a room is its ``base`` in
``budget.toml``, which may only fall, plus its ``raises``.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUDGET = "tests/unit/budget.toml"
PACKAGE = ("distract", "judges", "attacks", "leaderboards")
COUNTED = (*PACKAGE, "tests")
FILE_LIMIT = 450
SLACK, SLACK_SHARE = 60, 0.02
"""The lines that a room may lie below its limit: this many, or this share of the limit if that is more."""


@dataclass(frozen=True)
class Room:
    """The budget of a room, in lines."""

    base: int
    limit: int


def read_rooms(text: str) -> dict[str, Room]:
    """The rooms of a budget; a raise states its lines, the issue that allows them, and why."""
    rooms = tomllib.loads(text)["rooms"]
    for name, room in rooms.items():
        for entry in room["raises"]:
            assert entry.keys() == {"lines", "issue", "why"}, f"{name}: a raise has lines, issue and why, not {entry}"
            assert entry["lines"] > 0, f"{name}: a raise adds lines; to fall, lower the base"
            assert entry["why"], f"{name}: a raise says why"
    raised = {name: sum(entry["lines"] for entry in room["raises"]) for name, room in rooms.items()}
    return {name: Room(room["base"], room["base"] + raised[name]) for name, room in rooms.items()}


def count_lines(root: Path = ROOT) -> dict[str, int]:
    """The lines of each Python file that a budget covers, by its path below the root."""
    paths = sorted(path for folder in COUNTED for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): len(path.read_bytes().splitlines()) for path in paths}


def room_of(file: str) -> str:
    """An entry of ``distract``, a folder of ``studies``, or a folder at the top."""
    parts = Path(file).parts
    depth = 1 if parts[0] != "distract" else 3 if parts[1] == "studies" and len(parts) > 3 else 2
    return "/".join(parts[:depth])


def check_rooms(rooms: Mapping[str, Room], files: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each room that is too large, or so small that its base can fall."""
    sizes = Counter(dict.fromkeys(rooms, 0))
    for file, lines in files.items():
        sizes[room_of(file)] += lines
    for name, lines in sorted(sizes.items()):
        if (room := rooms.get(name)) is None:
            yield f"{name}: {lines:,} lines, but no budget; add it to {BUDGET} with a base of {lines}"
        elif lines > room.limit:
            yield (
                f"{name}: {lines:,} lines, {lines - room.limit:,} above its limit of {room.limit:,}; remove lines, or "
                f"add a raise within the allowance of an issue to {BUDGET}"
            )
        elif room.limit - lines > max(SLACK, SLACK_SHARE * room.limit):
            base = room.base - (room.limit - lines)
            yield (
                f"{name}: {lines:,} lines, {room.limit - lines:,} below its limit of {room.limit:,}; lower its base to "
                f"{base} in {BUDGET}, in the same commit"
            )


ROOMS = read_rooms((ROOT / BUDGET).read_text(encoding="utf-8"))


def test_rooms_keep_their_budget() -> None:
    if complaints := list(check_rooms(ROOMS, count_lines())):
        pytest.fail("\n".join(complaints), pytrace=False)


def test_files_can_be_read_in_one_sitting() -> None:
    files = {file: lines for file, lines in count_lines().items() if not file.startswith("tests/")}
    assert {file: lines for file, lines in files.items() if lines > FILE_LIMIT} == {}


@pytest.mark.parametrize("name", ROOMS)
def test_hundred_lines_more_break_the_budget_of_their_room_alone(name: str) -> None:
    files = {room if room.endswith(".py") else f"{room}/a.py": ROOMS[room].limit for room in ROOMS}
    assert list(check_rooms(ROOMS, files)) == []
    (file,) = (file for file in files if room_of(file) == name)
    (complaint,) = check_rooms(ROOMS, {**files, file: files[file] + 100})
    assert complaint.startswith(f"{name}: {files[file] + 100:,} lines, 100 above its limit of {files[file]:,};")


@pytest.mark.parametrize(
    ("file", "lines", "complaint"),
    [
        ("distract/core/deep/a.py", 1030, "distract/core: 1,030 lines, 30 above its limit of 1,000; remove lines, or"),
        ("distract/core/a.py", 940, ""),
        ("distract/core/a.py", 939, "distract/core: 939 lines, 61 below its limit of 1,000; lower its base to 839 in"),
        ("distract/studies/gate/a.py", 11, "distract/studies/gate: 11 lines, 1 above its limit of 10;"),
        ("distract/studies/new/a.py", 7, "distract/studies/new: 7 lines, but no budget; add it"),
        ("distract/new.py", 7, "distract/new.py: 7 lines, but no budget;"),
        ("tests/unit/a.py", 9800, ""),
        ("tests/unit/a.py", 9799, "tests: 9,799 lines, 201 below its limit of 10,000; lower its base to 9799 in"),
    ],
)
def test_complaint_names_room_lines_and_what_to_do(file: str, lines: int, complaint: str) -> None:
    core = '{base = 900, raises = [{lines = 100, issue = 1, why = "x"}]}'
    others = '"distract/studies/gate" = {base = 10, raises = []}\ntests = {base = 10000, raises = []}'
    files = {"distract/core/full.py": 1000, "distract/studies/gate/full.py": 10, "tests/full.py": 10_000}
    files = {other: size for other, size in files.items() if room_of(other) != room_of(file)} | {file: lines}
    complaints = list(check_rooms(read_rooms(f'[rooms]\n"distract/core" = {core}\n{others}'), files))
    assert [text[: len(complaint)] for text in complaints] == [complaint] * bool(complaint)


@pytest.mark.parametrize(
    "entry", ["{lines = 5}", "{lines = -5, issue = 1, why = 'x'}", "{lines = 5, issue = 1, why = ''}"]
)
def test_raise_without_its_reason_is_refused(entry: str) -> None:
    with pytest.raises(AssertionError, match="distract: a raise"):
        read_rooms(f"[rooms]\ndistract = {{base = 1, raises = [{entry}]}}")
