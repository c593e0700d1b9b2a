"""Drawn texts and cases: prompts, responses of many kinds, and both together, generated or taken from a data set.

Texts shrink to a short plain sentence. They are texts that a judge may meet, not good answers: a response need not
match its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from distract.core.errors import UnknownName, UsageError
from distract.core.records import Case, Response
from distract.data.datasets import DataSet
from distract.data.good_responses import pairs as comparable_pairs
from distract.judging.comparison import comparable_responses
from distract.testing.strategies import word_lists

MAX_PARTS = 6  # limit on the sentences, items or blocks of one text


def prompts() -> SearchStrategy[str]:
    """Questions and instructions, some with a little context; the simplest is ``How do I make tea?``."""
    questions = st.builds(str.format, st.sampled_from(word_lists.ASKING), st.sampled_from(word_lists.TASKS))
    context = st.lists(st.sampled_from(word_lists.CONTEXT), max_size=2, unique=True)
    return st.builds(lambda first, rest: " ".join([first, *rest]), questions, context)


def texts(*, kinds: Collection[str] | None = None) -> SearchStrategy[str]:
    """Texts of responses of some or all ``KINDS``. Only a ``hostile`` text may be empty or blank."""
    return st.one_of([_DRAWN[kind]() for kind in check_kinds(kinds)])


def responses(author: str = "x", *, kinds: Collection[str] | None = None) -> SearchStrategy[Response]:
    """Original responses of one turn by an author; ``kinds`` as in ``texts``."""
    if not isinstance(author, str) or not author:
        raise UsageError(f"author={author!r}: expected a name")
    return texts(kinds=kinds).map(lambda text: Response(author, (text,)))


def check_kinds(kinds: Collection[str] | None) -> tuple[str, ...]:
    """The chosen kinds in the order of ``KINDS``, plain ones first."""
    if kinds is None:
        return KINDS
    if isinstance(kinds, str):
        raise UsageError(f"kinds={kinds!r}: expected several names, as in kinds=[{kinds!r}]")
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind of text", str(kind), KINDS)
    if not kinds:
        raise UsageError(f"kinds=[]: expected at least one of {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in kinds)


def _join_parts(parts: SearchStrategy[str], separator: str, most: int = MAX_PARTS) -> SearchStrategy[str]:
    return st.lists(parts, min_size=1, max_size=most).map(separator.join)


def _prose() -> SearchStrategy[str]:
    sentences = st.lists(
        st.sampled_from(word_lists.PLAIN + word_lists.WINDING), min_size=1, max_size=2 * MAX_PARTS, unique=True
    )
    return sentences.map(lambda drawn: "\n\n".join(" ".join(drawn[at : at + 4]) for at in range(0, len(drawn), 4)))


def _lists() -> SearchStrategy[str]:
    lead = st.sampled_from(("", "You need:\n", "Here is what might help:\n\n"))
    items = st.lists(st.sampled_from(word_lists.ITEMS + word_lists.PLAIN), min_size=1, max_size=MAX_PARTS, unique=True)
    return st.builds(_format_list, lead, st.sampled_from(word_lists.MARKERS), items)


def _format_list(lead: str, marker: str, items: list[str]) -> str:
    return lead + "\n".join(f"{marker.replace('1', str(number))}{item}" for number, item in enumerate(items, 1))


def _numbers() -> SearchStrategy[str]:
    numbers = st.tuples(*[st.integers(1, 99)] * 3)
    row = numbers.map(lambda n: f"| {n[0]} | {n[1]}.{n[2]} kg |")
    table = _join_parts(row, "\n").map(lambda rows: f"| step | weight |\n|---:|---|\n{rows}")
    counted = st.builds(lambda text, n: text.format(*n), st.sampled_from(word_lists.COUNTED), numbers)
    return _join_parts(counted, " ") | table


def _markdown() -> SearchStrategy[str]:
    inner = st.sampled_from(word_lists.PLAIN + word_lists.ITEMS)
    return _join_parts(st.builds(str.format, st.sampled_from(word_lists.SURROUNDED), inner), "\n\n")


def _code() -> SearchStrategy[str]:
    block = st.sampled_from(word_lists.CODE).map(lambda code: f"```{code[0]}\n{code[1]}\n```")
    return st.builds("".join, st.tuples(_surround("", "{}\n\n"), block, _surround("", "\n\n{}", "\n\nRun `{}`.")))


def _surround(*forms: str) -> SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(forms), st.sampled_from(word_lists.PLAIN))


def _hostile_texts() -> SearchStrategy[str]:
    parts = st.sampled_from(word_lists.PLAIN[:3] + word_lists.HOSTILE) | st.text(max_size=20)
    separators, drawn = st.sampled_from((" ", "\n", "")), st.lists(parts, min_size=1, max_size=MAX_PARTS)
    return st.builds(str.join, separators, drawn)


_DRAWN: Mapping[str, Callable[[], SearchStrategy[str]]] = MappingProxyType(
    {
        "prose": _prose,
        "lists": _lists,
        "numbers": _numbers,
        "markdown": _markdown,
        "code": _code,
        "languages": lambda: _join_parts(st.sampled_from(word_lists.SPOKEN), " ", 3),
        "hostile": _hostile_texts,
    }
)

KINDS = tuple(_DRAWN)  # kinds of texts, the plainest first

Data = Iterable[Case] | DataSet

AUTHORS = tuple("xyzabcdefg")  # authors of generated responses


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
