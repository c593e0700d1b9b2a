"""Read a judge's verdict in its own words: one ``Format`` for each way in which a verdict may be asked for.

A reader takes the final verdict in the format that was asked for, stated by the judge itself: what it thinks before
``</think>``, what it quotes from a response, negates, supposes or asks never decides. A text without such a
verdict, or with two that differ and nothing that makes one of them final, has none (None): that is a finding about the
judge and nothing here raises. An answer that is nothing but the bare label counts in every format.

It knows no protocol, prompt or backend.
"""

from __future__ import annotations

from distract.reading.formats import BRACKETS, GRADED, JSON, LETTER, OUTPUT, RANKING, Format
from distract.reading.text import thoughtless

__all__ = ["BRACKETS", "GRADED", "JSON", "LETTER", "OUTPUT", "RANKING", "Format", "thoughtless"]
