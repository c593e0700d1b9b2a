"""Read a gate's limits from a project's settings; anything wrong there gives a one-line error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core import registry
from distract.core.errors import DataError, UsageError
from distract.studies.attack.outcomes import FAILURES
from distract.studies.gate.limits import AMOUNTS, LIMITS, Limits
from distract.studies.gate.measures import RATES, Measure, find_rate
from distract.studies.project import (
    MAX_NUMBER,
    SHARED_FILE,
    check_name,
    check_typo,
    describe_value,
    find_project,
    read_project,
    setting_error,
)

NAME = "gate"
SPECIFIC = "max-flip-rates"

FIELDS: Mapping[str, str] = {**{name.replace("_", "-"): name for name in LIMITS}, SPECIFIC: "others"}
"""The names of settings, and the fields of ``Limits`` that they set."""

_KINDS: Mapping[str, tuple[type[float], str]] = {
    **dict.fromkeys(AMOUNTS, (float, "a number from 0, such as 0.5")),
    "min_n": (int, "a whole number from 1, such as 30"),
}
"""The type of each setting and what it should be; others are shares."""


def load_settings(path: Path | None = None) -> dict[str, Any]:
    """Load the limits of a project, by the names of ``Limits``' fields: its table for the gate or for all commands."""
    try:
        file = path or find_project()
    except OSError as error:
        problem = f"the current folder and those above it cannot be searched: {error.strerror}; name a file (--config)"
        raise DataError(problem, path=SHARED_FILE) from error
    if file is None:
        return {}
    project = read_project(file)
    own = project.command(NAME)
    if path is not None and own is None:
        raise DataError(f"expected a table [{'.'.join(project.at(NAME))}]; add it, or name another file", path=path)
    values: dict[str, Any] = {}
    for at, table in ((project.at(), project.table), (project.at(NAME), own or {})):
        for key, value in table.items():
            check_typo(file, (*at, key), "setting", key, FIELDS)
            if key in FIELDS:
                values[FIELDS[key]] = _read_value(file, (*at, key), value)
    return values


def merge_limits(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> Limits:
    """Combine limits: the command line overrides the file, which overrides the defaults."""
    values = dict(settings)
    replaced = {measure for measure, rate in RATES.items() if rate.limit in overrides}
    if replaced and "others" in values:
        values["others"] = {name: rate for name, rate in values["others"].items() if not _list_rates(name) <= replaced}
    return Limits(**{**values, **overrides})


def _list_rates(name: str) -> set[Measure]:
    """List the rates that a specific threshold is for."""
    part = name.rpartition("/")[2]
    if part in registry.protocols():
        return {"flip_rate"}
    group, _, truth = part.partition(":")
    if group == "all":
        return {find_rate(truth)}
    attacks = [one for one in registry.attacks().values() if part in (one.name, f"family:{one.family}")]
    return {find_rate(attack.truth) for attack in attacks if attack.truth in FAILURES}


def _read_value(path: Path, at: tuple[str, ...], value: object) -> Any:
    if at[-1] != SPECIFIC:
        return _check_value(path, at, FIELDS[at[-1]], value)
    if not isinstance(value, dict):
        raise setting_error(
            path, at, f"expected a table of shares by protocol and attack, found {describe_value(value)}"
        )
    for name in value:
        _check_name(path, (*at, name), name)
    return MappingProxyType(
        {name: _check_value(path, (*at, name), "max_flip_rate", rate) for name, rate in value.items()}
    )


def _check_value(path: Path, at: tuple[str, ...], field: str, value: object) -> Any:
    """Check a value; ``Limits`` knows the ranges."""
    if field == "certify":
        if not isinstance(value, bool):
            raise setting_error(path, at, f"expected true or false, found {describe_value(value)}")
        return value
    kind, expectation = _KINDS.get(field, (float, "a share, such as 0.10"))
    if isinstance(value, bool) or not isinstance(value, int | kind) or abs(value) >= MAX_NUMBER:
        raise setting_error(path, at, f"expected {expectation}, found {describe_value(value)}")
    limit: Any = kind(value)
    try:
        Limits(**{field: limit})
    except UsageError as error:
        expected, semicolon, instead = str(error).rpartition(": expected ")[2].partition(";")
        raise setting_error(
            path, at, f"expected {expected}, found {describe_value(value)}{semicolon}{instead}"
        ) from None
    return limit


def _check_name(path: Path, at: tuple[str, ...], name: str) -> None:
    """Fail on anything but a protocol, an attack or group of attacks with a rate that the gate checks, or both."""
    protocols, attacks = registry.protocols(), registry.attacks()
    gated = {name: attack for name, attack in attacks.items() if attack.truth in FAILURES}
    protocol, slash, attack = name.partition("/")
    if slash:
        check_name(path, at, "protocol", protocol, protocols)
    part, kind = (attack, "attack") if slash else (name, "protocol or attack")
    if part in attacks and part not in gated:
        why = "is a control" if attacks[part].control else "lowers the quality on purpose"
        raise setting_error(path, at, f"{part!r} {why}, so the gate does not check its rate; remove it")
    group, colon, value = part.partition(":")
    if colon and group in ("all", "family"):
        families = {attack.family for attack in gated.values()}
        check_name(path, at, *(("truth", value, FAILURES) if group == "all" else ("family", value, families)))
    else:
        check_name(path, at, kind, part, {*gated, *(() if slash else protocols)})
