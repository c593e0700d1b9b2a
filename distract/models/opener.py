"""Open the models of a run by name: ``llama-3.3-70b``, ``vllm:FOLDER``, ``openai:MODEL``, ``planted:BIAS`` ...

Opening a model is cheap: weights are loaded and servers called only when a reply is needed that is not stored. A model
that cannot work on this machine is rejected here, before any request is paid for.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from distract.core.backend import Backend
from distract.core.errors import DistractError, UnknownName, UsageError, guard_plugin, install_command, redirect_output
from distract.core.records import Role
from distract.core.usage import Price
from distract.models.catalogue import CatalogueEntry, catalogue, find
from distract.models.names import EMBEDDED, resolve
from distract.models.options import Options
from distract.models.provider import Target, check_options, providers
from distract.models.server.addresses import are_near


@dataclass(frozen=True)
class RunModels:
    """The models of a run."""

    models: dict[Role, Backend]  # a model with several roles is one backend
    notes: tuple[str, ...]  # one line per choice of an engine, with its reason
    prices: Mapping[Role, Price]  # prices of models whose tokens cost money


def list_forms() -> dict[str, str]:
    """Every form of a judge's name except those of the catalogue, with one line about it."""
    forms = {name: line for provider in providers().values() for name, line in provider.forms.items()}
    bare = "a local folder or a model of the hub, on the engine that fits the machine (or --engine)"
    return {
        EMBEDDED: "embedded: SmolLM2-135M-Instruct, a real model that runs on a CPU",
        "FOLDER, ORG/MODEL": bare,
        **forms,
    }


def open_models(
    names: Mapping[Role, str | None], options: Options | None = None, no_models: Collection[str] = ()
) -> RunModels:
    """The backends of a run; a model with several roles is loaded once."""
    options = options or Options()
    entries = catalogue(options.catalogue)
    chosen = {
        role: name
        for role, name in names.items()
        if name is not None and not (role == "generator" and name in no_models)
    }
    targets: dict[str, Target] = {}
    for role, name in chosen.items():
        try:
            targets[name] = targets.get(name) or resolve(name, _role_options(role, options), entries)
        except UnknownName as error:
            raise UnknownName(role, name, _list_names(role, entries, no_models), instead=error.instead) from error
        if role not in providers()[targets[name].engine].roles:
            raise UsageError(f"{name} answers no free request, so it cannot be a {role}; name a model")
    check_options(options, targets, chosen.get("judge"))
    opened: dict[Target, Backend] = {}
    for role, name in chosen.items():
        if (target := targets[name]) not in opened:
            opened[target] = open_target(target, _role_options(role, options, target), entries)
    backends = {role: opened[targets[name]] for role, name in chosen.items()}
    if options.judge_version is not None and "judge" in backends:
        if not options.judge_version.strip():
            raise UsageError("--judge-version is empty; name a version or remove the option")
        # Write to the instance's dictionary, since in some backends the identity is a cached property.
        vars(backends["judge"])["identity"] = {**backends["judge"].identity, "version": options.judge_version}
    notes = dict.fromkeys(note for name, target in targets.items() for note in _notes(name, target, options))
    # Not by ``isinstance``, which would read the identity, for which a model of the hub needs the network.
    placements = {target.name: getattr(one, "placement", "") for target, one in opened.items()}
    notes |= {f"{name}: {text}": None for name, text in placements.items() if text}
    if options.dry_run:
        local = {role: targets[name] for role, name in chosen.items() if providers()[targets[name].engine].fits}
        notes |= {_plan_note(target, backends[role], options, entries): None for role, target in local.items()}
    prices = {role: price for role, name in chosen.items() if (price := _price(role, targets[name], options))}
    for role, name in chosen.items():
        if role not in prices and _is_paid(targets[name]):
            cure = "; give --price-in and --price-out" if role == "judge" else ""
            notes |= {f"price unknown: {name}{cure}": None}
    return RunModels(backends, tuple(notes), prices)


def open_judge(name: str, options: Options | None = None) -> Backend:
    """The backend of a judge; see ``open_models``."""
    return open_models({"judge": name}, options).models["judge"]


def open_target(target: Target, options: Options, entries: Mapping[str, CatalogueEntry]) -> Backend:
    """The backend for a resolved name."""
    provider = providers()[target.engine]
    if provider.fits:  # before looking for libraries, since installing one would not make room
        options = provider.fits(target, options, entries)
    if provider.library and find_spec(provider.library) is None:
        raise UsageError(f"{target.name} needs {provider.library}, which is not installed: {_install(provider.extra)}")
    with guard_plugin(f"provider {provider.name!r} cannot open {target.name}"), redirect_output():
        return provider.open(target, provider.collect(options))


def _install(extra: str) -> str:
    return install_command(extra) if extra else "pip install it"


def _role_options(role: Role, options: Options, target: Target | None = None) -> Options:
    """The options for a model of this role, without those that only concern a judge if it is not one."""
    if role == "judge":
        return options
    fixed = {"trust_remote_code"} if target is not None and target.model == EMBEDDED else set()
    return replace(
        options,
        revision=None,
        model_options={name: value for name, value in options.model_options.items() if name not in fixed},
    )


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


def _plan_note(target: Target, backend: Backend, options: Options, entries: Mapping[str, CatalogueEntry]) -> str:
    """Note whether a model fits; a model that cannot be inspected here gets a placeholder identity in the plan."""
    try:
        if fits := providers()[target.engine].fits:
            fits(target, replace(options, dry_run=False), entries)
        _ = backend.identity
        return f"{target.name} fits this machine, or is of unknown size"
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


def _is_paid(target: Target) -> bool:
    """Whether a model may cost money: it is on a server other than this machine."""
    return providers()[target.engine].costs or not are_near(target.server)


def _list_names(role: Role, entries: Mapping[str, CatalogueEntry], no_models: Collection[str]) -> list[str]:
    aliases = [alias for entry in entries.values() for alias in entry.aliases]
    forms = [form for provider in providers().values() if role in provider.roles for form in provider.forms]
    return [EMBEDDED, *entries, *aliases, *(no_models if role == "generator" else ()), *forms]
