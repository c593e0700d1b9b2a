"""Who writes the rewrites: ``recorded`` takes those stored with the data, ``rules`` asks the attack's own rules.

A writer is a plan, so that one which needs a generator model yields requests like a protocol does. Every rewrite is
inspected for fidelity before it may be judged. It knows no attack by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getsourcefile
from pathlib import Path
from types import MappingProxyType

from distract import constraints, fidelity
from distract.errors import PluginError, UnknownName
from distract.plan import Attack, Plan
from distract.records import Case, Response, Rewrite


@dataclass(frozen=True, slots=True)
class Writer:
    """A way of obtaining rewrites.

    Attributes:
        name: what ``--generator`` takes.
        summary: one line.
        write: case, original, attack and seed to the rewritten turns, or None where there is none to be had.
    """

    name: str
    summary: str
    write: Callable[[Case, Response, Attack, int], Plan[tuple[str, ...] | None]]


def rewrite(writer: Writer, case: Case, original: Response, attack: Attack, seed: int) -> Plan[Rewrite | None]:
    """Obtain a rewrite and inspect it.

    Controls are always written by rule: nobody records white space.

    Returns:
        The rewrite, accepted or rejected, or None where the writer has none.
    """
    by = WRITERS["rules"] if attack.control else writer
    turns = yield from by.write(case, original, attack, seed)
    if turns is None:
        return None
    marker = _checked(attack, case) if attack.marker else None
    reasons, evidence = fidelity.inspect(case.prompt, original.turns, turns, case.constraints, marker)
    response = Response(original.author, turns, attack.name, original.severity)
    return Rewrite(case.id, response, by.name, reasons, evidence)


def _recorded(case: Case, original: Response, attack: Attack, seed: int) -> Plan[tuple[str, ...] | None]:
    """The response of the same author and severity that carries the attack's name."""
    yield from ()
    wanted = (original.author, original.severity, attack.name)
    return next((r.turns for r in case.responses if (r.author, r.severity, r.attack) == wanted), None)


def _rules(case: Case, original: Response, attack: Attack, seed: int) -> Plan[tuple[str, ...] | None]:
    yield from ()
    parts = "\x1e".join((str(seed), case.id, original.author, str(original.severity), attack.name))
    number = int.from_bytes(hashlib.sha256(parts.encode()).digest()[:4], "big")
    turns = []
    for index, turn in enumerate(original.turns):
        with _theirs(attack, case):
            new = attack.rewrite(turn, case.constraints, number + index)
            if not isinstance(new, str):
                raise TypeError(f"rewrite returned {type(new).__name__}, expected str")
        turns.append(new)
    return tuple(turns)


def _checked(attack: Attack, case: Case) -> Callable[[str], float]:
    """The attack's marker, with what it raises and returns checked."""

    def marker(text: str) -> float:
        assert attack.marker is not None
        with _theirs(attack, case):
            return float(attack.marker(text))

    return marker


@contextmanager
def _theirs(attack: Attack, case: Case) -> Iterator[None]:
    """A plug-in's own code: whatever it raises is one line that names it and the case."""
    try:
        yield
    except Exception as error:
        where = f"attack {attack.name!r} failed on case {case.id!r}"
        raise PluginError(f"{where}: {type(error).__name__}: {error}") from error


WRITERS: Mapping[str, Writer] = MappingProxyType(
    {
        "recorded": Writer("recorded", "the rewrites stored with the data", _recorded),
        "rules": Writer("rules", "deterministic rules of each attack, no model", _rules),
    }
)


def writer(name: str) -> Writer:
    """The writer of that name.

    Raises:
        UnknownName: listing the known ones.
    """
    if name not in WRITERS:
        raise UnknownName("generator", name, WRITERS)
    return WRITERS[name]


def checksum(attacks: Sequence[Attack]) -> str:
    """SHA-256 (hex) of the code that decides what is rewritten how and what is accepted.

    A run is another one after that code changed, or an old result would be shown for a new rule.
    """
    files = {Path(str(module.__file__)) for module in (fidelity, constraints)}
    for attack in attacks:
        own = Path(getsourcefile(attack.rewrite) or __file__)
        # The shared helpers of the folder count too where it is ours.
        files.update(own.parent.glob("*.py") if attack.rewrite.__module__.startswith("distract.") else [own])
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda path: path.name):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def has_recorded(case: Case, attack: Attack) -> bool:
    """Whether the case stores any rewrite by this attack."""
    return any(response.attack == attack.name for response in case.responses)
