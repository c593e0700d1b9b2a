"""Who writes the rewrites: those stored with the data, the attack's own rules, or a generator model.

A writer is a plan, so that one which needs a model yields requests like a protocol does. Every rewrite is inspected for
fidelity before it may be judged: by rules, by graded evidence, and by a verifier where there is one; a model is told
why its rewrite was rejected and tries again. It knows no attack by name.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import getsourcefile, isroutine
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core.errors import UnknownName, guard_plugin
from distract.core.plan import Attack, Plan, gather
from distract.core.records import Case, Evidence, Response, Rewrite, slug
from distract.data import constraints, numbers
from distract.rewriting import fidelity
from distract.rewriting.fidelity import facts, meaning, misbehaviour

LASTING = ("no text", "truncated", "verifier")
"""How reasons begin that only the writing could find: looking at the text again does not find them."""

REMEMBERED = 4096
"""Rewrites by rule and inspections to remember: an estimate makes them for each protocol, and then the run again."""

MOST = 1_000_000
"""Characters of a rewrite by rule, beyond ten times those of its original."""

DRAWN = "drawn"
"""The generator of drawn rewrites (``distract.testing.strategies``): parts of a rewrite by rule, never inspected."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A rewrite that nobody has inspected.

    Attributes:
        response: the text.
        by: who wrote it.
        flaws: reasons to reject it that are known already.
        evidence: what is known of its writing.
        edit: False for a text that is no edit of the original, so that there is nothing to compare it with.
    """

    response: Response
    by: str
    flaws: tuple[str, ...] = ()
    evidence: Evidence = ()
    edit: bool = True


@dataclass(frozen=True, slots=True)
class Writer:
    """A way of obtaining rewrites.

    Attributes:
        name: what ``--generator`` takes.
        summary: one line.
        write: case, original, attack, seed, number of the attempt and why the one before was rejected, to drafts;
            none where there is nothing to be had.
        retries: further attempts after a rejected one.
    """

    name: str
    summary: str
    write: Callable[[Case, Response, Attack, int, int, tuple[str, ...]], Plan[list[Draft]]]
    retries: int = 0


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
    """Obtain a rewrite and inspect it, as often as the writer may try.

    Controls are always written by rule (nobody records white space), and so is what has no prompt for a model.
    """
    by = writer if writer.name == "recorded" or attack.prompt else WRITERS["rules"]
    if attack.control:
        # The noise floor is measured on what the rules make of it, whoever writes and verifies the rest.
        by, verifier = WRITERS["rules"], None
    tried: list[Rewrite] = []
    for attempt in range(by.retries + 1):
        feedback = tried[-1].reasons if tried else ()
        drafts = yield from by.write(case, original, attack, seed, attempt, feedback)
        if not drafts:
            return None
        made = yield from gather([_inspect_draft(case, original, attack, draft, verifier) for draft in drafts])
        tried.append(max(made, key=lambda one: _merit(one, attack, case)))
        if tried[-1].is_accepted:
            break
    return _add_history(tried) if by.retries else tried[-1]


def _merit(made: Rewrite, attack: Attack, case: Case) -> tuple[bool, int, float]:
    """An order of drafts: faithful ones by their marker, others by how little is wrong with them."""
    marker = guard_marker(attack, f"case {case.id!r}")
    return made.is_accepted, -len(made.reasons), marker(made.response.text) if marker and made.is_accepted else 0.0


def _add_history(tried: Sequence[Rewrite]) -> Rewrite:
    """The last of several attempts with the number of them and what was wrong with the others."""
    last, earlier = tried[-1], [slug(reason) for made in tried[:-1] for reason in made.reasons]
    history: Evidence = (("attempts", len(tried)), ("rejected_before", ", ".join(dict.fromkeys(earlier))))
    return Rewrite(last.case, last.response, last.original, last.generator, last.reasons, (*last.evidence, *history))


def _inspect_draft(
    case: Case, original: Response, attack: Attack, draft: Draft, verifier: Verifier | None
) -> Plan[Rewrite]:
    """A draft with the verdict of every layer of fidelity."""
    made = draft.response
    if not draft.edit:
        reasons, evidence = fidelity.inspect_severity(made.text, case.constraints, attack.severity or 0)
        return Rewrite(case.id, made, (), draft.by, reasons, evidence)
    reasons, evidence = _inspect_by_rules(case, original.turns, attack, made.turns)
    flaws, more = draft.flaws, draft.evidence
    if verifier and made.turns != original.turns and any(turn.strip() for turn in made.turns):
        flaws = tuple(flaw for flaw in flaws if not flaw.startswith("verifier"))
        found, measured = yield from verifier.verify(case, original, made)
        flaws, more = (*flaws, *found), (*measured, *((n, v) for n, v in more if not n.startswith("verifier")))
    evidence = (*evidence, *((name, value) for name, value in more if name not in dict(evidence)))
    # That a text is cut both the rules and its writing may say.
    found_already = {slug(reason) for reason in reasons}
    reasons = (*reasons, *(flaw for flaw in flaws if slug(flaw) not in found_already))
    return Rewrite(case.id, made, original.turns, draft.by, reasons, evidence)


@lru_cache(maxsize=REMEMBERED)
def _inspect_by_rules(
    case: Case, original: tuple[str, ...], attack: Attack, made: tuple[str, ...]
) -> tuple[tuple[str, ...], Evidence]:
    """What the rules of fidelity find."""
    return fidelity.inspect(
        case.prompt,
        original,
        made,
        case.constraints,
        guard_marker(attack, f"case {case.id!r}"),
        max_new_content=attack.max_new_content,
        severity=attack.severity,
    )


def _write_recorded(
    case: Case, original: Response, attack: Attack, seed: int, attempt: int, feedback: tuple[str, ...]
) -> Plan[list[Draft]]:
    """The response of the same author and severity that carries the attack's name, or the one of that severity."""
    yield from ()
    drafts = []
    for found in find_recorded(case, original, attack)[:1]:
        if lineage := case.lineage(found):
            flaws = tuple(reason for reason in lineage.reasons if reason.startswith(LASTING))
            drafts.append(Draft(found, lineage.generator, flaws, lineage.evidence))
        else:
            # A worse answer that the data hold is not an edit of the good one: only its severity can be proved.
            drafts.append(Draft(found, "recorded", edit=not attack.severity))
    return drafts


