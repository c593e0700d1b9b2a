"""The words by which verdicts are read, in all languages: ``vocabulary.toml``, from which every reader derives."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

_LANGUAGES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def list_words(*kinds: str) -> tuple[str, ...]:
    """List the words and phrases of some kinds."""
    return tuple(
        word for entry in _list_entries(kinds) for word in (entry.split() if isinstance(entry, str) else entry)
    )


@cache
def any_of(*kinds: str) -> str:
    """Make an expression for any word or phrase of some kinds."""
    entries = _list_entries(kinds)
    phrases = [phrase for entry in entries if not isinstance(entry, str) for phrase in entry]
    words = sorted(
        (word for entry in entries if isinstance(entry, str) for word in entry.split()), key=len, reverse=True
    )
    spelled = [re.escape(word).replace(r"\*", r"\w*").replace("'", "['’]") for word in words]
    return f"(?:{'|'.join([*phrases, *spelled])})"


def _list_entries(kinds: tuple[str, ...]) -> list[str | list[str]]:
    return [entry for language in _LANGUAGES.values() for kind, entry in language.items() if kind in kinds]


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile an expression in which ``<kind>`` stands for any word or phrase of a kind; case aside."""
    return re.compile("(?i)" + re.sub(r"(?<!P)<(\w+)>", lambda kind: any_of(kind[1]), pattern))
