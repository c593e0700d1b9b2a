"""Open the models of a run by name: ``llama-3.3-70b``, ``vllm:FOLDER``, ``openai:MODEL``, ``planted:BIAS`` ...

There is one way through: a name is resolved to a target (the model to run, its engine and its source, with the reason),
by its provider or else by the catalogue, and the target is opened. Resolving imports no engine and asks no server.
Opening is cheap: weights are loaded and servers called only when a reply is needed that is not stored. A model that
cannot work on this machine is rejected here, before any request is paid for.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from distract.core.backend import Backend
from distract.core.errors import DistractError, UnknownName, UsageError, guard_plugin, install_command, redirect_output
from distract.core.records import Role
from distract.core.usage import Price
from distract.models.catalogue import CatalogueEntry, catalogue, find
from distract.models.options import Options
from distract.models.provider import Target, check_options, engines, find_provider, providers

EMBEDDED = "smollm2-135m"
OPENAI_KEY = "OPENAI_API_KEY"
OWN_KEY = "DISTRACT_API_KEY"
ALLOWED = "DISTRACT_ALLOW_KEYS"
"""Environment variable that lists, separated by commas, other variables whose values a catalogue may send."""

_HUB = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_SERVERS: Mapping[str, str] = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Servers whose models other tools call ``ollama:MODEL``, ``groq/MODEL`` ..."""
_MAKERS: Mapping[str, str] = {"gpt": "openai", "chatgpt": "openai", "claude": "anthropic", "gemini": "gemini"}
"""Makers of models that are only on their own server, by the start of the model's name."""
_OF_MAKER = re.compile(r"(?:(?:openai|anthropic|google)/)?((chatgpt|gpt(?=-[3-9])|claude|gemini)-.+)")


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
    if providers()[target.engine].costs or not target.server:
        return providers()[target.engine].costs
    from distract.models.server import addresses

    return not addresses.are_near(target.server)


def _list_names(role: Role, entries: Mapping[str, CatalogueEntry], no_models: Collection[str]) -> list[str]:
    aliases = [alias for entry in entries.values() for alias in entry.aliases]
    forms = [form for provider in providers().values() if role in provider.roles for form in provider.forms]
    return [EMBEDDED, *entries, *aliases, *(no_models if role == "generator" else ()), *forms]


def resolve(name: str, options: Options, entries: Mapping[str, CatalogueEntry]) -> Target:
    """The meaning of a name on this machine."""
    if options.engine is not None and options.engine not in engines():
        raise UsageError(f"unknown engine {options.engine!r} (known: {', '.join(engines())})")
    if options.base_url is not None and not options.base_url.strip():
        raise UsageError("--base-url is empty; name a server or remove the option")
    provider = find_provider(name)
    target = provider.find(name, options, entries) if provider else _resolve_bare(name, options, entries)
    return replace(target, name=name, entry=target.entry or find_served(target.model, target.server, entries))


def _resolve_bare(name: str, options: Options, entries: Mapping[str, CatalogueEntry]) -> Target:
    """Resolve a name that no provider claims: an entry of the catalogue, a folder or a model of the hub."""
    if name == EMBEDDED:
        # New users start with this judge, so resolving it must not wait for the choice of an engine.
        return Target(options.engine or "transformers", EMBEDDED, options.revision)
    entry = find(name, entries)
    if entry and entry.engine == "openai":
        return _resolve_entry(entry, options)
    if options.base_url:
        return resolve_server(entry.model if entry else name, options)
    if entry is None and (instead := _spell_function(name) or ("" if Path(name).exists() else translate_name(name))):
        raise UnknownName("judge", name, entries, instead=instead)
    if entry or _HUB.fullmatch(name) or name.startswith((".", "/", "~")) or Path(name).is_dir():
        engine, reason = choose_engine(options.engine)
        return resolve_local(engine, entry.model if entry else name, options, entries, reason, entry)
    if re.search(":.*@", name):
        raise UsageError("unknown judge; its name is left out, since the part before its @ may be a password")
    raise UnknownName("judge", name, entries)


def _spell_function(name: str) -> str:
    """Advice on how to name a function in a Python file; empty for any other name."""
    if not (parts := re.fullmatch(r"(.+\.py)(?::(\w+))?", name)):
        return ""
    return f"write python:{parts[1]}:{parts[2] or 'judge'} for the function {parts[2] or 'judge'} in that file"


def translate_name(name: str) -> str:
    """Advice on how to write a name in another tool's form; empty for any other name."""
    if parts := re.fullmatch(r"([\w.-]+)[:/](.+)", name):
        prefix, model = re.sub(r"[^a-z]", "", parts[1].lower()), parts[2]
        if prefix in ("hf", "huggingface"):
            return f"write {model}, or transformers:{model}, for a model of the hub"
        if prefix in _SERVERS and (prefix != "anthropic" or ":" in name or "claude" in model):
            return f"write openai:{model} --base-url {_SERVERS[prefix]} for a model of that server"
    if not (parts := _OF_MAKER.fullmatch(name)):
        return ""
    maker = _MAKERS[parts[2]]
    server = "" if maker == "openai" else f" --base-url {_SERVERS[maker]}"
    return f"write openai:{parts[1]}{server} for a model of its maker's server"


