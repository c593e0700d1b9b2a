"""From a reply to a judgment: by the probabilities of the choices, else by the judge's own words (``parsers``).

A reply that holds no verdict is a finding about the judge, so nothing here raises: the judgment's
``failure`` says what was wrong. It knows no prompt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import mul

from distract.core.records import Judgment, Outcome, ParseFailure, Reply
from distract.judging.parsers import BRACKETS, Format, strip_thoughts

SCORE_TOLERANCE = 1e-4


def read_comparison(
    reply: Reply,
    prefill: str,
    outcomes: Mapping[str, Outcome],
    form: Format = BRACKETS,
    material: Sequence[str] = (),
) -> Judgment:
    """A judgment of two responses from one reply, a being the first one shown.

    Args:
        reply: of a request for a text, or whose choices are the keys of ``outcomes``, in that order.
        prefill: the given start of the answer.
        outcomes: what each label means.
        form: how the verdict was to be written.
        material: what the judge may quote.
    """
    found = read_shares(reply, prefill, tuple(outcomes), form, material)
    read = "text" if reply.probabilities is None else "choices"
    if isinstance(found, str):
        return Judgment(None, read=read, mass=reply.mass, failure=found)
    weights = dict.fromkeys(("a", "b", "tie"), 0.0)
    for (_, outcome), share in zip(outcomes.items(), found, strict=True):
        weights[outcome] += share
    triple = (weights["a"], weights["b"], weights["tie"])
    return Judgment(pick_largest(triple), probabilities=triple, mass=reply.mass, read=read)


def certain_judgment(preferred: Outcome) -> Judgment:
    """The judgment of a verdict in words."""
    triple = (float(preferred == "a"), float(preferred == "b"), float(preferred == "tie"))
    return Judgment(preferred, probabilities=triple, read="text")


def read_rating(
    reply: Reply, prefill: str, scale: Sequence[int], material: Sequence[str] = ()
) -> tuple[float, int] | str:
    """A score from one reply.

    Args:
        reply: of a request whose choices are the numbers of ``scale``, in that order.
        prefill: the given start of the answer.
        scale: the ratings, such as 1 to 7.
        material: what the judge may quote.

    Returns:
        The probability-weighted mean and the most likely rating (the lowest of equals), or why there is none.
    """
    p = read_shares(reply, prefill, tuple(map(str, scale)), BRACKETS, material)
    if isinstance(p, str):
        return p
    most = max(p)
    return math.fsum(map(mul, scale, p)), min([value for value, share in zip(scale, p, strict=True) if share == most])


def pick_largest(p: tuple[float, float, float], tolerance: float = 1e-6) -> Outcome:
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
            within 1e-4 tie) or ``read_rating`` (equal ratings tie).

    Returns:
        The outcome, or None when any order is invalid.
    """
    invalid = [j for j in judgments if j.failure is not None]
    if invalid or not judgments:
        return None
    if rule is None:
        triples = [j.probabilities for j in judgments if j.probabilities is not None]
        a, b, tie = [math.fsum(column) / len(triples) for column in zip(*triples, strict=True)]
        return pick_largest((a, b, tie))
    (judgment,) = judgments
    if rule == "rating":
        return compare_scores(*(judgment.ratings or (0, 0)), tolerance=0)
    return compare_scores(*(judgment.scores or (0.0, 0.0)))


def compare_scores(a: float, b: float, tolerance: float = SCORE_TOLERANCE) -> Outcome:
    """Which of two scores is the higher one; no more than the tolerance apart, they tie."""
    if abs(a - b) <= tolerance:
        return "tie"
    return "a" if a > b else "b"


def read_shares(
    reply: Reply,
    prefill: str,
    labels: tuple[str, ...],
    form: Format = BRACKETS,
    material: Sequence[str] = (),
) -> tuple[float, ...] | str:
    """Read how a reply's weight is spread over the labels.

    Args:
        reply: of a request for a text, or with these choices.
        prefill: the given start of the answer.
        labels: in the request's order.
        form: how the verdict was to be written.
        material: what the judge may quote.

    Returns:
        A share for each, summing to 1 (all of it on one where the reply is in words), or why there is no verdict.
    """
    if reply.failure is not None:
        return missing_verdict(reply)
    if reply.probabilities is not None:
        p = reply.probabilities
        # The sum of what is no number is none either, which no comparison holds for.
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
    """The verdict in a reply's own words; arguments are those of ``read_shares``."""
    # Thoughts begin after the given start of the answer, unless that start opens them.
    is_thinking = strip_thoughts(prefill) != prefill
    text = strip_thoughts(prefill + reply.text) if is_thinking else prefill + strip_thoughts(reply.text)
    return form.read(text, labels, material, cut=reply.finish == "length")


def missing_verdict(reply: Reply) -> ParseFailure:
    """Why a reply holds no verdict, where none can be read in it."""
    return ParseFailure(reply.failure or ("truncated" if reply.finish == "length" else "no verdict"), reply)
