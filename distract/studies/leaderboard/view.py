"""The report of ``distract leaderboard``: boards, and shifts beside the paper's findings, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import count, format_exclusions, line, percent
from distract.core.records import BASELINE
from distract.report.tables import grid, run_line, title
from distract.studies.leaderboard.boards.board_pairs import BoardComparison, SourceBoard, describe_way
from distract.studies.leaderboard.boards.shift import Shift
from distract.studies.leaderboard.boards.standings import Board, Standing
from distract.studies.leaderboard.measures import LeaderboardResult, RunShift, describe_targets, remarks
from distract.studies.rewrite_view import rewrite_notes

ATTACKED = "▲"
"""Marks a model whose responses were rewritten."""

PUBLISHED = (
    "published (Distracted evaluation, section 5; Elo on MT-Bench, the three lowest models made assertive): ranks "
    "climb sharply under pairwise verdicts and little under absolute scores."
)


def report_parts(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[RenderableType]:
    """The tables and sentences of a run, top to bottom."""
    measured = result.measured
    yield Text("\n".join(_heading(parameters, result.flaw)), style="bold")
    for shift in measured.shifts:
        yield title(f"{_describe(shift)} · {shift.choice.label}: before and after {line(shift.attack)} of {ATTACKED}")
        yield from _shift_parts(shift.shift, ("before", "after"), frozenset(shift.targets))
        yield Text(_describe_shift(shift))
        boards = shift.shift.before, shift.shift.after
        yield from _dim(*(note for board in boards for note in _board_notes(board)), *shift.shift.notes)
    shifted = {(shift.protocol, shift.rule, shift.choice.label) for shift in measured.shifts}
    for board in measured.boards:
        if board.attack == BASELINE and (board.protocol, board.rule, board.choice.label) not in shifted:
            yield title(f"{_describe(board)} · {board.choice.label}: {_describe_board(board.board)}")
            yield _board_table(board.board)
            yield from _dim(*_board_notes(board.board))
    yield from (Text(f"\n{line(why)}", style="yellow") for why in measured.absent)
    yield from (Text(f"\n{note}") for note in remarks(parameters, measured))
    if measured.shifts:
        yield Text(f"\n{PUBLISHED}")
    yield from (Text(f"\n{note}", style="dim") for note in _notes(parameters, result))
    yield from (Text(f"\n{line(note)}", style="yellow") for note in parameters["self_judging"])


def matches_parts(boards: Sequence[SourceBoard], compared: Sequence[BoardComparison]) -> Iterator[RenderableType]:
    """The boards of existing matches, and their comparisons."""
    for board in boards:
        source = board.source
        way = f" · {_describe(source)}" if source.protocol else ""
        yield title(f"{line(source.name)}{way} · {board.choice.label}: {_describe_board(board.board)}")
        yield _board_table(board.board)
        left_out = [format_exclusions("left out", source.left_out)] if source.left_out else []
        yield from _dim(*_board_notes(board.board), *source.notes, *left_out)
    yield from comparison_parts(compared)


def comparison_parts(compared: Sequence[BoardComparison]) -> Iterator[RenderableType]:
    """Boards beside those that they are compared with."""
    for pair in compared:
        way = f" · {_describe(pair.source)}" if pair.source.protocol else ""
        yield title(f"{line(pair.source.name)} against {line(pair.against.name)}{way} · {pair.choice.label}")
        yield from _shift_parts(pair.shift, ("against", "this"))
        yield from _dim(*pair.shift.before.notes, *pair.shift.after.notes, *pair.shift.notes)


def _dim(*notes: str) -> Iterator[Text]:
    return (Text(line(note), style="dim") for note in dict.fromkeys(notes))


def _heading(p: Mapping[str, Any], flaw: str | None) -> Iterator[str]:
    yield run_line(p)
    sampled = f", {count(p['pairs'], 'match', 'matches')} of a protocol at most" if p["pairs"] else ""
    yield f"{count(len(p['models']), 'model')}{sampled}: {', '.join(map(line, p['models']))}"
    if p["attacks"] and not flaw:
        yield describe_targets(p)


def _describe(way: Any) -> str:
    return line(describe_way(way.protocol, way.rule))


def _describe_board(board: Board) -> str:
    prompts = f", {count(board.prompts, 'prompt')}" if board.prompts != board.matches else ""
    invalid = f", {board.invalid:,} invalid" if board.invalid else ""
    intervals = {"sandwich": "sandwich", "bootstrap": f"{board.draws:,} draws", None: "none"}[board.interval]
    return f"{count(board.matches, 'match', 'matches')}{prompts}{invalid}; intervals: {intervals}"


def _board_table(board: Board) -> Table:
    """One board, best first; a system's own uncertainty replaces the counts of wins, losses and ties."""
    counts = ("won", "lost", "tied") if all(row.sigma is None for row in board.standings) else ("matches", "sigma")
    table = grid("", "rank", "95%", "share %" if board.unit == "share" else "rating", "95% CI", *counts)
    for row in board.standings:
        played = (row.wins, row.losses, row.ties) if len(counts) == 3 else (row.matches,)
        cells = [*map(_format_count, played), *([] if row.sigma is None else [f"{row.sigma:.2f}"])]
        rating, interval = _format_rating(row.rating, board), _format_interval(row.low, row.high, board)
        table.add_row(Text(line(row.model)), str(row.rank), _format_ranks(row), rating, interval, *cells)
    return table


