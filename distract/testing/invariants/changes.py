"""Changed texts for invariants: rewrites by an attack, and restyling that readers ignore.

A recorded rewrite is
inspected as in an attack study, unless a strategy drew it; without one, the attack's rule writes it. Restyling keeps
every word, all code, and every format constraint held or broken as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.records import BASELINE, Case, Constraint, Response
from distract.data.constraints import check
from distract.rewriting.attack_calls import apply_rule
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.facts import code_spans
from distract.rewriting.writers import DRAWN, WRITERS, find_recorded, rewrite

UNCHANGED = "nothing to change in the response"
REJECTED = "rewrite rejected"

Change = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

_EMPHASIS = r"(?<!\S){mark}(?=[^\W_])([^*\n$]{{1,200}}?)(?<=[^\s*,])(?<!\\){mark}(?=[.,;:!?]*(?:\s|\Z))"
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[^\W\d_])")
_BULLET = r"(?m)^( {{0,3}}){mark}(?=[ \t]+\S)(?![ \t]*[*_-][ \t*_-]*$)"

PLAINER: Sequence[Change] = (
    (re.compile(_EMPHASIS.format(mark=r"\*\*")), r"\1"),
    (re.compile(_EMPHASIS.format(mark=r"\*")), r"\1"),
    (re.compile(_BULLET.format(mark="[*+•]")), r"\1-"),
    (re.compile(r"(?m)^#{1,6}[ \t]+(?=\S.*\n\n)"), ""),
)
"""Less markdown: no emphasis of whole words, hyphens as bullets, plain lines as headings."""

RICHER: Sequence[Change] = (
    (re.compile(r"(?:\A|(?<=\n\n))([^\W\d_]+)(?=[ ,])"), r"**\1**"),
    (re.compile(_BULLET.format(mark="-")), r"\1*"),
    (re.compile(r"(?m)^(#{1,5})(?=[ \t]+\S.*\n\n)"), r"\1#"),
    # Match the rest of a line once, not from each of its sentences: a long line would take quadratic time.
    (re.compile(r"(?m)(?:^|(?<=[|\t]))[^|\t\n]++$"), lambda match: _SENTENCE.sub("  ", match[0])),
    (re.compile(r"(?<=\S)\n\n(?=\S)"), "\n\n\n"),
)
"""More markdown: the first word of each paragraph in bold, asterisks as bullets, deeper headings, wider spaces."""


def find_attack(name: str, invariant: str) -> Attack:
    """The attack of that name, if it leaves the quality of a response alone."""
    attack = registry.get_attack(name)
    if attack.severity:
        raise UsageError(f"{invariant}: {name} makes responses worse on purpose; use monotone_in_severity instead")
    if name == BASELINE:
        raise UsageError(f"{invariant}: {name} changes nothing; use an attack that does, such as null")
    if attack.effect == "hollow":
        raise UsageError(f"{invariant}: {name} leaves no content; distract attack measures how often that wins")
    return attack


def recorded_attacks(cases: Iterable[Case], invariant: str) -> dict[str, Attack]:
    """The attacks whose rewrites the cases record, by name; those not installed have no rule."""
    names = sorted({response.attack for case in cases for response in case.responses if response.attack} - {BASELINE})
    if not names:
        raise UsageError(f"{invariant}: the cases record no rewrites; name an attack, as in attack='assertiveness'")
    installed = registry.attacks()
    return {
        name: installed.get(name) or Attack(name, "recorded", lambda turn, constraints, seed: turn) for name in names
    }


def case_attacks(case: Case, attacks: Mapping[str, Attack]) -> tuple[Attack, ...]:
    """The attacks whose rewrites a case records."""
    recorded = {response.attack for response in case.responses}
    return tuple(attack for name, attack in attacks.items() if name in recorded)


def make_rewrite(
    case: Case, original: Response, attack: Attack, seed: int, rival: Response | None = None
) -> Plan[Response | str]:
    """The rewrite of a response, or why there is none."""
    recorded = find_recorded(case, original, attack)
    lineage = case.lineage(recorded[0]) if recorded else None
    if lineage is not None and lineage.generator == DRAWN:
        return UNCHANGED if recorded[0].turns == original.turns else recorded[0]
    if recorded and attack.name not in registry.attacks():
        # This attack is unknown, so only check that the answer is still the same.
        texts = case.prompt, original.turns, recorded[0].turns, case.constraints
        return REJECTED if inspect(*texts, is_strict=True).reasons else recorded[0]
    rival = rival if "rival" in attack.depends else None
    draft = yield from rewrite(WRITERS["recorded" if recorded else "rules"], case, original, attack, seed, rival=rival)
    if draft is None or (draft.response.turns == original.turns and "put_back" not in dict(draft.evidence)):
        return UNCHANGED
    return draft.response if draft.is_accepted else REJECTED


def restyle_response(case: Case, response: Response) -> tuple[Response, ...]:
    """The response with plainer and with richer markdown and white space, as far as they differ from it."""
    variants = (
        tuple(_change_turn(_normalise_turn(case, turn), case.constraints, PLAINER) for turn in response.turns),
        tuple(_change_turn(turn, case.constraints, RICHER) for turn in response.turns),
    )
    return tuple(replace(response, turns=turns) for turns in dict.fromkeys(variants) if turns != response.turns)


def _normalise_turn(case: Case, turn: str) -> str:
    # Controls keep the constraints by themselves; placebos change words.
    for control in registry.controls():
        turn = turn if control.placebo else apply_rule(control, case, turn, 0)
    return turn


def _change_turn(turn: str, constraints: Sequence[Constraint], changes: Sequence[Change]) -> str:
    """Apply each change outside code, if it affects no constraint."""
    for pattern, new in changes:
        edges = [0, *(edge for span in code_spans(turn) for edge in span), len(turn)]
        pieces = [turn[a:b] for a, b in pairwise(edges)]
        changed = "".join(piece if at % 2 else pattern.sub(new, piece) for at, piece in enumerate(pieces))
        if _protected_parts(changed, constraints) == _protected_parts(turn, constraints):
            turn = changed
    return turn


def _protected_parts(text: str, constraints: Sequence[Constraint]) -> tuple[list[str], list[bool]]:
    """The parts that restyling must not change: code, and whether each format requirement is met."""
    return [text[a:b] for a, b in code_spans(text)], [check(constraint, text) for constraint in constraints]
