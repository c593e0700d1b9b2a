"""Numbers that a user gives, on a command line or in a call: plain, finite, and within bounds that a message can name.

Python reads ``nan``, ``1e304``, ``1_000`` and digits of every script as numbers. None of them is what somebody wants
to give, and each breaks something far from the option, so that these two kinds are the only ones that options use.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from types import MappingProxyType

from distract.core.price import MAX_PRICE
from distract.core.printable import share_hint

MAX_COUNT = 10**9
"""The largest number of anything that is counted."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


class WholeRange:
    """A whole number, or a word that stands for one."""

    name = "integer"

    def __init__(
        self,
        least: int,
        most: int = MAX_COUNT,
        noun: str = "whole number",
        words: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.least, self.most, self.noun, self.words = least, most, noun, words
        if words:
            self.name = "|".join(("N", *words))

    def read(self, value: object) -> int:
        """Return the number that a value or a text means."""
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        text = str(value).strip()
        number = int(text) if _WHOLE.fullmatch(text) else None
        if number is None or not self.least <= number <= self.most:
            # A bound that only keeps out nonsense is named where it is met.
            most = f" to {self.most}" if self.most != MAX_COUNT or (number or 0) > MAX_COUNT else ""
            words = "".join(f", or {word!r}" for word in self.words)
            raise ValueError(f"{reprlib.repr(value)}: expected a {self.noun} from {self.least}{most}{words}")
        return number


class NumberRange:
    """A number with or without decimals."""

    name = "number"

    def __init__(self, least: float, most: float, is_open: str | bool = False) -> None:
        self.least, self.most, self.is_open = least, most, is_open
        self._above, self._below = is_open in (True, "least"), is_open in (True, "most")

    def read(self, value: object) -> float:
        """Return the number that a value or a text means."""
        text = str(value).strip()
        # Adding zero makes 0 of -0, which would be another text in a record.
        number = float(text) + 0.0 if _DECIMAL.fullmatch(text) else None
        if number is None or not self._contains(number):
            raise ValueError(f"{reprlib.repr(value)}: expected {self._range}{self._percent_hint(text)}")
        return number

    def _contains(self, number: float) -> bool:
        is_above = number > self.least if self._above else number >= self.least
        return is_above and (number < self.most if self._below else number <= self.most)

    @property
    def _range(self) -> str:
        low = f"{'above' if self._above else 'from'} {self.least:g}"
        high = "and below" if self._below else "up to" if self._above else "to"
        return f"a number {low} {high} {self.most:g}"

    def _percent_hint(self, text: str) -> str:
        """What to write for a share that is given in percent."""
        number = text.removesuffix("%").strip()
        is_share = self.most == 1 and _DECIMAL.fullmatch(number)
        return share_hint(float(number), is_percent=number != text) if is_share else ""


COUNT = WholeRange(1)
TOKENS = WholeRange(1, 10**7)
SHARE = NumberRange(0, 1)
INNER_SHARE = NumberRange(0, 1, is_open=True)
CONFIDENCE = NumberRange(0.5, 1, is_open="most")
"""A chance to be right: one below a half would be wrong more often."""
PRICE = NumberRange(0, MAX_PRICE)
SEED = WholeRange(-(2**63), 2**63 - 1)
LIMIT = WholeRange(1, noun="number of cases", words=MappingProxyType({"all": 0}))
"""A number of cases; ``all`` is 0, which no user can ask for otherwise."""

BOUNDS: Mapping[str, WholeRange | NumberRange] = MappingProxyType(
    {
        "ahead": COUNT,
        "answer_tokens": TOKENS,
        "attempts": WholeRange(1, 1000),
        "batch_tokens": WholeRange(64),
        "best_of": WholeRange(1, 1000),
        "budget": COUNT,
        "concurrency": WholeRange(1, 1000),
        "confidence": CONFIDENCE,
        "gpu_memory": NumberRange(0, 1, "least"),
        "limit": LIMIT,
        "max_flip_rate": INNER_SHARE,
        "max_invalid_rate": SHARE,
        "max_length": WholeRange(16),
        "max_rise": INNER_SHARE,
        "max_tokens": TOKENS,
        "min_eligible": SHARE,
        "min_n": COUNT,
        "minimal": WholeRange(0),
        "price_in": PRICE,
        "price_out": PRICE,
        "retries": WholeRange(0, 1000),
        "samples": WholeRange(1, 10_000),
        "seed": SEED,
        "temperature": NumberRange(0, 10),
        "tensor_parallel": WholeRange(1, 1024),
        "timeout": NumberRange(0.001, 86_400),
        "top_p": NumberRange(0, 1, "least"),
    }
)
"""What the options of ``attack`` and ``gate`` may be, by their names."""