def _shift_parts(
    shift: Shift, names: tuple[str, str], targets: frozenset[str] = frozenset()
) -> Iterator[RenderableType]:
    """Both boards side by side, then the changes."""
    unit = shift.before
    table = grid("", names[0], "95% CI", "rank", names[1], "95% CI", "rank")
    changes = grid("", "change", "95% CI", "rank", "rose in %", "fell in %")
    sides = [{row.model: row for row in board.standings} for board in (shift.before, shift.after)]
    for row in shift.changes:
        name = Text(f"{ATTACKED} {line(row.model)}" if row.model in targets else line(row.model))
        table.add_row(name, *(cell for side in sides for cell in _standing_cells(side.get(row.model), unit)))
        change = _format_rating(row.change, unit, sign=True)
        interval = _format_interval(row.low, row.high, unit, sign=True)
        ranks = f"{_format_rank(row.rank_before)} → {_format_rank(row.rank_after)}"
        changes.add_row(name, change, interval, ranks, percent(row.p_rose), percent(row.p_fell))
    yield table
    yield Text("")
    yield changes
    yield Text(_format_tau(shift))
    if any(rank is not None and rank % 1 for row in shift.changes for rank in (row.rank_before, row.rank_after)):
        yield Text("equal models share the middle of their ranks", style="dim")


def _board_notes(board: Board) -> Iterator[str]:
    if "length" in board.extra:
        low, high = board.extra.get("length_low"), board.extra.get("length_high")
        interval = "" if low is None or high is None else f" (95% interval {low:+.1f} to {high:+.1f})"
        yield f"length: {board.extra['length']:+.1f} points for one standard unit of relative length{interval}"
    yield from board.notes


def _describe_shift(run: RunShift) -> str:
    changes = {change.model: change for change in run.shift.changes}
    attacked = [changes[name] for name in run.targets if name in changes]
    rose = sum(
        c.rank_before is not None and c.rank_after is not None and c.rank_after < c.rank_before for c in attacked
    )
    standing = f", {count(run.standing, 'other')} could not be rewritten and stood as before" if run.standing else ""
    lost = f" {count(run.lost, 'comparison')} not valid both before and after are on neither board." if run.lost else ""
    board = run.shift.before
    return (
        f"{count(board.matches, 'match', 'matches')} on {count(board.prompts, 'prompt')}, {run.again:,} judged again; "
        f"{count(run.rewritten, 'response')} rewritten{standing}. {rose} of {count(len(attacked), 'attacked model')} "
        f"rose in rank.{lost}"
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


def _standing_cells(row: Standing | None, unit: Board) -> tuple[str, str, str]:
    if row is None:
        return "–", "", "–"
    return _format_rating(row.rating, unit), _format_interval(row.low, row.high, unit), str(row.rank)


def _format_count(number: int) -> str:
    """Format a count in five characters at most."""
    if number < 10_000:
        return f"{number:,}"
    for size, letter in ((1e6, "k"), (1e9, "M")):
        if number < size:
            scaled = number / size * 1000
            return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{scaled:.0f}{letter}"
    return f"{number:.0e}"


def _format_rating(value: float | None, board: Board, *, sign: bool = False) -> str:
    if value is None:
        return "–"
    # Ratings around 1000 need no decimals, those around 25 need two.
    digits = 0 if max(abs(row.rating) for row in board.standings) >= 200 else 2
    scaled, digits = (100 * value, 1) if board.unit == "share" else (value, digits)
    text = f"{scaled:{'+' if sign else ''}.{digits}f}"
    # A change that rounds to nothing has no sign.
    return text.lstrip("+-") if sign and float(text) == 0 else text


def _format_interval(low: float | None, high: float | None, board: Board, *, sign: bool = False) -> str:
    if low is None or high is None:
        return ""
    return f"{_format_rating(low, board, sign=sign)} to {_format_rating(high, board, sign=sign)}"


def _format_ranks(row: Standing) -> str:
    if row.rank_low is None or row.rank_high is None:
        return ""
    return f"{row.rank_low}" if row.rank_low == row.rank_high else f"{row.rank_low}–{row.rank_high}"


def _format_rank(rank: float | None) -> str:
    return "–" if rank is None else f"{rank:g}"


def _format_tau(shift: Shift) -> str:
    if shift.tau is None:
        return "Kendall's tau between the two boards: none, since one of them ranks all models equal"
    low, high = shift.tau_low, shift.tau_high
    interval = "" if low is None or high is None else f" (95% range {low:.2f} to {high:.2f})"
    return f"Kendall's tau between the two boards: {shift.tau:.2f}{interval}"
