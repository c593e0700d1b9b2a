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


def origin_blocks(run: LoadedRun) -> Iterator[Block]:
    """Show versions, model, data, seed and checksums of a run."""
    p = run.parameters
    header = read_json(run.path / "run.json")
    manifest = {} if run.flaw else read_json(run.path / "manifest.json")
    values: dict[str, Any] = {
        "command": manifest.get("command") or f"distract {run.command}",
        "judge": p["judge"],
    }
    identity = p.get("identity")
    if isinstance(identity, dict):
        values |= {f"judge: {name}": value for name, value in sorted(identity.items())}
    sets = p["data"] if isinstance(p["data"], list) else [p["data"]]
    for one in sets:
        values[f"data {one['name']}"] = f"{one['cases']} cases, sha256 {one.get('sha256', 'unknown')}"
    values |= {name: p[name] for name in ("limit", "seed", "generator") if name in p}
    values |= list_methods(p)
    checksums = manifest.get("checksums")
    for name in ("rows.jsonl", "summary.json"):
        if isinstance(checksums, dict) and name in checksums:
            values[name] = f"sha256 {checksums[name]}"
    versions = header.get("versions")
    if isinstance(versions, dict):
        values["versions"] = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    yield Heading("How it was made", level=2)
    yield Note(run.origin if not run.flaw else run.flaw, apart=False)
    rows = [("", line(str(name)), line(str(value))) for name, value in values.items()]
    yield Table("", ("", ""), rows)
