"""``distract flips``: the verdicts that a rewrite flipped, or that differ from the label of people, side by side."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distract.cli.command import check_options, command
from distract.cli.pages import check_free
from distract.cli.shared import print_result, warn
from distract.models.options import setting
from distract.models.ranges import PATH, Choice, WholeRange
from distract.studies.options import ViewOptions, output

if TYPE_CHECKING:
    from distract.studies.attack.flips import FlipOutcome

MATCHING_OPTIONS = ("run", "top", "protocols", "table", "verbose", "as_json")
"""The options that apply to disagreements too."""

TOP = WholeRange(1, noun="number", has_all=True)


@dataclass(frozen=True, kw_only=True)
class _Options(ViewOptions):
    run: Path = setting(MISSING, "run folder", PATH, argument=True, metavar="RUN")
    top: int | None = setting(10, "flips or disagreements to show, the clearest first, or all", TOP)
    attacks: tuple[str, ...] = setting(
        (), "only flips under this attack; repeatable. Default: no controls", flag="--attack"
    )
    protocols: tuple[str, ...] = setting((), "only those by this way of asking; repeatable", flag="--protocol")
    outcomes: tuple[FlipOutcome, ...] = setting(
        ("flip",),
        "loser wins, loser ties, or winner loses after its rewrite; repeatable",
        Choice("flip", "softened", "counter-flip"),
        flag="--outcome",
    )
    table: Path | None = output(
        None, "CSV file to write, a line for each, texts in full", PATH, flag="--csv", writes="file"
    )


@command(_Options)
def flips(options: _Options) -> None:
    """Show the flips of a RUN side by side, or where a judge disagrees with people.

    For each flip: the question, the rival, what the rewrite changed, the verdict before and after, and what the judge
    said. For a run of `distract meta`, each disagreement: the question, the responses, the label, the verdict in each
    order, and what the judge said. --verbose shows long texts in full.
    """
    from distract.core import files, runs
    from distract.report.spreadsheet import format_csv

    top, protocols, attacks, verbose = options.top, options.protocols, options.attacks, options.verbose
    table, loaded = options.table, runs.load(options.run)
    loaded.check_command("attack", "gate", "meta")
    warn(loaded)
    if table is not None:
        check_free(table, [options.run], "--csv")
    if loaded.command == "meta":
        from distract.studies.meta import disagreements as view
        from distract.studies.meta.disagreements import collect_disagreements, read_source

        check_options(MATCHING_OPTIONS, "applies only to flips; this is a run of `distract meta`")
        sources = [read_source(loaded)]
        listed, total = collect_disagreements(sources, top, protocols)
        document, records = view.disagreements_document(listed, total), map(view.flatten_shown, listed)
        columns, report = view.COLUMNS, view.disagreements_report(sources, listed, total, verbose, protocols)
    else:
        from distract.studies.attack import flip_view

        shown, total = flip_view.collect_flips(loaded, top, protocols, attacks, options.outcomes)
        document, records = flip_view.flips_document(shown, total), map(flip_view.flatten_shown, shown)
        columns, report = flip_view.COLUMNS, flip_view.flips_report(loaded, shown, total, verbose, protocols, attacks)
    print_result(options.as_json, document, report)
    if table is not None:
        files.write(table, format_csv(columns, records), "--csv")
