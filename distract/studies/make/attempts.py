"""The loop that the makers share: ask a generator, check the answer by rules, ask again with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.prompts import Prompt
from distract.core.records import Case, Evidence, slug
from distract.rewriting.generator_options import GeneratorOptions, flaws

V = TypeVar("V")
BROKEN = "constraint broken"
"""The slug whose detail, the kind of the constraint, has its own count."""


@dataclass(frozen=True, slots=True)
class MakeResult:
    """The case made from one prompt."""

    case: Case | None  # None where none could be made
    # Why there is no case, or what the case lacks. Each is a stable slug, mostly with a colon and a detail.
    reasons: tuple[str, ...] = ()
    evidence: Evidence = ()  # ``attempts`` (requests to the generator, absent without any) and measurements


def ask_generator(
    prompt: Prompt,
    slots: Mapping[str, str],
    read: Callable[[str], Plan[tuple[V, tuple[str, ...]]]],
    asking: GeneratorOptions,
    seed: int,
    like: str,
    meanings: Mapping[str, str] | None = None,
) -> Plan[tuple[V | None, tuple[str, ...], int]]:
    """Ask until a text can be used; return its value or the last reasons, and the number of attempts."""
    reasons: tuple[str, ...] = ()
    for attempt in range(asking.retries + 1):
        messages = prompt.fill({**slots, "feedback": _feedback(reasons, meanings or {})})
        (reply,) = yield [asking.request(messages, seed=seed, sample=attempt, like=like)]
        reasons = flaws(reply)
        # A server may send half of a surrogate pair, which no file can hold.
        if not reasons and any("\ud800" <= c <= "\udfff" for c in reply.text):
            reasons = ("not valid Unicode",)
        if not reasons:
            value, reasons = yield from read(reply.text.strip())
            if not reasons:
                return value, (), attempt + 1
    return None, reasons, asking.retries + 1


def _feedback(reasons: Sequence[str], meanings: Mapping[str, str]) -> str:
    if not reasons:
        return ""
    lines = "\n".join(f"- {reason} ({meanings[reason]})" if reason in meanings else f"- {reason}" for reason in reasons)
    return f"\n\nAn earlier attempt was rejected for these reasons:\n{lines}\n\nAvoid them."


def yield_document(results: Sequence[MakeResult]) -> dict[str, Any]:
    """Count the cases made and the reasons for others, as JSON values with sorted keys."""
    cases = [result.case for result in results if result.case is not None]
    evidences = [dict(result.evidence) for result in results]
    attempts = [float(evidence["attempts"]) for evidence in evidences if "attempts" in evidence]
    groups = [{reason if slug(reason) == BROKEN else slug(reason) for reason in one.reasons} for one in results]
    reasons = Counter(name for group in groups for name in group)
    severities = Counter(str(r.severity) for case in cases for r in case.responses if r.severity is not None)
    return {
        "asked": len(results),
        "made": len(cases),
        "mean_attempts": round(sum(attempts) / len(attempts), 4) if attempts else None,
        "reasons": dict(sorted(reasons.items())),
        "severities": dict(sorted(severities.items())),
    }


def check_author(author: str, reserved: Sequence[str]) -> str:
    """Return a generator's name if it can serve as the author of a response in a file."""
    parts = author.replace("\\", "/").split("/")
    if not author.strip() or not author.isprintable() or len(author) > 200 or not parts[0] or ".." in parts:
        raise UsageError(f"author {author!r}: expected a plain name of at most 200 characters, and no path")
    if author in ("tie", *reserved):
        raise UsageError(f"author {author!r}: has another meaning in a case; rename the generator")
    return author
