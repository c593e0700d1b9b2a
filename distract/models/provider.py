"""Providers of judges: plug-ins in the group ``distract.providers``, one record each.

A provider recognises names of judges, usually by their beginning, and opens a backend for them. Its settings are the
fields of its own options record. Of the settings below ``COMMON`` a record repeats the names it uses; all others are
set by ``--model-option`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import UnknownName, UsageError
from distract.core.plugin import check_plugin
from distract.core.records import Role
from distract.models.catalogue import CatalogueEntry
from distract.models.options import COMMON, COMMON_SETTINGS, Options, Setting, describe, flag
from distract.models.ranges import FLAG

ROLES: frozenset[Role] = frozenset(("judge", "generator", "verifier", "reference"))
Entries = Mapping[str, CatalogueEntry]


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved name.

    Attributes:
        engine: name of the provider.
        model: what the provider is to open: an id of the hub, a folder, a server's name for it, a file.
        revision: a commit, tag or branch of the hub.
        server: base URL of a server.
        keys: environment variables that may hold the server's key; the first one set counts.
        entry: entry of the catalogue.
        name: the name as the user wrote it.
        reason: reason for this engine, if the name left it open.
    """

    engine: str
    model: str
    revision: str | None = None
    server: str = ""
    keys: tuple[str, ...] = ()
    entry: CatalogueEntry | None = None
    name: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)


@dataclass(frozen=True, eq=False)
class Provider:
    """A source of judges.

    Attributes:
        name: name of the provider, and of the engine of its models.
        forms: forms of its judges' names, with a line about each: ``{"mine:MODEL": "a model of mine"}``.
        open: opens a target, with an instance of ``options``; cheap, since weights load at the first request.
        prefix: start of its judges' names, or several; by default the name and a colon.
        suffix: end of its judges' names, if they are files.
        options: dataclass of its settings, each declared by ``setting``; None for none, ``Options`` for all there are.
        extra: extra of distract that installs what it needs.
        library: module that must be importable; by default none.
        resolve: finds the target from a name, or says in a ``UsageError`` why there is none; by default the target's
            model is the rest of the name after the prefix.
        fits: checks that a model can run here before anything is paid for; returns options that make it fit.
        roles: what its models can be.
        title: name for people; by default ``name``.
        costs: whether its models cost money by the token, even on no server that is named.
        place: what a message says about its judges, ``is asked on a server``; by default that they run on it.
    """

    name: str
    forms: Mapping[str, str]
    open: Callable[[Target, Any], Backend]
    prefix: str | tuple[str, ...] = ""
    suffix: str = ""
    options: type | None = None
    extra: str = ""
    library: str = ""
    resolve: Callable[[str, Options, Entries], Target] | None = None
    fits: Callable[[Target, Options, Entries], Options] | None = None
    roles: frozenset[Role] = ROLES
    title: str = ""
    costs: bool = False
    place: str = ""

    def __post_init__(self) -> None:
        check_plugin("provider", self, forms=Mapping, open=Callable, prefix=str | tuple, options=type | None, extra=str)
        check_plugin("provider", self, library=str, resolve=Callable | None, fits=Callable | None, title=str, place=str)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Every start of its judges' names."""
        return self.prefix if isinstance(self.prefix, tuple) else (self.prefix or f"{self.name}:",)

    def claims(self, name: str) -> bool:
        """Whether a judge of that name is its own."""
        return _is_claimed(name, self.name, self.prefix, self.suffix)

    def find(self, name: str, options: Options, entries: Entries) -> Target:
        """Resolve a name that it claims."""
        if self.resolve:
            return self.resolve(name, options, entries)
        return Target(self.name, next(name.removeprefix(each) for each in self.prefixes if name.startswith(each)))

    def collect(self, options: Options) -> Any:
        """Make its options record from the options of a command."""
        if self.options in (None, Options):
            return self.options and options
        values = {each.name: options.get(each.name) for each in fields(self.options)}
        return self.options(**{name: value for name, value in values.items() if value is not options.MISSING})


