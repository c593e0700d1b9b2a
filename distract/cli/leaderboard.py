"""``distract leaderboard``: ratings from matches, and what an attack does to them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.bounds import COUNT
from distract.cli.command import check_options, command
from distract.cli.options import (
    NameType,
    data_options,
    draw_options,
    judge_option,
    option,
    protocol_option,
    rewriting_options,
    run_options,
    shard_option,
    verbose_option,
)
from distract.cli.pages import Pages, page_options
from distract.cli.run import check_conclusive, print_run, report_blocks, run_in_terminal, set_up
from distract.cli.shared import echo_json, echo_more, print_lines, print_result
from distract.core.errors import UsageError
from distract.models.ranges import WholeRange

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.core.runs import LoadedRun
    from distract.studies.leaderboard.boards.board_pairs import BoardComparison
    from distract.studies.leaderboard.boards.system_choice import SystemChoice
    from distract.studies.leaderboard.sources import MatchSource

PROTOCOLS = ("absolute", "pairwise")
"""The default protocols: the paper's two, side by side."""

JUDGELESS_OPTIONS = (
    "matches",
    "against",
    "systems",
    "anchor",
    "draws",
    "seed",
    "verbose",
    "as_json",
    "html",
    "markdown",
)
"""The options that apply to matches already played."""


rating = partial(option, panel="Ratings")


@command()
@judge_option
@rating("--matches", help="File of matches or votes, or a run, to rate instead of asking a judge; PATH or FORMAT:PATH.")
@rating("--against", help="Matches or a run, as for --matches, whose boards to compare with these.")
@data_options
@rating("--models", type=NameType(), multiple=True, help="Players, joined by commas; repeatable. Default: all.")
@protocol_option(" and ".join(PROTOCOLS))
@rating(
    "--system",
    "systems",
    multiple=True,
    help="Rating system, as NAME or NAME:PARAMETER=VALUE,...; repeatable. The first decides who is lowest. "
    "Default: bradley-terry.",
)
@rating("--anchor", type=NameType(), help="Model whose rating is fixed (bradley-terry, style-control).")
@option("--attack", "attacks", multiple=True, help="Distractor for the lowest models; repeatable.")
@rating("--lowest", bounds=COUNT, help="Number of lowest models to attack, on each protocol's own board. Default: 3.")
@rating("--target", "targets", multiple=True, help="Model to attack instead of the lowest; repeatable.")
@rating("--pairs", bounds=COUNT, help="Maximum number of matches per protocol, in a balanced design. Default: all.")
@rating(
    "--draws",
    bounds=WholeRange(2, 100_000),
    help="Bootstrap draws of prompts, for intervals. Default: 1000, fewer where they would take long.",
)
@rewriting_options
@draw_options
@shard_option
@page_options
@verbose_option
@run_options
def leaderboard(
    matches: str | None,
    against: str | None,
    systems: tuple[str, ...],
    anchor: str | None,
    draws: int | None,
    seed: int,
    verbose: bool,
    as_json: bool,
    store: Path | None,
    fresh: bool,
    **more: Any,
) -> None:
    """Rate models, and measure what restyling the lowest ones changes.

    Ratings come from a judge's verdicts, or from matches and votes in a file.
    """
    from distract.studies.leaderboard import sources, study, view as report
    from distract.studies.leaderboard.boards import board_pairs
    from distract.studies.leaderboard.boards.system_choice import choose_systems, renaming_notes

    pages = Pages.take(more)
    rating_systems = choose_systems(systems, anchor)
    print_lines(renaming_notes(systems))
    other = sources.read(against) if against is not None else ()
    if matches is not None:
        check_options(JUDGELESS_OPTIONS, "applies only when a judge is asked; --matches rates existing matches")
        played = sources.read(matches)
        boards = board_pairs.rate_sources(played, rating_systems, draws, seed)
        comparison = board_pairs.compare_boards(played, other, rating_systems, draws, seed)
        parts = list(report.matches_parts(boards, comparison))
        echo_more(print_result(as_json, study.matches_document(boards, comparison), parts, verbose))
        pages.write(lambda: parts)
        return
    if other and more["shard"]:
        raise UsageError("--against compares the boards of a whole run; omit it with --shard")
    job = _prepare_job(rating_systems, draws, seed, more)
    if other:
        ways = [(name, rule) for name, rules in job.parameters["protocols"].items() for rule in rules or [None]]
        board_pairs.check_comparable(ways, job.parameters["models"], other)
    finished = run_in_terminal(job, store, is_fresh=fresh)
    comparison = _compare_boards(finished.run, other, rating_systems, draws, seed)
    compared = list(report.comparison_parts(comparison))
    if as_json and comparison:
        echo_json(study.add_comparison(str(finished.run.summary), comparison))
        pages.write(lambda: report_blocks(finished, compared), finished.run)
    else:
        print_run(finished, pages, as_json, verbose, compared)
    check_conclusive(finished.run.rows, shard=finished.run.shard)


def _compare_boards(
    loaded: LoadedRun, other: tuple[MatchSource, ...], systems: tuple[SystemChoice, ...], draws: int | None, seed: int
) -> tuple[BoardComparison, ...]:
    """Compare the boards of a run with others; after an error the run, which is paid for, is still shown."""
    from distract.studies.leaderboard import sources
    from distract.studies.leaderboard.boards import board_pairs

    if not other:
        return ()
    try:
        return board_pairs.compare_boards(sources.read(f"run:{loaded.path}"), other, systems, draws, seed)
    except UsageError as error:
        print_lines([f"warning: not compared: {error}"])
        return ()


def _prepare_job(systems: tuple[SystemChoice, ...], draws: int | None, seed: int, more: dict[str, Any]) -> Job[Any]:
    from distract.studies.leaderboard.session import prepare

    more["seed"] = seed
    setup, generator = set_up(more.pop("judge"), more, PROTOCOLS)
    return prepare(setup, systems=systems, asking=generator, draws=draws, limit=more.pop("limit") or None, **more)
