"""Which models can be compared at all: groups that played each other, and groups that nobody below ever beat.

Pure functions of matches. It knows no rating system: what it says holds for every one that learns from matches alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from distract.core.printable import line
from distract.stats.ratings.matches import TIE, A, Matches

WIDTH = 60
"""Characters of a name that a note shows."""

SHOWN = 6
"""Names of a list, and groups of a note, that are shown before "and 12 more"."""

_Labels = NDArray[np.int32]


def find_groups(matches: Matches) -> list[tuple[str, ...]]:
    """The models in groups that are connected by matches, each sorted, by their first names; all models in one is best.

    A model without a match, which no file gives, is a group of its own.
    """
    return _name_groups(matches, _labels(*_edges(matches), len(matches.models), "weak"))


def notes(matches: Matches) -> tuple[str, ...]:
    """What the graph of matches cannot tell, a line at most: it falls apart, or it has a top that never lost.

    A win leads from the winner to the loser, a tie both ways. Where each model reaches each other one, ratings exist
    without any prior (Ford, 1957, Solution of a ranking problem from binary comparisons).
    """
    found = find_groups(matches)
    if len(found) > 1:
        return (f"ratings are comparable within a group only: {_format_groups(found)}",)
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
    """Names on one line, safe to print; long names and long lists are shortened."""
    shown = [_shorten(name) for name in names[:SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _shorten(name: str) -> str:
    clean = line(name)
    return clean if len(clean) <= WIDTH else clean[: WIDTH - 1] + "…"


def _format_groups(found: Sequence[Sequence[str]]) -> str:
    more = len(found) - SHOWN
    text = ", ".join(f"{{{format_names(group)}}}" for group in found[:SHOWN])
    return text + (f" and {more} more" if more > 0 else "")


def _edges(matches: Matches) -> tuple[_Labels, _Labels]:
    """Winner and loser of every match; a tie is there twice, once each way."""
    a, b, outcome = matches.a, matches.b, matches.outcome
    ties, first = outcome == TIE, outcome == A
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return np.concatenate([winner, loser[ties]]), np.concatenate([loser, winner[ties]])


def _labels(winner: _Labels, loser: _Labels, models: int, connection: Literal["weak", "strong"]) -> _Labels:
    graph = coo_array((np.ones(len(winner), np.int32), (winner, loser)), shape=(models, models)).tocsr()
    labels: _Labels = connected_components(graph, directed=True, connection=connection)[1]
    return labels


def _name_groups(matches: Matches, labels: Iterable[int]) -> list[tuple[str, ...]]:
    # Models are sorted, so groups and the names in them come out sorted too.
    found: defaultdict[int, list[str]] = defaultdict(list)
    for name, label in zip(matches.models, labels, strict=True):
        found[label].append(name)
    return [tuple(group) for group in found.values()]


def _order_groups(found: Sequence[tuple[str, ...]], matches: Matches) -> list[tuple[str, ...]]:
    """Strongly connected groups from top to bottom; where neither is above the other, by name as far as that goes."""
    place = {name: number for number, group in enumerate(found) for name in group}
    places = np.array([place[name] for name in matches.models])
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(len(found)), ()))
    for above, below in np.unique(places[np.stack(_edges(matches))], axis=1).T.tolist():
        if above != below:
            sorter.add(below, above)
    return [found[number] for number in sorter.static_order()]
