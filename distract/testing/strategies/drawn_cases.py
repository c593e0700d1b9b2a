"""Drawn cases: a prompt with one or more responses, generated or taken from a data set."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import combinations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from distract.core.errors import UsageError
from distract.core.records import Case, Response
from distract.data.datasets import DataSet
from distract.data.good_responses import pairs as comparable_pairs
from distract.judging.comparison import comparable_responses
from distract.testing.strategies.text import check_kinds, prompts, texts

Data = Iterable[Case] | DataSet

AUTHORS = tuple("xyzabcdefg")
"""Authors of generated responses."""


def cases(
    *, responses: int = 1, kinds: Collection[str] | None = None, data: Data | None = None
) -> SearchStrategy[Case]:
    """Cases with 1 to 10 original responses, all different and by different authors.

    ``kinds`` restricts generated texts as in ``texts``. ``data`` draws from these cases instead: every choice of
    responses from a case, together with the rewrites of them that it records.
    """
    if type(responses) is not int or not 1 <= responses <= len(AUTHORS):
        raise UsageError(f"responses={responses!r}: expected a whole number from 1 to {len(AUTHORS)}")
    if data is not None:
        return st.sampled_from(choose_cases(data, responses, kinds))
    several = st.lists(texts(kinds=check_kinds(kinds)), min_size=responses, max_size=responses, unique=True)
    return st.builds(make_case, prompts(), several)


def pairs(*, kinds: Collection[str] | None = None, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases with two original responses, whose verdict may flip; see ``cases``."""
    return cases(responses=2, kinds=kinds, data=data)


def triples(*, kinds: Collection[str] | None = None, data: Data | None = None) -> SearchStrategy[Case]:
    """Cases with three original responses; see ``cases``."""
    return cases(responses=3, kinds=kinds, data=data)


def make_case(prompt: str, texts: Iterable[str]) -> Case:
    """A generated case; its id depends on the prompt only, so it stays the same while responses shrink."""
    originals = tuple(Response(author, (text,)) for author, text in zip(AUTHORS, texts, strict=False))
    return name_case(Case("", (prompt,), originals, source="drawn"))


def name_case(case: Case) -> Case:
    """The case with an id derived from its prompt."""
    return replace(case, id=f"drawn-{case.cluster}")


def choose_cases(data: Data, responses: int, kinds: Collection[str] | None) -> list[Case]:
    """The cases of a data set with every choice of that many responses."""
    if kinds is not None:
        raise UsageError(f"kinds={list(kinds)!r}: texts drawn from data are of any kind; drop kinds or data")
    listed = list_cases(data)
    narrowed = [narrow_case(case, choice) for case in listed for choice in _choices(case, responses)]
    if not narrowed:
        expected = f"{responses} original responses by different authors" if responses > 1 else "an original response"
        raise UsageError(f"data: expected cases with {expected}; found none among {len(listed)}")
    return narrowed


def list_cases(data: Data) -> list[Case]:
    """The cases of ``data``."""
    if isinstance(data, DataSet):
        data = data.cases
    if isinstance(data, Case) or not isinstance(data, Iterable):
        raise UsageError(f"data: expected a list of cases, found {type(data).__name__}")
    return list(data)


def narrow_case(case: Case, choice: Iterable[Response]) -> Case:
    """The case with only these original responses and what it records about them."""
    originals = tuple(choice)
    keys = {(response.author, response.severity) for response in originals}
    rewrites = (r for r in case.responses if r.attack and (r.author, r.severity) in keys)
    responses = (*originals, *rewrites)
    authors = {response.author for response in originals}
    return replace(
        case,
        responses=responses,
        preferred=case.preferred if case.preferred in (*authors, "tie") else None,
        lineages=tuple(lineage for lineage in case.lineages if lineage.response in responses),
    )


def _choices(case: Case, responses: int) -> Iterable[tuple[Response, ...]]:
    if responses == 2:
        return comparable_pairs(case)
    choices = combinations(comparable_responses(case), responses)
    return (choice for choice in choices if len({response.turns for response in choice}) == len(choice))
