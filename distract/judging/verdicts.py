"""Read a judgment from a reply: from the probabilities of the choices, or from the judge's own words (``parsers``).

A reply without a verdict is a finding about the judge, so nothing here raises: the judgment's ``failure`` gives the
reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from distract.core.errors import DataError
from distract.core.plain_text import fold_text
from distract.core.records import NO_ANSWER, Judgment, Outcome, ParseFailure, Reply
from distract.judging.parsers import BRACKETS, Format
from distract.judging.parsers.answers import MOST_READ, join_prefill, strip_thoughts

SCORE_TOLERANCE = 1e-4
"""Maximum difference of two scores that tie."""

MISFIT = "a verdict does not fit the protocols that the run records; run it again"


def read_comparison(
    reply: Reply, prefill: str, outcomes: Mapping[str, Outcome], form: Format = BRACKETS, material: Sequence[str] = ()
) -> Judgment:
    """Read a judgment of two responses from one reply; a is the response shown first.

    ``outcomes`` gives the meaning of each label, in the request's order; for the other arguments see ``read_shares``.
    """
    shares = read_shares(reply, prefill, tuple(outcomes), form, material)
    read = "text" if reply.probabilities is None else "choices"
    if isinstance(shares, str):
        return Judgment(None, read=read, mass=reply.mass, failure=shares)
    weights = dict.fromkeys(("a", "b", "tie"), 0.0)
    for (_, outcome), share in zip(outcomes.items(), shares, strict=True):
        weights[outcome] += share
    triple = (weights["a"], weights["b"], weights["tie"])
    return Judgment(pick_largest(triple), probabilities=triple, mass=reply.mass, read=read)


def certain_judgment(preferred: Outcome) -> Judgment:
    """Return the judgment of a verdict in words."""
    triple = (float(preferred == "a"), float(preferred == "b"), float(preferred == "tie"))
    return Judgment(preferred, probabilities=triple, read="text")


@dataclass(frozen=True, slots=True)
class Grade:
    """The score of one response, of which higher is better, and those of its criteria, if it has any."""

    score: float
    criteria: Mapping[str, float]


def compare_graded(first: Grade, second: Grade) -> Judgment:
    """Return the judgment of two responses that were graded in words, each alone."""
    return Judgment(
        compare_scores(first.score, second.score),
        scores=(first.score, second.score),
        read="text",
        criteria={name: (score, second.criteria[name]) for name, score in first.criteria.items()} or None,
    )


def read_rating(
    reply: Reply, prefill: str, scale: Sequence[int], material: Sequence[str] = ()
) -> tuple[float, int] | str:
    """Read a score from one reply, with the numbers of ``scale`` as labels; see ``read_shares``.

    Returns:
        The probability-weighted mean and the most likely rating (the lowest of equals), or the reason for having none.
    """
    p = read_shares(reply, prefill, tuple(map(str, scale)), BRACKETS, material)
    if isinstance(p, str):
        return p
    most = max(p)
    return math.fsum(map(mul, scale, p)), min([value for value, share in zip(scale, p, strict=True) if share == most])


def pick_largest(p: tuple[float, float, float], tolerance: float = 1e-6) -> Outcome:
    """Return the unique largest of (a, b, tie); if two share the largest value, it is a tie."""
    a, b, tie = p
    if a > b + tolerance and a > tie + tolerance:
        return "a"
    if b > a + tolerance and b > tie + tolerance:
        return "b"
    return "tie"


def outcome(judgments: Sequence[Judgment], rule: str | None) -> Outcome | None:
    """Combine the judgments of all orders.

    Args:
        judgments: One judgment for each order, all in terms of the same a and b.
        rule: None for the verdict itself (the average of the distributions decides, and its unique largest value
            wins), ``score`` (scores within 1e-4 tie) or ``rating`` (equal ratings tie).

    Returns:
        The outcome, or None if any order is invalid.

    Raises:
        DataError: a verdict that a file holds cannot be of this rule.
    """
    if not judgments or any(judgment.failure is not None for judgment in judgments):
        return None
    triples = [j.probabilities for j in judgments if j.probabilities is not None] if rule is None else []
    if len(judgments) != (len(triples) if rule is None else 1):
        raise DataError(MISFIT)
    if rule is None:
        a, b, tie = [math.fsum(column) / len(triples) for column in zip(*triples, strict=True)]
        return pick_largest((a, b, tie))
    (judgment,) = judgments
    if rule == "rating":
        return compare_scores(*(judgment.ratings or (0, 0)), tolerance=0)
    return compare_scores(*(judgment.scores or (0.0, 0.0)))


def measure_margin(judgments: Sequence[Judgment], criterion: str | None = None) -> float | None:
    """The lead of a over b, averaged over all orders: in points of the score, or as a difference of probabilities.

    With a ``criterion``, by that alone. None if any order is invalid.

    Raises:
        DataError: a verdict that a file holds has no scores by this criterion.
    """
    valid = [judgment for judgment in judgments if judgment.failure is None]
    if criterion is None:
        pairs = [j.scores or (j.probabilities and j.probabilities[:2]) for j in valid]
    elif None in (pairs := [(judgment.criteria or {}).get(criterion) for judgment in valid]):
        raise DataError(MISFIT)
    leads = [pair[0] - pair[1] for pair in pairs if pair]
    return math.fsum(leads) / len(leads) if leads and len(leads) == len(judgments) else None


def compare_scores(a: float, b: float, tolerance: float = SCORE_TOLERANCE) -> Outcome:
    """Prefer the higher of two scores; they tie if they differ by no more than the tolerance."""
    if abs(a - b) <= tolerance:
        return "tie"
    return "a" if a > b else "b"


def read_shares(
    reply: Reply, prefill: str, labels: tuple[str, ...], form: Format = BRACKETS, material: Sequence[str] = ()
) -> tuple[float, ...] | str:
    """Read the distribution of a reply's weight over the labels.

    Args:
        reply: Reply to a request for a text, or with these labels as choices.
        prefill: Start of the answer that the request gave.
        labels: Possible labels, in the request's order.
        form: Format of the verdict.
        material: Texts that the judge may quote.

    Returns:
        A share for each label, summing to 1 (a verdict in words has all the weight), or the reason for having none.
    """
    if reply.failure is not None:
        return missing_verdict(reply)
    if reply.probabilities is not None:
        p = reply.probabilities
        # If a share is NaN, so is the sum, and every comparison with it is false.
        if len(p) != len(labels) or not (abs(sum(p) - 1.0) <= 1e-3 and min(p) >= 0.0 and max(p) <= 1.0):
            return ParseFailure("probabilities do not sum to one over the choices", reply)
        return p
    verdict = parse_label(reply, prefill, labels, form, material)
    if verdict is None:
        return missing_verdict(reply)
    return tuple(float(label == verdict) for label in labels)


def parse_label(
    reply: Reply, prefill: str, labels: Sequence[str], form: Format, material: Sequence[str] = ()
) -> str | None:
    """Read the verdict from a reply's own words; for the arguments see ``read_shares``."""
    return form.read(join_prefill(prefill, reply.text), labels, material, cut=reply.finish == "length")


def missing_verdict(reply: Reply) -> ParseFailure:
    """Say why a reply has no verdict."""
    why = reply.failure or explain_silence(reply) or ("truncated" if reply.finish == "length" else "no verdict")
    return ParseFailure(why, reply)


def explain_silence(reply: Reply) -> str | None:
    """Say what a text holds that shows no answer to a reader; None if it shows one, or is empty."""
    text = reply.text[-MOST_READ:]
    if not text or fold_text(strip_thoughts(text)):
        return None
    silence = "nothing but white space" if text.isspace() else "nothing but invisible characters"
    silence = NO_ANSWER if fold_text(text) else silence
    return f"truncated: {silence}" if reply.finish == "length" else silence
