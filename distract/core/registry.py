"""Find plug-ins at run time: the folders shipped with distract, then installed third-party packages.

A plug-in is a module-level value of the right record type (``Protocol``, ``Attack``, ``RatingSystem``) in a module of
``distract.judges``, ``distract.attacks`` or ``distract.leaderboards``, or anything that an entry point in the group of
that name loads (the value itself, or a module that holds some).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from distract.core import files, prompts
from distract.core.attack import Attack, join_controls, name_effect
from distract.core.backend import Backend, OwnBackend, own_protocols
from distract.core.errors import DistractError, UnknownName, UsageError, guard_plugin, redirect_output
from distract.core.plan import Plan, tap
from distract.core.plugin import Comparison, Protocol, spell_name
from distract.core.records import BASELINE, Judgment
from distract.core.study import Study

P = TypeVar("P")
_TOP = importlib.import_module(__name__.partition(".")[0])
"""The package itself, which says where the plug-ins of each group are."""

_kinds: dict[str, type[Any]] = {}
"""The record type of each group in use."""


@dataclass(frozen=True, slots=True)
class OwnPlugin:
    """A plug-in from a file of the user's own."""

    path: str  # as the user wrote it
    plugin: Any
    checksum: str


_own: dict[str, dict[str, OwnPlugin]] = {}
"""Plug-ins from files that this process has loaded, by group and name."""

_FILE = re.compile(r"(.+\.(?:py|txt|toml))(?::([\w.-]+))?")

_PLAIN = str | int | float | None
"""The types of fields by which plug-ins can be chosen before they load; tuples of texts too."""


class Plugins(Mapping[str, P]):
    """The plug-ins of a group by name; a shipped one loads when it is looked up.

    What derives from them can be looked up too, and is not listed: controls joined by plus signs, as in
    ``placebo+typography``, and protocols in the words of an edition, as in ``pairwise@1``.
    """

    def __init__(self, kind: type[P], shipped: Mapping[str, Mapping[str, Any]], others: Mapping[str, P]) -> None:
        self._kind, self._shipped, self._loaded = kind, shipped, dict(others)
        self._names = dict.fromkeys(sorted({*shipped, *others}))

    def __getitem__(self, name: str) -> P:
        if name not in self._names and (derived := self._derive(name)):
            self._loaded[name] = derived
        if name not in self._loaded:
            module = _import_plugin(self._shipped[name]["module"])
            self._loaded |= {one.name: one for one in _find_plugins(module, self._kind) if one.name not in self._loaded}
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names or (isinstance(name, str) and self._derive(name) is not None)

    def _derive(self, name: str) -> P | None:
        """Make a plug-in of listed ones by its name; None if the name is not derived from theirs."""
        parts, (base, _, edition) = name.split("+"), name.partition("@")
        if self._kind is Attack and len(parts) > 1 and {*parts} <= self._names.keys() - {BASELINE}:
            with suppress(ValueError):
                joined = join_controls([cast(Attack, self[part]) for part in parts])
                return cast(P, joined) if joined.name == name else None
        if self._kind is Protocol and edition.isdecimal() and base in self._shipped:
            protocol = cast(Protocol, self[base])
            if reworded := prompts.load_edition("distract.judges", edition, protocol.prompts):
                return cast(P, _reword(protocol, name, f"in the words of edition {edition}", reworded))
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def extend(self, own: Mapping[str, P]) -> Plugins[P]:
        """Add plug-ins of the user's own."""
        extended = Plugins(self._kind, self._shipped, {**self._loaded, **own})
        extended._names = {**self._names, **dict.fromkeys(own)}
        return extended

    def traits(self, name: str) -> Mapping[str, Any]:
        """Return the plain fields of a plug-in, which need not load for that."""
        if name not in self._shipped:
            return _list_traits(self[name])
        traits: Mapping[str, Any] = self._shipped[name]["traits"]
        return traits

    def where(self, fits: Callable[[Mapping[str, Any]], bool]) -> tuple[P, ...]:
        """Return the plug-ins whose plain fields fit."""
        return tuple([self[name] for name in self if fits(self.traits(name))])


def plugins(group: str, kind: type[P]) -> Plugins[P]:
    _kinds[group] = kind
    installed, own = _load(group)[0], _own.get(group)
    return installed.extend({name: one.plugin for name, one in own.items()}) if own else installed


def installed() -> Iterator[EntryPoint]:
    """Yield the plug-ins of other packages, without importing any."""
    for group in _TOP.PACKAGES:
        yield from entry_points(group=group)


def is_own(name: str) -> bool:
    """Whether a name is that of a file, or a folder of prompts, of the user's own."""
    return _FILE.fullmatch(name) is not None or _names_folder(name)


