"""Boards and shifts as JSON values and as tables of 80 columns.

Names are plain ``Text``, so that one can hold markup and stay a name. It knows no rating system and computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from distract.core.printable import count, line, percent
from distract.report.tables import grid
from distract.studies.leaderboard.boards.shift import Shift
from distract.studies.leaderboard.boards.standings import Board, Standing

ATTACKED = "▲"
"""Stands beside a model whose responses were rewritten."""


def board_table(board: Board) -> Table:
    """One board, best first; a system's own uncertainty takes the place of who won how often."""
    sure = all(one.sigma is None for one in board.standings)
    counts = ("won", "lost", "tied") if sure else ("matches", "sigma")
    table = grid("", "rank", "95%", "share %" if board.unit == "share" else "rating", "95% CI", *counts)
    for one in board.standings:
        played = map(_format_count, (one.wins, one.losses, one.ties) if sure else (one.matches,))
        last = [] if one.sigma is None else [f"{one.sigma:.2f}"]
        rating, interval = _format_rating(one.rating, board), _format_interval(one.low, one.high, board)
        table.add_row(Text(line(one.model)), str(one.rank), _format_ranks(one), rating, interval, *played, *last)
    return table


def shift_parts(
    shift: Shift, names: tuple[str, str], targets: frozenset[str] = frozenset()
) -> Iterator[RenderableType]:
    """Both boards side by side, then what changed."""
    first, second = shift.before, shift.after
    table = grid("", names[0], "95% CI", "rank", names[1], "95% CI", "rank")
    changes = grid("", "change", "95% CI", "rank", "rose in %", "fell in %")
    sides = [{one.model: one for one in board.standings} for board in (first, second)]
    for one in shift.changes:
        name = Text(f"{ATTACKED} {line(one.model)}" if one.model in targets else line(one.model))
        cells = [cell for side in sides for cell in _cells(side.get(one.model), first)]
        table.add_row(name, *cells)
        change, interval = (
            _format_rating(one.change, first, sign=True),
            _format_interval(one.low, one.high, first, sign=True),
        )
        moved = f"{_format_rank(one.rank_before)} → {_format_rank(one.rank_after)}"
        changes.add_row(name, change, interval, moved, percent(one.p_rose), percent(one.p_fell))
    yield table
    yield Text("")
    yield changes
    yield Text(_format_tau(shift))
    if any(rank is not None and rank % 1 for one in shift.changes for rank in (one.rank_before, one.rank_after)):
        yield Text("equal models share the middle of their ranks", style="dim")


def extra_lines(board: Board) -> Iterator[str]:
    """Further figures of a system, and what a reader must know."""
    if "length" in board.extra:
        low, high = board.extra.get("length_low"), board.extra.get("length_high")
        interval = "" if low is None or high is None else f" (95% interval {low:+.1f} to {high:+.1f})"
        yield f"length: {board.extra['length']:+.1f} points for one standard unit of relative length{interval}"
    yield from (line(note) for note in board.notes)


def heading(board: Board) -> str:
    """What a board is made of, in a line."""
    prompts = f", {count(board.prompts, 'prompt')}" if board.prompts != board.matches else ""
    invalid = f", {board.invalid:,} invalid" if board.invalid else ""
    how = {"sandwich": "sandwich", "bootstrap": f"{board.draws:,} draws", None: "none"}
    return f"{count(board.matches, 'match', 'matches')}{prompts}{invalid}; intervals: {how[board.interval]}"


def _format_count(number: int) -> str:
    """A count in five characters at most."""
    if number < 10_000:
        return f"{number:,}"
    for size, letter in ((1e6, "k"), (1e9, "M")):
        if number < size:
            scaled = number / size * 1000
            return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{scaled:.0f}{letter}"
    return f"{number:.0e}"


def _cells(one: Standing | None, board: Board) -> tuple[str, str, str]:
    if one is None:
        return "–", "", "–"
    return _format_rating(one.rating, board), _format_interval(one.low, one.high, board), str(one.rank)


def _format_rating(value: float | None, board: Board, *, sign: bool = False) -> str:
    if value is None:
        return "–"
    scaled, digits = (100 * value, 1) if board.unit == "share" else (value, _digits(board))
    text = f"{scaled:{'+' if sign else ''}.{digits}f}"
    # A change that rounds to nothing has no sign.
    return text.lstrip("+-") if sign and float(text) == 0 else text


def _format_interval(low: float | None, high: float | None, board: Board, *, sign: bool = False) -> str:
    if low is None or high is None:
        return ""
    return f"{_format_rating(low, board, sign=sign)} to {_format_rating(high, board, sign=sign)}"


def _digits(board: Board) -> int:
    """Decimals that say something: ratings around 1000 have none, those around 25 have two."""
    largest = max(abs(one.rating) for one in board.standings)
    return 0 if largest >= 200 else 2


def _format_ranks(one: Standing) -> str:
    if one.rank_low is None or one.rank_high is None:
        return ""
    return f"{one.rank_low}" if one.rank_low == one.rank_high else f"{one.rank_low}–{one.rank_high}"


def _format_rank(rank: float | None) -> str:
    """A rank; models that are equal share the middle of theirs."""
    return "–" if rank is None else f"{rank:g}"


def _format_tau(shift: Shift) -> str:
    if shift.tau is None:
        return "Kendall's tau between the two boards: none, since one of them ranks all models equal"
    low, high = shift.tau_low, shift.tau_high
    interval = "" if low is None or high is None else f" (95% range {low:.2f} to {high:.2f})"
    return f"Kendall's tau between the two boards: {shift.tau:.2f}{interval}"
