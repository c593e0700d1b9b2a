"""How a run was made: what anyone needs to make it again, or to doubt it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from distract.core import registry
from distract.core.printable import line
from distract.core.runs import LoadedRun, read_json
from distract.report.blocks import Block, Heading, Note, Table


def list_methods(parameters: Mapping[str, Any]) -> dict[str, str]:
    """List the ways of asking and the attacks of a run, each with its description if it is installed."""
    treatments = (*(parameters.get("attacks") or ()), *(parameters.get("degradations") or ()))
    kinds = (
        ("way of asking", parameters["protocols"], registry.protocols()),
        ("attack", treatments, registry.attacks()),
    )
    return {
        f"{kind}: {name}": plugins[name].summary if name in plugins else "not installed"
        for kind, names, plugins in kinds
        for name in names
    }


def describe_judge(run: LoadedRun) -> dict[str, Any]:
    """Return what identifies the judge of a run."""
    identity = run.parameters.get("identity")
    own = {f"judge: {name}": value for name, value in sorted(identity.items())} if isinstance(identity, dict) else {}
    return {"judge": run.parameters["judge"], **own}


def describe_versions(run: LoadedRun) -> dict[str, str]:
    """Return the versions that made a run, if it holds them."""
    versions = read_json(run.path / "run.json").get("versions")
    if not isinstance(versions, dict):
        return {}
    return {"versions": ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))}


def list_data_sets(run: LoadedRun) -> list[dict[str, Any]]:
    """Return the record of each data set of a run, with the number of cases drawn."""
    data = run.parameters["data"]
    return data if isinstance(data, list) else [{**data, "drawn": run.parameters.get("limit")}]


def origin_blocks(run: LoadedRun) -> Iterator[Block]:
    """Show versions, model, data, seed and checksums of a run."""
    p = run.parameters
    manifest = {} if run.flaw else read_json(run.path / "manifest.json")
    values = {"command": manifest.get("command") or f"distract {run.command}", **describe_judge(run)}
    for one in list_data_sets(run):
        values[f"data {one['name']}"] = f"{one['cases']} cases, sha256 {one.get('sha256', 'unknown')}"
    values |= {name: p[name] for name in ("limit", "seed", "generator") if name in p}
    values |= list_methods(p)
    checksums = manifest.get("checksums")
    for name in ("rows.jsonl", "summary.json"):
        if isinstance(checksums, dict) and name in checksums:
            values[name] = f"sha256 {checksums[name]}"
    values |= describe_versions(run)
    yield Heading("How it was made", level=2)
    yield Note(run.origin if not run.flaw else run.flaw, apart=False)
    rows = [("", line(str(name)), line(str(value))) for name, value in values.items()]
    yield Table("", ("", ""), rows)
