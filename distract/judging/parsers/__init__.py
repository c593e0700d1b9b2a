"""Read a judge's verdict from its own words, with one ``Format`` for each form of a verdict.

A parser takes the final verdict in the requested format, if it is plainly the judge's own: alone, announced (``Final
verdict:``) or chosen (``I choose``), in words of ``vocabulary.toml``. Verdicts that the judge thinks before
``</think>``, quotes, denies, supposes, asks about, gives to the loser or calls a fake never count, nor does anything
after the answer runs on into another question. A text with two different verdicts, neither of them final, has none
(None), which is a finding about the judge. Nothing here raises. A bare label is a complete answer in every format.

    verdict_formats  cleans an answer (thoughts, white space, invented turns), and finds the verdicts of a format
    own_words        masks quotations
    vocabulary       words that announce a verdict, and words that speak against one
    statements       whether a sentence upholds its verdict, and which verdict is final
"""

from __future__ import annotations

from distract.judging.parsers.verdict_formats import (
    BRACKETS,
    GRADED,
    JSON,
    LETTER,
    OUTPUT,
    RANKING,
    Format,
    strip_thoughts,
)

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "strip_thoughts"]
