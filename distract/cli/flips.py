"""``distract flips``: the verdicts that a rewrite flipped, or that differ from the label of people, side by side."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from distract.cli.command import check_options, command
from distract.cli.options import PATH, json_option, option, verbose_option
from distract.cli.pages import check_free
from distract.cli.shared import print_result, warn
from distract.models.ranges import WholeRange

if TYPE_CHECKING:
    from distract.studies.attack.flips import FlipOutcome

MATCHING_OPTIONS = ("run", "top", "protocols", "table", "verbose", "as_json")
"""The options that apply to disagreements too."""

TOP = WholeRange(1, noun="number", words=MappingProxyType({"all": 0}))


@command()
@click.argument("run", type=PATH)
@option("--top", default="10", bounds=TOP, help="Flips or disagreements to show, the clearest first, or all.")
@option("--attack", "attacks", multiple=True, help="Only flips under this attack; repeatable. Default: no controls.")
@option("--protocol", "protocols", multiple=True, help="Only those by this way of asking; repeatable.")
@option(
    "--outcome",
    "outcomes",
    type=click.Choice(["flip", "softened", "counter-flip"]),
    multiple=True,
    default=["flip"],
    help="Loser wins, loser ties, or winner loses after its rewrite; repeatable.",
)
@option("--csv", "table", type=PATH, panel="Output", help="CSV file to write, a line for each, texts in full.")
@verbose_option
@json_option
def flips(
    run: Path,
    top: int | None,
    attacks: tuple[str, ...],
    protocols: tuple[str, ...],
    outcomes: tuple[FlipOutcome, ...],
    table: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show the flips of a RUN side by side, or where a judge disagrees with people.

    For each flip: the question, the rival, what the rewrite changed, the verdict before and after, and what the judge
    said. For a run of `distract meta`, each disagreement: the question, the responses, the label, the verdict in each
    order, and what the judge said. --verbose shows long texts in full.
    """
    from distract.core import files, runs
    from distract.report.spreadsheet import format_csv

    loaded = runs.load(run)
    loaded.check_command("attack", "gate", "meta")
    warn(loaded)
    if table is not None:
        check_free(table, [run], "--csv")
    if loaded.command == "meta":
        from distract.studies.meta import disagreements as view
        from distract.studies.meta.disagreements import collect_disagreements, read_source

        check_options(MATCHING_OPTIONS, "applies only to flips; this is a run of `distract meta`")
        sources = [read_source(loaded)]
        listed, total = collect_disagreements(sources, top or None, protocols)
        document, records = view.disagreements_document(listed, total), map(view.flatten_shown, listed)
        columns, report = view.COLUMNS, view.disagreements_report(sources, listed, total, verbose, protocols)
    else:
        from distract.studies.attack import flip_view

        shown, total = flip_view.collect_flips(loaded, top or None, protocols, attacks, outcomes)
        document, records = flip_view.flips_document(shown, total), map(flip_view.flatten_shown, shown)
        columns, report = flip_view.COLUMNS, flip_view.flips_report(loaded, shown, total, verbose, protocols, attacks)
    print_result(as_json, document, report)
    if table is not None:
        files.write(table, format_csv(columns, records), "--csv")
