"""A question and its format constraints, an answer that meets them, and answers that break one, two and three.

After IFEval-TweakSet (Distracted evaluation 3.1 and 3.2): three easy, non-conflicting format instructions in random
order, compliance checked by string rules, severity s breaks s of them. The compliant answer comes from a generator
model, the worse ones from it by rule. Only the format is checked, not the content.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.prompts import Prompt, load
from distract.core.records import Case, Evidence, Response
from distract.data.constraints import check, describe
from distract.data.formats.reader import ConstrainedPrompt
from distract.data.prompt_parts import split_prompt
from distract.rewriting.attack_calls import apply_rule
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.claims import find_remarks
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.make.attempts import BROKEN, MakeResult, ask_generator, check_author
from distract.studies.make.constraint_sets import choose_constraints

SOURCE = "make-tweakset"
SEVERITIES = (1, 2, 3)
LENGTH = 1200
"""Number of characters of a long answer; an answer is cut off at two and a half times that."""

NOT_SPLIT = "question and format cannot be told apart"


def prompt_file() -> Prompt:
    """Load the prompt."""
    return load("distract.studies.make", "compliant")


def make_tweak(
    prompt: ConstrainedPrompt, asking: GeneratorOptions, author: str, seed: int, size: int = 3
) -> Plan[MakeResult]:
    """Make a case with ``size`` format constraints from a prompt with some (Distracted evaluation 3.1 and 3.2)."""
    if size < 1:
        raise UsageError(f"size {size}: expected a number of constraints from 1")
    check_author(author, [_author_name(severity) for severity in SEVERITIES])
    question = split_prompt(prompt.text, prompt.constraints)
    if question is None:
        return MakeResult(None, (NOT_SPLIT,))
    choice = choose_constraints(question, prompt.constraints, size, random.Random(_derive_seed(seed, prompt.id)))
    if choice is None:
        return MakeResult(None, (f"no {size} easy constraints go together",))
    constraints, turns = choice.ordered, (question,)
    requirements = "\n".join(f"{number}. {describe(c)}" for number, c in enumerate(constraints, 1))

    def read(text: str) -> Plan[tuple[str, tuple[str, ...]]]:
        yield from ()
        broken = [f"{BROKEN}: {c.kind}" for c in constraints if not check(c, text)]
        # There is no original to compare with, so only reasons about the text itself count.
        faults = find_remarks("", text)
        return text, (*broken, *faults)

    slots = {"question": question, "requirements": requirements}
    meanings = {f"{BROKEN}: {c.kind}": describe(c) for c in constraints}
    plan = ask_generator(prompt_file(), slots, read, asking, seed, " " * LENGTH, meanings)
    answer, reasons, attempts = yield from plan
    evidence: Evidence = (
        ("attempts", attempts),
        ("generator", author),
        ("kept", ", ".join(c.kind for c in choice.kept)),
        ("added", ", ".join(c.kind for c in choice.added)),
    )
    if answer is None:
        return MakeResult(None, reasons, evidence)
    good = Response(author, (answer,))
    name = f"tweak-{prompt.id}"
    case = Case(name, turns, (good,), preferred=author, constraints=constraints, source=SOURCE)
    worse, reasons, broken = _make_worse(case, good, seed)
    evidence = (*evidence, ("words", len(good.text.split())), *broken)
    return MakeResult(replace(case, responses=(good, *worse)) if worse else None, reasons, evidence)


def _author_name(severity: int) -> str:
    return f"low-{severity}"


def _make_worse(case: Case, good: Response, seed: int) -> tuple[list[Response], tuple[str, ...], Evidence]:
    """Make an answer for each severity, or none if severity 1 fails; also return reasons and broken constraints."""
    by_severity: dict[int, Attack] = {}
    for attack in registry.attacks().values():
        if attack.severity is not None:
            by_severity.setdefault(attack.severity, attack)
    worse: list[Response] = []
    omissions: list[str] = []
    evidence: list[tuple[str, float | int | str]] = []
    for severity in SEVERITIES:
        faults: tuple[str, ...] = (f"no attack makes it or fewer than {severity} constraints",)
        if severity in by_severity and severity <= len(case.constraints):
            attack = by_severity[severity]
            text = apply_rule(attack, case, good.text, _derive_seed(seed, f"{case.id}\x1e{attack.name}"))
            faults, measured, _ = inspect(case.prompt, good.turns, (text,), case.constraints, severity=severity)
            if not faults:
                worse.append(Response(_author_name(severity), (text,), severity=severity))
                evidence.append((f"severity_{severity}_breaks", dict(measured)["constraints_broken"]))
                continue
        if severity == 1:
            return [], (f"no severity 1: {'; '.join(faults)}",), ()
        omissions.append(f"severity {severity} left out: {'; '.join(faults)}")
    return worse, tuple(omissions), tuple(evidence)


def _derive_seed(seed: int, name: str) -> int:
    # Unlike hash(), the same in every process.
    return int.from_bytes(hashlib.sha256(f"{seed}\x1e{name}".encode()).digest()[:4], "big")