def own_plugins(names: Iterable[str]) -> dict[str, dict[str, OwnPlugin]]:
    """Return those of the names that come from files, by group."""
    chosen = {*names}
    groups = {group: {name: one for name, one in own.items() if name in chosen} for group, own in _own.items()}
    return {group: own for group, own in groups.items() if own}


def load_own(group: str, kind: type[P], path: Path, name: str | None = None) -> P:
    """Load a plug-in from a file; ``name`` picks one of several."""
    _kinds[group], noun = kind, kind.__name__
    if path.suffix != ".py" and group not in _TOP.READERS:
        raise UsageError(f"{path}: expected a Python file that defines one {noun}")
    plugins: list[Any]
    if path.suffix == ".py":
        from distract.core.modules import load_file

        with guard_plugin(f"{path} does not load"):
            shipped = {*map(id, _load(group)[0].values())}  # the file may import some
            plugins = [one for one in _find_plugins(load_file(path), kind) if id(one) not in shipped]
    else:
        module, _, reader = _TOP.READERS[group].partition(":")
        plugins = [getattr(importlib.import_module(module), reader)(path)]
    names = [one.name for one in plugins]
    chosen = [one for one in plugins if name in (None, one.name)]
    if len(chosen) != 1:
        problem = f"defines no {noun}" if not names else f"name one of {', '.join(names)} after a colon"
        raise UsageError(
            f"{path}: {problem if name is None or not names else f'defines no {noun} {name!r}; {problem}'}"
        )
    (plugin,) = chosen
    if plugin.name in _load(group)[0]:
        raise UsageError(f"{path}: {noun.lower()} {plugin.name!r} exists already; give yours another name")
    checksum = getattr(plugin, "checksum", "") or hashlib.sha256(path.read_bytes()).hexdigest()
    _own.setdefault(group, {})[plugin.name] = OwnPlugin(str(path) + (f":{name}" if name else ""), plugin, checksum)
    return cast(P, plugin)


def protocols() -> Plugins[Protocol]:
    return plugins("distract.judges", Protocol)


def attacks() -> Plugins[Attack]:
    return plugins("distract.attacks", Attack)


def controls() -> tuple[Attack, ...]:
    """List the attacks that measure noise: they change something irrelevant, but not nothing."""
    return attacks().where(lambda a: a["control"] and not (a["placebo"] or a["asks"]) and a["name"] != BASELINE)


def placebos() -> tuple[Attack, ...]:
    """List the attacks that change words but neither meaning, tone nor quality; a wrapper only adds some."""
    return attacks().where(lambda attack: attack["placebo"] and attack["keeps"] == "meaning")


def code_checksum(protocol: Protocol) -> str:
    """Hash the code of a protocol: its module's file, or all shipped modules together (SHA-256, hex)."""
    own = _own.get("distract.judges", {}).get(protocol.name)
    if checksum := protocol.checksum or (own and own.checksum):
        return checksum
    protocols()  # a judge of the user's own brings its protocol, and no other has been looked up
    return _load("distract.judges")[2].get(protocol.name) or _checksum_shipped("distract.judges")


def problems() -> tuple[str, ...]:
    """List faults of third-party plug-ins of the kinds in use, one line per fault; the rest works without them."""
    return tuple(problem for group in _kinds for problem in _load(group)[1])


def get_protocol(name: str, judge: Backend | None = None, is_recorded: bool = False) -> Protocol:
    """Look up a protocol by name, among those that the judge brings first; a recorded name loads no file."""
    own = {protocol.name: protocol for protocol in own_protocols(judge)} if judge else {}
    if name in own:
        return own[name]
    if isinstance(judge, OwnBackend) and not judge.answers_others:
        raise UsageError(
            f"--protocol {name}: this judge answers only its own protocol, {', '.join(own)}; remove the option"
        )
    if is_recorded:
        return look_up("protocol", name, protocols())
    if _names_folder(name):
        return _load_prompts(name)
    return find_plugin("distract.judges", Protocol, "protocol", name, protocols())


def choose_protocols(
    names: Sequence[str], judge: Backend | None = None, defaults: Sequence[str] = ()
) -> tuple[Protocol, ...]:
    """Look up protocols; without names, take those that the judge brings, else ``defaults`` or the basic ones.

    Sorted by name, so that the order of options does not affect a run.
    """
    if not names and judge and (own := own_protocols(judge)):
        return tuple(sorted(own, key=lambda protocol: protocol.name))
    chosen = tuple([get_protocol(name, judge) for name in sorted(set(names or defaults))])
    numbers = Counter(protocol.name for protocol in chosen)
    if twice := [name for name, number in numbers.items() if number > 1]:
        raise UsageError(f"two protocols are called {twice[0]}; give one of their files or folders another name")
    return chosen or protocols().where(lambda protocol: protocol["default"])


