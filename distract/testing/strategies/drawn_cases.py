"""Drawn cases: a prompt with one response or several, written here or taken from a data set.

It knows no attack and no format requirement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import combinations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from distract.core.errors import UsageError
from distract.core.records import Case, Response
from distract.data.datasets import DataSet
from distract.data.good_responses import pairs as judged
from distract.judging.comparison import comparable_responses
from distract.testing.strategies.text import check_kinds, prompts, texts

Data = Iterable[Case] | DataSet
"""What cases are drawn from; a data set stands for its cases."""

AUTHORS = tuple("xyzabcdefg")
"""Of the responses that are written here."""


def cases(
    *, responses: int = 1, kinds: Collection[str] | None = None, data: Data | None = None
) -> SearchStrategy[Case]:
    """Cases with so many original responses, each by another author and no two of the same text.

    Args:
        responses: how many, from 1 to 10.
        kinds: of their texts, as in ``texts``; not with ``data``.
        data: cases to draw from, as in ``datasets.load("tweakset").cases``; None writes them. Of a case with more
            responses every choice may be drawn; with the responses come the rewrites of them that it records.

    Raises:
        UnknownName: no such kind.
        UsageError: a number out of range, kinds together with data, or no case of the data has so many responses.
    """
    if type(responses) is not int or not 1 <= responses <= len(AUTHORS):
        raise UsageError(f"responses={responses!r}: expected a whole number from 1 to {len(AUTHORS)}")
    if data is not None:
        return st.sampled_from(choose_cases(data, responses, kinds))
    found = st.lists(texts(kinds=check_kinds(kinds)), min_size=responses, max_size=responses, unique=True)
    return st.builds(make_case, prompts(), found)


def pairs(*, kinds: Collection[str] | None = None, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases with two original responses: those whose verdict may flip; arguments and errors as in ``cases``."""
    return cases(responses=2, kinds=kinds, data=data)


def triples(*, kinds: Collection[str] | None = None, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases with three original responses; arguments and errors as in ``cases``."""
    return cases(responses=3, kinds=kinds, data=data)


def make_case(prompt: str, found: Iterable[str]) -> Case:
    """A case of our own; it keeps its name while its responses shrink."""
    originals = tuple(Response(author, (text,)) for author, text in zip(AUTHORS, found, strict=False))
    return name_case(Case("", (prompt,), originals, source="drawn"))


def name_case(case: Case) -> Case:
    """The case, named by its prompt."""
    return replace(case, id=f"drawn-{case.cluster}")


def choose_cases(data: Data, responses: int, kinds: Collection[str] | None) -> list[Case]:
    """The cases of a data set with every choice of so many responses.

    Raises:
        UsageError: kinds are given too, or there are none.
    """
    if kinds is not None:
        raise UsageError(f"kinds={list(kinds)!r}: what is drawn from data has the kinds of the data; leave one out")
    given = list_cases(data)
    found = [narrow_case(case, some) for case in given for some in _choices(case, responses)]
    if not found:
        wanted = f"{responses} whole responses by different authors" if responses > 1 else "a whole response"
        raise UsageError(f"data: expected cases with {wanted}; none of {len(given)} is one")
    return found


def list_cases(data: Data) -> list[Case]:
    """The cases of data.

    Raises:
        UsageError: they are no cases.
    """
    if isinstance(data, DataSet):
        data = data.cases
    if isinstance(data, Case) or not isinstance(data, Iterable):
        raise UsageError(f"data: expected cases, found {type(data).__name__}; give a list of them")
    return list(data)


def narrow_case(case: Case, kept: Iterable[Response]) -> Case:
    """A case with these of its responses, and what it says of them."""
    originals = tuple(kept)
    wanted = {(one.author, one.severity) for one in originals}
    every = (*originals, *(one for one in case.responses if one.attack and (one.author, one.severity) in wanted))
    authors = {one.author for one in originals}
    return replace(
        case,
        responses=every,
        preferred=case.preferred if case.preferred in (*authors, "tie") else None,
        lineages=tuple(lineage for lineage in case.lineages if lineage.response in every),
    )


def _choices(case: Case, responses: int) -> Iterable[tuple[Response, ...]]:
    if responses == 2:
        return judged(case)
    return (
        some
        for some in combinations(comparable_responses(case), responses)
        if len({one.turns for one in some}) == len(some)
    )
