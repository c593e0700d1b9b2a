"""The changed texts that invariants ask about: rewrites by an attack, and changes that no reader minds.

A rewrite that a case records is inspected as in an audit, and used as it is only where a strategy has drawn it; without
one the attack's rule makes it. The harmless changes keep every word, code as it is, and every format constraint held or
broken as it was. It knows no attack by name and asks no judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.plan import Attack, Plan
from distract.core.records import BASELINE, Case, Constraint, Response
from distract.data.constraints import check
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.facts import code_spans
from distract.rewriting.writers import DRAWN, WRITERS, apply_rule, find_recorded, rewrite

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
"""Less markdown: no emphasis of whole words, hyphens as bullets, headings that stand alone as plain lines."""

RICHER: Sequence[Change] = (
    (re.compile(r"(?:\A|(?<=\n\n))([^\W\d_]+)(?=[ ,])"), r"**\1**"),
    (re.compile(_BULLET.format(mark="-")), r"\1*"),
    (re.compile(r"(?m)^(#{1,5})(?=[ \t]+\S.*\n\n)"), r"\1#"),
    # The end of a line behind its last bar or tab is looked at once, not from each of its sentences.
    (re.compile(r"(?m)(?:^|(?<=[|\t]))[^|\t\n]++$"), lambda found: _SENTENCE.sub("  ", found[0])),
    (re.compile(r"(?<=\S)\n\n(?=\S)"), "\n\n\n"),
)
"""More of it: each paragraph's first word in bold, asterisks as bullets, deeper headings, wider spaces."""


def find_attack(name: str, invariant: str) -> Attack:
    """The attack that an invariant is to be tested under."""
    attack = registry.get_attack(name)
    if attack.severity:
        raise UsageError(f"{invariant}: {name} makes a response worse on purpose; that is for monotone_in_severity")
    if name == BASELINE:
        raise UsageError(f"{invariant}: {name} changes nothing; name an attack that does, such as null")
    return attack


def recorded_attacks(cases: Iterable[Case], invariant: str) -> dict[str, Attack]:
    """The attacks whose rewrites the cases record, by name; one that is not installed has no rule."""
    names = sorted({response.attack for case in cases for response in case.responses if response.attack} - {BASELINE})
    if not names:
        raise UsageError(f"{invariant}: the cases record no rewrite; name an attack, as in attack='assertiveness'")
    known = registry.attacks()
    return {name: known.get(name) or Attack(name, "recorded", lambda turn, constraints, seed: turn) for name in names}


def case_attacks(case: Case, attacks: Mapping[str, Attack]) -> tuple[Attack, ...]:
    """Those of the attacks that a case records a rewrite of."""
    there = {response.attack for response in case.responses}
    return tuple(attack for name, attack in attacks.items() if name in there)


def make_rewrite(case: Case, original: Response, attack: Attack, seed: int) -> Plan[Response | str]:
    """The rewrite of a response, or why there is none."""
    found = find_recorded(case, original, attack)
    lineage = case.lineage(found[0]) if found else None
    if lineage is not None and lineage.generator == DRAWN:
        return UNCHANGED if found[0].turns == original.turns else found[0]
    if found and attack.name not in registry.attacks():
        # Nothing says what it should make more of; that the answer is the same can be asked all the same.
        reasons, _ = inspect(case.prompt, original.turns, found[0].turns, case.constraints)
        return REJECTED if reasons else found[0]
    made = yield from rewrite(WRITERS["recorded" if found else "rules"], case, original, attack, seed)
    if made is None or made.response.turns == original.turns:
        return UNCHANGED
    return made.response if made.is_accepted else REJECTED


def restyle_response(case: Case, response: Response) -> tuple[Response, ...]:
    """The response with harmless changes of white space and markdown: made plainer, and made richer."""
    made = (
        tuple(_change_turn(_normalise_turn(case, turn), case.constraints, PLAINER) for turn in response.turns),
        tuple(_change_turn(turn, case.constraints, RICHER) for turn in response.turns),
    )
    return tuple(replace(response, turns=turns) for turns in dict.fromkeys(made) if turns != response.turns)


def _normalise_turn(case: Case, turn: str) -> str:
    """A text as the controls leave it, which keep the constraints by themselves."""
    for control in registry.controls():
        turn = apply_rule(control, case, turn, 0)
    return turn


def _change_turn(turn: str, constraints: Sequence[Constraint], changes: Sequence[Change]) -> str:
    """A text with each of the changes that no constraint minds, outside code."""
    for pattern, new in changes:
        edges = [0, *(edge for span in code_spans(turn) for edge in span), len(turn)]
        pieces = [turn[a:b] for a, b in pairwise(edges)]
        changed = "".join(piece if at % 2 else pattern.sub(new, piece) for at, piece in enumerate(pieces))
        if _protected_parts(changed, constraints) == _protected_parts(turn, constraints):
            turn = changed
    return turn


def _protected_parts(text: str, constraints: Sequence[Constraint]) -> tuple[list[str], list[bool]]:
    """What no harmless change may touch: the code, and what the format requirements say of the text."""
    return [text[a:b] for a, b in code_spans(text)], [check(constraint, text) for constraint in constraints]
