"""Read a judge's verdict in its own words: one ``Format`` for each way in which a verdict may be asked for.

A reader takes the final verdict in the format that was asked for, where it is plainly the judge's own: alone, announced
(``Final verdict:``) or chosen (``I choose``). What the judge thinks before ``</think>``, quotes, negates, supposes,
asks, calls the loser's or a fake never decides, nor does what follows once the answer runs on into another question. A
text with two such verdicts, and neither final, has none (None): a finding about the judge. Nothing here raises. An
answer that is nothing but the bare label counts in every format.

It knows no protocol, prompt or backend.
"""

from __future__ import annotations

from distract.reading.formats import BRACKETS, GRADED, JSON, LETTER, OUTPUT, RANKING, Format
from distract.reading.text import thoughtless

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "thoughtless"]
