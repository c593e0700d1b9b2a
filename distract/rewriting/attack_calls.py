"""Call an attack's own code: its rule, its plan, its marker, and the inspection that it declares.

Each call turns an error of third-party code into one line, and checks what the code returns.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager

from distract.core.attack import Attack, WritingTask
from distract.core.errors import guard_plugin
from distract.core.plan import Plan, tap
from distract.core.records import Case, Constraint, Request
from distract.rewriting import fidelity

_NEEDED: Mapping[str, fidelity.Needed] = {
    **dict.fromkeys(("tone", "certainty", "emotion", "wording", "polish"), "restyled"),
    "padding": "added",
}
"""What a rewrite that no rule wrote needs, by the attack's family."""

MOST = 1_000_000
"""Maximum characters of a rewrite by rule, in addition to ten times its original."""


def apply_rule(attack: Attack, case: Case, text: str, number: int) -> str:
    """Apply an attack's rule to a text."""
    with guard_attack(attack, f"case {case.id!r}"):
        new = attack.rewrite(text, case.constraints, number)
        _check_text(new, text, "rewrite")
        return new


def _check_text(new: object, text: str, name: str) -> None:
    if type(new) is not str:
        raise TypeError(f"{name} returned {type(new).__name__}, expected str")
    if len(new) > MOST + 10 * len(text):
        raise ValueError(f"{name} returned {len(new):,} characters for {len(text):,}")
    new.encode()  # raises an error for a lone surrogate, which can be neither sent nor stored


def write_turns(attack: Attack, task: WritingTask) -> Plan[tuple[str, ...]]:
    """Run an attack's own plan and check the turns that it returns."""
    where = f"case {task.case.id!r}"
    with guard_attack(attack, where):
        assert attack.write is not None
        plan = attack.write(task)
        if not isinstance(plan, Generator):
            raise TypeError(f"write returned {reprlib.repr(plan)}, expected a generator: a plan that yields requests")

    def check(requests: Sequence[Request]) -> Sequence[Request]:
        with guard_attack(attack, where):
            if requests and not attack.asks:
                raise TypeError("write requests something, but asks is False: a rule requests nothing")
        return requests

    turns = yield from tap(plan, check, guard=lambda: guard_attack(attack, where))
    with guard_attack(attack, where):
        if type(turns) is not tuple or len(turns) != len(task.response.turns):
            raise TypeError(f"write returned {reprlib.repr(turns)}, expected {len(task.response.turns)} turns")
        for new, old in zip(turns, task.response.turns, strict=True):
            _check_text(new, old, "write")
    return turns


def inspect_rewrite(
    attack: Attack,
    prompt: Sequence[str],
    original: Sequence[str],
    rewritten: Sequence[str],
    constraints: Sequence[Constraint],
    where: str,
    is_ruled: bool,
    denied: frozenset[str] = frozenset(),
) -> fidelity.Inspection:
    """Inspect a rewrite by what its attack declares; one that no rule wrote must keep what is said."""
    return fidelity.inspect(
        prompt,
        original,
        rewritten,
        constraints,
        guard_marker(attack, where),
        severity=attack.severity,
        effect=attack.effect,
        keeps=attack.keeps if is_ruled or attack.keeps == "nothing" else "meaning",
        restore=attack.restore,
        layers=attack.checks,
        needs=_NEEDED.get(attack.family, "") if attack.effect == "same" and not is_ruled else "",
        adds=attack.adds,
        is_ruled=is_ruled,
        denied=denied,
    )


def guard_marker(attack: Attack, where: str) -> Callable[[str], float] | None:
    """Wrap the attack's marker, if it has one, so that its errors and values are checked; see ``guard_attack``."""
    measure = attack.marker
    if measure is None:
        return None

    def marker(text: str) -> float:
        with guard_attack(attack, where):
            value = float(measure(text))
            if not math.isfinite(value):
                raise ValueError(f"marker returned {value}, expected a finite number")
            return value

    return marker


def guard_attack(attack: Attack, where: str) -> AbstractContextManager[None]:
    """Turn an error in an attack's code into one line that names the attack and the place, such as ``case 'c1'``."""
    return guard_plugin(f"attack {attack.name!r} failed on {where}")
