"""Open the models of a run by name: ``llama-3.3-70b``, ``vllm:FOLDER``, ``openai:MODEL``, ``planted:BIAS`` ...

Opening a model is cheap: weights are loaded and servers called only when a reply is needed that is not stored. A model
that cannot work on this machine is rejected here, before any request is paid for.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import DistractError, UnknownName, UsageError, install_command
from distract.core.records import Role
from distract.core.usage import Price
from distract.models import scripted
from distract.models.catalogue import CatalogueEntry, catalogue, find
from distract.models.fit import check_fit
from distract.models.names import EMBEDDED, ENGINES, FORMS, Target, resolve
from distract.models.options import SETTINGS, Options, check, flag

REPLAY = "replay:"
"""Prefix of judges whose verdicts are stored; such a judge cannot answer new requests."""


@dataclass(frozen=True)
class RunModels:
    """The models of a run."""

    models: dict[Role, Backend]  # a model with several roles is one backend
    notes: tuple[str, ...]  # one line per choice of an engine, with its reason
    prices: Mapping[Role, Price]  # prices of models whose tokens cost money


def list_forms() -> Mapping[str, str]:
    """Every form of a judge's name except those of the catalogue, with one line about it."""
    planted = {f"planted:{name}": f"planted: {line}" for name, (line, _) in scripted.PLANTED.items()}
    stored = {f"{REPLAY}PATH": "stored verdicts, a file or a folder of them; for `distract meta`"}
    return {EMBEDDED: "embedded: SmolLM2-135M-Instruct, a real model that runs on a CPU", **FORMS, **stored, **planted}


def open_models(
    names: Mapping[Role, str | None], options: Options | None = None, no_models: Collection[str] = ()
) -> RunModels:
    """The backends of a run; a model with several roles is loaded once."""
    options = options or Options()
    if (names.get("judge") or "").endswith(".toml"):
        return _open_judge_file(names, options, no_models)
    entries = catalogue(options.catalogue)
    chosen = {
        role: name
        for role, name in names.items()
        if name is not None and not (role == "generator" and name in no_models)
    }
    targets: dict[str, Target] = {}
    for role, name in chosen.items():
        if role != "judge" and name.startswith("planted:"):
            raise UsageError(f"{name} reads structure instead of text, so it cannot be a {role}; name a model")
        if name.startswith(REPLAY):
            raise UsageError(f"{name}: stored verdicts cannot answer new requests; use them with `distract meta`")
        try:
            targets[name] = targets.get(name) or resolve(name, _role_options(role, options), entries)
        except UnknownName as error:
            raise UnknownName(role, name, _list_names(role, entries, no_models), instead=error.instead) from error
    check(options, {name: target.engine for name, target in targets.items()}, chosen.get("judge"))
    opened: dict[Target, Backend] = {}
    for role, name in chosen.items():
        if (target := targets[name]) not in opened:
            opened[target] = open_target(target, name, _role_options(role, options, target), entries)
    backends = {role: opened[targets[name]] for role, name in chosen.items()}
    if options.judge_version is not None and "judge" in backends:
        if not options.judge_version.strip():
            raise UsageError("--judge-version is empty; name a version or remove the option")
        # Write to the instance's dictionary, since in some backends the identity is a cached property.
        vars(backends["judge"])["identity"] = {**backends["judge"].identity, "version": options.judge_version}
    notes = dict.fromkeys(note for name, target in targets.items() for note in _notes(name, target, options))
    if options.dry_run:
        local = {role: targets[name] for role, name in chosen.items() if targets[name].engine in ENGINES}
        notes |= {_plan_note(chosen[role], target, backends[role], options): None for role, target in local.items()}
    prices = {role: price for role, name in chosen.items() if (price := _price(role, targets[name], options))}
    return RunModels(backends, tuple(notes), prices)


def _open_judge_file(names: Mapping[Role, str | None], options: Options, no_models: Collection[str]) -> RunModels:
    """Open a judge file, whose options are for the judge alone, and the other models."""
    files = registry.judge_files()
    file = files.read_judge(Path(names["judge"] or ""))
    judge, others = open_models({"judge": file.model}, file.under(options)), RunModels({}, (), {})
    helpers = {**names, "judge": None}
    if any(helpers.values()):
        others = open_models(helpers, replace(options, lenient=frozenset(SETTINGS)), no_models)
    files.bring(judge.models["judge"], file.protocol)
    return RunModels(
        {**judge.models, **others.models}, (*judge.notes, *others.notes), {**judge.prices, **others.prices}
    )


def open_judge(name: str, options: Options | None = None) -> Backend:
    """The backend of a judge; see ``open_models``."""
    return open_models({"judge": name}, options).models["judge"]