def choose_engine(engine: str | None) -> tuple[str, str]:
    """The engine for a local model, with the reason: vLLM if it is installed and there is a GPU."""
    if engine is not None:
        return engine, ""
    from distract.models import hardware

    gpus = hardware.gpus()
    if not gpus:
        return "transformers", "transformers on the CPU, since there is no GPU here"
    if find_spec("vllm"):
        return "vllm", f"vLLM, since it is installed and there is a GPU ({gpus[0].name})"
    return "transformers", f"transformers on the GPU ({gpus[0].name}); for vLLM, {install_command('vllm')}"


def resolve_prefixed(name: str, options: Options, entries: Mapping[str, CatalogueEntry]) -> Target:
    """Resolve ``ENGINE:MODEL`` of an engine for local models."""
    engine, _, model = name.partition(":")
    check_address(engine, model)
    if options.engine not in (None, engine):
        raise UsageError(f"{name} already names its engine; remove --engine {options.engine}")
    return resolve_local(engine, model, options, entries)


def check_address(prefix: str, model: str) -> None:
    """Reject an address in the place of a model; it may hold a password."""
    from distract.models.server import addresses

    if re.search("://.*@", model):
        raise UsageError(f"{prefix}: must be followed by the name of a model, not an address; {addresses.NO_SECRETS}")


def resolve_local(
    engine: str,
    model: str,
    options: Options,
    entries: Mapping[str, CatalogueEntry],
    reason: str = "",
    entry: CatalogueEntry | None = None,
) -> Target:
    """Resolve a folder, or a model of the hub."""
    from distract.models.cache import find_hub_folder, recall
    from distract.models.transformers.architecture import reward_labels

    if model.startswith((".", "/", "~")):
        with contextlib.suppress(RuntimeError):  # ~NAME of an unknown user
            model = str(Path(model).expanduser())
        if not Path(model).is_dir():
            raise UsageError(f"{model}: no such folder; name a folder with a model in it, or ORG/MODEL of the hub")
    revision = options.revision
    front, at, pinned = model.rpartition("@")
    if at and front and not Path(model).exists():
        model, revision = front, revision or pinned
    revision = revision or (entry.revision if entry else None)
    if Path(model).is_dir() and not (Path(model) / "config.json").is_file():
        raise UsageError(f"{model}: holds no model (no config.json in it)")
    entry = entry or next((other for other in entries.values() if other.model == model), None)
    folder = Path(model) if Path(model).is_dir() else find_hub_folder(model, revision)
    config = recall(folder / "config.json") if folder else {}
    if reward_labels(config) is not None:
        if engine != "transformers" and engine == options.engine:
            raise UsageError(f"{model} is a reward model, which runs through transformers; remove the engine {engine}")
        engine, reason = "reward", ""
    return Target(engine, model, revision, entry=entry, reason=reason)


def resolve_server(model: str, options: Options) -> Target:
    """Resolve a model of the server that the options or the environment name."""
    from distract.models.server import addresses

    server = ",".join(
        addresses.parse_addresses(options.base_url or os.environ.get("OPENAI_BASE_URL") or addresses.OPENAI)
    )
    keys = (OPENAI_KEY,) if server == addresses.OPENAI else (OWN_KEY, OPENAI_KEY)
    return Target("openai", model, server=server, keys=keys)


def find_served(model: str, server: str, entries: Mapping[str, CatalogueEntry]) -> CatalogueEntry | None:
    """Find the entry of a model that is named with its server, so that it costs the same by either name."""
    if not server and not model.startswith("openai/"):
        return None
    from distract.models.server import addresses

    if not server:
        model, server = model.removeprefix("openai/"), addresses.OPENAI
    served = {
        n: e
        for n, e in entries.items()
        if e.engine == "openai" and (e.base_url or addresses.OPENAI).rstrip("/") == server
    }
    return find(model, served)


def _resolve_entry(entry: CatalogueEntry, options: Options) -> Target:
    from distract.models.server import addresses

    if options.base_url or not entry.base_url:
        return replace(resolve_server(entry.model, options), entry=entry)
    keys = (_key_variable(entry) or OWN_KEY,)
    return Target(
        "openai", entry.model, server=addresses.parse_address(entry.base_url).geturl(), keys=keys, entry=entry
    )


def _key_variable(entry: CatalogueEntry) -> str:
    """The variable that an entry names for its server's key, if it may be sent there."""
    from distract.models.server import addresses

    if entry.key in (name.strip() for name in os.environ.get(ALLOWED, "").split(",")):
        return entry.key
    problem = ""
    servers = {other.base_url for other in catalogue().values() if other.key == entry.key and other.base_url}
    home = {
        addresses.parse_address(url).hostname for url in ({addresses.OPENAI} if entry.key == OPENAI_KEY else servers)
    }
    if entry.key and not entry.key.endswith("_API_KEY"):
        problem = "only variables that end in _API_KEY are sent"
    elif entry.key and home and addresses.parse_address(entry.base_url).hostname not in home:
        problem = f"that is the key of {' or '.join(map(str, home))}"
    if problem:
        raise UsageError(
            f"{entry.name}: its catalogue sends {entry.key} to {entry.base_url}, but {problem}; name another one, or "
            f"allow it with {ALLOWED}={entry.key} in the environment"
        )
    return entry.key
