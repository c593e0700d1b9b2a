"""Who rewrites in a run, and what of that is part of the run's identity.

It knows no attack by name and makes no call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from distract.core.backend import Backend
from distract.core.plan import Attack
from distract.core.prompts import Prompt
from distract.core.records import Role
from distract.rewriting import verifier, writers
from distract.rewriting.generator import make_generator as generator_writer
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import Writer


def choose_writer(
    name: str | None, asking: GeneratorOptions, models: Mapping[Role, Backend], on_record: bool
) -> Writer:
    """The writer that is asked for."""
    if "generator" in models:
        return generator_writer(str(name), asking)
    return writers.find_writer(name or ("recorded" if on_record else "rules"))


def describe_writer(
    writer: Writer,
    asking: GeneratorOptions,
    verified_by: str | None,
    models: Mapping[Role, Backend],
    attacks: Sequence[Attack],
) -> dict[str, Any]:
    """Who writes and verifies and how, for the record: whatever changes a rewrite or whether it is accepted."""
    return {
        "generator": writer.name,
        "asking": {**asking.parameters, "model": _identity(models, "generator")} if "generator" in models else None,
        "verifier": {"name": verified_by, "model": _identity(models, "verifier")} if verified_by else None,
        "writing": writers.checksum(attacks),
        "prompts": {prompt.name: prompt.checksum for prompt in _prompts(attacks, models)},
    }


def _identity(models: Mapping[Role, Backend], role: Role) -> dict[str, str]:
    return dict(models[role].identity)


def _prompts(attacks: Sequence[Attack], models: Mapping[Role, Backend]) -> list[Prompt]:
    """The prompt files that the writing uses."""
    used = [attack.prompt for attack in attacks if attack.prompt] if "generator" in models else []
    return [*used, *([verifier.load_prompt()] if "verifier" in models else [])]
