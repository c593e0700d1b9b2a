"""Reopen a run: load its data and the manner of its judge, and check that a model is the one that it asked.

Any difference is reported before anything is paid for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from distract.core import registry
from distract.core.errors import DataError, UsageError
from distract.core.records import Case
from distract.core.runs import LoadedRun
from distract.data import datasets
from distract.judging.orders import Manner
from distract.models.opener import OWN_KEY
from distract.models.options import flag
from distract.models.server.addresses import OPENAI
from distract.studies.attack.flips import Flip
from distract.studies.project import check_recorded, locate_prompt

_OPTIONS: Mapping[str, str] = {
    **{name: flag(name) for name in ("engine", "revision", "dtype", "quantization", "max_length", "tensor_parallel")},
    "server": flag("base_url"),
    "version": flag("judge_version"),
}
"""The option that sets each part of a model's identity."""


def reopen_case(run: LoadedRun, name: str, data: str | None, responses: Sequence[str]) -> Case:
    """Return a case of a run: from its folder, or from the data if they are named or the folder has no cases."""
    if responses and data is None:
        raise UsageError("--responses needs --data")
    if data is None and (recorded := next((case for case in run.cases if case.id == name), None)):
        return recorded
    source = {"data": run.parameters["data"]["name"], "responses": [], **(run.source or {})}
    spec, files = (source.get("data"), source.get("responses")) if data is None else (data, list(responses))
    if not isinstance(spec, str) or not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise DataError("does not record where the data are; name them with --data", path=run.path / "run.json")
    if data is None:
        for place in (spec, *files):
            check_recorded(run.path, "data", place)
    try:
        loaded = datasets.load(spec, files, run.parameters["seed"])
    except UsageError as error:
        if data is not None:
            raise
        raise UsageError(f"{error}; name the data of {run.path} with --data") from error
    if loaded.checksum != run.parameters["data"].get("sha256"):
        raise DataError(f"differs from the data of {run.path} (other checksum); name those with --data", path=spec)
    case = next((case for case in loaded.cases if case.id == name), None)
    if case is None:
        raise DataError(f"holds no case {name!r}, although its checksum is that of the run", path=spec)
    return case


def load_protocols(run: LoadedRun, named: Iterable[str]) -> list[str]:
    """Load those protocols that are named by files of the user's own, and return the names of all."""
    names, recorded = list[str](), _read_own_code(run)
    for name in named:
        if registry.is_own(name):
            file, protocol = name, registry.get_protocol(name)
            name = protocol.name
            if name in run.parameters["protocols"] and recorded.get(name) != registry.code_checksum(protocol):
                raise UsageError(f"{file}: has changed since {run.path} used it; run the attack again")
        names.append(name)
    return names


def locate_protocols(run: LoadedRun, flips: Iterable[Flip]) -> list[str]:
    """Locate the files of a run's protocols, if any of these flips is by one."""
    files = (run.source or {}).get("files")
    paths = files.get("distract.judges") if isinstance(files, dict) else None
    if not isinstance(paths, list) or _read_own_code(run).keys().isdisjoint(flip.protocol for flip in flips):
        return []
    return [locate_prompt(run.path, str(path)) for path in paths]


def _read_own_code(run: LoadedRun) -> Mapping[str, object]:
    own = run.parameters.get("own_code")
    return own if isinstance(own, dict) else {}


def restore_manner(run: LoadedRun) -> Manner:
    """Return how the judge of a run was asked."""
    try:
        return Manner(**run.parameters["manner"])
    except (KeyError, TypeError, UsageError) as error:
        raise DataError(f"does not record how the judge was asked ({error!r})", path=run.path / "run.json") from error


def reference_model(run: LoadedRun) -> tuple[str, object] | None:
    """Return the name and identity of a run's reference model, if it had one."""
    reference = run.parameters.get("reference")
    if reference is None:
        return None
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str):
        raise DataError("does not record which reference model was asked", path=run.path / "run.json")
    return reference["name"], reference.get("model")


def choose_model(run: LoadedRun, option: str, name: str, typed: Mapping[str, str], address: str | None) -> str:
    """Choose what the user names with an option, else the model that the run names, which may be a stranger's."""
    if option in typed:
        return typed[option]
    check_recorded(run.path, option.replace("_", "-"), name)
    check_server(run, name, address)
    return name


def check_server(run: LoadedRun, name: str, address: str | None) -> None:
    """Fail if the server is not named, before looking for a key that may belong to another one.

    The run does not supply it: whoever made the run would learn the key.
    """
    identities = [run.parameters.get("identity"), (run.parameters.get("reference") or {}).get("model")]
    servers = {
        identity["server"]
        for identity in identities
        if isinstance(identity, dict) and isinstance(identity.get("server"), str)
    }
    if name.startswith("openai:") and address is None and servers and OPENAI not in servers:
        raise UsageError(f"{name} ran at {', '.join(sorted(servers))}; name it with --base-url")
    if name.startswith(("http:", "https:")) and address is None and os.environ.get(OWN_KEY):
        server = name.partition("#")[0]
        raise UsageError(f"the run names the server {server}; to send it the key in {OWN_KEY}, add --base-url {server}")


def check_same(run: LoadedRun, name: str, recorded: object, identity: Mapping[str, str]) -> None:
    """Fail if a model is not the one that a run asked."""
    if not isinstance(recorded, dict):
        raise UsageError(f"{run.path}: does not record which model it asked; run it again")
    if differ := {key for key in recorded.keys() | identity.keys() if recorded.get(key) != identity.get(key)}:
        changes = "; ".join(
            f"{key} was {recorded.get(key, 'none')}, is now {identity.get(key, 'none')}" for key in sorted(differ)
        )
        hint = "its results do not apply to another model"
        if differ <= _OPTIONS.keys():
            hint = f"set it with {', '.join(_OPTIONS[key] for key in sorted(differ))}"
        raise UsageError(f"{name} is not the model that {run.path} asked: {changes}; {hint}")