def open_target(target: Target, name: str, options: Options, entries: Mapping[str, CatalogueEntry]) -> Backend:
    """The backend for a resolved name."""
    if target.engine == "planted":
        return scripted.make_planted(target.model)
    if target.engine != "openai":
        # Check this before looking for libraries, since installing one would not make room.
        try:
            gpus = check_fit(target, name, options, entries)
        except UsageError:
            if not options.dry_run:  # a dry run only notes it
                raise
            gpus = options.tensor_parallel or 1
        options = replace(options, tensor_parallel=gpus)
    if find_spec(target.engine) is None:  # an engine has the name of its library
        extra = "local" if target.engine == "transformers" else target.engine
        raise UsageError(f"{name} needs {target.engine}, which is not installed: {install_command(extra)}")
    if target.engine == "openai":
        from distract.models.server.backend import OpenAI

        limits = _pick(options, "concurrency", "timeout", "attempts")
        server = OpenAI(target.model, base_url=target.server, key_names=target.keys, name=name, **limits)
        if not options.dry_run:
            server.check_key()
        return server
    if target.model == EMBEDDED and (options.revision or options.trust_remote_code):
        raise UsageError(f"{name} is one fixed file without code; remove --revision and {flag('trust_remote_code')}")
    return _open_local(target, name, options)


def _open_local(target: Target, name: str, options: Options) -> Backend:
    settings = _pick(options, "dtype", "quantization", "trust_remote_code")
    settings |= {"name": name, "revision": target.revision}
    if target.model == EMBEDDED:
        from distract.models.transformers import embedded

        settings |= {"revision": embedded.SHA256, "prepare": embedded.ensure}
        if options.dtype == "auto":
            # Resolving "auto" would import torch even if all replies are stored.
            settings["dtype"] = "float32"
    if target.engine == "vllm":
        from distract.models.vllm.backend import Vllm

        return Vllm(target.model, **settings, **_pick(options, "tensor_parallel", "max_length", "gpu_memory"))
    from distract.models.transformers.backend import Transformers

    return Transformers(target.model, **settings, **_pick(options, "device_map", "batch_tokens"))


def _pick(options: Options, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}


def _role_options(role: Role, options: Options, target: Target | None = None) -> Options:
    """The options for a model of this role, without those that only concern a judge if it is not one."""
    if role == "judge":
        return options
    fixed = target is not None and target.model == EMBEDDED
    return replace(options, revision=None, trust_remote_code=options.trust_remote_code and not fixed)


def _notes(name: str, target: Target, options: Options) -> Iterator[str]:
    """Notes for the user on how a name was resolved."""
    if target.reason:
        yield f"{name}: {target.reason}"
    entry = target.entry
    # A shipped judge that only loses an alias to another entry is not redefined.
    if options.catalogue is None or entry is None or _drop_aliases(entry) in map(_drop_aliases, catalogue().values()):
        return
    if ours := find(name, catalogue()):
        change = "" if ours.model == entry.model else f", from {ours.model} to {entry.model}"
        yield f"{name} is redefined by {options.catalogue}{change}"
    key = next((key for key in target.keys if os.environ.get(key)), None)
    if key and target.server.startswith("https") and target.server == entry.base_url.rstrip("/"):
        yield f"{name}: {options.catalogue} sends the key in {key} to {target.server}"


def _plan_note(name: str, target: Target, backend: Backend, options: Options) -> str:
    """Note whether a model fits; a model that cannot be inspected here gets a placeholder identity in the plan."""
    try:
        check_fit(target, name, options, catalogue(options.catalogue))
        _ = backend.identity
        return f"{name} fits this machine, or is of unknown size"
    except DistractError as problem:
        vars(backend)["identity"] = {"engine": target.engine, "model": target.model}
        return str(problem)


def _drop_aliases(entry: CatalogueEntry) -> CatalogueEntry:
    return replace(entry, aliases=())


def _price(role: Role, target: Target, options: Options) -> Price | None:
    entry, own = target.entry or CatalogueEntry("", ""), options if role == "judge" else Options()
    price_in = entry.price_in if own.price_in is None else own.price_in
    price_out = entry.price_out if own.price_out is None else own.price_out
    return None if price_in is None and price_out is None else Price(price_in or 0.0, price_out or 0.0)


def _list_names(role: Role, entries: Mapping[str, CatalogueEntry], no_models: Collection[str]) -> list[str]:
    planted = [f"planted:{bias}" for bias in scripted.PLANTED]
    aliases = [alias for entry in entries.values() for alias in entry.aliases]
    others = {"judge": planted, "generator": no_models, "verifier": (), "reference": ()}[role]
    return [EMBEDDED, *entries, *aliases, *others, *(form for form in FORMS if ":" in form)]
