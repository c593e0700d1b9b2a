"""What the makers share: asking until an answer can be used, what came of it, and how much that yields.

It knows no prompt, and not what is wrong with an answer: the makers say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.records import Case, Evidence, Message, slug
from distract.rewriting.generator_options import GeneratorOptions, flaws

V = TypeVar("V")
BROKEN = "constraint broken"
"""The slug whose detail, the kind of the constraint, is counted by itself."""


@dataclass(frozen=True, slots=True)
class MakeResult:
    """What came of one prompt.

    Attributes:
        case: None where none could be made.
        reasons: why there is no case; of a case, what is lacking in it. Each is a stable slug, and mostly a colon and
            what it is about.
        evidence: ``attempts`` (requests to the generator, none where it was not asked) and what was measured.
    """

    case: Case | None
    reasons: tuple[str, ...] = ()
    evidence: Evidence = ()


@dataclass(frozen=True, slots=True)
class GenerationResult(Generic[V]):
    """What a generator gave in the end: a value, or the reasons why the last attempt was rejected."""

    value: V | None
    reasons: tuple[str, ...]
    attempts: int


def ask_generator(
    fill: Callable[[tuple[str, ...]], tuple[Message, ...]],
    read: Callable[[str], Plan[tuple[V, tuple[str, ...]]]],
    asking: GeneratorOptions,
    seed: int,
    like: str | None = None,
) -> Plan[GenerationResult[V]]:
    """Ask for a text until one can be used."""
    reasons: tuple[str, ...] = ()
    for attempt in range(asking.retries + 1):
        (reply,) = yield [asking.request(fill(reasons), seed=seed, sample=attempt, like=like)]
        reasons = flaws(reply) or _unwritable_reasons(reply.text)
        if not reasons:
            value, reasons = yield from read(reply.text.strip())
            if not reasons:
                return GenerationResult(value, (), attempt + 1)
    return GenerationResult(None, reasons, asking.retries + 1)


def _unwritable_reasons(text: str) -> tuple[str, ...]:
    """A server may send half of a surrogate pair, which no file can hold."""
    return ("not valid Unicode",) if any("\ud800" <= c <= "\udfff" for c in text) else ()


def feedback(reasons: Sequence[str], meaning: Mapping[str, str] | None = None) -> str:
    """What a prompt says of the attempt before: nothing of none."""
    if not reasons:
        return ""
    plain = meaning or {}
    listed = "\n".join(f"- {reason} ({plain[reason]})" if reason in plain else f"- {reason}" for reason in reasons)
    return f"\n\nAn earlier attempt was rejected for these reasons:\n{listed}\n\nAvoid them."


def yield_document(mades: Sequence[MakeResult]) -> dict[str, Any]:
    """How much came of it, as JSON values with sorted keys."""
    cases = [made.case for made in mades if made.case is not None]
    attempts = [dict(made.evidence)["attempts"] for made in mades if "attempts" in dict(made.evidence)]
    reasons = Counter(name for made in mades for name in dict.fromkeys(map(_reason_group, made.reasons)))
    severities = Counter(str(r.severity) for case in cases for r in case.responses if r.severity is not None)
    return {
        "asked": len(mades),
        "made": len(cases),
        "mean_attempts": round(sum(map(float, attempts)) / len(attempts), 4) if attempts else None,
        "reasons": dict(sorted(reasons.items())),
        "severities": dict(sorted(severities.items())),
    }


def _reason_group(reason: str) -> str:
    return reason if slug(reason) == BROKEN else slug(reason)


def check_author(author: str, taken: Sequence[str]) -> str:
    """A generator's name, if it can stand as the author of a response in a file."""
    parts = author.replace("\\", "/").split("/")
    if not author.strip() or not author.isprintable() or len(author) > 200 or not parts[0] or ".." in parts:
        raise UsageError(f"author {author!r}: expected a plain name of at most 200 characters, and no path")
    if author in ("tie", *taken):
        raise UsageError(f"author {author!r}: means something else in a case; name the generator otherwise")
    return author
