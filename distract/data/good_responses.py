"""The good response of a case, and the pairs that a judge can compare."""

from __future__ import annotations

from itertools import combinations

from distract.core.records import Case, Response
from distract.data.constraints import check


def good_response(case: Case) -> Response | None:
    """The response labelled better, else the one that meets the constraints, else the only one."""
    originals = [r for r in case.originals if r.severity is None]
    labelled = [r for r in originals if r.author == case.preferred]
    if labelled:
        return labelled[0]
    if case.constraints:
        return next((r for r in originals if all(check(c, r.text) for c in case.constraints)), None)
    return originals[0] if len(originals) == 1 else None


def compliant_response(case: Case) -> Response | None:
    good = good_response(case)
    return good if good and case.constraints and all(check(c, good.text) for c in case.constraints) else None


def pairs(case: Case) -> list[tuple[Response, Response]]:
    """The pairs whose verdict may flip: original responses by different authors.

    In a case with severities, unbroken responses are only paired with those of severity 1; worse ones are too far apart
    in quality and belong to another measure.
    """
    whole = [r for r in case.originals if r.severity is None]
    authors = {r.author for r in whole}
    # Skip worse versions of a response by the same author.
    if broken := [r for r in case.originals if r.severity == 1 and r.author not in authors]:
        return [(r, s) for r in whole for s in broken]
    return [(r, s) for r, s in combinations(whole, 2) if r.author != s.author]
