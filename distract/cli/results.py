"""``distract report``, which reads files and asks no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.command import command
from distract.cli.options import PATH, json_option, option, paper_option, verbose_option
from distract.cli.pages import Pages, check_free, page_options
from distract.cli.shared import echo_json, echo_more, print_result, warn

if TYPE_CHECKING:
    from distract.core.job import FinishedRun
    from distract.core.runs import LoadedRun
    from distract.report.blocks import Block


@command()
@click.argument("run", type=PATH)
@paper_option
@page_options
@option("--csv", "table", type=PATH, panel="Output", help="CSV file to write: the comparisons of the run, one a line.")
@option("--parquet", type=PATH, panel="Output", help="Parquet file to write: the same table.")
@verbose_option
@json_option
def report(
    run: Path, paper: bool, table: Path | None, parquet: Path | None, verbose: bool, as_json: bool, **more: Any
) -> None:
    """Print the report of a RUN again, or write it to a file."""
    from distract.cli.run import report_blocks
    from distract.core import registry, runs
    from distract.core.job import summarise

    pages, loaded = Pages.take(more), runs.load(run)
    _write_tables(loaded, table, parquet)
    if paper:
        loaded.check_command("attack")
    warn(loaded)
    if as_json and loaded.summary and not loaded.flaw and not pages.any:
        echo_json(loaded.summary)
        return
    finished = summarise(registry.get_study(loaded.command), loaded)
    more_blocks = paper_parts(finished) if paper else ()
    document = finished.document if loaded.flaw else loaded.summary
    echo_more(print_result(as_json, document, report_blocks(finished, more_blocks), verbose), run)
    pages.write(lambda: report_blocks(finished, more_blocks), loaded)


def _write_tables(run: LoadedRun, table: Path | None, parquet: Path | None) -> None:
    """Write the comparisons of a run to the files named."""
    from distract.core import files
    from distract.report.spreadsheet import format_csv
    from distract.studies.attack.flips import COLUMNS, list_comparisons, write_parquet

    for path, name in ((table, "--csv"), (parquet, "--parquet")):
        if path is not None:
            check_free(path, [run.path], name)
    if table is not None:
        files.write(table, format_csv(list(COLUMNS), list_comparisons(run)), "--csv")
    if parquet is not None:
        write_parquet(run, parquet, "--parquet")


def paper_parts(finished: FinishedRun[Any]) -> list[Block]:
    """Show the flips of a run as the paper counts them."""
    from distract.studies.attack.view import paper_table

    return [paper_table(finished.result.figures)]
