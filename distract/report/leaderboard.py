"""What ``distract leaderboard`` shows: the plan, one JSON document, boards, and shifts beside the paper's findings.

It knows no rating system, protocol or attack by name, and computes no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from distract.boards.comparing import Compared, SourceBoard, way
from distract.estimating import Estimate
from distract.printable import count, line, set_aside
from distract.records import BASELINE, Rewrite, Row
from distract.report.boards import ATTACKED, board_table, extra_lines, heading, shift_parts
from distract.report.progress import cost_lines, manner_lines, stored_lines
from distract.report.written import rewrite_notes
from distract.tournament.document import excluded, remarks
from distract.tournament.measuring import RunShift, measured

if TYPE_CHECKING:
    from distract.tournament.preparing import Prepared


PUBLISHED = (
    "published (Distracted evaluation, section 5; Elo on MT-Bench, the three lowest models made assertive): ranks "
    "climb sharply under pairwise verdicts and little under absolute scores."
)


def plan_document(prepared: Prepared, expected: Estimate) -> dict[str, Any]:
    """What a tournament takes, as JSON values."""
    return {
        "plan": {
            "models": prepared.job.parameters["models"],
            "cases": len(prepared.cases),
            "comparisons": expected.comparisons,
            "rewrites": expected.rewrites,
            "requests": dict(expected.requests),
            "prompt_tokens": expected.tokens,
            "answer_tokens": expected.answers,
        }
    }


def plan_lines(prepared: Prepared, expected: Estimate, stored: int) -> Iterator[str]:
    """What is about to be done, and what it takes at most."""
    p, t = prepared.job.parameters, prepared.tournament
    yield from _heading(p)
    if t.attacks:
        verified = f", verified by {line(t.verifier.name)}" if t.verifier else ""
        yield f"rewrites: {line(t.writer.name)}{verified}"
    yield from manner_lines(t.manner)
    yield from (line(note) for note in p["self_judging"])
    if left_out := p["left_out"]:
        yield set_aside("left out before the draw", left_out)
    of = sum(map(len, t.pairs.values()))
    requests = ", ".join(f"{line(name)} {number:,}" for name, number in expected.requests.items())
    rewrites = f" and {count(expected.rewrites, 'rewrite')}" if t.attacks else ""
    yield (
        f"plan: {count(of, 'match', 'matches')} a protocol; at most about {count(expected.comparisons, 'comparison')}"
        f"{rewrites} in all; requests: {requests}; about {expected.tokens:,} prompt tokens"
    )
    yield from cost_lines(prepared.job.prices, expected)
    yield from stored_lines(stored)


def report_parts(
    parameters: Mapping[str, Any], rows: Iterable[Row], rewrites: Iterable[Rewrite]
) -> Iterator[RenderableType]:
    """The tables and sentences of a run, top to bottom; arguments are those of ``document``."""
    rows, rewrites = list(rows), list(rewrites)
    found = measured(parameters, rows)
    yield Text("\n".join(_heading(parameters)), style="bold")
    for one in found.shifts:
        asked = _way(one.protocol, one.rule)
        yield _title(f"{asked} · {one.chosen.label}: before and after {line(one.attack)} of {ATTACKED}")
        yield from shift_parts(one.shift, ("before", "after"), frozenset(one.targets))
        yield Text(_said(one))
        notes = dict.fromkeys((*extra_lines(one.shift.before), *extra_lines(one.shift.after), *one.shift.notes))
        yield from (Text(line(note), style="dim") for note in notes)
    shifted = {(one.protocol, one.rule, one.chosen.label) for one in found.shifts}
    for board in found.boards:
        if board.attack == BASELINE and (board.protocol, board.rule, board.chosen.label) not in shifted:
            yield _title(f"{_way(board.protocol, board.rule)} · {board.chosen.label}: {heading(board.board)}")
            yield board_table(board.board)
            yield from (Text(note, style="dim") for note in extra_lines(board.board))
    yield from (Text(f"\n{line(why)}", style="yellow") for why in found.absent)
    yield from (Text(f"\n{note}") for note in remarks(parameters, found))
    if found.shifts:
        yield Text(f"\n{PUBLISHED}")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(parameters, rows, rewrites))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def matches_parts(rated: Sequence[SourceBoard], compared: Sequence[Compared]) -> Iterator[RenderableType]:
    """The boards of matches that are there, and beside them what they are compared with."""
    for one in rated:
        source = one.source
        asked = f" · {_way(source.protocol, source.rule)}" if source.protocol else ""
        yield _title(f"{line(source.name)}{asked} · {one.chosen.label}: {heading(one.board)}")
        yield board_table(one.board)
        notes = [*extra_lines(one.board), *map(line, source.notes)]
        if source.left_out:
            notes.append(set_aside("left out", source.left_out))
        yield from (Text(note, style="dim") for note in notes)
    yield from compared_parts(compared)


def compared_parts(compared: Sequence[Compared]) -> Iterator[RenderableType]:
    """Boards beside those that they are compared with."""
    for one in compared:
        asked = f" · {_way(one.source.protocol, one.source.rule)}" if one.source.protocol else ""
        names = line(one.against.name), line(one.source.name)
        yield _title(f"{names[1]} against {names[0]}{asked} · {one.chosen.label}")
        yield from shift_parts(one.shift, ("against", "this"))
        notes = dict.fromkeys((*one.shift.before.notes, *one.shift.after.notes, *one.shift.notes))
        yield from (Text(line(note), style="dim") for note in notes)


def _heading(parameters: Mapping[str, Any]) -> Iterator[str]:
    p = parameters
    data, of = p["data"], f" of {p['data']['cases']}" if p["data"]["cases"] != p["limit"] else ""
    yield f"judge {line(p['judge'])} · data {line(data['name'])}, {count(p['limit'], 'case')}{of}, seed {p['seed']}"
    sampled = f", {count(p['pairs'], 'match', 'matches')} of a protocol at most" if p["pairs"] else ""
    yield f"{count(len(p['models']), 'model')}{sampled}: {', '.join(map(line, p['models']))}"
    if p["attacks"]:
        who = ", ".join(map(line, p["targets"])) or f"the lowest {p['lowest']} of each protocol's own board"
        yield f"attack {', '.join(map(line, p['attacks']))} on {who}"


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _way(protocol: str | None, rule: str | None) -> str:
    return line(way(protocol, rule))


def _said(one: RunShift) -> str:
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


def _notes(parameters: Mapping[str, Any], rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[str]:
    if reasons := excluded(rows, again=False):
        yield set_aside("not judged", reasons)
    if stands := excluded(rows, again=True):
        yield set_aside("not judged again, so that the first verdict stands", stands)
    if failures := Counter(j.failure for row in rows for j in row.judgments if j.failure):
        yield "invalid: " + "; ".join(f"{line(reason)} ({n})" for reason, n in failures.most_common(5))
    yield from rewrite_notes(rewrites)
    if left_out := parameters["left_out"]:
        yield set_aside("left out before the draw", left_out)
