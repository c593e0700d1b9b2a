"""``distract merge``: the run of several shards."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from distract.cli.command import command
from distract.cli.pages import Pages
from distract.cli.run import check_conclusive, print_run
from distract.cli.shared import print_lines
from distract.cli.terminal import terminal
from distract.models.options import setting
from distract.models.ranges import PATH, Several
from distract.studies.options import PageOptions, ViewOptions


@dataclass(frozen=True, kw_only=True)
class _Options(PageOptions, ViewOptions):
    shards: tuple[Path, ...] = setting(MISSING, "run folders", Several(PATH), argument=True, metavar="RUN...")
    out: Path = setting(MISSING, "run folder to write", PATH, writes="own")


@command(_Options)
def merge(options: _Options) -> None:
    """Join the shards of a run: all RUNs that were made with --shard.

    Writes the folder that a single run would have written, and prints its report. Asks no model.
    """
    from distract.core import merge as merging

    pages = Pages.take(options)
    parts = merging.read_shards(options.shards)
    print_lines(merging.list_warnings(parts))
    finished = merging.merge(parts, options.out, terminal().command)
    print_run(finished, pages, options)
    check_conclusive(finished.run.rows)
