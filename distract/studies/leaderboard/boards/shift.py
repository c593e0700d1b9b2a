"""The shift between two boards: ratings, ranks and their order, before and after.

Both boards use the same draws of prompts, so that the effects of a prompt on both cancel: an interval for unrelated
boards would be far too wide, and one for independent matches too narrow (ANCHORS, section 3). Measured coverage:
``benchmarks/leaderboard_coverage.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distract.stats.ratings.matches import MAX_WEIGHTS, Draws, Matches
from distract.stats.ratings.system import RatingSystem
from distract.studies.leaderboard.boards import board


@dataclass(frozen=True, slots=True)
class RatingChange:
    """The change of one model."""

    model: str
    before: float | None  # rating before; None where the model is not on the board
    after: float | None
    change: float | None  # after minus before
    low: float | None  # lower end of the 95% interval of the change; None where there is none, and then a note says why
    high: float | None
    # 1 is best. Equal models share the middle of their ranks here, so that leaving a tie for the better is a rise,
    # and for the worse a fall.
    rank_before: float | None
    rank_after: float | None
    # Share of draws in which its rank after is better than its rank before, among the models on both boards; None
    # where nothing varies from prompt to prompt.
    p_rose: float | None
    p_fell: float | None


@dataclass(frozen=True, slots=True)
class Shift:
    """Two boards of one rating system, and the changes from one to the other."""

    before: board.Board
    after: board.Board
    # One for each model of either board, by rank before, then by name; new models come last.
    changes: tuple[RatingChange, ...]
    # Kendall's tau-b between the two boards, over the models on both; None where one board ranks them equal.
    tau: float | None
    tau_low: float | None  # lower end of the 95% range of tau over draws
    tau_high: float | None
    models: int  # number of models on both boards
    prompts: int  # number of prompts on either board
    paired: bool  # whether the boards share prompts, and draws of them
    shared: int  # number of prompts on both boards
    draws: int  # number of draws; 0 where one board has fewer than two prompts
    notes: tuple[str, ...]  # warnings for the reader, one line each, beside those of the boards


def merge_prompts(before: Matches, after: Matches) -> tuple[Matches, Matches]:
    """Give the same prompts the same numbers: those of ``before`` in their order, then the new ones.

    If neither knows its prompts, and the same models meet in the same order, each match is a prompt, as long as a table
    of that many can be drawn. Otherwise, and if only one knows its prompts, nothing changes. Idempotent.
    """
    if before.cluster is not None and after.cluster is not None:
        names = tuple(dict.fromkeys((*before.prompts, *after.prompts)))
        number = {name: index for index, name in enumerate(names)}
        numbers = np.array([number[name] for name in after.prompts], np.int32)
        return replace(before, prompts=names), replace(after, prompts=names, cluster=numbers[after.cluster])
    is_small = before.cluster is None and after.cluster is None and len(before) <= MAX_WEIGHTS // board.DRAWS
    is_same = before.models == after.models and np.array_equal([before.a, before.b], [after.a, after.b])
    if is_small and is_same:
        slots, names = np.arange(len(before), dtype=np.int32), tuple(map(str, range(1, len(before) + 1)))
        return replace(before, prompts=names, cluster=slots), replace(after, prompts=names, cluster=slots)
    return before, after


def measure_shift(
    before: Matches, after: Matches, system: RatingSystem, parameters: Mapping[str, Any], draws: Draws
) -> Shift:
    """Rate both and compare them."""
    before, after = merge_prompts(before, after)
    paired, shared = False, 0
    if before.cluster is not None and after.cluster is not None:
        paired, shared = True, len(np.intersect1d(before.cluster, after.cluster))
    others = draws if paired else board.draw_units(after, draws.seed + 1, draws.count)
    one = board.rate_matches(before, system, parameters, draws)
    two = board.rate_matches(after, system, parameters, others)
    boards = board.derive_board(one), board.derive_board(two)
    common = sorted(set(before.models) & set(after.models))
    notes = [] if paired else ["prompts cannot be paired: they were drawn for each board apart, so intervals are wide"]
    if paired and not shared:
        notes = ["no prompt is on both boards: nothing that prompts do cancels, so intervals are wide"]
    if shared and shared < before.clusters:
        notes.append(f"{shared:,} of {before.clusters:,} prompts are on both boards")
    if alone := sorted(set(before.models) ^ set(after.models)):
        names = board.format_names(alone)
        notes.append(f"on one board only: {names}; ratings are relative to the models of their board")
    drawn, taus, why = _compare_draws(one, two, common)
    places = _places(one), _places(two)
    changes = list[RatingChange]()
    for name in dict.fromkeys(standing.model for own in boards for standing in own.standings):
        (was, rank_before), (now, rank_after) = (own.get(name, (None, None)) for own in places)
        change = None if was is None or now is None else now - was
        low, high, rose, fell = drawn.get(name, (None,) * 4)
        changes.append(RatingChange(name, was, now, change, low, high, rank_before, rank_after, rose, fell))
    return Shift(
        *boards,
        changes=tuple(changes),
        tau=taus[0],
        tau_low=taus[1],
        tau_high=taus[2],
        models=len(common),
        prompts=before.clusters if paired else board.count_units(before) + board.count_units(after),
        paired=shared > 0,
        shared=shared,
        draws=min(own.draws for own in boards),
        notes=(*notes, *why),
    )


_DrawnChange = tuple[float | None, float | None, float | None, float | None]
"""The interval of a model's change, and the shares of draws in which it rose and fell."""


