"""``distract report``, which reads files and asks no model."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.command import command
from distract.cli.pages import Pages, check_free
from distract.cli.shared import echo_json, echo_more, print_result, warn
from distract.models.options import setting
from distract.models.ranges import PATH
from distract.studies.options import PageOptions, ViewOptions, output

if TYPE_CHECKING:
    from distract.core.job import FinishedRun
    from distract.core.runs import LoadedRun
    from distract.report.blocks import Block


@dataclass(frozen=True, kw_only=True)
class _Options(PageOptions, ViewOptions):
    run: Path = setting(MISSING, "run folder", PATH, argument=True, metavar="RUN")
    paper: bool = output(False, "add flips over all pairs, as the paper counts them")
    table: Path | None = output(
        None, "CSV file to write: the comparisons of the run, one a line", PATH, flag="--csv", writes="file"
    )
    parquet: Path | None = output(None, "Parquet file to write: the same table", PATH, writes="file")


@command(_Options)
def report(options: _Options) -> None:
    """Print the report of a RUN again, or write it to a file."""
    from distract.cli.run import report_blocks
    from distract.core import registry, runs
    from distract.core.job import summarise

    pages, loaded = Pages.take(options), runs.load(options.run)
    _write_tables(loaded, options.table, options.parquet)
    if options.paper:
        loaded.check_command("attack")
    warn(loaded)
    if options.as_json and loaded.summary and not loaded.flaw and not pages.any:
        echo_json(loaded.summary)
        return
    finished = summarise(registry.get_study(loaded.command), loaded)
    more_blocks = paper_parts(finished) if options.paper else ()
    document = finished.document if loaded.flaw else loaded.summary
    is_cut = print_result(options.as_json, document, report_blocks(finished, more_blocks), options.verbose)
    echo_more(is_cut, options.run)
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
