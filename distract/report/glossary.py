"""Explanations of the words in tables: the only source of the legends below them.

The glossary of ``docs/reading-results.md`` holds every word with the same explanation, and may add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from distract.core.printable import count, line
from distract.stats.measures import MEASURES
from distract.stats.trials import TIED, Measure


def _explain_measures(is_meant: Callable[[Measure], bool]) -> dict[str, str]:
    """Explain the columns of measures, or their units."""
    rows = [row for row in MEASURES.values() if row.legend and is_meant(row)]
    return {word: row.legend for row in rows for word in row.columns or (row.unit,)}


def list_terms() -> dict[str, str]:
    """List the abbreviations and terms of tables with their meanings, in the order in which legends explain them."""
    return {
        "95% CI": "confidence interval",
        "k/n": "k of n comparisons",
        "n": "comparisons that count",
        "points": "difference of two percentages",
        "bounds": "one-sided bounds",
        **_explain_measures(lambda row: bool(row.limit) and not row.column),
        "p": "exact test, after Holm",
        "p (Holm)": "exact test, after Holm",
        "vs base": "against the base protocol, on what both share",
        "better": "significant gain at 5%",
        "worse": "significant loss at 5%",
        "n.s.": "not significant at 5%",
        **_explain_measures(lambda row: bool(row.designs) and bool(row.column) and not row.per),
        "excess": "beyond the control, in points",
        "●": "stronger, fails more than its control (hollow: more than 5%), significant at 5% after Holm",
        "inv.": "unreadable verdicts",
        "excl.": "left out, with ties before any rewrite",
        "by score": "mean of the ratings",
        "by rating": "most likely rating",
        "–": "not measured, or not possible",
        **_explain_measures(lambda row: row.unit in ("calls", "tokens")),
        "unusable": "cannot tell good from bad",
        "unclear": "not shown to tell good from bad",
        "flips %": "losing responses that won after their rewrite",
        "differs": "significant difference at 5%",
        "◆": "Pareto front, none is shown to be better at this cost or less",
        "over all attacks": "attacks on one prompt are dependent, hence the wide intervals",
        "letters": "marks in the plot that --verbose adds, capital on the Pareto front",
        **_explain_measures(lambda row: not row.designs),
        "none": "before any rewrite",
        "noise": "the same under the control",
        "limit": "threshold of this check",
        "over prompts": "each prompt counts once, as the mean of its comparisons",
        "open": "undecided, as another check failed",
        "rise": "now minus before, in points, over its one-sided bounds",
        "+/−": "counted only now, only before",
        "total": "over all data sets",
        "by parsed": "distract's reading of the judge's text",
        "by stored": "the winner in the file",
        **_explain_measures(lambda row: row.unit == "alpha"),
        **_explain_measures(lambda row: row.unit == "kappa"),
        **_explain_measures(lambda row: row.per == "verdict"),
        "towards": "changed verdicts in this direction",
        "away": "changed verdicts in the opposite one",
        "mean": "mean accuracy",
        "mean rank": "mean over judges, 1 is the most accurate",
        "strong": "the better half of the judges",
        "weak": "the other half of the judges",
        "right in": "share of verdicts that match the label",
        **_explain_measures(lambda row: row.per in ("triple", "set")),
        "95%": "range of the rank",
        "sigma": "uncertainty of the rating system itself",
        "▲": "responses rewritten",
        "rose in %": "draws of prompts in which the rank rose",
        "fell in %": "draws of prompts in which the rank fell",
        "flips": "smallest flips that need the word",
        "kept, lost, invented": "facts of the original that the rewrite has, lacks, or has in addition",
    }


_REASONS = {
    TIED: ("baseline", "was a tie", "were ties"),
    "rewrite rejected": ("rewrite", "was rejected", "were rejected"),
    "excluded": ("comparison", "was left out", "were left out"),
    "invalid": ("verdict", "could not be read", "could not be read"),
}


def explain(words: Collection[str]) -> str:
    """Explain the words that need it, in one line."""
    return "; ".join(f"{word}: {meaning}" for word, meaning in list_terms().items() if word in words)


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
    ties = dict(figure.reasons).get(TIED, 0)
    named = count(ties, "tie")
    return named if 0 < ties == figure.excluded else f"{figure.excluded} ({named})" if ties else str(figure.excluded)


def _describe_reason(reason: str, number: int) -> str:
    if reason not in _REASONS:
        return f"{line(reason)} ({number:,})"
    noun, one, several = _REASONS[reason]
    return f"{count(number, noun)} {one if number == 1 else several}"


def list_measures() -> dict[str, str]:
    """List the measures for the docs: their words in tables with meaning, name and limit."""
    terms = list_terms()
    rows = dict[str, str]()
    for row in MEASURES.values():
        words = [word for word, legend in terms.items() if row.legend and legend == row.legend]
        names = ", ".join(f"`{name}`" for name in (row.name, f"--{row.limit}" if row.limit else "") if name)
        rows[", ".join(words) or row.words] = f"{row.legend}{row.more} ({names})"
    return rows
