"""The models of a run, from their names: ``llama-3.3-70b``, ``vllm:FOLDER``, ``openai:MODEL``, ``planted:BIAS`` ...

Opening a model is cheap: weights load, and servers are asked, when a reply is wanted that is not stored. What cannot
work on this machine is said here, before anything is paid for. It knows no protocol.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from distract.core.backend import Backend
from distract.core.errors import UnknownName, UsageError, install_command
from distract.core.price import Price
from distract.core.records import Role
from distract.models import scripted
from distract.models.fit import check_fit
from distract.models.catalogue import CatalogueEntry, catalogue, find
from distract.models.names import EMBEDDED, FORMS, Target, resolve
from distract.models.options import Options, check

DEFAULT = EMBEDDED
REPLAY = "replay:"
"""What the name of a judge begins with whose verdicts are stored: it answers nothing new."""

EXTRAS: Mapping[str, tuple[str, str]] = {
    "transformers": ("transformers", "local"),
    "vllm": ("vllm", "vllm"),
    "openai": ("openai", "openai"),
}
"""The library that an engine needs, and the extra that brings it."""


@dataclass(frozen=True)
class RunModels:
    """The models of a run.

    Attributes:
        models: by role; one that has several roles is one backend.
        notes: which engine was chosen for whom, and why; one line each.
        prices: of those whose tokens cost money.
    """

    models: dict[Role, Backend]
    notes: tuple[str, ...]
    prices: Mapping[Role, Price]


def list_forms() -> Mapping[str, str]:
    """Every form of a judge's name with one line about it; the names of the catalogue are in the catalogue."""
    planted = {f"planted:{name}": f"planted: {line}" for name, (line, _) in scripted.PLANTED.items()}
    stored = {f"{REPLAY}PATH": "verdicts that somebody stored, a file or a folder of them; for `distract meta`"}
    return {EMBEDDED: "embedded: SmolLM2-135M-Instruct, a real model that runs on a CPU", **FORMS, **stored, **planted}


def open_models(
    names: Mapping[Role, str | None], options: Options | None = None, no_models: Collection[str] = ()
) -> RunModels:
    """The backends of a run; a model that has several roles is loaded once."""
    options = options or Options()
    listed = catalogue(options.catalogue)
    written = {"generator": no_models}
    named = {role: name for role, name in names.items() if name is not None and name not in written.get(role, ())}
    targets: dict[Role, Target] = {}
    for role, name in named.items():
        if role != "judge" and name.startswith("planted:"):
            raise UsageError(f"{name} reads structure and not text: it cannot be a {role}; name a model")
        if name.startswith(REPLAY):
            raise UsageError(f"{name}: stored verdicts answer nothing new; `distract meta` compares them with people")
        same = next((targets[other] for other in targets if named[other] == name), None)
        try:
            targets[role] = same or resolve(name, _role_options(role, options), listed)
        except UnknownName as error:
            raise UnknownName(role, name, _list_names(role, listed, no_models), instead=error.instead) from error
    check(options, {named[role]: target.engine for role, target in targets.items()}, named.get("judge"))
    opened: dict[Role, Backend] = {}
    for role, target in targets.items():
        shared = next((opened[other] for other in opened if targets[other] == target), None)
        opened[role] = shared or open_target(target, named[role], _role_options(role, options, target), listed)
    if options.judge_version is not None and "judge" in opened:
        if not options.judge_version.strip():
            raise UsageError("--judge-version is empty; name the version, or leave the option out")
        # Whatever the backend is; in some the identity is a property that is worked out once.
        vars(opened["judge"])["identity"] = {**opened["judge"].identity, "version": options.judge_version}
    notes = dict.fromkeys(note for role, target in targets.items() for note in _notes(named[role], target, options))
    prices = {role: price for role, target in targets.items() if (price := _price(role, target, options))}
    return RunModels(opened, tuple(notes), prices)


def open_judge(name: str, options: Options | None = None) -> Backend:
    """The backend of a judge; see ``open_models``."""
    return open_models({"judge": name}, options).models["judge"]


