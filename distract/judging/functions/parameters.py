"""The parameters of a judge function: which texts it takes, by the names that evaluators use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from distract.core.errors import UsageError, describe_error

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
