"""Compare two answers to one prompt by a model that reads both as a whole.

It is asked in both directions whether one says everything that the other says and nothing that contradicts it. The
answer is read from the probabilities of yes and no if the backend has them.
"""

from __future__ import annotations

from distract.core.plan import Plan
from distract.core.prompts import load
from distract.core.records import Case, Evidence, Request, Response
from distract.judging.verdicts import read_shares
from distract.rewriting.verifier import CHOICES

PROMPT = load("distract.studies.make", "verify")
LOST, ADDED = "verifier finds something lost", "verifier finds something added"


def verify(case: Case, original: Response, rewrite: Response) -> Plan[tuple[tuple[str, ...], Evidence]]:
    """Ask about two answers as a whole, in both directions; returns reasons to reject the second and the evidence."""
    replies = yield [_request(case, original, rewrite), _request(case, rewrite, original)]
    reasons: list[str] = []
    evidence: list[tuple[str, float | int | str]] = []
    for reply, name, reason in zip(replies, ("verifier_kept", "verifier_nothing_added"), (LOST, ADDED), strict=True):
        shares = read_shares(reply, PROMPT.prefill, CHOICES)
        if isinstance(shares, str):
            reasons.append(f"verifier gives no verdict: {shares}")
            evidence.append((name, shares))
        else:
            evidence.append((name, round(shares[0], 4)))
            # Equal probabilities count as no.
            if shares[0] <= shares[1]:
                reasons.append(reason)
    return tuple(dict.fromkeys(reasons)), tuple(evidence)


def _request(case: Case, first: Response, second: Response) -> Request:
    values = {
        "question": _format_turns(case.prompt),
        "first": _format_turns(first.turns),
        "second": _format_turns(second.turns),
    }
    return Request(PROMPT.fill(values), choices=CHOICES, prefill=PROMPT.prefill, to="verifier")


def _format_turns(turns: tuple[str, ...]) -> str:
    return turns[0] if len(turns) == 1 else "\n\n".join(f"## Turn {n}\n{turn}" for n, turn in enumerate(turns, 1))
