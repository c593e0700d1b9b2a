"""``distract leaderboard``: ratings from matches, and what an attack does to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distract.cli.command import check_options, command
from distract.cli.pages import Pages
from distract.cli.run import check_conclusive, print_run, report_blocks, run_in_terminal
from distract.cli.shared import echo_json, echo_more, print_lines, print_result
from distract.cli.terminal import terminal
from distract.core.errors import UsageError
from distract.models.options import setting
from distract.studies.leaderboard.options import LeaderboardOptions
from distract.studies.options import PageOptions, ViewOptions

if TYPE_CHECKING:
    from distract.core.runs import LoadedRun
    from distract.studies.leaderboard.boards.board_pairs import BoardComparison
    from distract.studies.leaderboard.boards.system_choice import SystemChoice
    from distract.studies.leaderboard.sources import MatchSource

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


@dataclass(frozen=True, kw_only=True)
class _Options(LeaderboardOptions, PageOptions, ViewOptions):
    matches: str | None = setting(
        None,
        "file of matches or votes, or a run, to rate instead of asking a judge; PATH or FORMAT:PATH",
        panel="Ratings",
    )
    against: str | None = setting(
        None, "matches or a run, as for --matches, whose boards to compare with these", panel="Ratings"
    )


@command(_Options)
def leaderboard(options: _Options) -> None:
    """Rate models, and measure what restyling the lowest ones changes.

    Ratings come from a judge's verdicts, or from matches and votes in a file.
    """
    from distract.studies import execution
    from distract.studies.leaderboard import sources, study, view as report
    from distract.studies.leaderboard.boards import board_pairs
    from distract.studies.leaderboard.boards.system_choice import choose_systems, renaming_notes

    draws, seed, as_json = options.draws, options.seed, options.as_json
    pages = Pages.take(options, options.shard)
    rating_systems = choose_systems(options.systems, options.anchor)
    print_lines(renaming_notes(options.systems))
    other = sources.read(options.against) if options.against is not None else ()
    if options.matches is not None:
        check_options(JUDGELESS_OPTIONS, "applies only when a judge is asked; --matches rates existing matches")
        played = sources.read(options.matches)
        boards = board_pairs.rate_sources(played, rating_systems, draws, seed)
        comparison = board_pairs.compare_boards(played, other, rating_systems, draws, seed)
        parts = list(report.matches_parts(boards, comparison))
        echo_more(print_result(as_json, study.matches_document(boards, comparison), parts, options.verbose))
        pages.write(lambda: parts)
        return
    if other and options.shard:
        raise UsageError("--against compares the boards of a whole run; omit it with --shard")
    job = execution.prepare(study.STUDY, options, terminal())
    if other:
        ways = [(name, rule) for name, rules in job.parameters["protocols"].items() for rule in rules or [None]]
        board_pairs.check_comparable(ways, job.parameters["models"], other)
    finished = run_in_terminal(job, options)
    comparison = _compare_boards(finished.run, other, rating_systems, draws, seed)
    compared = list(report.comparison_parts(comparison))
    if as_json and comparison:
        echo_json(study.add_comparison(str(finished.run.summary), comparison))
        pages.write(lambda: report_blocks(finished, compared), finished.run)
    else:
        print_run(finished, pages, options, compared)
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
