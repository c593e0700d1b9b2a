"""Obtain rewrites: from the data, from the attack's own rules, or from a generator model.

A writer is a plan, so that it can request texts from a model like a protocol does. Every rewrite is inspected for
fidelity, by the layers that its attack declares, before it may be judged. A model whose rewrite was
rejected tries again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from inspect import getsourcefile, isroutine
from itertools import chain, combinations, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distract.core import edits, plain_text, registry
from distract.core.attack import Attack, WritingTask, join_controls
from distract.core.errors import UnknownName
from distract.core.plan import Plan, gather
from distract.core.records import Case, Evidence, Response, Rewrite, slug
from distract.data import amounts, constraints, language, lexicon
from distract.rewriting import fidelity
from distract.rewriting.attack_calls import apply_rule, guard_marker, inspect_rewrite, write_turns

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier

LASTING = ("no text", "truncated", "verifier")
"""Beginnings of reasons that are only known when a text is written: inspecting the text again does not find them."""

REMEMBERED = 4096
"""Size of the caches of rewrites by rule and of inspections: an estimate repeats them for each protocol, as does the
run."""

ROUNDS = 25
"""Seeds with which each control may rewrite a response in search of another text."""

DRAWN = "drawn"
"""Generator name of drawn rewrites (``distract.testing.strategies``): parts of a rewrite by rule, never inspected."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A rewrite before its inspection."""

    response: Response
    writer: str  # name of the writer
    flaws: tuple[str, ...] = ()  # reasons to reject it that are known already
    evidence: Evidence = ()  # measurements from its writing
    is_edit: bool = True  # whether it can be compared with the original
    is_assumed: bool = False  # whether it stands in for a text to come, of which no layer but the verifier is known


@dataclass(frozen=True, slots=True)
class Writer:
    """A source of rewrites.

    ``write`` makes drafts from an attack and its task; none if the writer has no rewrite. The attacks named in
    ``by_rule`` are left to the rules.
    """

    name: str  # value of ``--generator``
    summary: str
    write: Callable[[Attack, WritingTask], Plan[list[Draft]]]
    retries: int = 0  # further attempts after a rejected one
    by_rule: frozenset[str] = frozenset()

    @property
    def is_model(self) -> bool:
        """Whether a model writes."""
        return self.name not in WRITERS

    def writer_of(self, attack: Attack) -> Writer:
        """Return who writes an attack's rewrites: this writer, or the rules.

        Rules write what the attack has no prompt for, and the controls, so that the noise floor does not depend on the
        writer. A control that asks is written as the attacks are.
        """
        if attack.asks:
            return self
        is_writable = self.name == "recorded" or attack.prompt is not None
        is_ruled = attack.control or attack.name in self.by_rule or not is_writable
        return WRITERS["rules"] if is_ruled else self


def rewrite(
    writer: Writer,
    case: Case,
    original: Response,
    attack: Attack,
    seed: int,
    verifier: Verifier | None = None,
    rival: Response | None = None,
) -> Plan[Rewrite | None]:
    """Obtain a rewrite and inspect it, as often as the writer may try."""
    writer = writer.writer_of(attack)
    # The noise floor does not depend on the other rewrites' verifier.
    verifier = None if attack.control and not attack.asks else verifier
    task = set_task(case, original, attack, seed, rival)
    attempts: list[Rewrite] = []
    for attempt in range(writer.retries + 1):
        feedback = attempts[-1].reasons if attempts else ()
        drafts = yield from writer.write(attack, replace(task, attempt=attempt, feedback=feedback))
        if not drafts:
            return None
        rewrites = yield from gather([_inspect_draft(case, original, attack, draft, verifier) for draft in drafts])
        attempts.append(max(rewrites, key=lambda candidate: _merit(candidate, attack, case)))
        if attempts[-1].is_accepted:
            break
    best = _add_history(attempts) if writer.retries else attempts[-1]
    return replace(best, evidence=(*best.evidence, ("rival", rival.author))) if rival else best


def set_task(case: Case, original: Response, attack: Attack, seed: int, rival: Response | None = None) -> WritingTask:
    """Show an attack what it depends on, with a seed of this response's own."""
    parts = (str(seed), case.id, original.author, str(original.severity), attack.name)
    number = int.from_bytes(hashlib.sha256("\x1e".join(parts).encode()).digest()[:4], "big")
    shown = original if "response" in attack.depends else replace(original, turns=("",) * len(original.turns))
    return WritingTask(case, shown, rival, number, run_seed=seed)


