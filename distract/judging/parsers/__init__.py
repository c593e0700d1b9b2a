"""Read a judge's verdict from its own words: ``read(text, place, words, material, cut)``, for every way of answering.

A verdict counts if it stands in its ``Place``, means something in its ``Words``, and is plainly the judge's own: alone,
announced (``Final verdict:``), chosen (``I choose``) or after a marker. Verdicts that the judge thinks before
``</think>``, quotes, denies, supposes, asks about, gives to the loser or calls a fake never count, nor does anything
after the answer runs on into another question. A text with two different verdicts, neither of them final, has none,
which is a finding about the judge. Nothing here raises.

    reader       reads an answer
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
from dataclasses import dataclass
from typing import Any

from distract.judging.parsers.answers import strip_thoughts

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "strip_thoughts"]

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing a verdict.

    Attributes:
        name: Name of the format.
        say: Writes a label as a judge is asked to.
    """

    name: str
    say: Callable[[str], str]

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
        # Probabilities of labels are read without the reader, so it is imported where words are.
        from distract.judging.parsers.reader import FORMS, read
        from distract.judging.parsers.words import Unread

        place, words = FORMS[self.name]
        value = read(text, place, words(tuple(labels)), material, cut).value
        return None if isinstance(value, Unread) else str(value)


def _format_brackets(label: str) -> str:
    return f"[[{label}]]"


OUTPUT = Format("output", "Therefore, Output ({}) is better.".format)
BRACKETS = Format("brackets", _format_brackets)
GRADED = Format("graded", lambda label: f"My final verdict is: [[{label}>{'B' if label == 'A' else 'A'}]]")
JSON = Format("json", lambda label: json.dumps({"choice": label}))
LETTER = Format("letter", str)
RANKING = Format("ranking", _format_brackets)


def __getattr__(name: str) -> Any:
    if name in ("read", "Reading", "Place", "Words"):
        from distract.judging.parsers import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
