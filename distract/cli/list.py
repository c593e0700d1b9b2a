"""``distract list``: what there is to choose from, one line each."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import click

from distract.cli.command import command, list_options
from distract.cli.shared import echo, safe_line
from distract.core.errors import UnknownName
from distract.models.options import CatalogueOptions, Setting, setting

if TYPE_CHECKING:
    from distract.core.attack import Attack
    from distract.core.plugin import Protocol
    from distract.models.catalogue import CatalogueEntry
    from distract.stats.ratings.system import RatingSystem

READ_LABELS = {"choices": "log-probability", "text": "text"}
LONGEST_NAME = 22
"""Characters of a name with its description on the same line."""


@dataclass(frozen=True, kw_only=True)
class _Options(CatalogueOptions):
    what: str | None = setting(None, "section", argument=True, metavar="[WHAT]")


@command(_Options, "list")
def list_(options: _Options) -> None:
    """List what there is to choose from.

    WHAT is judges, options, protocols, attacks, measures, rating systems, data, matches or generators; all of them
    without it.
    """
    from distract.core import registry
    from distract.data import datasets
    from distract.models.catalogue import catalogue as models, problems
    from distract.models.opener import list_forms
    from distract.models.provider import known_settings
    from distract.report.glossary import list_measures
    from distract.rewriting import writers
    from distract.stats import ratings
    from distract.studies.leaderboard.sources import FORMATS

    sections = {
        "judges": list_forms() | {one.name: _describe_model(one) for one in models(options.catalogue).values()},
        "options of commands": _describe_options(click.get_current_context()),
        "options of models": {one.key: _describe_setting(name, one) for name, one in known_settings().items()},
        "protocols": {protocol.name: _describe_protocol(protocol) for protocol in registry.protocols().values()},
        "attacks": {},
        "measures": {words: meaning.replace("`", "") for words, meaning in list_measures().items()},
        "rating systems": {system.name: _describe_system(system) for system in ratings.systems().values()},
        "data sets": {name: line for name, (_, line) in datasets.BUILT_IN.items()},
        "data formats": {name: reader.summary for name, reader in datasets.READERS.items()},
        "matches": {name: line for name, line in FORMATS.items() if name not in datasets.READERS},
        "generators": {
            **{writer.name: writer.summary for writer in writers.WRITERS.values()},
            "MODEL": "any judge above that is a model: it rewrites, and tries again with the reason for a rejection",
        },
    }
    query = (options.what or "").casefold().replace("-", " ").replace("_", " ")
    # A whole title, or every title with a word that begins so: `data` lists the sets and the formats.
    titles = [query] if query in sections else [title for title in sections if f" {query}" in f" {title}"]
    if not titles:
        raise UnknownName("section", str(options.what), sections)
    for title in titles:
        parts = _group_attacks(registry.attacks().values()) if title == "attacks" else {title: sections[title]}
        for heading, part in parts.items():
            echo(f"{heading}:")
            for line in _layout(part):
                echo(line)
    for problem in (*registry.problems(), *problems()):
        echo(f"warning: {safe_line(problem)}", err=True)


def _describe_options(context: click.Context) -> dict[str, str]:
    """Describe the options of all commands, with the commands that take each."""
    rows: dict[str, str] = {}
    for option, commands in list_options(context):
        text = f"{option.sentence} ({', '.join(commands)})"
        rows[option.flag] = f"{rows[option.flag]} {text}" if option.flag in rows else text
    return rows


def _group_attacks(attacks: Iterable[Attack]) -> Mapping[str, Mapping[str, str]]:
    """Group attacks by what they do to quality, then by family."""
    from distract.core.attack import Effect
    from distract.stats.trials import EFFECTS

    groups: dict[str, dict[str, str]] = {}
    for attack in sorted(attacks, key=lambda attack: (get_args(Effect).index(attack.effect), attack.family)):
        family = f", {attack.family}" if attack.family != attack.effect else ""
        groups.setdefault(f"{EFFECTS[attack.effect][0]} ({attack.effect}){family}", {})[attack.name] = attack.summary
    return groups


def _layout(section: Mapping[str, str]) -> Iterator[str]:
    """Lay out names and descriptions in the columns of the terminal."""
    names = {safe_line(name): safe_line(text) for name, text in section.items()}
    width = max((len(name) for name in names if len(name) <= LONGEST_NAME), default=0)
    columns = max(shutil.get_terminal_size().columns, 40)
    for name, text in names.items():
        indent = " " * (width + 4)
        first = f"  {name:<{width}}  "
        if len(name) > width:
            yield from textwrap.wrap(name, columns, initial_indent="  ", subsequent_indent="  ")
            first = indent
        yield from textwrap.wrap(
            text, columns, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
        ) or [first.rstrip()]


def _describe_setting(name: str, setting: Setting) -> str:
    """Describe a key of ``--model-option``."""
    from distract.models.provider import format_engines, uses

    default = "" if setting.default is None else f"; default: {str(setting.default).lower()}"
    return f"{setting.help} ({format_engines(uses()[name])}{default})"


def _describe_system(system: RatingSystem) -> str:
    defaults = ", ".join(f"{name}={value}" for name, value in system.parameters.items())
    return f"{system.summary} ({defaults})" if defaults else system.summary


def _describe_protocol(protocol: Protocol) -> str:
    """Describe a protocol: calls per comparison in one order, ties, what is read, paper, summary."""
    orders = f" in {protocol.shows} orders" if protocol.orders == "rotate" else ""
    parts = (f"calls {protocol.calls}{orders}", "tie" if protocol.ties else "no tie", READ_LABELS[protocol.reads])
    return "; ".join(part for part in (*parts, protocol.paper, protocol.summary) if part)


def _describe_model(model: CatalogueEntry) -> str:
    """Describe a model: id, billions of parameters, context in tokens, family, licence, notes."""
    return "; ".join(part for part in (model.model, _size(model), _context(model), _details(model)) if part)


def _size(model: CatalogueEntry) -> str:
    if model.parameters is None:
        return "server" if model.engine == "openai" else ""
    active = f" ({model.active:g}B)" if model.active else ""
    return f"{model.parameters:g}B{active}"


def _context(model: CatalogueEntry) -> str:
    if model.context is None:
        return ""
    return f"{model.context // 1024}k tokens" if model.context >= 1024 else f"{model.context} tokens"


def _details(model: CatalogueEntry) -> str:
    prices = ""
    if model.price_in is not None or model.price_out is not None:
        when = f" in {model.prices}" if model.prices else ""
        prices = f"${model.price_in or 0:g} / ${model.price_out or 0:g} a million tokens{when}"
    return "; ".join(part for part in (model.family, model.licence, prices, model.notes) if part)