def _places(rated: board.RatedMatches) -> dict[str, tuple[float, float]]:
    """The rating and the rank of each model."""
    rating = rated.ratings.rating
    places = zip(rating.tolist(), board.middle_ranks(rating, rated.system.unit).tolist(), strict=True)
    return dict(zip(rated.matches.models, places, strict=True))


def _compare_draws(
    one: board.RatedMatches, two: board.RatedMatches, common: Sequence[str]
) -> tuple[dict[str, _DrawnChange], tuple[float | None, float | None, float | None], list[str]]:
    """Changes of the models on both boards, Kendall's tau with its range, and notes on missing intervals."""
    unit = one.system.unit
    columns = [[rated.matches.models.index(name) for name in common] for rated in (one, two)]
    was, now = one.ratings.rating[columns[0]], two.ratings.rating[columns[1]]
    tau = board.kendall_tau(board.ranks(was, unit)[None], board.ranks(now, unit)[None])[0]
    estimate = None if np.isnan(tau) else float(tau)
    if one.table is None or two.table is None:
        return {}, (estimate, None, None), ["fewer than two prompts on a board: no change has an interval"]
    count = min(len(one.table), len(two.table))
    first, second = one.table[:count, columns[0]], two.table[:count, columns[1]]
    prompts = np.minimum(one.prompts[columns[0]], two.prompts[columns[1]])
    error = board.standard_error((second - first).var(axis=0, ddof=1), prompts)
    half, change = error * board.quantile(prompts), now - was
    alone = prompts < 2
    # A model that changed alike in every draw may yet change on other prompts; an anchor never does.
    anchored = np.array([name == one.ratings.parameters.get("anchor") for name in common], np.bool_)
    level = "order" in one.system.parameters and board.is_level(one.matches, two.matches)
    still = ~alone & ~anchored & ((error <= board.TOLERANCE[unit]) | level)
    nothing = bool((still | alone | anchored).all())
    wide = board.widen_draws(one)[:count, columns[0]], board.widen_draws(two)[:count, columns[1]]
    moved = board.middle_ranks(wide[1], unit) - board.middle_ranks(wide[0], unit)
    rose, fell = (moved < 0).mean(axis=0), (moved > 0).mean(axis=0)
    changes = {
        name: (
            None if still[i] else float(change[i] - half[i]),
            None if still[i] else float(change[i] + half[i]),
            None if nothing else float(rose[i]),
            None if nothing else float(fell[i]),
        )
        for i, name in enumerate(common)
        if not alone[i]
    }
    reasons = ((alone, "on one prompt of a board only"), (still, "nothing varies from prompt to prompt"))
    notes = [board.no_interval_note(common, which, f"{why} (change)") for which, why in reasons if which.any()]
    taus = board.kendall_tau(*(board.ranks(table, unit) for table in wide))
    taus = taus[~np.isnan(taus)]
    if estimate is None or nothing or not len(taus):
        return changes, (estimate, None, None), notes
    low, high = np.quantile(taus, [0.025, 0.975], method="inverted_cdf").tolist()
    return changes, (estimate, min(low, estimate), max(high, estimate)), notes
