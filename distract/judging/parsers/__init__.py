"""Read a judge's verdict from its own words, with one ``Format`` for each form of a verdict.

A parser takes the final verdict in the requested format, if it is plainly the judge's own: alone, announced (``Final
verdict:``) or chosen (``I choose``), in words of ``vocabulary.toml``. Verdicts that the judge thinks before
``</think>``, quotes, denies, supposes, asks about, gives to the loser or calls a fake never count, nor does anything
after the answer runs on into another question. A text with two different verdicts, neither of them final, has none
(None), which is a finding about the judge. Nothing here raises. A bare label is a complete answer in every format.

    answer           an answer without thoughts, normalised, up to the first invented turn
    own_words        masks quotations
    verdict_formats  finds the verdicts of a format
    vocabulary       words that announce a verdict, and words that speak against one
    sentences        whether a sentence upholds its verdict
    statements       which verdict is final
"""

from __future__ import annotations

from distract.judging.parsers.answer import strip_thoughts
from distract.judging.parsers.verdict_formats import BRACKETS, GRADED, JSON, LETTER, OUTPUT, RANKING, Format

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "strip_thoughts"]
