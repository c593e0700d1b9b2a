"""The report of ``distract leaderboard``: boards, and shifts beside the paper's findings, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, format_exclusions, line, percent
from distract.core.records import BASELINE
from distract.report.blocks import Axis, Block, Detail, Heading, Mark, Note, Plot, Table, TableRow, notes, sentences
from distract.report.phrases import cautions, run_line
from distract.studies.leaderboard.boards.board import Board, Standing
from distract.studies.leaderboard.boards.board_pairs import BoardComparison, SourceBoard, describe_way
from distract.studies.leaderboard.boards.shift import RatingChange, Shift
from distract.studies.leaderboard.measures import LeaderboardResult, RunShift, describe_targets, remarks
from distract.studies.rewrite_view import reader_notes, rejection_parts, unread_notes

ATTACKED = "▲"  # marks a model whose responses were rewritten

PUBLISHED = (
    "published (Distracted evaluation, section 5; Elo on MT-Bench, the three lowest models made assertive): ranks "
    "climb sharply under pairwise verdicts and little under absolute scores."
)


def report_parts(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[Block]:
    """The sentences and tables of a run, top to bottom."""
    measured = result.measured
    yield Heading("\n".join(_heading(parameters, result.flaw)))
    shifted = {(shift.protocol, shift.rule, shift.choice.label) for shift in measured.shifts}
    boards = [b for b in measured.boards if b.attack == BASELINE]
    boards = [b for b in boards if (b.protocol, b.rule, b.choice.label) not in shifted]
    yield from sentences(map(_describe_shift, measured.shifts))
    yield from sentences(f"{_describe(b)} · {b.choice.label}: {_describe_leader(b.board)}" for b in boards)
    yield from notes(map(line, measured.absent), "doubtful")
    yield from sentences(remarks(parameters, measured))
    yield from _cautions(parameters, result)
    for shift in measured.shifts:
        name = f"{_describe(shift)} · {shift.choice.label}: before and after {line(shift.attack)} of {ATTACKED}"
        yield from _shift_parts(name, shift.shift, ("before", "after"), frozenset(shift.targets))
        both = shift.shift.before, shift.shift.after
        yield from _remark(*(note for board in both for note in _board_notes(board)), *shift.shift.notes)
    for board in boards:
        yield _board_table(f"{_describe(board)} · {board.choice.label}: {_describe_board(board.board)}", board.board)
        yield from _remark(*_board_notes(board.board))
    if measured.shifts:
        yield Detail(Note(PUBLISHED, ""))
    yield from map(Detail, notes(_details(parameters, result)))


def matches_parts(boards: Sequence[SourceBoard], compared: Sequence[BoardComparison]) -> Iterator[Block]:
    """The boards of existing matches, and their comparisons."""
    yield from sentences((f"{_name_source(b)}: {_describe_leader(b.board)}" for b in boards), apart=False)
    yield from sentences(map(_describe_comparison, compared), apart=False)
    for board in boards:
        yield _board_table(f"{_name_source(board)}: {_describe_board(board.board)}", board.board)
        left_out = [format_exclusions("left out", board.source.left_out)] if board.source.left_out else []
        yield from _remark(*_board_notes(board.board), *board.source.notes, *left_out)
    yield from _comparison_tables(compared)


def comparison_parts(compared: Sequence[BoardComparison]) -> Iterator[Block]:
    """Boards beside those that they are compared with."""
    yield from sentences(map(_describe_comparison, compared))
    yield from _comparison_tables(compared)


def _comparison_tables(compared: Sequence[BoardComparison]) -> Iterator[Block]:
    for pair in compared:
        yield from _shift_parts(_name_comparison(pair), pair.shift, ("against", "this"))
        yield from _remark(*pair.shift.before.notes, *pair.shift.after.notes, *pair.shift.notes)


def _name_source(board: SourceBoard) -> str:
    way = f" · {_describe(board.source)}" if board.source.protocol else ""
    return f"{line(board.source.name)}{way} · {board.choice.label}"


def _name_comparison(pair: BoardComparison) -> str:
    way = f" · {_describe(pair.source)}" if pair.source.protocol else ""
    return f"{line(pair.source.name)} against {line(pair.against.name)}{way} · {pair.choice.label}"


def _describe_comparison(pair: BoardComparison) -> str:
    changes = pair.shift.changes
    moved = [c for c in changes if c.rank_before != c.rank_after and None not in (c.rank_before, c.rank_after)]
    return (
        f"{_name_comparison(pair)}: {len(moved)} of {count(len(changes), 'model')} changed rank{_list_moves(moved)}. "
        f"{_format_tau(pair.shift)}."
    )


def _list_moves(changes: Sequence[RatingChange]) -> str:
    """Name models with their ranks before and after; empty without any."""
    moves = [f"{line(c.model)} ({_format_rank(c.rank_before)} → {_format_rank(c.rank_after)})" for c in changes]
    return f": {', '.join(moves)}" if moves else ""


def _describe_leader(board: Board) -> str:
    """Say who leads."""
    first = [line(row.model) for row in board.standings if row.rank == 1]
    if not first:
        return "no model has a rating"
    return f"{' and '.join(first[:3])} {'leads' if len(first) == 1 else 'lead'} {count(len(board.standings), 'model')}"


def _remark(*texts: str) -> Iterator[Note]:
    return notes(map(line, dict.fromkeys(texts)), apart=False)


def _heading(p: Mapping[str, Any], flaw: str | None) -> Iterator[str]:
    yield run_line(p)
    sampled = f", at most {count(p['pairs'], 'match', 'matches')} per protocol" if p["pairs"] else ""
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


def _board_table(name: str, board: Board) -> Table:
    """One board, best first; a system's own uncertainty replaces the counts of wins, losses and ties."""
    counts = ("won", "lost", "tied") if all(row.sigma is None for row in board.standings) else ("matches", "sigma")
    rows: list[TableRow] = []
    for row in board.standings:
        played = (row.wins, row.losses, row.ties) if len(counts) == 3 else (row.matches,)
        cells = [*map(_format_count, played), *([] if row.sigma is None else [f"{row.sigma:.2f}"])]
        rating, interval = _format_rating(row.rating, board), _format_interval(row.low, row.high, board)
        rows.append(("", line(row.model), [str(row.rank), _format_ranks(row), rating, interval, *cells]))
    unit = "share %" if board.unit == "share" else "rating"
    return Table(name, ("", "rank", "95%", unit, "95% CI", *counts), rows)