def get_attack(name: str) -> Attack:
    """Look up an attack, or controls joined by plus signs in any order; each may be in a file of the user's own."""
    known = attacks()
    names = [name] if name in known else [part.strip() for part in name.split("+")]
    parts = [find_plugin("distract.attacks", Attack, "attack", part, known) for part in names]
    own = [part for part in parts if part.name != BASELINE] or parts[:1]
    try:
        return join_controls(own) if len(own) > 1 else own[0]
    except ValueError as error:
        raise UsageError(f"attack {name!r}: {error}") from error


def list_attacks(name: str) -> tuple[str, ...]:
    """List the attacks that a value of ``--attack`` selects: ``family:NAME``, ``all:EFFECT``, or the name of one."""
    kind, colon, value = name.partition(":")
    if not colon or kind not in ("family", "all"):
        return (name,)
    field = "family" if kind == "family" else "effect"
    groups: dict[str, list[str]] = {}
    known = attacks()
    for name in known:
        if name != BASELINE:
            groups.setdefault(known.traits(name)[field], []).append(name)
    value = name_effect(value) if kind == "all" else value
    if value not in groups:
        raise UnknownName(field, value, groups)
    return tuple(groups[value])


@cache
def list_studies() -> Mapping[str, str]:
    """Map the name of each study to its module: ``study`` of a folder, or a module with ``STUDY``."""
    package = importlib.import_module(_TOP.PACKAGES["distract.studies"])
    modules = dict[str, str]()
    for folder in map(Path, package.__path__):
        modules |= {path.parent.name: f"{path.parent.name}.study" for path in folder.glob("*/study.py")}
        texts = {path.stem: path.read_text("utf-8", errors="replace") for path in folder.glob("*.py")}
        modules |= {name: name for name, text in texts.items() if re.search(r"^STUDY\b", text, re.MULTILINE)}
    return {name: f"{package.__name__}.{module}" for name, module in modules.items()}


def get_study(name: str) -> Study[Any]:
    if name not in list_studies():
        raise UnknownName("study", name, list_studies())
    study: Study[Any] = importlib.import_module(list_studies()[name]).STUDY
    return study


def find_plugin(group: str, kind: type[P], noun: str, name: str, known: Mapping[str, P]) -> P:
    """Find a plug-in that the user names among those that are known, or in the file of that name."""
    if file := _FILE.fullmatch(name):
        return load_own(group, kind, Path(file[1]), file[2])
    return look_up(noun, name, known)


def look_up(noun: str, name: str, known: Mapping[str, P]) -> P:
    """Find a plug-in that data name among those that are known: a file of that name may be a stranger's code."""
    if name not in known:
        raise UnknownName(noun, name, known, "; ".join(problems()))
    return known[name]


def _names_folder(name: str) -> bool:
    """Whether a name is ``PROTOCOL=FOLDER``; that of a file may hold such a sign too."""
    base, sign, _ = name.partition("=")
    return bool(sign) and (base in protocols() or not _FILE.fullmatch(name))


def _load_prompts(spelling: str) -> Protocol:
    """Load ``PROTOCOL=FOLDER``: a protocol with the prompts of a folder in place of its own."""
    base, _, folder = spelling.partition("=")
    protocol: Protocol = look_up("protocol", base, _load("distract.judges")[0])
    if not (folder.strip() and protocol.prompts):
        problem = "name a folder of prompts after the =" if protocol.prompts else f"{base} has no prompt files"
        raise UsageError(f"--protocol {spelling}: {problem}")
    name = f"{base}={spell_name(Path(folder).absolute().name) or 'prompts'}"[:64]
    variant = _reword(protocol, name, "with prompts of your own", prompts.read_folder(Path(folder), protocol.prompts))
    _own.setdefault("distract.judges", {})[name] = OwnPlugin(spelling, variant, variant.checksum)
    return variant


def _reword(protocol: Protocol, name: str, note: str, replacements: Mapping[str, prompts.Prompt]) -> Protocol:
    """Return a protocol that asks with other prompts in place of those of the same names."""
    fill = partial(prompts.replace_prompts, replacements)

    def ask(comparison: Comparison) -> Plan[Judgment]:
        with fill():  # a first prompt may be filled before the plan starts
            plan = protocol.ask(comparison)
        return (yield from tap(plan, guard=fill))

    own = [replacements.get(prompt.name, prompt) for prompt in protocol.prompts]
    # The code of distract itself does not count: anchors outlive it, as they do with a prompt file.
    code = _load("distract.judges")[2].get(protocol.name, "")
    parts = [protocol.name, code, *(prompt.checksum for prompt in own)]
    return replace(
        protocol,
        name=name,
        summary=f"{protocol.summary}; {note}",
        ask=ask,
        prompts=tuple(replace(one, name=f"{name}/{one.name}") if one.name in replacements else one for one in own),
        default=False,
        checksum=hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
    )


