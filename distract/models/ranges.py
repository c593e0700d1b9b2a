"""Kinds of values that a user gives, on a command line, in a call or in a file of settings.

Python reads ``nan``, ``1e304``, ``1_000`` and the digits of every script as numbers. No user means any of them, and
each causes a failure far from the option, so options accept only the two plain kinds here.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from distract.core.printable import share_hint

MAX_COUNT = 10**9
"""Upper bound for every count."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


Lead = tuple[Literal["code", "server", "path"], str]
"""What a value leads to beyond itself, and its name."""

_CODE = re.compile(r"\A\W*python\W*:|\.(?:py|toml)(?![\w.-])", re.IGNORECASE)
"""A judge function, a Python file or a judge file, whatever stands around it."""
_CUT = re.compile("[:+,=#@]")
"""Where options cut a text, as in FORMAT:PATH or FOLDER@REVISION."""
_MOST_CUTS = 64


class Kind(Protocol):
    """A kind of value. One without ``leads`` leads wherever a text of the same characters may."""

    @property
    def name(self) -> str:
        """The name of a value in ``--help``."""

    @property
    def accepts(self) -> str:
        """The type of a value in a call."""

    def read(self, value: object) -> Any:
        """Check a value, or parse its text; raises ``ValueError`` with the expected value."""


class WholeRange:
    """A whole number or, if it ``has_all``, the word "all", which reads as None."""

    name = "integer"

    def __init__(
        self,
        least: int,
        most: int = MAX_COUNT,
        noun: str = "whole number",
        has_all: bool = False,
    ) -> None:
        self.least, self.most, self.noun, self.has_all = least, most, noun, has_all
        self.accepts = "int"
        if has_all:
            self.name, self.accepts = "N|all", 'int | Literal["all"] | None'

    def read(self, value: object) -> int | None:
        """Parse a value; raises ``ValueError`` with the allowed range."""
        if self.has_all and (value is None or value == "all"):
            return None
        text = str(value).strip()
        number = int(text) if _WHOLE.fullmatch(text) else None
        if number is None or not self.least <= number <= self.most:
            raise ValueError(f"{reprlib.repr(value)}: expected {self._expect((number or 0) > MAX_COUNT)}")
        return number

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
        return self._expect()

    def _expect(self, is_above: bool = False) -> str:
        # Mention a bound that only excludes nonsense when it is exceeded.
        most = f" to {self.most}" if self.most != MAX_COUNT or is_above else ""
        return f"a {self.noun} from {self.least}{most}{', or ' + repr('all') if self.has_all else ''}"


class NumberRange:
    """A number with or without decimals."""

    name, accepts = "number", "float"

    def __init__(self, least: float, most: float, is_open: Literal["", "least", "most"] = "") -> None:
        self.least, self.most = least, most
        self._above, self._below = is_open == "least", is_open == "most"

    def read(self, value: object) -> float:
        """Parse a value; raises ``ValueError`` with the allowed range."""
        text = str(value).strip()
        # Adding zero turns -0 into 0, which a record writes differently.
        number = float(text) + 0.0 if _DECIMAL.fullmatch(text) else None
        if number is None or not self._contains(number):
            raise ValueError(f"{reprlib.repr(value)}: expected {self.expected}{self._percent_hint(text)}")
        return number

    def _contains(self, number: float) -> bool:
        is_above = number > self.least if self._above else number >= self.least
        return is_above and (number < self.most if self._below else number <= self.most)

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
        least = f"{self.least:f}".rstrip("0").rstrip(".") if self.least < 1 else f"{self.least:g}"
        low, high = ("above", "up to") if self._above else ("from", "to")
        noun, below = "share" if self.most == 1 else "number", " below" if self._below else ""
        return f"a {noun} {low} {least} {high}{below} {self.most:g}"

    def _percent_hint(self, text: str) -> str:
        number = text.removesuffix("%").strip()
        is_share = self.most == 1 and _DECIMAL.fullmatch(number)
        return share_hint(float(number), is_percent=number != text) if is_share else ""


Range = WholeRange | NumberRange


class Text:
    """A text."""

    name, accepts = "text", "str"

    def read(self, value: object) -> str:
        """Check a value; raises ``ValueError`` if it is no text."""
        if not isinstance(value, str):
            raise ValueError(f"{reprlib.repr(value)}: expected a text")
        return value

    def leads(self, text: str) -> Iterator[Lead]:
        """List whatever a text may lead to, however the option cuts and strips it: no new option can forget any."""
        if _CODE.search(text):
            yield "code", text
        is_address = "://" in text
        for address in text.partition("#")[0].split(",") if is_address else ():
            yield "server", address
        cuts = [match.start() for match in _CUT.finditer(text)]
        if len(cuts) > _MOST_CUTS:
            yield "path", os.sep
            return
        pieces = {text[a:b] for a in (0, *(cut + 1 for cut in cuts)) for b in (*cuts, len(text)) if a < b}
        for piece in sorted(pieces | {piece.strip() for piece in pieces}):
            is_path = not is_address and (piece.startswith(("/", "~")) or ".." in re.split(r"[/\\]", piece))
            if is_path or os.path.lexists(piece.partition("/")[0]):
                yield "path", piece


