"""Who writes the rewrites: ``recorded`` takes those stored with the data, ``rules`` asks the attack's own rules.

A writer is a plan, so that one which needs a generator model yields requests like a protocol does. Every rewrite is
inspected for fidelity before it may be judged: by rules, by graded evidence, and by a verifier where there is one.
It knows no attack by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getsourcefile
from pathlib import Path
from types import MappingProxyType

from distract import amounts, constraints, facts, fidelity, meaning
from distract.errors import PluginError, UnknownName
from distract.fidelity import Evidence
from distract.plan import Attack, Plan
from distract.records import Case, Response, Rewrite


@dataclass(frozen=True, slots=True)
class Writer:
    """A way of obtaining rewrites.

    Attributes:
        name: what ``--generator`` takes.
        summary: one line.
        write: case, original, attack and seed to the rewritten response, or None where there is none to be had.
    """

    name: str
    summary: str
    write: Callable[[Case, Response, Attack, int], Plan[Response | None]]


@dataclass(frozen=True, slots=True)
class Verifier:
    """The third layer of fidelity: whatever reads both texts, such as a model asked whether they say the same.

    Attributes:
        name: for the record.
        verify: case, original and rewrite to reasons to reject it (empty: accept) and evidence.
    """

    name: str
    verify: Callable[[Case, Response, Response], Plan[tuple[tuple[str, ...], Evidence]]]


def rewrite(
    writer: Writer, case: Case, original: Response, attack: Attack, seed: int, verifier: Verifier | None = None
) -> Plan[Rewrite | None]:
    """Obtain a rewrite and inspect it.

    Controls are always written by rule: nobody records white space.

    Returns:
        The rewrite, accepted or rejected, or None where the writer has none.
    """
    by = WRITERS["rules"] if attack.control else writer
    made = yield from by.write(case, original, attack, seed)
    if made is None:
        return None
    if attack.severity and by.name == "recorded":
        # A worse answer that the data hold is not an edit of the good one: only its severity can be proved.
        reasons, evidence = fidelity.inspect_severity(made.text, case.constraints, attack.severity)
        return Rewrite(case.id, made, (), by.name, reasons, evidence)
    reasons, evidence = fidelity.inspect(
        case.prompt,
        original.turns,
        made.turns,
        case.constraints,
        _checked(attack, case) if attack.marker else None,
        max_new_content=attack.max_new_content,
        severity=attack.severity,
    )
    if verifier and made.turns != original.turns:
        more_reasons, more = yield from verifier.verify(case, original, made)
        reasons, evidence = (*reasons, *more_reasons), (*evidence, *more)
    return Rewrite(case.id, made, original.turns, by.name, reasons, evidence)


def _recorded(case: Case, original: Response, attack: Attack, seed: int) -> Plan[Response | None]:
    """The response of the same author and severity that carries the attack's name, or the one of that severity."""
    yield from ()
    return next(iter(recorded(case, original, attack)), None)


def recorded(case: Case, original: Response, attack: Attack) -> list[Response]:
    """What the case stores of an attack on a response."""
    if attack.severity:
        found = [r for r in case.originals if r.severity == attack.severity]
        return sorted(found, key=lambda r: r.author != original.author)
    wanted = (original.author, original.severity, attack.name)
    return [r for r in case.responses if (r.author, r.severity, r.attack) == wanted]


def _rules(case: Case, original: Response, attack: Attack, seed: int) -> Plan[Response | None]:
    yield from ()
    parts = "\x1e".join((str(seed), case.id, original.author, str(original.severity), attack.name))
    number = int.from_bytes(hashlib.sha256(parts.encode()).digest()[:4], "big")
    if attack.severity:
        # Constraints are on the answer as a whole: broken in every turn, the same ones would be broken again.
        new = _written(attack, case, original.text, number)
        return Response(original.author, _in_one_turn(original.turns, new), original.attack, attack.severity)
    turns = (_written(attack, case, turn, number + index) for index, turn in enumerate(original.turns))
    return Response(original.author, tuple(turns), attack.name, original.severity)


def _written(attack: Attack, case: Case, text: str, number: int) -> str:
    with _theirs(attack, case):
        new = attack.rewrite(text, case.constraints, number)
        if not isinstance(new, str):
            raise TypeError(f"rewrite returned {type(new).__name__}, expected str")
    return new


def _in_one_turn(turns: tuple[str, ...], new: str) -> tuple[str, ...]:
    """The turns with the one in which their text was changed; unchanged where it was changed in several."""
    for index in reversed(range(len(turns))):
        before = "".join(f"{turn}\n\n" for turn in turns[:index])
        after = "".join(f"\n\n{turn}" for turn in turns[index + 1 :])
        if new.startswith(before) and new.endswith(after) and len(before) + len(after) <= len(new):
            return (*turns[:index], new[len(before) : len(new) - len(after)], *turns[index + 1 :])
    return turns


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
    files = {Path(str(module.__file__)) for module in (amounts, facts, fidelity, meaning)}
    files.update(Path(str(constraints.__file__)).parent.glob("*.py"))
    for attack in attacks:
        own = Path(getsourcefile(attack.rewrite) or __file__)
        # The shared helpers of the folder count too where it is ours.
        files.update(own.parent.glob("*.py") if attack.rewrite.__module__.startswith("distract.") else [own])
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda path: (path.name, path.parent.name)):
        digest.update(file.read_bytes())
    return digest.hexdigest()
