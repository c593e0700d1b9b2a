"""``distract merge``: the run of several shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distract.cli.command import command
from distract.cli.options import PATH, json_option, option, verbose_option
from distract.cli.pages import Pages, page_options
from distract.cli.run import check_conclusive, print_run
from distract.cli.shared import print_lines
from distract.cli.terminal import terminal


@command()
@click.argument("shards", nargs=-1, required=True, type=PATH, metavar="RUN...")
@option("--out", type=PATH, required=True, help="Run folder to write.")
@page_options
@verbose_option
@json_option
def merge(shards: tuple[Path, ...], out: Path, verbose: bool, as_json: bool, **more: Any) -> None:
    """Join the shards of a run: all RUNs that were made with --shard.

    Writes the folder that a single run would have written, and prints its report. Asks no model.
    """
    from distract.core import merge as merging

    pages = Pages.take(more)
    parts = merging.read_shards(shards)
    print_lines(merging.list_warnings(parts))
    finished = merging.merge(parts, out, terminal().command)
    print_run(finished, pages, as_json, verbose)
    check_conclusive(finished.run.rows)
