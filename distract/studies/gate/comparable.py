"""Check whether two runs can be compared, and list what differs between them.

A higher flip rate shows that the judge got worse only if nothing else changed, so every other change is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from distract.core.errors import UsageError
from distract.core.printable import count, line
from distract.core.runs import LoadedRun, read_json
from distract.studies.drift import list_served_changes

_SETTINGS = ("judge", "identity", "reference", "manner", "limit", "seed", "generator", "asking", "verifier")
"""Parameters that may differ between compared runs."""

_LONG = 60
"""Maximum number of characters of a setting to show."""


def check_comparable(baseline: LoadedRun, run: LoadedRun) -> list[str]:
    """Fail if two runs cannot be compared; return what differs otherwise."""
    if why := next(_obstacles(baseline, run), None):
        raise UsageError(f"{run.path} cannot be compared with {baseline.path}: {why}")
    return list_changes(baseline, run)


def unusable_reason(run: LoadedRun) -> str | None:
    """Explain why a run does not measure a judge fairly; None if it does."""
    if run.command == "gate":
        return "is a live gate, whose rates are biased because its own flips stop it; name a run of `distract attack`"
    if run.command != "attack":
        return f"is a run of `distract {run.command}`; name one of `distract attack`"
    return f"is not reliable: {run.flaw}" if run.flaw else None


def list_changes(baseline: LoadedRun, run: LoadedRun) -> list[str]:
    """List what differs between two comparable runs, the baseline's value first."""
    return [line(note) for note in (*_differences(baseline, run), *_rewrite_differences(baseline, run))]


def common_names(baseline: LoadedRun, run: LoadedRun) -> tuple[list[str], list[str]]:
    """Return the protocols and attacks of both runs, without controls."""
    old, new = baseline.parameters, run.parameters
    protocols = sorted(new["protocols"].keys() & old["protocols"].keys())
    left = {*old["attacks"]} - {*new["controls"], *old["controls"]}
    return protocols, [name for name in dict.fromkeys(new["attacks"]) if name in left]


def _obstacles(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    if baseline.path.resolve() == run.path.resolve() or run.is_copy_of(baseline) or baseline.is_copy_of(run):
        yield "they are the same run, or one has the replies of the other; name two (`--fresh` asks the judge again)"
    for name, one in (("the baseline", baseline), ("the new run", run)):
        if why := unusable_reason(one):
            yield f"{name} {why}"
    data = [one.parameters["data"] for one in (baseline, run)]
    contents = [(one.get("sha256"), one.get("map")) for one in data]
    if data[0].get("sha256") is None or contents[0] != contents[1]:
        names = ", then ".join(str(one["name"]) for one in data)
        yield f"their data are not the same ({names}); compare runs on one file"
    protocols, attacks = common_names(baseline, run)
    if not protocols:
        listed = f"{_list_names(baseline, 'protocols')}, then {_list_names(run, 'protocols')}"
        yield f"they have no protocol in common ({listed})"
    if not attacks:
        listed = f"{_list_names(baseline, 'attacks')}, then {_list_names(run, 'attacks')}"
        yield f"they have no attack in common besides controls ({listed})"


def _list_names(run: LoadedRun, name: str) -> str:
    return " ".join(run.parameters[name]) or "none"


def _differences(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    before, now = baseline.parameters, run.parameters
    for name in ("protocols", "attacks"):
        if alone := sorted(({*before[name]} ^ {*now[name]}) - {*before["controls"], *now["controls"]}):
            yield f"{name} of one run only, not compared: {', '.join(alone)}"
    for setting in _SETTINGS:
        yield from _setting_changes(setting, before.get(setting), now.get(setting))
    for name in ("prompts", "code"):
        old, new = _as_object(before.get(name)), _as_object(now.get(name))
        if changed := [key for key in sorted(old.keys() & new.keys()) if old[key] != new[key]]:
            yield f"{name} that changed: {', '.join(changed)}"
    yield from _setting_changes("versions", _versions(baseline), _versions(run))
    yield from list_served_changes(baseline.served, run.served)


def _setting_changes(name: str, before: Any, now: Any) -> Iterator[str]:
    """Compare a setting, key by key if it is an object."""
    old, new = (value if isinstance(value, dict) else {"": value} for value in (before, now))
    for key in sorted(old.keys() | new.keys()):
        old_text, new_text = _format_value(old.get(key)), _format_value(new.get(key))
        # The manner repeats the seed of the run.
        if old_text != new_text and (name, key) != ("manner", "seed"):
            yield f"{f'{name}, {key}' if key else name}: {_shorten(old_text)}, then {_shorten(new_text)}"


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _as_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _versions(run: LoadedRun) -> Mapping[str, Any]:
    file = run.path / "run.json"
    return _as_object(read_json(file).get("versions")) if file.exists() else {}


def _rewrite_differences(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    """Report whether the attacks wrote different texts, which may explain a rise as well."""
    attacks = {*common_names(baseline, run)[1]}
    before, now = (
        {
            (rewrite.case, response.author, response.severity, response.attack): response.turns
            for rewrite in loaded.rewrites
            if (response := rewrite.response).attack in attacks and rewrite.is_accepted
        }
        for loaded in (baseline, run)
    )
    common = now.keys() & before.keys()
    if changed := sum(now[key] != before[key] for key in common):
        texts = f"{changed} of {count(len(common), 'rewrite')}"
        yield f"{texts} of both runs differ in their texts: they may explain a rise"
