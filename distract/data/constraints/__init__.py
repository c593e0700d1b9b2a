"""Format requirements that a program can verify: read them, check a text, describe them, break them.

The kinds, their arguments and their checks are IFEval's, in its strict form: the whole response as it stands. distract
differs on purpose in four places: keywords are plain text instead of patterns, the letter-case checks do not guess the
language, rules instead of trained models find sentences and words in capitals, and another library detects languages.
To add a kind, add an entry to the ``KINDS`` of its family. An edit need not break its kind: the caller checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.errors import list_names
from distract.core.records import Constraint
from distract.data.constraints import keywords, layout, whole, words
from distract.data.constraints.kind import ConstraintError, ConstraintKind, UnavailableError

__all__ = ["ConstraintError", "UnavailableError", "break_", "breaks", "check", "describe", "list_kinds", "parse"]

_KINDS: Mapping[str, ConstraintKind] = {**layout.KINDS, **whole.KINDS, **words.KINDS, **keywords.KINDS}


def _find_kind(kind: object) -> ConstraintKind:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    near = difflib.get_close_matches(str(kind), _KINDS, n=1, cutoff=0.5)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    raise ConstraintError("kind", f"unknown kind {kind!r}{suggestion} (known: {list_names(list_kinds())})")


def list_kinds() -> tuple[str, ...]:
    """All kinds, sorted."""
    return tuple(sorted(_KINDS))


def parse(raw: Mapping[str, object]) -> Constraint:
    """Read a constraint from a JSON object such as ``{"kind": "detectable_format:title"}``."""
    kind = raw.get("kind")
    types = _find_kind(kind).arguments
    for name in raw:
        if name != "kind" and name not in types:
            raise ConstraintError(name, f"unknown; {kind} takes {', '.join(types) or 'no arguments'}")
    arguments: list[tuple[str, str | int | tuple[str, ...]]] = []
    for name, argument in sorted(types.items()):
        value: Any = raw.get(name)
        if not argument.fits(value):
            actual = f"found {value!r}" if name in raw else f"{kind} lacks it"
            raise ConstraintError(name, f"expected {argument.expected}; {actual}")
        arguments.append((name, tuple(value) if isinstance(value, list) else value))
    return Constraint(str(kind), tuple(arguments))


def check(constraint: Constraint, text: str) -> bool:
    """Whether the text follows the constraint."""
    return _find_kind(constraint.kind).check(constraint, text)


def describe(constraint: Constraint) -> str:
    """The constraint as one imperative sentence."""
    return _find_kind(constraint.kind).describe(constraint)


def breaks(constraint: Constraint, text: str) -> Iterator[str]:
    """Edit a text that follows a constraint so that it breaks it, in different ways and places.

    The smallest and most natural edit comes first. Yields nothing if no edit is known or the text breaks it already.
    """
    kind, seen = _find_kind(constraint.kind), {text}
    if kind.check(constraint, text):
        for candidate in kind.edits(constraint, text):
            if candidate not in seen and not kind.check(constraint, candidate):
                seen.add(candidate)
                yield candidate


def break_(constraint: Constraint, text: str, keep: Sequence[Constraint] = ()) -> str:
    """Break one constraint of a text and, if possible, leave those in ``keep`` held or broken as they are.

    Returns a text that breaks it already unchanged, and raises ConstraintError if no edit is known.
    """
    if not check(constraint, text):
        return text
    held = {other: check(other, text) for other in keep if other != constraint}
    first = None
    for candidate in breaks(constraint, text):
        if all(check(other, candidate) is was for other, was in held.items()):
            return candidate
        first = candidate if first is None else first
    if first is None:
        raise ConstraintError("kind", f"no known edit makes this text break {constraint.kind}")
    return first
