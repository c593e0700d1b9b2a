"""A model that says whether two texts say the same: the third layer of fidelity.

It is asked both ways, whether each text says everything that the other says and nothing that contradicts it, because a
rewrite may lose something or add something. The answer is read from the probabilities of yes and no where the backend
has them. It does not know which text is the rewrite, nor what an attack is.
"""

from __future__ import annotations

from distract.core.plan import Plan
from distract.core.prompts import Prompt, load
from distract.core.records import Case, Evidence, Request, Response
from distract.judging.verdicts import read_shares
from distract.rewriting.writers import Verifier

CHOICES = ("Y", "N")
LOST, ADDED = "verifier finds something lost", "verifier finds something added"


def make_verifier(name: str) -> Verifier:
    """A verifier that asks a model."""
    return Verifier(name, verify)


def load_prompt() -> Prompt:
    """The prompt file that is used."""
    return load("distract.rewriting", "verify")


def parameters(name: str) -> tuple[tuple[str, str], ...]:
    """What a lineage says of a verifier: its name and the SHA-256 (hex) of its prompt."""
    return ("verifier", name), ("verifier_prompt", load_prompt().checksum)


def verify(case: Case, original: Response, rewrite: Response) -> Plan[tuple[tuple[str, ...], Evidence]]:
    """Ask both ways."""
    replies = yield [_request(case, original, rewrite), _request(case, rewrite, original)]
    reasons: list[str] = []
    evidence: list[tuple[str, float | int | str]] = []
    for reply, name, reason in zip(replies, ("verifier_kept", "verifier_nothing_added"), (LOST, ADDED), strict=True):
        found = read_shares(reply, load_prompt().prefill, CHOICES)
        if isinstance(found, str):
            reasons.append(f"verifier gives no verdict: {found}")
            evidence.append((name, found))
        else:
            evidence.append((name, round(found[0], 4)))
            # An even chance is no yes.
            if found[0] <= found[1]:
                reasons.append(reason)
    return tuple(dict.fromkeys(reasons)), tuple(evidence)


def _request(case: Case, first: Response, second: Response) -> Request:
    file = load_prompt()
    values = {
        "question": _format_turns(case.prompt),
        "first": _format_turns(first.turns),
        "second": _format_turns(second.turns),
    }
    return Request(file.fill(values), choices=CHOICES, prefill=file.prefill, to="verifier")


def _format_turns(turns: tuple[str, ...]) -> str:
    return turns[0] if len(turns) == 1 else "\n\n".join(f"## Turn {n}\n{turn}" for n, turn in enumerate(turns, 1))
