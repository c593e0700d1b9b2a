"""``distract list``: what there is to choose from, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distract.cli.options import catalogue_option
from distract.cli.shared import command, echo, safe_line
from distract.core.errors import UnknownName

if TYPE_CHECKING:
    from distract.core.plugin import Protocol
    from distract.models.catalogue import CatalogueEntry
    from distract.stats.ratings.system import RatingSystem

READ_LABELS = {"choices": "log-probability", "text": "text"}


@command("list")
@click.argument("what", required=False)
@catalogue_option
def list_(what: str | None, catalogue: Path | None) -> None:
    """List judges, protocols, attacks, rating systems, data sets, formats and generators, or only WHAT of them."""
    from distract.core import registry
    from distract.core.printable import clean_text
    from distract.data import datasets
    from distract.models.catalogue import catalogue as models
    from distract.models.catalogue import problems
    from distract.models.opener import list_forms
    from distract.rewriting import writers
    from distract.stats import ratings
    from distract.studies.leaderboard.sources import FORMATS

    sections = {
        "judges": {**list_forms(), **_model_lines(models(catalogue).values())},
        "protocols": _protocol_lines(registry.protocols().values()),
        "attacks": {attack.name: attack.summary for attack in registry.attacks().values()},
        "rating systems": {system.name: _describe_system(system) for system in ratings.systems().values()},
        "data sets": {name: line for name, (_, line) in datasets.BUILT_IN.items()},
        "data formats": {name: reader.summary for name, reader in datasets.READERS.items()},
        "matches": {name: line for name, line in FORMATS.items() if name not in datasets.READERS},
        "generators": {
            **{writer.name: writer.summary for writer in writers.WRITERS.values()},
            "MODEL": "any judge above that is a model: it rewrites, and tries again when told why a text was rejected",
        },
    }
    query = (what or "").casefold().replace("-", " ").replace("_", " ")
    # A whole title, or every title with a word that begins so: `data` lists the sets and the formats.
    titles = [query] if query in sections else [title for title in sections if f" {query}" in f" {title}"]
    if not titles:
        raise UnknownName("section", str(what), sections)
    for title in titles:
        echo(f"{title}:")
        width = max(map(len, sections[title]), default=0)
        for name, line in sections[title].items():
            echo(f"  {safe_line(name):<{width}}  {' '.join(clean_text(line).splitlines())}")
    for problem in (*registry.problems(), *problems()):
        echo(f"warning: {safe_line(problem)}", err=True)


def _describe_system(system: RatingSystem) -> str:
    defaults = ", ".join(f"{name}={value}" for name, value in system.parameters.items())
    return f"{system.summary} ({defaults})" if defaults else system.summary


def _protocol_lines(protocols: Iterable[Protocol]) -> dict[str, str]:
    """Describe protocols: calls per comparison in one order, ties, what is read, paper, summary."""
    protocols = list(protocols)
    calls = {p.name: f"calls {p.calls}" + (f" in {p.shows} orders" if p.orders == "rotate" else "") for p in protocols}
    widths = [max(map(len, column), default=0) for column in (calls.values(), (p.paper for p in protocols))]
    return {
        p.name: f"{calls[p.name]:<{widths[0]}}  {'tie' if p.ties else 'no tie':<6}  {READ_LABELS[p.reads]:<15}  "
        f"{p.paper:<{widths[1]}}  {p.summary}"
        for p in protocols
    }


def _model_lines(models: Iterable[CatalogueEntry]) -> dict[str, str]:
    """Describe models: id, billions of parameters, context in tokens, family, licence, notes."""
    models = list(models)
    width = max((len(model.model) for model in models), default=0)
    return {
        model.name: f"{model.model:<{width}}  {_size(model):>12} {_context(model):>6}  {_details(model)}"
        for model in models
    }


def _size(model: CatalogueEntry) -> str:
    if model.parameters is None:
        return "server" if model.engine == "openai" else ""
    active = f" ({model.active:g}B)" if model.active else ""
    return f"{model.parameters:g}B{active}"


def _context(model: CatalogueEntry) -> str:
    if model.context is None:
        return ""
    return f"{model.context // 1024}k" if model.context >= 1024 else str(model.context)


def _details(model: CatalogueEntry) -> str:
    prices = ""
    if model.price_in is not None or model.price_out is not None:
        when = f" in {model.prices}" if model.prices else ""
        prices = f"${model.price_in or 0:g} / ${model.price_out or 0:g} a million tokens{when}"
    return "; ".join(part for part in (model.family, model.licence, prices, model.notes) if part)
