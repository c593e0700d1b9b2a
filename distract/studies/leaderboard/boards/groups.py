"""Comparable models: groups that played each other, and groups that never lost to a lower one.

This holds for every rating system that learns from matches alone.
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
"""Maximum number of characters of a name in a note."""

SHOWN = 6
"""Number of names in a list, and of groups in a note, before "and 12 more"."""

_Labels = NDArray[np.int32]


def find_groups(matches: Matches) -> list[tuple[str, ...]]:
    """Group models that are connected by matches; a model without a match is a group of its own."""
    return _name_groups(matches, _labels(*_edges(matches), len(matches.models), "weak"))


def notes(matches: Matches) -> tuple[str, ...]:
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
