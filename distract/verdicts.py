"""Read a verdict from a reply: from the probabilities of the choices, else from the judge's own words.

A reply that holds no verdict is a finding about the judge, so nothing here raises: the judgment's
``failure`` says what was wrong. It knows no prompt beyond the double brackets that protocols ask for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from distract.records import Judgment, Outcome, Reply

_BRACKETED = re.compile(r"\[\[\s*([A-Za-z0-9]{1,3})\s*\]\]")
_FINAL_LINE = re.compile(r"(?i)\b(?:final|overall)\b.*?\[\[\s*([A-Za-z0-9]{1,3})\s*\]\]\W*$")
_ALONE = re.compile(r"^\W*\[\[\s*([A-Za-z0-9]{1,3})\s*\]\]\W*$")


SCORE_TOLERANCE = 1e-4


def bracketed(text: str, allowed: Sequence[str]) -> str | None:
    """The final ``[[X]]`` in a judge's own words.

    Args:
        text: what the judge wrote, with the prefilled start of its answer.
        allowed: the verdicts asked for, such as ``("A", "B", "C")``.

    Returns:
        The verdict, or None when there is none, or when two differ and nothing makes one of them final (being
        alone on the last line that is not blank, or following "final" or "overall" on that line).
    """
    found = [str(match).upper() for match in _BRACKETED.findall(text)]
    if not found or any(match not in allowed for match in found):
        return None
    if len(set(found)) == 1:
        return found[0]
    lines = [line for line in text.splitlines() if line.strip()]
    final = _ALONE.search(lines[-1]) or _FINAL_LINE.search(lines[-1])
    return str(final[1]).upper() if final else None


def comparison(reply: Reply, prefill: str, outcomes: Mapping[str, Outcome]) -> Judgment:
    """A judgment of two responses from one reply, a being the first one shown.

    Args:
        reply: of a request whose choices are the keys of ``outcomes``, in that order.
        prefill: the given start of the answer.
        outcomes: what each choice means.
    """
    found = chosen(reply, prefill, tuple(outcomes))
    read = "text" if reply.probabilities is None else "choices"
    if isinstance(found, str):
        return Judgment(None, read=read, mass=reply.mass, failure=found)
    weights = dict.fromkeys(("a", "b", "tie"), 0.0)
    for (_, outcome), share in zip(outcomes.items(), found, strict=True):
        weights[outcome] += share
    triple = (weights["a"], weights["b"], weights["tie"])
    return Judgment(largest(triple), probabilities=triple, mass=reply.mass, read=read)


def rating(reply: Reply, prefill: str, scale: Sequence[int]) -> tuple[float, int] | str:
    """A score from one reply.

    Args:
        reply: of a request whose choices are the numbers of ``scale``, in that order.
        prefill: the given start of the answer.
        scale: the ratings, such as 1 to 7.

    Returns:
        The probability-weighted mean and the most likely rating (the lowest of equals), or why there is none.
    """
    p = chosen(reply, prefill, tuple(str(value) for value in scale))
    if isinstance(p, str):
        return p
    mean = math.fsum(value * share for value, share in zip(scale, p, strict=True))
    return mean, max(zip(p, (-value for value in scale), strict=True))[1] * -1


def largest(p: tuple[float, float, float], tolerance: float = 1e-6) -> Outcome:
    """The unique largest of (a, b, tie); any equality for the largest is a tie (DESIGN, Measures)."""
    a, b, tie = p
    if a > b + tolerance and a > tie + tolerance:
        return "a"
    if b > a + tolerance and b > tie + tolerance:
        return "b"
    return "tie"


def outcome(judgments: Sequence[Judgment], rule: str | None) -> Outcome | None:
    """What all orders together say (DESIGN, Measures).

    Args:
        judgments: one per order, all in terms of the same a and b.
        rule: None for the verdict itself (distributions averaged, the unique largest wins), ``score`` (scores
            within 1e-4 tie) or ``rating`` (equal ratings tie).

    Returns:
        The outcome, or None when any order is invalid.
    """
    if not judgments or any(j.failure is not None for j in judgments):
        return None
    if rule is None:
        triples = [j.probabilities for j in judgments if j.probabilities is not None]
        n = len(triples)
        a, b, tie = (math.fsum(column) / n for column in zip(*triples, strict=True))
        return largest((a, b, tie))
    (judgment,) = judgments
    a, b = (judgment.ratings if rule == "rating" else judgment.scores) or (0.0, 0.0)
    if abs(a - b) <= (0 if rule == "rating" else SCORE_TOLERANCE):
        return "tie"
    return "a" if a > b else "b"


def chosen(reply: Reply, prefill: str, choices: tuple[str, ...]) -> tuple[float, ...] | str:
    """Read how a reply's weight is spread over the choices.

    Args:
        reply: of a request with these choices.
        prefill: the given start of the answer.
        choices: in the request's order.

    Returns:
        A share for each, summing to 1 (all of it on one where the reply is in words), or why there is no verdict.
    """
    if reply.failure is not None:
        return reply.failure
    if reply.probabilities is not None:
        p = reply.probabilities
        if len(p) != len(choices) or not all(0.0 <= share <= 1.0 for share in p) or abs(sum(p) - 1.0) > 1e-3:
            return "probabilities do not sum to one over the choices"
        return p
    verdict = bracketed(prefill + reply.text, choices)
    if verdict is None:
        return "truncated" if reply.finish == "length" else "no verdict"
    return tuple(float(choice == verdict) for choice in choices)