def find_recorded(case: Case, original: Response, attack: Attack) -> list[Response]:
    """What the case stores of an attack on a response."""
    if attack.severity:
        found = [r for r in case.originals if r.severity == attack.severity]
        return sorted(found, key=lambda r: r.author != original.author)
    wanted = (original.author, original.severity, attack.name)
    return [r for r in case.responses if (r.author, r.severity, r.attack) == wanted]


def _write_by_rules(
    case: Case, original: Response, attack: Attack, seed: int, attempt: int, feedback: tuple[str, ...]
) -> Plan[list[Draft]]:
    yield from ()
    return [Draft(_apply_rules(case, original, attack, seed), "rules")]


@lru_cache(maxsize=REMEMBERED)
def _apply_rules(case: Case, original: Response, attack: Attack, seed: int) -> Response:
    parts = "\x1e".join((str(seed), case.id, original.author, str(original.severity), attack.name))
    number = int.from_bytes(hashlib.sha256(parts.encode()).digest()[:4], "big")
    if attack.severity:
        # Constraints are on the answer as a whole: broken in every turn, the same ones would be broken again.
        new = apply_rule(attack, case, original.text, number)
        turns = _edit_one_turn(original.turns, new)
    else:
        turns = tuple(apply_rule(attack, case, turn, number + index) for index, turn in enumerate(original.turns))
    return build_response(original, attack, turns)


def build_response(original: Response, attack: Attack, turns: tuple[str, ...]) -> Response:
    """The record of a rewrite: what breaks constraints has a severity, what distracts names its attack."""
    if attack.severity:
        return Response(original.author, turns, original.attack, attack.severity)
    return Response(original.author, turns, attack.name, original.severity)


def apply_rule(attack: Attack, case: Case, text: str, number: int) -> str:
    """What an attack's rule makes of a text."""
    with guard_attack(attack, f"case {case.id!r}"):
        new = attack.rewrite(text, case.constraints, number)
        if type(new) is not str:
            raise TypeError(f"rewrite returned {type(new).__name__}, expected str")
        if len(new) > MOST + 10 * len(text):
            raise ValueError(f"rewrite returned {len(new):,} characters for {len(text):,}")
        new.encode()  # what is no Unicode text can be neither sent nor stored
    return new


def _edit_one_turn(turns: tuple[str, ...], new: str) -> tuple[str, ...]:
    """The turns with the one in which their text was changed; unchanged where it was changed in several."""
    for index in reversed(range(len(turns))):
        before = "".join(f"{turn}\n\n" for turn in turns[:index])
        after = "".join(f"\n\n{turn}" for turn in turns[index + 1 :])
        if new.startswith(before) and new.endswith(after) and len(before) + len(after) <= len(new):
            return (*turns[:index], new[len(before) : len(new) - len(after)], *turns[index + 1 :])
    return turns


def guard_marker(attack: Attack, where: str) -> Callable[[str], float] | None:
    """The attack's marker, if any, its errors and values checked; ``where`` is as in ``guard_attack``."""
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
    """Code of an attack: whatever it raises is one line that names it and where it failed, such as ``case 'c1'``."""
    return guard_plugin(f"attack {attack.name!r} failed on {where}")


WRITERS: Mapping[str, Writer] = MappingProxyType(
    {
        "recorded": Writer("recorded", "the rewrites stored with the data", _write_recorded),
        "rules": Writer("rules", "deterministic rules of each attack, no model", _write_by_rules),
    }
)


def find_writer(name: str) -> Writer:
    """The writer of that name that needs no model."""
    if name not in WRITERS:
        raise UnknownName("generator", name, WRITERS)
    return WRITERS[name]


def offline_writer(writer: Writer) -> Writer:
    """A writer that needs no model: itself, or the rules in the place of one that does."""
    return writer if writer.name in WRITERS else WRITERS["rules"]


def _source_file(code: Any) -> str | None:
    """The file of a function or class; None where it has none."""
    try:
        return getsourcefile(code)
    except TypeError:  # it is built in
        return None


def checksum(attacks: Sequence[Attack]) -> str:
    """SHA-256 (hex) of the code that decides what is rewritten how and what is accepted.

    A run is another one after that code changed, or an old result would be shown for a new rule.
    """
    files = {Path(str(module.__file__)) for module in (numbers, facts, fidelity, meaning, misbehaviour)}
    files.update(Path(str(constraints.__file__)).parent.glob("*.py"))
    files.update(Path(__file__).parent.glob("*.py"))
    for attack in attacks:
        code: Any = attack.rewrite.func if isinstance(attack.rewrite, partial) else attack.rewrite
        code = code if isroutine(code) else type(code)
        own = Path(_source_file(code) or __file__)
        # The shared helpers of the folder count too where it is ours.
        files.update(own.parent.glob("*.py") if str(code.__module__).startswith("distract.") else [own])
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda path: (path.name, path.parent.name)):
        digest.update(file.read_bytes())
    return digest.hexdigest()
