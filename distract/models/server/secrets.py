"""Remove keys from a server's answers before any other use; text without a key is unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote

Scrub = Callable[[str], str]

NO_KEY = "none"
"""Placeholder to send if there is no key; servers without authentication accept any."""

MARK = "‹key›"
"""Replaces a key. Keys never contain its first or last character, so two parts of a key cannot join around it, and its
letters distinguish it from the dots between the two ends of a key."""

PART = 12
"""Minimum number of consecutive characters of a key to remove; fewer reveal nothing."""

_HEAD, _TAIL = 8, 4
_GAP = r"[\W_]{0,3}(?:[…*•·]|\.\.|--|__|[xX]{3})[\W_xX]{0,1000}?"
"""The middle of a key as servers mask it: an ellipsis, dots or asterisks, as many as the key is long. A single blank,
comma or hyphen only separates words."""

_DUMMIES = frozenset({NO_KEY, "EMPTY"})
"""Dummy keys that users set for servers without authentication; these are not secrets."""


def scrubber(keys: Collection[str]) -> Scrub:
    """A function that removes keys from a text, in time linear in its length."""
    # It removes the whole key, any 12 or more consecutive characters of it, and its first 8 with dots and its last 4.
    # It removes a key shorter than 12 characters only as a whole, and ignores dummies and keys of up to 4 characters.
    forms = {form for key in keys if len(key) > _TAIL and key not in _DUMMIES for form in _forms(key)}
    short = sorted((form for form in forms if len(form) < PART), key=len, reverse=True)
    long = sorted(forms.difference(short))
    parts = {form[start : start + PART] for form in long for start in range(len(form) - PART + 1)}
    characters = re.escape("".join(sorted(set().union(*long))))
    run = re.compile(f"[{characters}]{{{PART},}}") if long else None
    ends = [(form[:_HEAD], re.compile(re.escape(form[:_HEAD]) + _GAP + re.escape(form[-_TAIL:]))) for form in long]
    shortest = min((PART, *map(len, short)))

    def scrub(text: str) -> str:
        if len(text) < shortest or not forms:
            return text
        if run:
            text = run.sub(lambda match: "".join(_mask_parts(match[0], parts)), text)
        for head, pattern in ends:
            if head in text:
                text = pattern.sub(MARK, text)
        for form in short:
            text = text.replace(form, MARK)
        return text

    return scrub


def scrub_values(value: object, scrub: Scrub) -> object:
    """JSON values with every text in them scrubbed, including names."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [scrub_values(item, scrub) for item in value]
    if isinstance(value, dict):
        return {scrub(name): scrub_values(item, scrub) for name, item in value.items()}
    return value


def _forms(key: str) -> set[str]:
    written = json.dumps(key)[1:-1]
    return {key, written, written.replace("/", "\\/"), quote(key, safe="")}


def _mask_parts(run: str, parts: Collection[str]) -> Iterator[str]:
    """A run of characters that occur in keys, with a mark for each part of a key."""
    done = start = 0
    while start <= len(run) - PART:
        end = start + PART
        if run[start:end] not in parts:
            start += 1
            continue
        while run[end - PART + 1 : end + 1] in parts and end < len(run):
            end += 1
        yield run[done:start] + MARK
        done = start = end
    yield run[done:]