def open_target(target: Target, name: str, options: Options, listed: Mapping[str, CatalogueEntry]) -> Backend:
    """The backend for what a name means."""
    if target.engine == "planted":
        return scripted.make_planted(target.model)
    if target.engine != "openai":
        # First of all, since no installation would change it.
        options = replace(options, tensor_parallel=check_fit(target, name, options, listed))
    library, extra = EXTRAS[target.engine]
    if find_spec(library) is None:
        raise UsageError(f"{name} needs {library}, which is not installed: {install_command(extra)}")
    if target.engine == "openai":
        from distract.models.server.backend import OpenAI

        server = OpenAI(
            target.model,
            base_url=target.server,
            key_names=target.keys,
            concurrency=options.concurrency,
            timeout=options.timeout,
            attempts=options.attempts,
            name=name,
        )
        server.check_key()
        return server
    if target.model == EMBEDDED and (options.revision or options.trust_remote_code):
        raise UsageError(f"{name} is one fixed file without code; leave out --revision and --trust-remote-code")
    return _open_vllm(target, name, options) if target.engine == "vllm" else _open_transformers(target, name, options)


def _open_transformers(target: Target, name: str, options: Options) -> Backend:
    from distract.models.transformers.backend import Transformers, embedded_judge

    if target.model == EMBEDDED:
        return embedded_judge(
            # Named here, since finding out what "auto" means would import torch even where all replies are stored.
            dtype="float32" if options.dtype == "auto" else options.dtype,
            device_map=options.device_map,
            quantization=options.quantization,
            batch_tokens=options.batch_tokens,
        )
    return Transformers(
        target.model,
        revision=target.revision,
        dtype=options.dtype,
        device_map=options.device_map,
        quantization=options.quantization,
        trust_remote_code=options.trust_remote_code,
        batch_tokens=options.batch_tokens,
        name=name,
    )


def _open_vllm(target: Target, name: str, options: Options) -> Backend:
    from distract.models.transformers import embedded
    from distract.models.vllm.backend import Vllm

    fixed = target.model == EMBEDDED
    return Vllm(
        embedded.NAME if fixed else target.model,
        revision=embedded.SHA256 if fixed else target.revision,
        prepare=embedded.ensure if fixed else None,
        dtype="float32" if fixed and options.dtype == "auto" else options.dtype,
        quantization=options.quantization,
        tensor_parallel=options.tensor_parallel,
        max_length=options.max_length,
        gpu_memory=options.gpu_memory,
        trust_remote_code=options.trust_remote_code,
        name=name,
    )


def _role_options(role: Role, options: Options, target: Target | None = None) -> Options:
    """The options as they are for a model of this role: what only a judge can do without is not held against others."""
    if role == "judge":
        return options
    fixed = target is not None and target.model == EMBEDDED
    return replace(options, revision=None, trust_remote_code=options.trust_remote_code and not fixed)


def _notes(name: str, target: Target, options: Options) -> Iterator[str]:
    """What a user should know about how a name was understood."""
    if target.reason:
        yield f"{name}: {target.reason}"
    entry = target.entry
    # An alias that is another judge's by now changes nothing about a judge of ours.
    if options.catalogue is None or entry is None or _drop_aliases(entry) in map(_drop_aliases, catalogue().values()):
        return
    if ours := find(name, catalogue()):
        was = "" if ours.model == entry.model else f", from {ours.model} to {entry.model}"
        yield f"{name} is redefined by {options.catalogue}{was}"
    sent = next((key for key in target.keys if os.environ.get(key)), None)
    if sent and target.server.startswith("https") and target.server == entry.base_url.rstrip("/"):
        yield f"{name}: {options.catalogue} sends the key in {sent} to {target.server}"


def _drop_aliases(entry: CatalogueEntry) -> CatalogueEntry:
    return replace(entry, aliases=())


def _price(role: Role, target: Target, options: Options) -> Price | None:
    entry = target.entry
    prices = [entry.price_in if entry else None, entry.price_out if entry else None]
    if role == "judge":
        prices = [
            given if given is not None else found for given, found in zip(_given_prices(options), prices, strict=True)
        ]
    return None if prices == [None, None] else Price(prices[0] or 0.0, prices[1] or 0.0)


def _given_prices(options: Options) -> tuple[float | None, float | None]:
    return options.price_in, options.price_out


def _list_names(role: Role, listed: Mapping[str, CatalogueEntry], no_models: Collection[str]) -> list[str]:
    """What a name could have been."""
    planted = [f"planted:{bias}" for bias in scripted.PLANTED]
    aliases = [alias for model in listed.values() for alias in model.aliases]
    others = {"judge": planted, "generator": no_models, "verifier": (), "reference": ()}[role]
    return [EMBEDDED, *listed, *aliases, *others, *(form for form in FORMS if ":" in form)]
