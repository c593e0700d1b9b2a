"""The control that belongs to an attack: it changes as much, in the same way, but nothing that a judge should see.

A model that rewrites leaves its own wording, which only a rewrite by the same model shares. Rules change few words or
add a sentence; so do the placebos. What an attack does beyond its control is its own effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from distract.core import registry
from distract.core.attack import Attack
from distract.core.printable import line
from distract.core.records import Case
from distract.report.phrases import join_names, list_few
from distract.rewriting.writers import Writer
from distract.studies.eligibility import is_recorded


def find_control(attack: Attack, writer: Writer, attacks: Iterable[Attack]) -> str | None:
    """Find the control of an attack among others, by what they declare; None if it needs none or there is none."""
    if attack.control or attack.truth in ("hollow", "worse"):
        return None  # an answer without content, or a worse one, is compared with the right verdict
    controls = [one for one in attacks if one.control]
    is_ruled = writer.writer_of(attack).name == "rules"
    asking = [] if is_ruled else [one for one in controls if one.asks]
    is_wrapper = attack.keeps == "text"
    placebos = [one for one in controls if one.placebo and (one.keeps == "text") == is_wrapper]
    return next((one.name for one in (*asking, *placebos)), None)


def list_controls(attacks: Collection[Attack], writer: Writer, cases: Sequence[Case]) -> list[Attack]:
    """List the installed controls that belong to some attacks, as far as the writer can write them."""
    usable = [one for one in registry.attacks().values() if not one.asks or writer.is_model or is_recorded(one, cases)]
    names = {find_control(attack, writer, usable) for attack in attacks}
    return [one for one in usable if one.name in names]


def match_controls(attacks: Collection[Attack], writer: Writer) -> dict[str, str]:
    """Return the control of each attack of a run that has one."""
    pairs = ((attack.name, find_control(attack, writer, attacks)) for attack in attacks)
    return {name: control for name, control in pairs if control is not None}


def describe_controls(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Say which control belongs to which attacks, in one line; nothing without ``--control``."""
    control_of: Mapping[str, str] | None = parameters.get("control_of")
    if control_of is None or not parameters["controls"]:
        return
    attacks_of: dict[str, list[str]] = {}
    for attack, control in sorted(control_of.items()):
        attacks_of.setdefault(control, []).append(attack)
    parts = [f"{line(control)} for {list_few(names, 'attack')}" for control, names in sorted(attacks_of.items())]
    others = [line(name) for name in parameters["controls"] if name not in attacks_of]
    yield f"controls: {'; '.join([*parts, f'{join_names(others)} for all'] if others else parts)}"
