"""Keys scrubbed from a server's answers before anything else reads them; text without a key stays the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from urllib.parse import quote

Scrub = Callable[[str], str]

NO_KEY = "none"
"""Sent where there is no key; servers without keys take anything."""

MARK = "‹key›"
"""Replaces a key. No key holds its first or last character, so two parts of a key never meet around it; and its letters
keep it from passing for the dots between the two ends of a key."""

PART = 12
"""Consecutive characters of a key to take out; fewer reveal nothing."""

_HEAD, _TAIL = 8, 4
_GAP = r"[\W_]{0,3}(?:[…*•·]|\.\.|--|__|[xX]{3})[\W_xX]{0,1000}?"
"""The middle of a key as servers mask it: an ellipsis, dots or asterisks, as many as the key is long. A blank, a comma
or a hyphen alone stands between words."""

_DUMMIES = frozenset({NO_KEY, "EMPTY"})
"""Values that users set for servers without keys, and no secrets."""


def scrubber(keys: Collection[str]) -> Scrub:
    """A function that takes keys out of a text, in time linear in its length."""
    # It removes the whole key, any 12 or more consecutive characters of it, and its first 8 with dots and its last 4.
    # Of a key below 12 characters it removes only the whole; of a key of up to 4, and of a dummy, nothing.
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