class Address(Text):
    """The address of a server, of several joined by commas, or one of a few words instead."""

    def __init__(self, *words: str) -> None:
        self._words = ("", *words)

    def leads(self, text: str) -> Iterator[Lead]:
        """List the servers."""
        yield from (("server", part) for part in text.split(",") if part.strip() not in self._words)


class DataText(Text):
    """A text that occurs in the data: read as UTF-8 like the data, whatever the locale."""

    def read(self, value: object) -> str:
        """Decode as UTF-8; keep other bytes as the locale read them."""
        text = super().read(value)
        try:
            return os.fsencode(text).decode("utf-8")
        except UnicodeError:
            return text

    def leads(self, text: str) -> Iterator[Lead]:
        """List nothing: no option looks such a text up."""
        return iter(())


class Choice(Text):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words, self.name = words, f"[{'|'.join(words)}]"
        self.accepts = f"Literal{[*words]}".replace("'", '"')

    def read(self, value: object) -> str:
        """Check a value; raises ``ValueError`` with the words."""
        if value not in self.words:
            raise ValueError(f"{reprlib.repr(value)}: expected {', '.join(self.words[:-1])} or {self.words[-1]}")
        return str(value)


class Flag:
    """True or false."""

    name, accepts = "", "bool"

    def read(self, value: object) -> bool:
        """Check a value; raises ``ValueError`` for any other."""
        if not isinstance(value, bool):
            raise ValueError(f"{reprlib.repr(value)}: expected true or false")
        return value


class FilePath:
    """A path, or that of a file."""

    name, accepts = "path", "str | PathLike[str]"

    def __init__(self, is_file: bool = False) -> None:
        self.is_file = is_file

    def read(self, value: object) -> Path:
        """Parse a value; raises ``ValueError`` if it cannot be a path."""
        if not isinstance(value, str | os.PathLike):
            raise ValueError(f"{reprlib.repr(value)}: expected a path")
        if "\0" in os.fspath(value):
            raise ValueError(f"{reprlib.repr(value)}: a path cannot contain a NUL character")
        if self.is_file and Path(value).is_dir():
            raise ValueError(f"{reprlib.repr(value)}: is a directory; expected a file")
        return Path(value)

    def leads(self, text: str) -> Iterator[Lead]:
        """List the path."""
        yield "path", text


class Several:
    """Any number of values of one kind; one value stands for itself."""

    def __init__(self, each: Kind) -> None:
        self.each, self.name = each, each.name
        one = f"{each.accepts} | PathLike[str]" if each.accepts == "str" else each.accepts  # of a plug-in, or data
        self.accepts = f"{one} | Sequence[{one}]"

    def read(self, value: object) -> tuple[Any, ...]:
        """Parse all values; raises ``ValueError`` for the first wrong one."""
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        values = value if is_list and isinstance(value, Sequence) else [value]
        return tuple([self.each.read(os.fspath(one) if isinstance(one, os.PathLike) else one) for one in values])


class Parsed:
    """A value that a function parses; its errors are in its own words."""

    def __init__(self, name: str, accepts: str, read: Callable[[object], Any]) -> None:
        self.name, self.accepts, self.read = name, accepts, read


TEXT, DATA_TEXT, FLAG, PATH, FILE = Text(), DataText(), Flag(), FilePath(), FilePath(is_file=True)
ADDRESS = Address()
COUNT = WholeRange(1)
TOKENS = WholeRange(1, 10**7)
SEED = WholeRange(-(2**63), 2**63 - 1)
LIMIT = WholeRange(1, noun="number of cases", has_all=True)

MAX_PRICE = 1_000_000
"""Upper bound for US dollars per million tokens: no token costs a dollar."""

PRICE = NumberRange(0, MAX_PRICE)
SHARE = NumberRange(0, 1)
INNER_SHARE = NumberRange(1e-6, 1, is_open="most")
AMOUNT = NumberRange(0, 1000)
"""Points of a score, a difference of probabilities, or broken requirements."""

CONFIDENCE = NumberRange(0.5, 1, is_open="most")
"""A probability of being right: below a half it would be wrong more often."""
