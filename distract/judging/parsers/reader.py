"""The one reader: find the verdicts of an answer where they stand, and choose the final one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from distract.judging.parsers import places, words
from distract.judging.parsers.answers import (
    MOST_READ,
    cut_invented_turns,
    find_line,
    find_normalised_line,
    normalise_text,
    strip_thoughts,
)
from distract.judging.parsers.places import Place, read_bare
from distract.judging.parsers.quotations import MASK
from distract.judging.parsers.statements import Statement, choose_final
from distract.judging.parsers.words import Unread, Value, Words

MOST_SEARCHED = 100_000
"""Characters at the end of the judge's own words in which a verdict is searched."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read in an answer.

    Attributes:
        value: the verdict, or why there is none.
        words: the words that were read as the verdict.
        line: their line among the judge's own words, from 1.
        quoted: verdicts that do not count, because the judge only quotes them.
    """

    value: Value | Unread
    words: str = ""
    line: int = 0
    quoted: tuple[str, ...] = ()


LISTENERS: list[Callable[[str, Reading], None]] = []
"""Each gets every text that is read with its reading, whose line is that of the text; 0 where it is unknown."""


def read(text: str, place: Place, verdict: Words, material: Sequence[str] = (), cut: bool = False) -> Reading:
    """Read the final verdict in an answer.

    Args:
        text: Whole answer, including its prefill.
        place: Where the verdict stands.
        verdict: What it may say.
        material: Texts that the judge may quote: responses, question, reference. A quoted verdict does not count.
        cut: Whether the answer reached its token limit.
    """
    own = given = strip_thoughts(text[-MOST_READ:])[-MOST_SEARCHED:]
    if place.is_raw:
        own = own.replace(MASK, "")
    else:
        whole, material = normalise_text(own)[-MOST_SEARCHED:], [_normalise_material(quotable) for quotable in material]
        own = cut_invented_turns(whole)
        cut = cut and own == whole
    final: Statement | str | None = read_bare(own, verdict, cut) if place.is_lenient else None
    quoted: Sequence[str] = ()
    if final is None:
        verdicts = place.find(own, verdict, material, cut)
        quoted = verdicts.quoted
        final = choose_final(verdicts.text, verdicts.statements) if verdicts.statements else verdicts.missing
    if isinstance(final, str):
        reading = Reading(Unread(final), quoted=tuple(quoted))
    else:
        value = Unread(final.problem) if final.value is None else final.value
        line = own.count("\n", 0, final.start) + 1  # of the text without masks, which hide line ends
        reading = Reading(value, own[final.start : final.end], line, tuple(quoted))
    for listen in LISTENERS:
        line = reading.line if place.is_raw else find_normalised_line(given, reading.line)
        listen(text, replace(reading, line=find_line(text, given, line)))
    return reading


_normalise_material = lru_cache(maxsize=1024)(normalise_text)
"""Size of the cache: many answers may quote the same texts."""

FORMS: Mapping[str, tuple[Place, Callable[[tuple[str, ...]], Words]]] = {
    "output": (places.Sentence(), words.outputs),
    "brackets": (places.Brackets(), words.labels),
    "graded": (places.Brackets(), words.grades),
    "json": (places.Path(("choice",), is_lenient=True), words.labels),
    "letter": (places.Nowhere(), words.letters),
    "ranking": (places.Brackets(), words.ranking),
}
"""Where the verdict of each format stands, and what makes its words from the labels on offer."""
