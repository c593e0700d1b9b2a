"""``distract flips``: the verdicts that a rewrite flipped, side by side."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from distract.cli.command import command
from distract.cli.options import PATH, json_option, option, verbose_option
from distract.cli.pages import check_free
from distract.cli.shared import print_result, warn
from distract.models.ranges import WholeRange

if TYPE_CHECKING:
    from distract.studies.attack.flips import FlipOutcome

TOP = WholeRange(1, noun="number of flips", words=MappingProxyType({"all": 0}))


@command()
@click.argument("run", type=PATH)
@option("--top", default="10", bounds=TOP, help="Flips to show, the clearest first; all shows all.")
@option("--attack", "attacks", multiple=True, help="Only flips under this attack; repeatable. Default: no controls.")
@option("--protocol", "protocols", multiple=True, help="Only flips by this way of asking; repeatable.")
@option(
    "--outcome",
    "outcomes",
    type=click.Choice(["flip", "softened", "counter-flip"]),
    multiple=True,
    default=["flip"],
    help="Loser wins, loser ties, or winner loses after its rewrite; repeatable.",
)
@option("--csv", "table", type=PATH, panel="Output", help="CSV file to write, a line for each flip, texts in full.")
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
    """Show the flips of a RUN side by side.

    For each: the question, the rival, what the rewrite changed, the verdict before and after, and what the judge said.
    --verbose shows long texts in full.
    """
    from distract.core import files, runs
    from distract.report.spreadsheet import format_csv
    from distract.studies.attack import flip_view

    loaded = runs.load(run)
    warn(loaded)
    if table is not None:
        check_free(table, [run], "--csv")
    shown, total = flip_view.collect_flips(loaded, top or None, protocols, attacks, outcomes)
    report = flip_view.flips_report(loaded, shown, total, verbose, protocols, attacks)
    print_result(as_json, flip_view.flips_document(shown, total), report)
    if table is not None:
        files.write(table, format_csv(flip_view.COLUMNS, map(flip_view.flatten_shown, shown)), "--csv")
