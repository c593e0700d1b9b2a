"""Read a judge's verdict from its own words: ``read(text, place, words, material, cut)``, for every way of answering.

A verdict counts if it stands in its ``Place``, means something in its ``Words``, and is plainly the judge's own: alone,
announced (``Final verdict:``), chosen (``I choose``) or after a marker. Verdicts that the judge thinks before
``</think>``, quotes, denies, supposes, asks about, gives to the loser or calls a fake never count, nor does anything
after the answer runs on into another question. A text with two different verdicts, neither of them final, has none,
which is a finding about the judge. Nothing here raises.

    answers      cleans an answer (thoughts, white space, invented turns), and finds its JSON objects
    words        what the text of a verdict means
    places       where a verdict stands
    quotations   masks verdicts that are only quoted
    vocabulary   words that announce a verdict, and words that speak against one
    statements   whether a sentence upholds its verdict, and which verdict is final
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from distract.judging.parsers import places, words
from distract.judging.parsers.answers import (
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

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "read", "strip_thoughts"]

MOST_READ = 2_000_000
"""Characters at the end of an answer in which thoughts are recognised; what comes before is not read."""

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

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing a verdict.

    Attributes:
        name: Name of the format.
        say: Writes a label as a judge is asked to.
        place: Where a verdict stands.
        words: Makes the words of a verdict from the labels on offer.
    """

    name: str
    say: Callable[[str], str]
    place: Place
    words: Callable[[tuple[str, ...]], Words]

    def read(self, text: str, labels: Labels, material: Sequence[str] = (), cut: bool = False) -> str | None:
        """Read the final verdict in an answer.

        Args:
            text: Whole answer, including its prefill.
            labels: Possible labels; for a ranking, the items to rank.
            material: Responses and prompt, which the judge may quote. A quoted verdict does not count.
            cut: Whether the answer reached its token limit.

        Returns:
            One of the labels (for a ranking, an order such as ``B>A=C``), or None for no verdict.
        """
        value = read(text, self.place, self.words(tuple(labels)), material, cut).value
        return None if isinstance(value, Unread) else str(value)


def _format_brackets(label: str) -> str:
    return f"[[{label}]]"


OUTPUT = Format("output", "Therefore, Output ({}) is better.".format, places.Sentence(), words.outputs)
BRACKETS = Format("brackets", _format_brackets, places.Brackets(), words.labels)
GRADED = Format(
    "graded",
    lambda label: f"My final verdict is: [[{label}>{'B' if label == 'A' else 'A'}]]",
    places.Brackets(),
    words.grades,
)
JSON = Format(
    "json", lambda label: json.dumps({"choice": label}), places.Path(("choice",), is_lenient=True), words.labels
)
LETTER = Format("letter", str, places.Nowhere(), words.letters)
RANKING = Format("ranking", _format_brackets, places.Brackets(), words.ranking)
