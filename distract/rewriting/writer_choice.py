"""Choose the writer of a run, and describe it for the run's identity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distract.core.attack import Attack
from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.prompts import Prompt
from distract.core.records import Role
from distract.rewriting import verifier, writers
from distract.rewriting.generator import make_generator
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import Writer


def choose_writer(
    name: str | None,
    options: GeneratorOptions,
    models: Mapping[Role, Backend],
    is_recorded: bool,
    attacks: Collection[Attack],
    absent: Collection[Attack],
) -> Writer:
    """Choose the writer: the model, or the writer with this name, or a default that suits the data.

    ``absent`` lists the attacks that the data do not record. Rules write them too by default, and always those that no
    model can write.
    """
    if "generator" in models:
        return make_generator(str(name), options)
    writer = writers.find_writer(name or ("recorded" if is_recorded else "rules"))
    unwritable = [one.name for one in attacks if one.asks and (one in absent or writer.name == "rules")]
    if unwritable:
        raise UsageError(f"{unwritable[0]} needs a model that writes; name one with --generator")
    by_rule = frozenset(one.name for one in absent if name is None or one.prompt is None)
    return replace(writer, by_rule=by_rule) if writer.name == "recorded" else writer


def describe_writer(
    writer: Writer,
    options: GeneratorOptions,
    verifier_name: str | None,
    models: Mapping[Role, Backend],
    attacks: Sequence[Attack],
) -> dict[str, Any]:
    """Describe everything that affects the writing and acceptance of rewrites, for the run's record."""
    return {
        "generator": writer.name,
        "asking": {**options.parameters, "model": _identity(models, "generator")} if "generator" in models else None,
        "verifier": {"name": verifier_name, "model": _identity(models, "verifier")} if verifier_name else None,
        "writing": writers.checksum(attacks),
        "prompts": {prompt.name: prompt.checksum for prompt in _prompts(attacks, models)},
    }


def _identity(models: Mapping[Role, Backend], role: Role) -> dict[str, str]:
    return dict(models[role].identity)


def _prompts(attacks: Sequence[Attack], models: Mapping[Role, Backend]) -> list[Prompt]:
    own = [attack.prompt for attack in attacks if attack.prompt] if "generator" in models else []
    return [*own, *([verifier.PROMPT] if "verifier" in models else [])]
