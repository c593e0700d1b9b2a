"""Decide whether a finished run flips more often than the judge does by itself.

Flips under an attack are set against the judge's own noise on the same pairs, by the bets of a live gate that goes
through the whole run: an excess has no exact bound of its own. It knows no attack by name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from distract.core.errors import UsageError
from distract.core.runs import LoadedRun
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import CheckKey, record, replay_gate
from distract.studies.gate.verdict import Verdict


def decide(run: LoadedRun, limits: Limits) -> Verdict:
    """Decide by the flip rates of a run in excess of its noise."""
    p = run.parameters
    if not p["controls"]:
        raise UsageError(f"{run.path}: measured no noise; run `distract attack` with --control")
    rows = [row for row in run.rows if row.design == "flip"] if run.flaw is None else []
    by: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        by.setdefault(row.cluster, []).append(at)
    pairs = (
        max(Counter(rows[at].protocol for at in places if rows[at].target is None).values()) for places in by.values()
    )
    attacks = [attack for attack in p["attacks"] if attack not in p["controls"]]
    checks: list[CheckKey] = [
        (protocol, attack, "excess_flip_rate") for protocol in sorted(p["protocols"]) for attack in sorted(attacks)
    ]
    own = record(limits, checks, pairs, whole=True)
    # Prompt by prompt, wherever their cases stand in the data.
    ordered = [rows[at] for places in by.values() for at in places]
    gate = replay_gate({**p, "gate": own}, ordered)
    return replace(gate.verdict(run.flaw), certify=limits.certify, effort=None)