def list_arms(case: Case, original: Response, count: int, seed: int) -> Plan[list[Rewrite]]:
    """Write up to ``count`` controls of a response, no two alike, in a fixed order: each placebo, then those joined.

    A text that has fewer gets fewer, so that as many tries of an attack can be compared with as many of its control.
    """
    placebos = registry.attacks().where(lambda one: one["placebo"] and not one["asks"])
    groups = (group for size in range(1, len(placebos) + 1) for group in combinations(placebos, size))
    controls, arms = [join_controls(group) for group in groups], dict[tuple[str, ...], Rewrite]()
    for turn, control in product(range(ROUNDS), controls):
        if len(arms) >= count:
            break
        arm = yield from rewrite(WRITERS["rules"], case, original, control, seed + turn)
        if arm and arm.is_accepted and arm.response.turns != original.turns:
            arms.setdefault(arm.response.turns, arm)
    return [*arms.values()]


def _merit(candidate: Rewrite, attack: Attack, case: Case) -> tuple[bool, int, float]:
    """Sort key: faithful rewrites rank by their marker, others by their number of flaws."""
    marker = guard_marker(attack, f"case {case.id!r}") if candidate.is_accepted else None
    return candidate.is_accepted, -len(candidate.reasons), marker(candidate.response.text) if marker else 0.0


def _add_history(attempts: Sequence[Rewrite]) -> Rewrite:
    """Return the last attempt with the number of attempts and the reasons that rejected the earlier ones."""
    earlier = dict.fromkeys(slug(reason) for attempt in attempts[:-1] for reason in attempt.reasons)
    history: Evidence = (("attempts", len(attempts)), ("rejected_before", ", ".join(earlier)))
    return replace(attempts[-1], evidence=(*attempts[-1].evidence, *history))


def _inspect_draft(
    case: Case, original: Response, attack: Attack, draft: Draft, verifier: Verifier | None
) -> Plan[Rewrite]:
    """Apply every layer of fidelity to a draft."""
    response = draft.response
    if not draft.is_edit:
        reasons, evidence = fidelity.inspect_severity(response.text, case.constraints, attack.severity or 0)
        return Rewrite(case.id, response, (), draft.writer, reasons, evidence)
    reasons, evidence, is_ruled = tuple[str, ...](), Evidence(), draft.writer == "rules"
    if not draft.is_assumed:
        reasons, evidence, turns = _inspect_by_rules(case, original.turns, attack, response.turns, is_ruled)
        response = response if turns == response.turns else replace(response, turns=turns)
    flaws, more = draft.flaws, draft.evidence
    if (
        verifier
        and not reasons
        and "verifier" in attack.checks
        and response.turns != original.turns
        and any(turn.strip() for turn in response.turns)
    ):
        # What it reads replaces what is stored with the draft.
        denied, measured = yield from verifier.read(original, response)
        flaws = tuple(flaw for flaw in flaws if not flaw.startswith("verifier"))
        more = (*measured, *((name, value) for name, value in more if not name.startswith("verifier")))
        if denied and not draft.is_assumed:
            again = _inspect_by_rules(case, original.turns, attack, response.turns, is_ruled, denied)
            if again.reasons:
                # Known only from the model, so the reasons have to say so: rules alone would accept the stored text.
                unread = ["verifier gives no verdict"] if "verifier_unread" in dict(measured) else []
                reasons = (*unread, *(f"verifier puts back too much: {reason}" for reason in again.reasons))
            else:
                response = replace(response, turns=again.turns)
                put_back = [str(dict(one)["put_back"]) for one in (evidence, again.evidence) if "put_back" in dict(one)]
                evidence = tuple({**dict(evidence), **dict(again.evidence), "put_back": ", ".join(put_back)}.items())
    evidence = (*evidence, *((name, value) for name, value in more if name not in dict(evidence)))
    # Both the rules and the draft may report that a text is cut.
    slugs = {slug(reason) for reason in reasons}
    reasons = (*reasons, *(flaw for flaw in flaws if slug(flaw) not in slugs))
    # A rejected text is kept as it was written, so that it can be read and inspected again.
    response = draft.response if reasons else response
    return Rewrite(case.id, response, original.turns, draft.writer, reasons, evidence)


@lru_cache(maxsize=REMEMBERED)
def _inspect_by_rules(
    case: Case,
    original: tuple[str, ...],
    attack: Attack,
    rewritten: tuple[str, ...],
    is_ruled: bool,
    denied: frozenset[str] = frozenset(),
) -> fidelity.Inspection:
    texts = case.prompt, original, rewritten, case.constraints
    return inspect_rewrite(attack, *texts, f"case {case.id!r}", is_ruled, denied)


