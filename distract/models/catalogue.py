"""The catalogue of judges: which model a short name stands for, how large it is, and what it costs.

Entries come from the ``models.toml`` shipped with the protocols, from those of installed plug-ins, and from the user's
own file, whose entries add to or replace the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from distract.core.errors import DataError
from distract.models.entries import CatalogueEntry, entry_error, parse, read

__all__ = ["CatalogueEntry", "catalogue", "find", "find_alternatives", "problems"]

FILE = "models.toml"
_GROUP = "distract.judges"  # the package and the group of entry points in which the registry finds protocols


def catalogue(own: Path | None = None) -> Mapping[str, CatalogueEntry]:
    """Every judge by name, in alphabetical order."""
    installed = _read_installed()[0]
    return installed if own is None else _merge(installed, read(own), own)


def problems() -> tuple[str, ...]:
    """Faults in catalogues of third-party plug-ins, a line each; the rest works without them."""
    return _read_installed()[1]


def find(name: str, among: Mapping[str, CatalogueEntry]) -> CatalogueEntry | None:
    """The entry with that name, else alias, else model id, whatever the case."""
    folded = name.casefold()
    for names in (lambda m: (m.name,), lambda m: m.aliases, lambda m: (m.model,)):
        for entry in among.values():
            if folded in map(str.casefold, names(entry)):
                return entry
    return None


def find_alternatives(of: CatalogueEntry, among: Mapping[str, CatalogueEntry]) -> dict[str, float]:
    """Local judges that could stand in for one, each with its billions of parameters.

    They are of its family, from its maker rather than a fine-tuner, and take prompts as long as it does.
    """
    context = of.context or 0
    family = [m for m in among.values() if of.family and m.family == of.family and m.name.startswith(of.family)]
    local = [m for m in family if m.engine == "local" and m.name != of.name and (m.context or 0) >= context]
    return {m.name: m.parameters for m in local if m.parameters}


def _merge(
    ours: Mapping[str, CatalogueEntry], own: Sequence[CatalogueEntry], path: Path
) -> Mapping[str, CatalogueEntry]:
    """Both catalogues; the user's names and aliases win."""
    names = {entry.name.casefold() for entry in own}
    aliases = {alias.casefold(): entry.name for entry in own for alias in entry.aliases}
    merged = {entry.name: entry for entry in own}
    for entry in ours.values():
        if entry.name.casefold() in names:
            continue
        if owner := aliases.get(entry.name.casefold()):
            raise entry_error(path, owner, "aliases", f"{entry.name!r} is a judge of its own; take another name")
        left = tuple(alias for alias in entry.aliases if alias.casefold() not in names | aliases.keys())
        merged[entry.name] = replace(entry, aliases=left)
    return MappingProxyType(dict(sorted(merged.items())))


@cache
def _read_installed() -> tuple[Mapping[str, CatalogueEntry], tuple[str, ...]]:
    shipped = resources.files(_GROUP) / FILE
    entries = {entry.name: entry for entry in parse(shipped.read_text(encoding="utf-8"), shipped)}
    faults = []
    for path in _find_plugin_files():
        try:
            for entry in read(path):
                if find(entry.name, entries):
                    faults.append(f"{path} defines the judge {entry.name!r}, which exists already")
                else:
                    entries[entry.name] = entry
        except DataError as error:  # a third party's file must not stop the rest
            faults.append(str(error))
    return MappingProxyType(dict(sorted(entries.items()))), tuple(faults)


def _find_plugin_files() -> list[Path]:
    """Catalogues at the top of packages that offer protocols; none of these packages is imported."""
    tops = {entry.module.partition(".")[0] for entry in entry_points(group=_GROUP)}
    specs = [find_spec(top) for top in sorted(tops)]
    folders = [Path(at) for spec in specs if spec for at in spec.submodule_search_locations or ()]
    return [folder / FILE for folder in folders if (folder / FILE).is_file()]
