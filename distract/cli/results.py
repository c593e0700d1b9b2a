"""Commands that read what is there and call no model: report, check, list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from distract.cli.shared import catalogue_option, command, echo, echo_json, json_option, safe_line, warn
from distract.core.errors import UnknownName
from distract.stats import ratings

if TYPE_CHECKING:
    from distract.stats.ratings.system import RatingSystem


@command()
@click.argument("run", type=click.Path(path_type=Path))
@json_option
def report(run: Path, as_json: bool) -> None:
    """Print the tables of a RUN again, without a model."""
    from distract.cli.run import unread_parts
    from distract.core import registry, runs
    from distract.core.job import summarise
    from distract.report.tables import show

    loaded = runs.load(run)
    warn(loaded)
    if as_json and loaded.summary and not loaded.flaw:
        echo_json(loaded.summary)
        return
    finished = summarise(registry.get_study(loaded.command), loaded)
    if as_json:
        echo_json(finished.document)
    else:
        show(finished.report)
        show(unread_parts(loaded))


@command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="ORIGINAL REWRITE | RUN")
@click.option(
    "--labelled", type=click.Path(path_type=Path), help="JSON Lines of rewrites labelled faithful or changed."
)
@click.option("--attack", "name", help="What the rewrite is meant to be: its marker and limit are checked too.")
@click.option("--prompt", type=click.Path(path_type=Path), help="File of the prompt that both texts answer.")
@click.option("--constraint", "constraints", multiple=True, help='Format to keep, as {"kind": ...}; repeatable.')
@json_option
def check(
    paths: tuple[Path, ...],
    labelled: Path | None,
    name: str | None,
    prompt: Path | None,
    constraints: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say whether a rewrite still says the same: a text and its REWRITE, a RUN's rewrites, or a labelled set.

    A labelled set is JSON Lines of {prompt, original, rewrite, style, label, kind, constraints?}: style is an attack,
    label faithful or changed, kind what was changed. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.report.tables import has_colour, show
    from distract.studies.check import audit, view

    if len(paths) not in ((0,) if labelled else (1, 2)):
        raise click.UsageError("check takes two text files, or one run folder, or --labelled FILE")
    if (name or prompt or constraints) and len(paths) != 2:
        raise click.UsageError("--attack, --prompt and --constraint go with two text files")
    if labelled:
        found = audit.check_labelled(labelled)
        document, parts = audit.labelled_document(found), view.labelled_report(audit.error_rates(found))
    elif len(paths) == 1:
        loaded = runs.load(paths[0])
        loaded.check_command("attack")
        warn(loaded)
        rewrites = loaded.rewrites
        document, parts = audit.run_document(rewrites), view.run_report(rewrites, has_colour())
    else:
        one = audit.check_files(paths[0], paths[1], prompt, name, constraints)
        document, parts = audit.pair_document(one), view.pair_report(one, has_colour())
    echo_json(document) if as_json else show(parts)


@command("list")
@click.argument("what", required=False)
@catalogue_option
def list_(what: str | None, catalogue: Path | None) -> None:
    """Show judges, protocols, attacks, rating systems, data sets, formats, generators, a line each; or WHAT of them."""
    from distract.cli.catalogue_view import model_lines
    from distract.cli.protocols_view import protocol_lines
    from distract.core import registry
    from distract.core.printable import clean_text
    from distract.data import datasets
    from distract.models.catalogue import catalogue as models
    from distract.models.catalogue import problems
    from distract.models.opener import list_forms
    from distract.rewriting import writers
    from distract.studies.leaderboard.sources import FORMATS

    sections = {
        "judges": {**list_forms(), **model_lines(models(catalogue).values())},
        "protocols": protocol_lines(registry.protocols().values()),
        "attacks": {a.name: a.summary for a in registry.attacks().values()},
        "rating systems": {s.name: _describe_system(s) for s in ratings.systems().values()},
        "data sets": {name: line for name, (_, line) in datasets.BUILT_IN.items()},
        "data formats": {name: reader.summary for name, reader in datasets.READERS.items()},
        "matches": {name: one for name, one in FORMATS.items() if name not in datasets.READERS},
        "generators": {
            **{w.name: w.summary for w in writers.WRITERS.values()},
            "MODEL": "any judge above that is a model: it is asked to rewrite, told why and tries again",
        },
    }
    wanted = (what or "").casefold().replace("-", " ").replace("_", " ")
    # A section, or those of which a word begins so: `data` are the sets and the formats, `judge` the judges.
    titles = [wanted] if wanted in sections else [one for one in sections if f" {wanted}" in f" {one}"]
    if not titles:
        raise UnknownName("section", str(what), sections)
    for title, entries in ((one, sections[one]) for one in titles):
        echo(f"{title}:")
        width = max(map(len, entries), default=0)
        for name, line in entries.items():
            echo(f"  {safe_line(name):<{width}}  {' '.join(clean_text(line).splitlines())}")
    for problem in (*registry.problems(), *problems()):
        echo(f"warning: {safe_line(problem)}", err=True)


def _describe_system(system: RatingSystem) -> str:
    """A rating system in a line, with what can be set and its defaults."""
    given = ", ".join(f"{name}={value}" for name, value in system.parameters.items())
    return f"{system.summary} ({given})" if given else system.summary
