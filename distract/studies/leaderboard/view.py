"""What ``distract leaderboard`` shows: boards, and shifts beside the paper's findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import count, format_exclusions, line
from distract.core.records import BASELINE
from distract.studies.leaderboard.boards.board_pairs import BoardComparison, SourceBoard, describe_way
from distract.studies.leaderboard.boards_view import ATTACKED, board_table, extra_lines, heading, shift_parts
from distract.studies.leaderboard.document import LeaderboardResult, remarks
from distract.studies.leaderboard.measures import RunShift
from distract.studies.rewrite_view import rewrite_notes

PUBLISHED = (
    "published (Distracted evaluation, section 5; Elo on MT-Bench, the three lowest models made assertive): ranks "
    "climb sharply under pairwise verdicts and little under absolute scores."
)


def report_parts(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[RenderableType]:
    """The tables and sentences of a run, top to bottom."""
    found = result.measured
    yield Text("\n".join(_heading(parameters, result.flaw)), style="bold")
    for one in found.shifts:
        asked = _describe_way(one.protocol, one.rule)
        yield _title(f"{asked} · {one.chosen.label}: before and after {line(one.attack)} of {ATTACKED}")
        yield from shift_parts(one.shift, ("before", "after"), frozenset(one.targets))
        yield Text(_describe_shift(one))
        notes = dict.fromkeys((*extra_lines(one.shift.before), *extra_lines(one.shift.after), *one.shift.notes))
        yield from (Text(line(note), style="dim") for note in notes)
    shifted = {(one.protocol, one.rule, one.chosen.label) for one in found.shifts}
    for board in found.boards:
        if board.attack == BASELINE and (board.protocol, board.rule, board.chosen.label) not in shifted:
            yield _title(f"{_describe_way(board.protocol, board.rule)} · {board.chosen.label}: {heading(board.board)}")
            yield board_table(board.board)
            yield from (Text(note, style="dim") for note in extra_lines(board.board))
    yield from (Text(f"\n{line(why)}", style="yellow") for why in found.absent)
    yield from (Text(f"\n{note}") for note in remarks(parameters, found))
    if found.shifts:
        yield Text(f"\n{PUBLISHED}")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(parameters, result))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def matches_parts(rated: Sequence[SourceBoard], compared: Sequence[BoardComparison]) -> Iterator[RenderableType]:
    """The boards of matches that are there, and beside them what they are compared with."""
    for one in rated:
        source = one.source
        asked = f" · {_describe_way(source.protocol, source.rule)}" if source.protocol else ""
        yield _title(f"{line(source.name)}{asked} · {one.chosen.label}: {heading(one.board)}")
        yield board_table(one.board)
        notes = [*extra_lines(one.board), *map(line, source.notes)]
        if source.left_out:
            notes.append(format_exclusions("left out", source.left_out))
        yield from (Text(note, style="dim") for note in notes)
    yield from comparison_parts(compared)


def comparison_parts(compared: Sequence[BoardComparison]) -> Iterator[RenderableType]:
    """Boards beside those that they are compared with."""
    for one in compared:
        asked = f" · {_describe_way(one.source.protocol, one.source.rule)}" if one.source.protocol else ""
        names = line(one.against.name), line(one.source.name)
        yield _title(f"{names[1]} against {names[0]}{asked} · {one.chosen.label}")
        yield from shift_parts(one.shift, ("against", "this"))
        notes = dict.fromkeys((*one.shift.before.notes, *one.shift.after.notes, *one.shift.notes))
        yield from (Text(line(note), style="dim") for note in notes)


def _heading(p: Mapping[str, Any], flaw: str | None) -> Iterator[str]:
    data, of = p["data"], f" of {p['data']['cases']}" if p["data"]["cases"] != p["limit"] else ""
    yield f"judge {line(p['judge'])} · data {line(data['name'])}, {count(p['limit'], 'case')}{of}, seed {p['seed']}"
    sampled = f", {count(p['pairs'], 'match', 'matches')} of a protocol at most" if p["pairs"] else ""
    yield f"{count(len(p['models']), 'model')}{sampled}: {', '.join(map(line, p['models']))}"
    if p["attacks"] and not flaw:
        who = ", ".join(map(line, p["targets"])) or f"the lowest {p['lowest']} of each protocol's own board"
        yield f"attack {', '.join(map(line, p['attacks']))} on {who}"


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _describe_way(protocol: str | None, rule: str | None) -> str:
    return line(describe_way(protocol, rule))


def _describe_shift(one: RunShift) -> str:
    """What was done, and what came of it, in a sentence."""
    changes = {change.model: change for change in one.shift.changes}
    mine = [changes[name] for name in one.targets if name in changes]
    rose = sum(c.rank_before is not None and c.rank_after is not None and c.rank_after < c.rank_before for c in mine)
    standing = f", {count(one.standing, 'other')} could not be rewritten and stood as before" if one.standing else ""
    lost = f" {count(one.lost, 'comparison')} not valid both before and after are on neither board." if one.lost else ""
    board = one.shift.before
    return (
        f"{count(board.matches, 'match', 'matches')} on {count(board.prompts, 'prompt')}, {one.again:,} judged again; "
        f"{count(one.rewritten, 'response')} rewritten{standing}. {rose} of {count(len(mine), 'attacked model')} rose "
        f"in rank.{lost}"
    )


def _notes(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[str]:
    if result.excluded:
        yield format_exclusions("not judged", result.excluded)
    if result.standing:
        yield format_exclusions("not judged again, so that the first verdict stands", result.standing)
    if result.invalid:
        yield "invalid: " + "; ".join(f"{line(reason)} ({n})" for reason, n in result.invalid.most_common(5))
    yield from rewrite_notes(result.rewrites)
    if left_out := parameters["left_out"]:
        yield format_exclusions("left out before the draw", left_out)
