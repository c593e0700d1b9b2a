"""Read a judge's verdict in its own words: one ``Format`` for each way in which a verdict may be asked for.

A reader takes the final verdict in the format that was asked for, where it is plainly the judge's own: alone, announced
(``Final verdict:``) or chosen (``I choose``), in words of ``vocabulary.toml``. What the judge thinks before
``</think>``, quotes, denies, supposes, asks, gives to the loser or calls a fake never decides, nor does what follows
once the answer runs on into another question. A text with two such verdicts, and neither final, has none (None): a
finding about the judge. Nothing here raises. A bare label is a whole answer in every format.

    text        an answer without thoughts, evened, up to the next invented turn
    own_words   what is quoted is masked
    formats     finds the verdicts of a format
    vocabulary  which words announce a verdict, and which speak against one
    sentences   whether a sentence gives its verdict
    statements  which of the given verdicts is final
"""

from __future__ import annotations

from distract.judging.parsers.answer import strip_thoughts
from distract.judging.parsers.verdict_formats import BRACKETS, GRADED, JSON, LETTER, OUTPUT, RANKING, Format

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "strip_thoughts"]