@cache
def _load(group: str) -> tuple[Plugins[Any], tuple[str, ...], Mapping[str, str]]:
    """List the plug-ins of a group; load third-party ones, with their faults, and checksums of their code by name."""
    kind = _kinds[group]
    shipped = _read_index(group, kind)
    loaded, sources, faults = dict[str, Any](), dict[str, str](), list[str]()
    for entry in entry_points(group=group):
        where = f"plug-in {entry.name!r} ({entry.value})"
        try:
            with guard_plugin(f"{where} does not load"), redirect_output():
                value = entry.load()
                plugins = [value] if isinstance(value, kind) else _find_plugins(value, kind)
        except DistractError as error:  # a third-party fault must not stop the rest
            faults.append(str(error))
            continue
        if not plugins:
            faults.append(f"{where} holds no {kind.__name__}")
        for plugin in plugins:
            if plugin.name in shipped or loaded.setdefault(plugin.name, plugin) is not plugin:
                faults.append(f"{where} defines {kind.__name__.lower()} {plugin.name!r}, which exists already")
                continue
            sources.setdefault(plugin.name, _checksum([getattr(sys.modules.get(entry.module), "__file__", None)]))
    return Plugins(kind, shipped, loaded), tuple(faults), sources


def _read_index(group: str, kind: type[Any]) -> Mapping[str, Mapping[str, Any]]:
    """Read the module and the plain fields of each shipped plug-in, as listed since the folder last changed."""
    package = importlib.import_module(_TOP.PACKAGES[group])
    paths = [*_list_files(package), Path(str(sys.modules[kind.__module__].__file__))]
    stamps = [[str(path), (stat := path.stat()).st_mtime_ns, stat.st_size] for path in paths]
    stamp = [sys.version, kind.__name__, *stamps]
    # Not beside the code: a file that pip did not install keeps the folder when it uninstalls the package.
    name = f"plugins-{hashlib.sha256(str(package.__path__[0]).encode()).hexdigest()[:12]}.json"
    with suppress(OSError, ValueError, LookupError, TypeError, RuntimeError):  # there may be no home
        file = files.cache_folder() / name
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["stamp"] == stamp:
            index: Mapping[str, Mapping[str, Any]] = document["plugins"]
            return index
    index = {
        plugin.name: {"module": module.__name__, "traits": _list_traits(plugin)}
        for info in pkgutil.iter_modules(package.__path__)
        for module in [_import_plugin(f"{package.__name__}.{info.name}")]
        for plugin in _find_plugins(module, kind)
    }
    with suppress(OSError, DistractError, RuntimeError):  # a cache, which a folder that cannot be written lacks
        file = files.cache_folder() / name
        files.make_folder(file.parent)
        files.replace(file, json.dumps({"stamp": stamp, "plugins": index}))
    return index


def _import_plugin(name: str) -> ModuleType:
    with guard_plugin(f"plug-in {name} does not load"):
        return importlib.import_module(name)


def _list_traits(plugin: Any) -> dict[str, Any]:
    """Return the fields of a plug-in that are plain values, in which a tuple is a list, as JSON has it."""
    values = {each.name: getattr(plugin, each.name) for each in fields(plugin)}
    lists = {name: [*value] for name, value in values.items() if isinstance(value, tuple)}
    plain = {name: value for name, value in values.items() if isinstance(value, _PLAIN)}
    return plain | {name: value for name, value in lists.items() if all(isinstance(one, str) for one in value)}


def _list_files(package: ModuleType) -> list[Path]:
    return [
        path for folder in package.__path__ for path in sorted(Path(folder).glob("*.py")) if path.stem != "__init__"
    ]


@cache
def _checksum_shipped(group: str) -> str:
    return _checksum(map(str, _list_files(importlib.import_module(_TOP.PACKAGES[group]))))


def _checksum(paths: Iterable[str | None]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).read_bytes() if path and Path(path).is_file() else b"")
    return digest.hexdigest()


def _find_plugins(module: object, kind: type[Any]) -> list[Any]:
    if not isinstance(module, ModuleType):
        return []
    return [value for value in vars(module).values() if isinstance(value, kind)]
