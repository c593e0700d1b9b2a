"""``distract report`` and ``check``, which read files and ask no model."""

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


@command()
@click.argument("paths", nargs=-1, type=PATH, metavar="ORIGINAL REWRITE | RUN")
@option("--labelled", type=PATH, help="JSON Lines of rewrites labelled faithful or changed.")
@option("--attack", "name", help="Attack that the rewrite is meant for: also checks its marker and limit.")
@option("--prompt", type=PATH, help="File of the prompt that both texts answer.")
@option("--constraint", "constraints", multiple=True, help='Format to keep, as {"kind": ...}; repeatable.')
@json_option
def check(
    paths: tuple[Path, ...],
    labelled: Path | None,
    name: str | None,
    prompt: Path | None,
    constraints: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check whether a rewrite still says the same.

    Takes a text and its REWRITE, a RUN with its rewrites, or a labelled set. A labelled set is JSON Lines of
    {prompt, original, rewrite, style, label, kind, constraints?}: style is an attack, label faithful or changed,
    kind what was changed. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.studies.check import audit, view

    if len(paths) not in ((0,) if labelled else (1, 2)):
        raise click.UsageError("check takes two text files, or one run folder, or --labelled FILE")
    if (name or prompt or constraints) and len(paths) != 2:
        raise click.UsageError("--attack, --prompt and --constraint apply only to two text files")
    if labelled:
        verdicts = audit.check_labelled(labelled)
        document, parts = audit.labelled_document(verdicts), view.labelled_report(audit.error_rates(verdicts))
    elif len(paths) == 1:
        loaded = runs.load(paths[0])
        loaded.check_command("attack")
        warn(loaded)
        rewrites = loaded.rewrites
        document, parts = audit.run_document(rewrites), view.run_report(rewrites)
    else:
        pair = audit.check_files(paths[0], paths[1], prompt, name, constraints)
        document, parts = audit.pair_document(pair), view.pair_report(pair)
    print_result(as_json, document, parts)
