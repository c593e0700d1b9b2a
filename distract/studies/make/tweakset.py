"""A question with format constraints apart, an answer that meets them, and answers that break one, two and three.

After IFEval-TweakSet (Distracted evaluation 3.1 and 3.2): three easy, non-conflicting format instructions in random
order, compliance checked by string rules, severity s breaks s of them. The compliant answer comes from a generator
model, the worse ones from it by rule. It does not know whether an answer is any good, only what format it has.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.plan import Attack, Plan
from distract.core.prompts import Prompt, load
from distract.core.records import Case, Evidence, Message, Response, slug
from distract.data.constraints import check, describe
from distract.data.formats.ifeval import ConstrainedPrompt
from distract.data.prompt_parts import split_prompt
from distract.rewriting.fidelity import inspect
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import apply_rule
from distract.studies.make.attempts import BROKEN, MakeResult, ask_generator, check_author, feedback
from distract.studies.make.constraint_sets import choose_constraints

SOURCE = "make-tweakset"
SEVERITIES = (1, 2, 3)
LENGTH = 1200
"""Characters of an answer that is not short; one that goes on for two and a half times that ends there."""

_NO_ANSWER = ("refusal", "comment about the task")


def prompt_file() -> Prompt:
    """The prompt file that is used."""
    return load("distract.studies.make", "compliant")


NOT_SPLIT = "question and format cannot be told apart"


def is_usable(prompt: ConstrainedPrompt) -> bool:
    """Whether a prompt can be split into its question and its format, which needs no generator."""
    return split_prompt(prompt.text, prompt.constraints) is not None


def make_tweak(
    prompt: ConstrainedPrompt, asking: GeneratorOptions, author: str, seed: int, wanted: int = 3
) -> Plan[MakeResult]:
    """Make a case with format constraints from a prompt that holds some (Distracted evaluation 3.1 and 3.2)."""
    if wanted < 1:
        raise UsageError(f"wanted {wanted}: expected a number of constraints from 1")
    check_author(author, [_author_name(severity) for severity in SEVERITIES])
    question = split_prompt(prompt.text, prompt.constraints)
    if question is None:
        return MakeResult(None, (NOT_SPLIT,))
    chosen = choose_constraints(question, prompt.constraints, wanted, random.Random(_derive_seed(seed, prompt.id)))
    if chosen is None:
        return MakeResult(None, (f"no {wanted} easy constraints go together",))
    constraints, asked_of = chosen.ordered, question
    broken = {f"{BROKEN}: {c.kind}": describe(c) for c in constraints}
    requirements = "\n".join(f"{number}. {describe(c)}" for number, c in enumerate(constraints, 1))

    def fill(reasons: tuple[str, ...]) -> tuple[Message, ...]:
        slots = {"question": asked_of, "requirements": requirements, "feedback": feedback(reasons, broken)}
        return prompt_file().fill(slots)

    def read(text: str) -> Plan[tuple[str, tuple[str, ...]]]:
        yield from ()
        reasons = [f"{BROKEN}: {c.kind}" for c in constraints if not check(c, text)]
        # Beside no answer at all, only what is said apart from one counts.
        said = inspect((asked_of,), ("",), (text,))[0]
        return text, (*reasons, *(reason for reason in said if slug(reason) in _NO_ANSWER))

    asked = yield from ask_generator(fill, read, asking, seed, like=" " * LENGTH)
    evidence: Evidence = (
        ("attempts", asked.attempts),
        ("generator", author),
        ("kept", ", ".join(c.kind for c in chosen.kept)),
        ("added", ", ".join(c.kind for c in chosen.added)),
    )
    if asked.value is None:
        return MakeResult(None, asked.reasons, evidence)
    good = Response(author, (asked.value,))
    name = f"tweak-{prompt.id}"
    case = Case(name, (question,), (good,), preferred=author, constraints=constraints, source=SOURCE)
    worse, reasons, found = _make_worse(case, good, seed)
    evidence = (*evidence, ("words", len(good.text.split())), *found)
    if not worse:
        return MakeResult(None, reasons, evidence)
    return MakeResult(replace(case, responses=(good, *worse)), reasons, evidence)


def _author_name(severity: int) -> str:
    return f"low-{severity}"


def _make_worse(case: Case, good: Response, seed: int) -> tuple[list[Response], tuple[str, ...], Evidence]:
    """The answers of each severity that are what they say, why others are not, and what each breaks; none without 1."""
    by_severity: dict[int, Attack] = {}
    for attack in registry.attacks().values():
        if attack.severity is not None:
            by_severity.setdefault(attack.severity, attack)
    worse: list[Response] = []
    wrong: list[str] = []
    evidence: list[tuple[str, float | int | str]] = []
    for severity in SEVERITIES:
        found: tuple[str, ...] = (f"no attack makes it or fewer than {severity} constraints",)
        if severity in by_severity and severity <= len(case.constraints):
            attack = by_severity[severity]
            text = apply_rule(attack, case, good.text, _derive_seed(seed, f"{case.id}\x1e{attack.name}"))
            found, measured = inspect(case.prompt, good.turns, (text,), case.constraints, severity=severity)
            if not found:
                worse.append(Response(_author_name(severity), (text,), severity=severity))
                evidence.append((f"severity_{severity}_breaks", dict(measured)["constraints_broken"]))
                continue
        if severity == 1:
            return [], (f"no severity 1: {'; '.join(found)}",), ()
        wrong.append(f"severity {severity} left out: {'; '.join(found)}")
    return worse, tuple(wrong), tuple(evidence)


def _derive_seed(seed: int, name: str) -> int:
    """A number that depends on both, and not on how a process hashes."""
    return int.from_bytes(hashlib.sha256(f"{seed}\x1e{name}".encode()).digest()[:4], "big")
