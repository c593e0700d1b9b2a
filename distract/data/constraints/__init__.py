"""Format requirements that a program can verify: read them, check a text, say them in words, break them.

The kinds, their argument names and what counts as following them are IFEval's (its strict form: the whole
response as it stands). It differs on purpose in four places: keywords are plain text and not patterns, the
letter-case checks do not guess the language, sentences and words in capitals are found by rules instead of trained
models, and languages by another library. It knows no cases, files or attacks, not whether a text is any good, and not
whether constraints contradict each other. A kind is one entry of a family's ``KINDS``; adding a kind is adding one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.records import Constraint
from distract.data.constraints import layout_kinds, whole_kinds, word_kinds
from distract.data.constraints.kind import ConstraintError, ConstraintKind, UnavailableError

__all__ = ["ConstraintError", "UnavailableError", "break_", "breaks", "check", "describe", "list_kinds", "parse"]

_KINDS: Mapping[str, ConstraintKind] = {**layout_kinds.KINDS, **whole_kinds.KINDS, **word_kinds.KINDS}


def _find_kind(kind: object) -> ConstraintKind:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    near = difflib.get_close_matches(str(kind), _KINDS, n=1, cutoff=0.5)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    raise ConstraintError("kind", f"unknown kind {kind!r}{suggestion} (known: {', '.join(list_kinds())})")


def list_kinds() -> tuple[str, ...]:
    """The kinds that can be checked, sorted."""
    return tuple(sorted(_KINDS))


def parse(raw: Mapping[str, object]) -> Constraint:
    """Read a constraint from a JSON object such as ``{"kind": "detectable_format:title"}``."""
    kind = raw.get("kind")
    types = _find_kind(kind).arguments
    for name in raw:
        if name != "kind" and name not in types:
            raise ConstraintError(name, f"unknown; {kind} takes {', '.join(types) or 'no arguments'}")
    arguments: list[tuple[str, str | int | tuple[str, ...]]] = []
    for name, wanted in sorted(types.items()):
        value: Any = raw.get(name)
        if not wanted.fits(value):
            found = f"found {value!r}" if name in raw else f"{kind} lacks it"
            raise ConstraintError(name, f"expected {wanted.expected}; {found}")
        arguments.append((name, tuple(value) if isinstance(value, list) else value))
    return Constraint(str(kind), tuple(arguments))


def check(constraint: Constraint, text: str) -> bool:
    """Whether the text follows the constraint."""
    return _find_kind(constraint.kind).check(constraint, text)


def describe(constraint: Constraint) -> str:
    """The constraint as one imperative sentence."""
    return _find_kind(constraint.kind).describe(constraint)


def breaks(constraint: Constraint, text: str) -> Iterator[str]:
    """Edit a text that follows a constraint so that it does not, in different ways and places."""
    kind, seen = _find_kind(constraint.kind), {text}
    if kind.check(constraint, text):
        for candidate in kind.edits(constraint, text):
            if candidate not in seen and not kind.check(constraint, candidate):
                seen.add(candidate)
                yield candidate


def break_(constraint: Constraint, text: str, keep: Sequence[Constraint] = ()) -> str:
    """Break one constraint of a text, and no other where that is possible."""
    if not check(constraint, text):
        return text
    held = {other: check(other, text) for other in keep if other != constraint}
    first = None
    for candidate in breaks(constraint, text):
        if all(check(other, candidate) is was for other, was in held.items()):
            return candidate
        first = candidate if first is None else first
    if first is None:
        raise ConstraintError("kind", f"no edit is known that makes this text break {constraint.kind}")
    return first
