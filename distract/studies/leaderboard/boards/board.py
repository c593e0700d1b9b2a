"""A board: the ratings of matches by one rating system, with intervals over prompts, ranks and comparable groups.

A nominal 95% interval is estimate +- t * error. The error comes from the system's covariance over prompts where it has
one, else from resampled prompts; both treat the prompts at hand as the whole population, which m / (m - 1) corrects,
with t on m - 1 degrees of freedom, for a model that is on m prompts. Ranges of ranks come from joint draws, never from
overlapping intervals (ANCHORS, section 3). Measured coverage: ``benchmarks/leaderboard_coverage.py``. Two parameters
have a meaning here: ``order``, of systems that play matches one by one, and ``anchor``, the model with a fixed rating.

Models are comparable in groups that played each other, and groups may never have lost to a lower one. This holds for
every rating system that learns from matches alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from distract.core.errors import UsageError, guard_plugin, redirect_output
from distract.core.printable import line
from distract.stats.ratings.matches import MAX_WEIGHTS, TIE, A, B, Draws, Matches, draw
from distract.stats.ratings.system import NO_PARAMETERS, Ratings, RatingSystem
from distract.stats.special import ndtri, stdtrit


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of a model."""

    model: str
    rating: float
    low: float | None  # lower end of the 95% interval of the rating; None where there is none, and then a note says why
    high: float | None  # upper end
    error: float | None  # standard error over prompts
    rank: int  # 1 is best; equal ratings share the better one
    rank_low: int | None  # best rank of the 95% range over draws
    rank_high: int | None  # worst rank
    matches: int
    wins: int
    losses: int
    ties: int
    sigma: float | None  # the system's own uncertainty, where it has one


@dataclass(frozen=True, slots=True)
class Board:
    """Models under one rating system."""

    system: str
    unit: str  # ``points`` or ``share``
    parameters: Mapping[str, Any]
    standings: tuple[Standing, ...]  # best first; names break ties
    matches: int
    prompts: int  # number of prompts with a match; of matches, where prompts are not known
    invalid: int  # number of comparisons without a valid verdict
    draws: int  # number of draws of prompts; 0 with fewer than two of them
    interval: Literal["sandwich", "bootstrap"] | None  # method behind the intervals; None where no model has one
    extra: Mapping[str, float]  # further figures of the system
    notes: tuple[str, ...]  # warnings for the reader, one line each


TOLERANCE = {"points": 1e-6, "share": 1e-9}  # ratings as close as this are equal, by unit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ranks(ratings: Floats, unit: str = "points") -> Ints:
    """Rank from 1, the best, along the last axis; equal ratings share the better one: 1, 1, 3.

    Ratings are equal when no gap between them, in order, is above ``TOLERANCE``.
    """
    order = np.argsort(-ratings, axis=-1, kind="stable")
    steps = np.diff(np.take_along_axis(ratings, order, -1), axis=-1) < -TOLERANCE[unit]
    place = np.ones(ratings.shape, np.int64)
    place[..., 1:] = np.where(steps, np.arange(2, ratings.shape[-1] + 1), 1)
    ranked = np.empty_like(place)
    np.put_along_axis(ranked, order, np.maximum.accumulate(place, axis=-1), -1)
    return ranked


def middle_ranks(ratings: Floats, unit: str = "points") -> Floats:
    """Rank from 1, the best, along the last axis; equal ratings share the middle of theirs: 1.5, 1.5, 3."""
    worst = ratings.shape[-1] + 1 - ranks(-ratings, unit)
    middle: Floats = (ranks(ratings, unit) + worst) / 2
    return middle


def kendall_tau(first: Ints, second: Ints) -> Floats:
    """Kendall's tau-b (Kendall, 1945, The treatment of ties in ranking problems) of each row of two tables of ranks."""
    i, j = np.triu_indices(first.shape[1], 1)
    tau = np.full(len(first), np.nan)
    for row, (x, y) in enumerate(zip(first, second, strict=True)):
        dx, dy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        if pairs := float(dx @ dx) * float(dy @ dy):
            tau[row] = float(dx @ dy) / pairs**0.5
    return tau


DRAWS = 1000  # default number of draws
FEWEST = 100  # minimum number of draws where matches are many and are played one by one
ROUGH = 6  # number of prompts below which a note says that intervals are rough
PLAYED = 40_000_000  # maximum number of matches that such a system plays in all draws together


