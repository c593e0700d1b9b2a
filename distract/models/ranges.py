"""Ranges for the numbers that a user gives, on a command line, in a call or in a file of settings.

Python reads ``nan``, ``1e304``, ``1_000`` and the digits of every script as numbers. No user means any of them, and
each causes a failure far from the option, so options accept only the two plain kinds here.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from types import MappingProxyType

from distract.core.printable import share_hint

MAX_COUNT = 10**9
"""Upper bound for every count."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


class WholeRange:
    """A whole number, or a word for one."""

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
        """Parse a value; raises ``ValueError`` with the allowed range."""
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        text = str(value).strip()
        number = int(text) if _WHOLE.fullmatch(text) else None
        if number is None or not self.least <= number <= self.most:
            # Mention a bound that only excludes nonsense when it is exceeded.
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
        """Parse a value; raises ``ValueError`` with the allowed range."""
        text = str(value).strip()
        # Adding zero turns -0 into 0, which a record writes differently.
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
        number = text.removesuffix("%").strip()
        is_share = self.most == 1 and _DECIMAL.fullmatch(number)
        return share_hint(float(number), is_percent=number != text) if is_share else ""


Range = WholeRange | NumberRange