def _shift_parts(
    title: str, shift: Shift, names: tuple[str, str], targets: frozenset[str] = frozenset()
) -> Iterator[Block]:
    """The changes; both boards side by side are a detail."""
    unit = shift.before
    boards: list[TableRow] = []
    changes: list[TableRow] = []
    sides = [{row.model: row for row in board.standings} for board in (shift.before, shift.after)]
    for row in shift.changes:
        name = f"{ATTACKED} {line(row.model)}" if row.model in targets else line(row.model)
        boards.append(("", name, [cell for side in sides for cell in _standing_cells(side.get(row.model), unit)]))
        change = _format_rating(row.change, unit, sign=True)
        interval = _format_interval(row.low, row.high, unit, sign=True)
        ranks = f"{_format_rank(row.rank_before)} → {_format_rank(row.rank_after)}"
        changes.append(("", name, [change, interval, ranks, percent(row.p_rose), percent(row.p_fell)]))
    terms = (ATTACKED,) if targets else ()
    yield Table(title, ("", "change", "95% CI", "rank", "rose in %", "fell in %"), changes, terms)
    if drawn := [c for c in shift.changes if c.before is not None and c.after is not None]:
        yield _shift_plot(title, drawn, unit, names)
    if any(rank is not None and rank % 1 for row in shift.changes for rank in (row.rank_before, row.rank_after)):
        yield Note("equal models share the middle of their ranks", apart=False)
    yield Detail(Table(title, ("", names[0], "95% CI", "rank", names[1], "95% CI", "rank"), boards, terms))


def _shift_plot(title: str, changes: Sequence[RatingChange], board: Board, names: tuple[str, str]) -> Plot:
    """Join the ratings of each model on both boards, with its ranks."""
    marks = [
        Mark(line(c.model), name, rating or 0.0, text=f"rank {_format_rank(rank)}")
        for c in changes
        for name, rating, rank in zip(names, (c.before, c.after), (c.rank_before, c.rank_after), strict=True)
    ]
    moves = "; ".join(f"{line(c.model)} {_format_rank(c.rank_before)} to {_format_rank(c.rank_after)}" for c in changes)
    values = Axis("share" if board.unit == "share" else "rating", "share" if board.unit == "share" else "number")
    return Plot("slope", title, f"Ranks {names[0]} and {names[1]}: {moves}", values, Axis("", "names"), marks)


def _board_notes(board: Board) -> Iterator[str]:
    if "length" in board.extra:
        low, high = board.extra.get("length_low"), board.extra.get("length_high")
        interval = "" if low is None or high is None else f" (95% interval {low:+.1f} to {high:+.1f})"
        yield f"length: {board.extra['length']:+.1f} points for one standard unit of relative length{interval}"
    yield from board.notes


def _describe_shift(run: RunShift) -> str:
    changes = {change.model: change for change in run.shift.changes}
    attacked = [changes[name] for name in run.targets if name in changes]
    rose = [c for c in attacked if c.rank_before and c.rank_after and c.rank_after < c.rank_before]
    standing = f", {count(run.standing, 'other')} could not be rewritten and stood as before" if run.standing else ""
    lost = f" {count(run.lost, 'comparison')} not valid both before and after are on neither board." if run.lost else ""
    board = run.shift.before
    return (
        f"{_describe(run)} · {run.choice.label}: {len(rose)} of {count(len(attacked), 'attacked model')} rose in rank "
        f"after {line(run.attack)}{_list_moves(rose)}. {_format_tau(run.shift)}. "
        f"{count(board.matches, 'match', 'matches')} on {count(board.prompts, 'prompt')}, {run.again:,} judged again; "
        f"{count(run.rewritten, 'response')} rewritten{standing}.{lost}"
    )


def _cautions(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[Block]:
    """Notes on what makes the boards less certain."""
    yield from rejection_parts(result.rewrites)
    if result.standing:
        yield from notes([format_exclusions("not judged again, so that the first verdict stands", result.standing)])
    yield from unread_notes(parameters)
    yield from cautions(result.invalid, parameters["self_judging"])


def _details(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterator[str]:
    if result.excluded:
        yield format_exclusions("not judged", result.excluded)
    yield from reader_notes(result.rewrites)
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