@dataclass(frozen=True, slots=True, eq=False)
class RatedMatches:
    """Matches rated as they are, and once more under each draw."""

    matches: Matches
    system: RatingSystem
    ratings: Ratings
    table: Floats | None  # ratings under each draw, shape (draws, models); None with fewer than two prompts
    prompts: Ints  # number of prompts of each model, shape (models,)


def draw_prompts(matches: Matches, system: RatingSystem, seed: int, count: int | None = None) -> Draws:
    """Draw prompts ``count`` times, by default as often as the system's speed allows."""
    if count is None:
        worth = PLAYED // len(matches) if "order" in system.parameters else DRAWS
        count = min(DRAWS, max(FEWEST, worth))
    if count < 2:
        raise UsageError(f"{count} draws: expected at least 2")
    return draw_units(matches, seed, count)


def draw_units(matches: Matches, seed: int, count: int) -> Draws:
    """Draw prompts as often as a table of their weights allows; matches, where prompts are not known."""
    if matches.cluster is None:
        return draw(seed, count, matches.clusters, table=False)
    return draw(seed, max(2, min(count, MAX_WEIGHTS // matches.clusters)), matches.clusters)


def check_parameters(system: RatingSystem, keys: Iterable[str]) -> None:
    """Check that a system has these parameters."""
    for key in keys:
        if key not in system.parameters:
            raise UsageError(f"{system.name}: no parameter {key!r}; {list_parameters(system)}")


def list_parameters(system: RatingSystem) -> str:
    """List the parameters of a system for a message."""
    return "known: " + (", ".join(f"{name}={value}" for name, value in system.parameters.items()) or "none")


def build_board(
    matches: Matches, system: RatingSystem, parameters: Mapping[str, Any] = NO_PARAMETERS, *, draws: Draws | None = None
) -> Board:
    """Rate models."""
    draws = draw_prompts(matches, system, 0) if draws is None else draws
    return derive_board(rate_matches(matches, system, parameters, draws))


def rate_matches(matches: Matches, system: RatingSystem, parameters: Mapping[str, Any], draws: Draws) -> RatedMatches:
    """Rate matches as they are and under each draw."""
    check_parameters(system, parameters)
    prompts_known = None if matches.cluster is None else matches.clusters
    if prompts_known != (drawn := None if draws.weights is None else draws.weights.shape[1]):
        raise UsageError(
            f"the draws are of {drawn or 'no'} prompts, the matches have {prompts_known or 'none'}; draw again for them"
        )
    ratings = system.rate_matches(matches, parameters)
    models = np.concatenate([matches.a, matches.b])
    prompts = np.bincount(models, minlength=len(matches.models))
    if matches.cluster is not None:
        shape = len(matches.models), matches.clusters
        pairs = coo_array((np.ones(len(models), np.bool_), (models, np.tile(matches.cluster, 2))), shape=shape).tocsr()
        prompts = np.diff(pairs.indptr)
    table = None if count_units(matches) < 2 else np.tile(ratings.rating, (draws.count, 1))
    # If every match is a tie, models are equal in every draw, whatever the effect of a prior on a draw.
    if table is not None and (matches.outcome != TIE).any():
        with guard_plugin(f"rating system {system.name!r} failed"), redirect_output():
            redrawn = system.redraw(matches, draws, **parameters)
            if np.shape(redrawn) != table.shape or np.isinf(redrawn).any():
                raise ValueError(f"redraw: expected ratings of shape {table.shape}, none of them infinite")
            # A model that a draw leaves out keeps its rating there, if the system has none for it.
            table = np.where(np.isnan(redrawn), table, redrawn)
    return RatedMatches(matches, system, ratings, table, prompts.astype(np.int64))


def derive_board(rated: RatedMatches) -> Board:
    """Derive intervals, ranks and notes."""
    matches, ratings, table, unit = rated.matches, rated.ratings, rated.table, rated.system.unit
    place = ranks(ratings.rating, unit)
    error, known, why = _standard_errors(rated)
    half = error * quantile(rated.prompts)
    best, worst = place, place
    if table is not None:  # the ranks that span 95% of the draws and the rank on the board
        drawn = ranks(widen_draws(rated), unit)
        least, most = np.quantile(drawn, [0.025, 0.975], axis=0, method="inverted_cdf").astype(np.int64)
        best, worst = np.minimum(least, place), np.maximum(most, place)
    low, high = ratings.rating - half, ratings.rating + half
    if unit == "share":
        low, high = low.clip(0, 1), high.clip(0, 1)
    played = np.bincount(np.concatenate([matches.a, matches.b]), minlength=len(place))
    won = np.where(matches.outcome == A, matches.a, matches.b)[matches.outcome != TIE]
    lost = np.where(matches.outcome == A, matches.b, matches.a)[matches.outcome != TIE]
    wins, losses = np.bincount(won, minlength=len(place)), np.bincount(lost, minlength=len(place))
    standings = [
        Standing(
            model=matches.models[i],
            rating=float(ratings.rating[i]),
            low=float(low[i]) if known[i] else None,
            high=float(high[i]) if known[i] else None,
            error=float(error[i]) if known[i] else None,
            rank=int(place[i]),
            rank_low=int(best[i]) if known[i] else None,
            rank_high=int(worst[i]) if known[i] else None,
            matches=int(played[i]),
            wins=int(wins[i]),
            losses=int(losses[i]),
            ties=int(played[i] - wins[i] - losses[i]),
            sigma=None if ratings.sigma is None else float(ratings.sigma[i]),
        )
        for i in np.argsort(place, kind="stable").tolist()
    ]
    units, name = count_units(matches), "matches" if matches.cluster is None else "prompts"
    rough = [f"{units} {name} only: intervals, ranges of ranks and chances are rough"] if 1 < units < ROUGH else []
    return Board(
        system=ratings.system,
        unit=unit,
        parameters=ratings.parameters,
        standings=tuple(standings),
        matches=len(matches),
        prompts=units,
        invalid=matches.invalid,
        draws=0 if table is None else len(table),
        interval=None if not known.any() else "bootstrap" if ratings.covariance is None else "sandwich",
        extra=ratings.extra,
        notes=(*ratings.notes, *list_group_notes(matches), *why, *rough),
    )


def widen_draws(rated: RatedMatches) -> Floats:
    """Move draws as far from the estimate as intervals reach: a few resampled prompts vary less than new ones would."""
    assert rated.table is not None
    m = np.array([count_units(rated.matches)])
    factor: Floats = standard_error(np.ones(1), m) * quantile(m) / ndtri(0.975)
    return rated.ratings.rating + factor * (rated.table - rated.ratings.rating)


def is_level(*boards: Matches) -> bool:
    """Whether every prompt has the same matches and outcomes, so that there is no variation between prompts."""
    rows = []
    for matches in boards:
        size = len(matches.models)
        swapped = matches.a > matches.b
        first, second = np.where(swapped, matches.b, matches.a), np.where(swapped, matches.a, matches.b)
        outcome = np.where(swapped & (matches.outcome != TIE), A + B - matches.outcome, matches.outcome)
        code = (first.astype(np.int64) * size + second) * 3 + outcome
        cluster = np.arange(len(matches)) if matches.cluster is None else matches.cluster
        counts = np.bincount(cluster)
        counts = counts[counts > 0]
        if (counts != counts[0]).any():
            return False
        rows.append(code[np.lexsort((code, cluster))].reshape(len(counts), -1))
    return all(bool((table == table[0]).all()) for table in rows)


def count_units(matches: Matches) -> int:
    """Count the prompts that have a match; the matches, where prompts are not known."""
    return len(matches) if matches.cluster is None else int((np.bincount(matches.cluster) > 0).sum())


def standard_error(variance: Floats, prompts: Ints) -> Floats:
    """Standard error from the variance over a number of prompts, at least 2, treated as the whole population."""
    return np.sqrt(np.maximum(variance, 0) * prompts / np.maximum(prompts - 1, 1))


def quantile(prompts: Ints) -> Floats:
    """Number of standard errors to each side of an estimate from so many prompts, for 95%."""
    return np.asarray(stdtrit(np.maximum(prompts - 1, 1), 0.975), np.float64)


def _standard_errors(rated: RatedMatches) -> tuple[Floats, NDArray[np.bool_], list[str]]:
    """Standard errors, which of them may be shown, and why the others may not."""
    matches, ratings, table = rated.matches, rated.ratings, rated.table
    unit = "match" if matches.cluster is None else "prompt"
    nothing = np.zeros(len(matches.models)), np.zeros(len(matches.models), np.bool_)
    if table is None:
        return *nothing, [f"one {unit} only: no interval"]
    if (matches.outcome == TIE).all():
        return *nothing, ["every match is a tie: no interval"]
    if ratings.covariance is None and "order" in rated.system.parameters and is_level(matches):
        # Only the order of matches varies between draws.
        return *nothing, [f"every {unit} says the same: no interval"]
    variance = table.var(axis=0, ddof=1) if ratings.covariance is None else np.diagonal(ratings.covariance)
    error = standard_error(variance, rated.prompts)
    anchored = np.array([name == ratings.parameters.get("anchor") for name in matches.models])
    # One prompt allows no inference about others, whatever the variance of the rest of the board.
    alone = ~anchored & (rated.prompts < 2)
    still = ~anchored & ~alone & (error <= TOLERANCE[rated.system.unit])
    reasons = ((alone, f"in matches of one {unit} only"), (still, f"nothing varies from {unit} to {unit}"))
    notes = [no_interval_note(matches.models, which, why) for which, why in reasons if which.any()]
    return error, ~alone & ~still, notes


def no_interval_note(models: Sequence[str], which: NDArray[np.bool_], why: str) -> str:
    """Note that some models have no interval."""
    names = [name for name, lacking in zip(models, which, strict=True) if lacking]
    return f"no interval for {format_names(names)}: {why}"


WIDTH = 60  # maximum number of characters of a name in a note
SHOWN = 6  # number of names in a list, and of groups in a note, before "and 12 more"

_Labels = NDArray[np.int32]


def find_groups(matches: Matches) -> list[tuple[str, ...]]:
    """Group models that are connected by matches; a model without a match is a group of its own."""
    return _name_groups(matches, _labels(*_edges(matches), len(matches.models), "weak"))


def list_group_notes(matches: Matches) -> tuple[str, ...]:
    """Note that the graph of matches falls apart, or has a top that never lost; one line at most.

    A win leads from the winner to the loser, a tie both ways. Where each model reaches each other one, ratings exist
    without any prior (Ford, 1957, Solution of a ranking problem from binary comparisons).
    """
    connected = find_groups(matches)
    if len(connected) > 1:
        return (f"ratings are comparable within a group only: {_format_groups(connected)}",)
    winner, loser = _edges(matches)
    labels = _labels(winner, loser, len(matches.models), "strong")
    strong = _name_groups(matches, labels)
    if len(strong) == 1:
        return ()
    ordered = _format_groups(_order_groups(strong, matches))
    return (
        f"no model of a group ever lost to or tied with one of a later group: {ordered}; "
        "how far apart the groups are rests on the prior or start, not on matches",
    )


def format_names(names: Sequence[str]) -> str:
    """List names on one line, safe to print; shorten long names and long lists."""
    clean = map(line, names[:SHOWN])
    return _list([name if len(name) <= WIDTH else name[: WIDTH - 1] + "…" for name in clean], len(names))


def _format_groups(groups: Sequence[Sequence[str]]) -> str:
    return _list([f"{{{format_names(group)}}}" for group in groups[:SHOWN]], len(groups))


def _list(texts: Sequence[str], total: int) -> str:
    more = total - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def _edges(matches: Matches) -> tuple[_Labels, _Labels]:
    """Winner and loser of every match; a tie counts twice, once each way."""
    a, b, outcome = matches.a, matches.b, matches.outcome
    ties, first = outcome == TIE, outcome == A
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return np.concatenate([winner, loser[ties]]), np.concatenate([loser, winner[ties]])


def _labels(winner: _Labels, loser: _Labels, models: int, connection: Literal["weak", "strong"]) -> _Labels:
    graph = coo_array((np.ones(len(winner), np.int32), (winner, loser)), shape=(models, models)).tocsr()
    labels: _Labels = connected_components(graph, directed=True, connection=connection)[1]
    return labels


def _name_groups(matches: Matches, labels: Iterable[int]) -> list[tuple[str, ...]]:
    # Models are sorted, so groups and the names in them are sorted too.
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for name, label in zip(matches.models, labels, strict=True):
        groups[label].append(name)
    return [tuple(group) for group in groups.values()]


def _order_groups(groups: Sequence[tuple[str, ...]], matches: Matches) -> list[tuple[str, ...]]:
    """Order strongly connected groups from top to bottom; by name where neither is above the other."""
    place = {name: number for number, group in enumerate(groups) for name in group}
    places = np.array([place[name] for name in matches.models])
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(len(groups)), ()))
    for above, below in np.unique(places[np.stack(_edges(matches))], axis=1).T.tolist():
        if above != below:
            sorter.add(below, above)
    return [groups[number] for number in sorter.static_order()]
