"""Resolve a judge's name to the model to run, its engine and its source, with the reason.

Resolving opens nothing, imports no engine and asks no server, so it takes milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from distract.core.errors import UnknownName, UsageError, install_command
from distract.models import hardware
from distract.models.cache import recall, recall_hub_config
from distract.models.catalogue import CatalogueEntry, catalogue, find
from distract.models.options import Options
from distract.models.provider import Target, engines, find_provider
from distract.models.server.addresses import NO_SECRETS, OPENAI, parse_address, parse_addresses
from distract.models.transformers.architecture import reward_labels

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
    if re.search("://.*@", model):
        raise UsageError(f"{prefix}: must be followed by the name of a model, not an address; {NO_SECRETS}")


def resolve_local(
    engine: str,
    model: str,
    options: Options,
    entries: Mapping[str, CatalogueEntry],
    reason: str = "",
    entry: CatalogueEntry | None = None,
) -> Target:
    """Resolve a folder, or a model of the hub."""
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
    config = recall(Path(model) / "config.json") if Path(model).is_dir() else recall_hub_config(model, revision)
    if reward_labels(config or {}) is not None:
        if engine != "transformers" and engine == options.engine:
            raise UsageError(f"{model} is a reward model, which runs through transformers; remove the engine {engine}")
        engine, reason = "reward", ""
    return Target(engine, model, revision, entry=entry, reason=reason)


def resolve_server(model: str, options: Options) -> Target:
    """Resolve a model of the server that the options or the environment name."""
    server = ",".join(parse_addresses(options.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI))
    keys = (OPENAI_KEY,) if server == OPENAI else (OWN_KEY, OPENAI_KEY)
    return Target("openai", model, server=server, keys=keys)


def find_served(model: str, server: str, entries: Mapping[str, CatalogueEntry]) -> CatalogueEntry | None:
    """Find the entry of a model that is named with its server, so that it costs the same by either name."""
    if not server and model.startswith("openai/"):
        model, server = model.removeprefix("openai/"), OPENAI
    served = {n: e for n, e in entries.items() if e.engine == "openai" and (e.base_url or OPENAI).rstrip("/") == server}
    return find(model, served)


def _resolve_entry(entry: CatalogueEntry, options: Options) -> Target:
    if options.base_url or not entry.base_url:
        return replace(resolve_server(entry.model, options), entry=entry)
    keys = (_key_variable(entry) or OWN_KEY,)
    return Target("openai", entry.model, server=parse_address(entry.base_url).geturl(), keys=keys, entry=entry)


def _key_variable(entry: CatalogueEntry) -> str:
    """The variable that an entry names for its server's key, if it may be sent there."""
    if entry.key in (name.strip() for name in os.environ.get(ALLOWED, "").split(",")):
        return entry.key
    problem = ""
    servers = {other.base_url for other in catalogue().values() if other.key == entry.key and other.base_url}
    home = {parse_address(url).hostname for url in ({OPENAI} if entry.key == OPENAI_KEY else servers)}
    if entry.key and not entry.key.endswith("_API_KEY"):
        problem = "only variables that end in _API_KEY are sent"
    elif entry.key and home and parse_address(entry.base_url).hostname not in home:
        problem = f"that is the key of {' or '.join(map(str, home))}"
    if problem:
        raise UsageError(
            f"{entry.name}: its catalogue sends {entry.key} to {entry.base_url}, but {problem}; name another one, or "
            f"allow it with {ALLOWED}={entry.key} in the environment"
        )
    return entry.key
