"""Drawn texts: prompts, and responses of many kinds, which shrink to a short plain sentence.

They are texts that a judge may meet, not good answers: a response need not match its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from distract.core.errors import UnknownName, UsageError
from distract.core.records import Response
from distract.testing.strategies import word_lists

MAX_PARTS = 6
"""Limit on the sentences, items or blocks of one text."""


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
    return (
        _join_parts(st.builds(lambda text, n: text.format(*n), st.sampled_from(word_lists.COUNTED), numbers), " ")
        | table
    )


def _markdown() -> SearchStrategy[str]:
    marked = st.builds(
        str.format, st.sampled_from(word_lists.SURROUNDED), st.sampled_from(word_lists.PLAIN + word_lists.ITEMS)
    )
    return _join_parts(marked, "\n\n")


def _code() -> SearchStrategy[str]:
    block = st.sampled_from(word_lists.CODE).map(lambda code: f"```{code[0]}\n{code[1]}\n```")
    return st.builds("".join, st.tuples(_surround("", "{}\n\n"), block, _surround("", "\n\n{}", "\n\nRun `{}`.")))


def _surround(*forms: str) -> SearchStrategy[str]:
    return st.builds(str.format, st.sampled_from(forms), st.sampled_from(word_lists.PLAIN))


def _languages() -> SearchStrategy[str]:
    return _join_parts(st.sampled_from(word_lists.SPOKEN), " ", 3)


def _hostile_texts() -> SearchStrategy[str]:
    parts = st.sampled_from(word_lists.PLAIN[:3] + word_lists.HOSTILE) | st.text(max_size=20)
    return st.builds(
        lambda separator, drawn: separator.join(drawn),
        st.sampled_from((" ", "\n", "")),
        st.lists(parts, min_size=1, max_size=MAX_PARTS),
    )


_DRAWN: Mapping[str, Callable[[], SearchStrategy[str]]] = MappingProxyType(
    {
        "prose": _prose,
        "lists": _lists,
        "numbers": _numbers,
        "markdown": _markdown,
        "code": _code,
        "languages": _languages,
        "hostile": _hostile_texts,
    }
)

KINDS = tuple(_DRAWN)
"""Kinds of texts, the plainest first."""
