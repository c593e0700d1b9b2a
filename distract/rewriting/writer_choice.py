"""Choose the writer of a run, and describe it for the run's identity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from distract.core.attack import Attack
from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.printable import line
from distract.core.prompts import Prompt
from distract.core.records import Role
from distract.rewriting import writers
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import Writer

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier


NONE = "none"
"""The name that turns the verifier off."""


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
        from distract.rewriting.generator import make_generator

        return make_generator(str(name), options)
    writer = writers.find_writer(name or ("recorded" if is_recorded else "rules"))
    unwritable = [one.name for one in attacks if one.asks and (one in absent or writer.name == "rules")]
    if unwritable:
        raise UsageError(f"{unwritable[0]} needs a model that writes; name one with --generator")
    by_rule = frozenset(one.name for one in absent if name is None or one.prompt is None)
    return replace(writer, by_rule=by_rule) if writer.name == "recorded" else writer


def name_verifier(generator: str | None, name: str | None) -> str | None:
    """Name the model that reads: by default the one that writes."""
    is_model = generator is not None and generator not in writers.WRITERS
    return generator if name is None and is_model else None if name == NONE else name


def choose_verifier(name: str | None, options: GeneratorOptions) -> Verifier | None:
    """Make the verifier of a run."""
    if not name:
        return None
    from distract.rewriting.verifier import Verifier

    return Verifier(name, options.verifier_threshold)


def describe_writers(writer: Writer, verifier: Verifier | None) -> str:
    """Name who wrote the rewrites and who read them."""
    reader = f", read by {line(verifier.name)}" if verifier else ", read by no model" if writer.is_model else ""
    return line(writer.name) + reader


def describe_writer(
    writer: Writer,
    options: GeneratorOptions,
    verify: Verifier | None,
    models: Mapping[Role, Backend],
    attacks: Sequence[Attack],
) -> dict[str, Any]:
    """Describe everything that affects the writing and acceptance of rewrites, for the run's record."""
    return {
        "generator": writer.name,
        "asking": {**options.parameters, "model": _identity(models, "generator")} if "generator" in models else None,
        "verifier": {**asdict(verify), "model": _identity(models, "verifier")} if verify else None,
        "writing": writers.checksum(attacks),
        "prompts": {prompt.name: prompt.checksum for prompt in _prompts(attacks, models)},
    }


def _identity(models: Mapping[Role, Backend], role: Role) -> dict[str, str]:
    return dict(models[role].identity)


def _prompts(attacks: Sequence[Attack], models: Mapping[Role, Backend]) -> list[Prompt]:
    own = [attack.prompt for attack in attacks if attack.prompt] if "generator" in models else []
    if "verifier" in models:
        from distract.rewriting.verifier import SENTENCE

        own.append(SENTENCE)
    return own