def _write_recorded(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
    yield from ()
    case, drafts = task.case, []
    for response in find_recorded(case, task.response, attack)[:1]:
        if lineage := case.lineage(response):
            flaws = tuple(reason for reason in lineage.reasons if reason.startswith(LASTING))
            drafts.append(Draft(response, lineage.generator, flaws, lineage.evidence))
        else:
            # A worse answer in the data is not an edit of the good one, so only its severity can be checked.
            drafts.append(Draft(response, "recorded", is_edit=not attack.severity))
    return drafts


def find_recorded(case: Case, original: Response, attack: Attack) -> list[Response]:
    """Find the case's stored rewrites of a response: those with the attack's name, or with its severity."""
    if attack.severity:
        worse = [r for r in case.originals if r.severity == attack.severity]
        return sorted(worse, key=lambda r: r.author != original.author)
    key = (original.author, original.severity, attack.name)
    return [r for r in case.responses if (r.author, r.severity, r.attack) == key]


def _write_by_rules(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
    if attack.write is None:
        return [Draft(_apply_rules(task.case, task.response, attack, task.seed), "rules")]
    turns = yield from write_turns(attack, task)
    return [Draft(build_response(task.response, attack, turns), "rules")]


@lru_cache(maxsize=REMEMBERED)
def _apply_rules(case: Case, original: Response, attack: Attack, number: int) -> Response:
    if attack.severity:
        # Constraints apply to the whole answer: turn by turn, the same ones would be broken several times.
        turns = _edit_one_turn(original.turns, apply_rule(attack, case, original.text, number))
    else:
        turns = tuple(apply_rule(attack, case, turn, number + index) for index, turn in enumerate(original.turns))
    return build_response(original, attack, turns)


def build_response(original: Response, attack: Attack, turns: tuple[str, ...]) -> Response:
    """Build the response: a rewrite that breaks constraints gets a severity, one that distracts the attack's name."""
    if attack.severity:
        return Response(original.author, turns, original.attack, attack.severity)
    return Response(original.author, turns, attack.name, original.severity)


def _edit_one_turn(turns: tuple[str, ...], new: str) -> tuple[str, ...]:
    """Split an edited text into turns again; return the old turns if the edit spans several."""
    for index in reversed(range(len(turns))):
        before = "".join(f"{turn}\n\n" for turn in turns[:index])
        after = "".join(f"\n\n{turn}" for turn in turns[index + 1 :])
        if new.startswith(before) and new.endswith(after) and len(before) + len(after) <= len(new):
            return (*turns[:index], new[len(before) : len(new) - len(after)], *turns[index + 1 :])
    return turns


WRITERS: Mapping[str, Writer] = MappingProxyType(
    {
        "recorded": Writer("recorded", "the rewrites stored with the data", _write_recorded),
        "rules": Writer("rules", "deterministic rules of each attack, no model", _write_by_rules),
    }
)


def find_writer(name: str) -> Writer:
    """Find a writer that needs no model."""
    if name not in WRITERS:
        raise UnknownName("generator", name, WRITERS)
    return WRITERS[name]


def checksum(attacks: Sequence[Attack]) -> str:
    """Return the SHA-256 (hex) of the code that writes and accepts rewrites.

    It is part of a run's identity: after a change of the code, old results must not count as results of the new rules.
    ``earlier.json`` has the checksums of code that wrote the same, which stay those of its runs.
    """
    files = {Path(str(module.__file__)) for module in (amounts, edits, language, lexicon, plain_text)}
    for module_file in (__file__, constraints.__file__, fidelity.__file__):
        folder = Path(str(module_file)).parent
        files.update(*(folder.glob(pattern) for pattern in ("*.py", "*.toml")))
    for attack in (part for one in attacks for part in one.parts or (one,)):
        rule: Any = attack.write or attack.rewrite
        code: Any = rule.func if isinstance(rule, partial) else rule
        code = code if isroutine(code) else type(code)
        source = Path(__file__)
        with suppress(TypeError):  # built-in code has no file
            source = Path(getsourcefile(code) or __file__)
        # Shipped attacks share the helpers in their folder.
        is_shipped = str(code.__module__).startswith("distract.")
        files.update(chain(source.parent.glob("*.py"), source.parent.glob("*.toml")) if is_shipped else [source])
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda path: (path.name, path.parent.name)):
        digest.update(file.read_bytes())
    earlier = json.loads((Path(__file__).parent / "earlier.json").read_text(encoding="utf-8"))
    return str(earlier.get(digest.hexdigest(), digest.hexdigest()))