def providers() -> registry.Plugins[Provider]:
    """Return every provider by name."""
    return registry.plugins("distract.providers", Provider)


def find_provider(name: str) -> Provider | None:
    """Find the provider of a judge's name, by its beginning before its end."""
    known = providers()
    traits = {one: known.traits(one) for one in known}
    names = sorted(known, key=lambda one: bool(traits[one]["suffix"]))
    fits = (one for one in names if _is_claimed(name, one, traits[one]["prefix"], traits[one]["suffix"]))
    return next((known[one] for one in fits), None)


def _is_claimed(judge: str, name: str, prefix: str | Sequence[str], suffix: str) -> bool:
    """Whether a judge of that name belongs to a provider."""
    if suffix and judge.endswith(suffix):
        return True
    prefixes = [prefix or f"{name}:"] if isinstance(prefix, str) else prefix
    return any(judge.startswith(one) and judge != one for one in prefixes)


def engines() -> tuple[str, ...]:
    """List the engines for local models, which ``--engine`` takes."""
    # A reward model takes the engine of any local model, but it is none.
    return tuple(sorted((name for name in uses()["engine"] if "generator" in providers()[name].roles), reverse=True))


@cache
def known_settings() -> Mapping[str, Setting]:
    """Return every setting by field: the common ones, then those of providers."""
    settings = dict(COMMON_SETTINGS)
    for provider in providers().values():
        for name, setting in describe(provider.options).items() if provider.options not in (None, Options) else ():
            settings.setdefault(name, setting)
    return MappingProxyType(settings)


@cache
def uses() -> Mapping[str, frozenset[str]]:
    """Return the providers that each setting, or the option ``--revision``, applies to."""
    known = {**dict.fromkeys(known_settings()), "revision": None}
    return MappingProxyType(
        {
            name: frozenset(
                provider.name
                for provider in providers().values()
                if provider.options not in (None, Options) and name in {each.name for each in fields(provider.options)}
            )
            for name in known
        }
    )


def read_settings(pairs: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Check settings by key; a key may come twice with the same value."""
    values: dict[str, Any] = {}
    for key, raw in pairs:
        name = key.strip().replace("-", "_")
        if name not in known_settings():
            raise UnknownName("model option", key, [setting.key for setting in known_settings().values()])
        try:
            setting = known_settings()[name]
            value = setting.read(raw == "true" if setting.kind is FLAG and raw in ("true", "false") else raw)
        except ValueError as error:
            raise UsageError(f"{flag(name)} {error}") from None
        if values.setdefault(name, value) != value:
            raise UsageError(f"{flag(name)} is given twice, as {values[name]} and as {value}; give it once")
    return values


def join_settings(
    common: Mapping[str, object], own: Iterable[tuple[str, object]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Join settings that are named as options with others named by key: the common ones, and the rest if changed."""
    pairs = [*common.items(), *own]
    if not pairs:
        return {}, {}  # without loading every provider
    values = read_settings(pairs)
    known = known_settings()
    rest = {name: value for name, value in values.items() if name not in COMMON and value != known[name].default}
    return {name: value for name, value in values.items() if name in COMMON}, rest


def check_options(options: Options, targets: Mapping[str, Target], judge: str | None) -> None:
    """Raise if an option is set that no model of the command uses."""
    if any(providers()[target.engine].options is Options for target in targets.values()):
        return  # it opens another model, which checks them
    changed = options.changed & {*COMMON, "revision", *options.model_options} - options.lenient
    for option in sorted(changed):
        concerned = {judge: targets[judge]} if option == "revision" and judge else targets
        if not uses()[option].intersection(target.engine for target in concerned.values()):
            places = ", ".join(f"{name} {_place(providers()[target.engine])}" for name, target in concerned.items())
            raise UsageError(
                f"{flag(option)} is for models on {format_engines(uses()[option])}; {places}; remove the option"
            )


def format_engines(names: Iterable[str]) -> str:
    """Name engines for a message."""
    return " or ".join(providers()[name].title or name for name in sorted(names))


def _place(provider: Provider) -> str:
    return provider.place or f"runs on {provider.title or provider.name}"
