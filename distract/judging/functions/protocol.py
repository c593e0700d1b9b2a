"""The parameters of a judge function, by the names that evaluators use, and the protocol that it brings.

Its arguments are the request, and its return value is the verdict.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any

from distract.core.errors import UsageError, describe_error
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Case, Judgment, Message, Request, Response, Slots, dump_json
from distract.judging import instructions
from distract.judging.case_texts import state_criterion, state_question, state_reference
from distract.judging.functions import verdicts
from distract.judging.functions.declaration import JudgeFunction
from distract.judging.verdicts import compare_graded

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "input", "inputs"),
    "response_a": ("response_a", "a"),
    "response_b": ("response_b", "b"),
    "response": ("response", "output", "outputs"),
    "reference": ("reference", "expected", "reference_outputs"),
    "criterion": ("criterion",),
}
"""The names of parameters for each text."""

_TEXTS = {name: text for text, names in NAMES.items() for name in names}
_KNOWN = ", ".join(NAMES)


@dataclass(frozen=True, slots=True)
class Binding:
    """Where each text goes in a call."""

    positional: tuple[str, ...]  # texts of positional-only parameters, in order
    keywords: tuple[tuple[str, str], ...]  # parameter and text
    required: frozenset[str]  # texts without a default

    @property
    def texts(self) -> frozenset[str]:
        """Every text that the function takes."""
        return frozenset((*self.positional, *(text for _, text in self.keywords)))

    @property
    def compares(self) -> bool:
        """Whether it takes two responses."""
        return "response_a" in self.texts

    def arrange(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arrange texts as the arguments of a call."""
        keywords = {name: values[text] for name, text in self.keywords if text in values}
        return [values[text] for text in self.positional if text in values], keywords


def bind(function: Callable[..., Any], name: str) -> Binding:
    """Find out which texts a function takes; ``name`` is for messages."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{name}: its parameters cannot be read ({describe_error(error)}); wrap it in a def"
        ) from error
    positional, keywords, required = list[str](), list[tuple[str, str]](), set[str]()
    for parameter in parameters:
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        text = _TEXTS.get(parameter.name)
        is_required = parameter.default is Parameter.empty
        if text is None and is_required:
            raise UsageError(
                f"{name}: parameter {parameter.name!r} stands for nothing; rename it to one of {_KNOWN}, or give it a "
                "default"
            )
        if text is None:
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                break  # nothing after it can be passed
            continue
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            positional.append(text)
        else:
            keywords.append((parameter.name, text))
        if is_required:
            required.add(text)
    binding = Binding(tuple(positional), tuple(keywords), frozenset(required))
    sides = binding.texts & {"response_a", "response_b"}
    if not sides and "response" not in binding.texts:
        raise UsageError(f"{name}: takes no response; give it the parameters response_a and response_b, or response")
    if len(sides) == 1:
        raise UsageError(f"{name}: takes {min(sides)} alone; give it both response_a and response_b, or response")
    if sides and "response" in binding.texts:
        raise UsageError(f"{name}: takes response beside response_a and response_b; keep one form")
    return binding


NAME = "function"
WINNERS = tuple(
    (place, dump_json({"winner": word})) for place, word in (("first", "A"), ("second", "B"), ("tie", "tie"))
)
LEVELS = 10
"""Steps of the scale that a planted judge can give; an open end counts as this far from the other or from 0."""


def make_protocol(function: JudgeFunction, binding: Binding) -> Protocol:
    """Make the protocol of a function."""

    def compare(comparison: Comparison) -> Plan[Judgment]:
        pair = {"response_a": comparison.first, "response_b": comparison.second}
        (reply,) = yield [_request(binding, comparison.case, pair, WINNERS)]
        return verdicts.judge_pair(reply)

    def score(comparison: Comparison) -> Plan[Judgment]:
        pair = (comparison.first, comparison.second)
        replies = yield [_request(binding, comparison.case, {"response": response}, levels) for response in pair]
        first, second = (verdicts.read_grade(reply, function) for reply in replies)
        if isinstance(first, str) or isinstance(second, str):
            return Judgment(None, read="text", failure=first if isinstance(first, str) else second)  # type: ignore[arg-type]
        return compare_graded(first, second)

    levels = _list_levels(function)
    named = partial(
        Protocol,
        name=NAME,
        summary="the function's own verdict",
        reads="text",
        ties=True,
        reference="required" if "reference" in binding.required else "",
        reads_question="question" in binding.texts,
    )
    if binding.compares:
        return named(ask=compare, calls=Calls(1), checksum=hashlib.sha256(NAME.encode()).hexdigest())
    mark = None if function.pass_mark is None else function.mirror(function.pass_mark)
    declared = dump_json([function.scale, function.better, function.pass_mark, *filter(None, [function.criteria])])
    scored = partial(named, orders="none", rules=("score",), scale=_sort_ends(function), pass_mark=mark)
    scored = partial(scored, criteria=tuple(function.spec.weights) if function.spec else ())
    return scored(ask=score, calls=Calls(response=1), checksum=hashlib.sha256(declared.encode()).hexdigest())


def _sort_ends(function: JudgeFunction) -> tuple[float | None, float | None]:
    """Return the ends of a function's scale after its scores are turned so that higher is better."""
    low, high = function.scale
    if function.better == "higher" or (low is not None and high is not None):
        return low, high
    return (None if high is None else -high), (None if low is None else -low)


def _list_levels(function: JudgeFunction) -> tuple[tuple[str, str], ...]:
    """List scores that a planted judge can give in place of the function, from the worst."""
    if function.spec is not None:
        grades = function.spec.grades()
        names = function.spec.weights
        return tuple(
            (level, dump_json({"score": dict.fromkeys(names, grade) if names else grade})) for level, grade in grades
        )
    low, high = function.scale
    low = low if low is not None else min(0.0, 0.0 if high is None else high - LEVELS)
    step = ((high if high is not None else low + LEVELS) - low) / LEVELS
    scores = sorted((low + step * level for level in range(LEVELS + 1)), key=function.mirror)
    return tuple((str(level), dump_json({"score": score})) for level, score in enumerate(scores))


def _request(
    binding: Binding, case: Case, responses: Mapping[str, Response], outcomes: tuple[tuple[str, str], ...]
) -> Request:
    """Request a verdict; the message holds the arguments, so that the key covers all that the function sees."""
    taken = binding.texts
    values: dict[str, str] = {
        name: instructions.format_turns("Assistant", response.turns) for name, response in responses.items()
    }
    if "question" in taken:
        values["question"] = state_question(case)
    if "criterion" in taken:
        values["criterion"] = state_criterion(case)
    if "reference" in taken and case.reference:
        values["reference"] = state_reference(case)
    return Request((Message("user", dump_json(values)),), slots=Slots(case.id, tuple(responses.values()), outcomes))
