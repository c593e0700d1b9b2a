"""Explanations of the words in tables: the only source of the legends below them.

The glossary of ``docs/reading-results.md`` holds every word with the same explanation, and may add to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from distract.core.printable import count, line

GLOSSARY: Mapping[str, str] = {
    "95% CI": "confidence interval",
    "k/n": "k of n comparisons",
    "n": "comparisons that count",
    "points": "difference of two percentages",
    "bounds": "one-sided bounds",
    "gain rate": "attacked responses that had not won and now win",
    "hollow win rate": "answers without content that won",
    "p": "exact test, after Holm",
    "p (Holm)": "exact test, after Holm",
    "vs base": "against the base protocol, on what both share",
    "better": "significant gain at 5%",
    "worse": "significant loss at 5%",
    "n.s.": "not significant at 5%",
    "skill": "2 × robust – 100, a perfect judge has 100",
    "clean": "right before any rewrite, in %",
    "robust": "right before and after the rewrite, in %",
    "cost": "clean – robust",
    "shift": "mean gain of a rewrite over its original, in points of a score, else in probability",
    "lifted": "of those that failed, passed after their rewrite, in %",
    "worth": "shift in broken requirements",
    "exchange rate": "shift in broken requirements",
    "net": "flips – counter-flips of rewritten winners",
    "beyond": "flips by more than a placebo moves the verdict, in %",
    "softened": "became a tie, in %",
    "RR": "robustness rate, verdicts equal before and after, ties included, in %",
    "CR": "consistency rate, RR of the control, in %",
    "to tie": "lost before, tie now, in %",
    "tied": "ended in a tie, in %",
    "reach": "hollow answers at or above the pass mark or the middle of the scale, in %",
    "excess": "beyond the control, in points",
    "●": "stronger, fails more than its control (hollow: more than 5%), significant at 5% after Holm",
    "rewrite": "the rewrite won, in %",
    "original": "the original won, in %",
    "inv.": "unreadable verdicts",
    "excl.": "left out, with ties before any rewrite",
    "by score": "mean of the ratings",
    "by rating": "most likely rating",
    "–": "not measured, or not possible",
    "calls": "judge calls per comparison",
    "tokens": "tokens per comparison",
    "unusable": "cannot tell good from bad",
    "unclear": "not shown to tell good from bad",
    "flips %": "losing responses that won after their rewrite",
    "differs": "significant difference at 5%",
    "◆": "Pareto front, none is shown to be better at this cost or less",
    "over all attacks": "attacks on one prompt are dependent, hence the wide intervals",
    "letters": "marks in the plot that --verbose adds, capital on the Pareto front",
    "order": "verdicts that change with the order, in %",
    "mass": "probability on the possible verdicts, in %",
    "invalid": "unreadable verdicts, in %",
    "none": "before any rewrite",
    "noise": "the same under the control",
    "limit": "threshold of this check",
    "open": "undecided, as another check failed",
    "rise": "now minus before, in points, over its one-sided bounds",
    "+/−": "counted only now, only before",
    "total": "over all data sets",
    "by parsed": "distract's reading of the judge's text",
    "by stored": "the winner in the file",
    "alpha": "Krippendorff's agreement of the two orders, 1 is full, 0 is chance",
    "kappa": "Cohen's agreement with the label, 1 is full, 0 is chance",
    "true positive rate": "of those that people pass, the judge passes",
    "true negative rate": "of those that people fail, the judge fails",
    "precision": "of those that the judge passes, people pass",
    "towards": "changed verdicts in this direction",
    "away": "changed verdicts in the opposite one",
    "mean": "mean accuracy",
    "mean rank": "mean over judges, 1 is the most accurate",
    "strong": "the better half of the judges",
    "weak": "the other half of the judges",
    "right in": "share of verdicts that match the label",
    "chains %": "triples with a over b and b over c",
    "tie %": "changed to or from a tie, which is not a reversal",
    "95%": "range of the rank",
    "sigma": "uncertainty of the rating system itself",
    "▲": "responses rewritten",
    "rose in %": "draws of prompts in which the rank rose",
    "fell in %": "draws of prompts in which the rank fell",
    "flips": "smallest flips that need the word",
    "kept, lost, invented": "facts of the original that the rewrite has, lacks, or has in addition",
}
"""Each abbreviation or term of a table with its meaning, in the order in which legends explain them."""

_TIED = "baseline is a tie"

_REASONS = {
    _TIED: ("baseline", "was a tie", "were ties"),
    "rewrite rejected": ("rewrite", "was rejected", "were rejected"),
    "excluded": ("comparison", "was left out", "were left out"),
    "invalid": ("verdict", "could not be read", "could not be read"),
}


def explain(words: Collection[str]) -> str:
    """Explain the words that need it, in one line."""
    return "; ".join(f"{word}: {meaning}" for word, meaning in GLOSSARY.items() if word in words)


def empty_reason(figure: Any) -> str:
    """Say why nothing was measured, from ``invalid``, ``excluded`` and, if it has them, ``reasons`` of a figure."""
    reasons = getattr(figure, "reasons", ()) or ([("excluded", figure.excluded)] if figure.excluded else [])
    if not reasons:
        return f"no valid verdict in {count(figure.invalid, 'comparison')}" if figure.invalid else "not measured"
    if figure.invalid:
        parts = [_describe_reason(reason, number) for reason, number in (*reasons, ("invalid", figure.invalid))]
        return f"no eligible case with a valid verdict: {', '.join(parts)}"
    every = "all " if len(reasons) == 1 and reasons[0][0] in _REASONS and reasons[0][1] > 1 else ""
    return f"no eligible case: {every}{', '.join(_describe_reason(reason, number) for reason, number in reasons)}"


def describe_excluded(figure: Any) -> str:
    """Count the comparisons of a figure that are left out, and name the ties among them."""
    ties = dict(figure.reasons).get(_TIED, 0)
    named = count(ties, "tie")
    return named if 0 < ties == figure.excluded else f"{figure.excluded} ({named})" if ties else str(figure.excluded)


def _describe_reason(reason: str, number: int) -> str:
    if reason not in _REASONS:
        return f"{line(reason)} ({number:,})"
    noun, one, several = _REASONS[reason]
    return f"{count(number, noun)} {one if number == 1 else several}"
