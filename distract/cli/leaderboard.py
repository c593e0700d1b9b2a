"""``distract leaderboard``: ratings from matches, and what an attack does to them.

It knows options and their order, and nothing of ratings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.cli.number_types import COUNT, WholeType
from distract.cli.run import check_conclusive, print_run, run_in_terminal, set_up
from distract.cli.shared import (
    NameType,
    best_of_option,
    command,
    data_options,
    draw_options,
    echo,
    echo_json,
    generator_options,
    json_option,
    judge_options,
    manner_options,
    model_options,
    print_lines,
    safe_line,
    store_option,
)
from distract.core.errors import UsageError

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.core.runs import LoadedRun
    from distract.studies.leaderboard.boards.board_pairs import BoardComparison
    from distract.studies.leaderboard.boards.system_choice import SystemChoice
    from distract.studies.leaderboard.sources import MatchSource

PROTOCOLS = ("absolute", "pairwise")
"""Asked where none is named: the paper's two, side by side."""

JUDGELESS_OPTIONS = ("matches", "against", "systems", "anchor", "draws", "seed", "as_json")
"""The options that go with matches that are played already."""


@command()
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@click.option("--matches", help="Instead of asking a judge: a file of matches or votes, or a run; PATH or FORMAT:PATH.")
@click.option("--against", help="Matches or a run, as for --matches, whose boards are compared with these.")
@data_options
@click.option(
    "--models",
    type=NameType(),
    multiple=True,
    help="Who plays, by name, joined by commas; repeatable. Default: everybody.",
)
@click.option(
    "--protocol", "protocols", multiple=True, help=f"Way of asking; repeatable. Default: {' and '.join(PROTOCOLS)}."
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    help="Rating system, as NAME or NAME:PARAMETER=VALUE,...; repeatable. The first says who is lowest. "
    "Default: bradley-terry.",
)
@click.option("--anchor", type=NameType(), help="Model whose rating is fixed (bradley-terry, style-control).")
@click.option("--attack", "attacks", multiple=True, help="Distractor for the lowest models; repeatable.")
@click.option("--lowest", type=COUNT, help="How many of them, by each protocol's own board. Default: 3.")
@click.option("--target", "targets", multiple=True, help="Model to attack instead of the lowest; repeatable.")
@click.option("--pairs", type=COUNT, help="Most matches of a protocol, in a balanced design. Default: all.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what it takes, and stop.")
@click.option(
    "--draws",
    type=WholeType(2, 100_000),
    help="Of prompts, for intervals. Default: 1000, fewer where they would take long.",
)
@click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it.")
@manner_options
@click.option(
    "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
)
@generator_options
@best_of_option
@click.option("--verifier", help="Model, named like a judge, that is asked whether a rewrite says the same.")
@draw_options
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@store_option
@model_options
@judge_options
@json_option
def leaderboard(
    matches: str | None,
    against: str | None,
    systems: tuple[str, ...],
    anchor: str | None,
    draws: int | None,
    seed: int,
    as_json: bool,
    only_plan: bool,
    store: Path | None,
    fresh: bool,
    **more: Any,
) -> None:
    """Rate models by a judge's verdicts, or by votes in a file, and measure what restyling the lowest ones changes."""
    from distract.report.progress import preview_lines
    from distract.report.tables import show
    from distract.studies import execution
    from distract.studies.estimate import estimate
    from distract.studies.leaderboard import document, sources
    from distract.studies.leaderboard import view as report
    from distract.studies.leaderboard.boards import board_pairs
    from distract.studies.leaderboard.boards.system_choice import choose_systems, renaming_notes

    chosen = choose_systems(systems, anchor)
    print_lines(renaming_notes(systems))
    other = sources.read(against) if against is not None else ()
    if matches is not None:
        _check_options()
        found = sources.read(matches)
        rated = board_pairs.rate_sources(found, chosen, draws, seed)
        compared = board_pairs.compare_boards(found, other, chosen, draws, seed)
        if as_json:
            echo_json(document.matches_document(rated, compared))
        else:
            show(report.matches_parts(rated, compared))
        return
    job = _prepare_job(chosen, draws, seed, more)
    if other:
        ways = [(name, rule) for name, rules in job.parameters["protocols"].items() for rule in rules or [None]]
        board_pairs.check_comparable(ways, job.parameters["models"], other)
    if only_plan:
        estimated = estimate(job)
        if as_json:
            about = {"models": job.parameters["models"], "cases": len(job.cases)}
            echo_json({"plan": {**about, **estimated.document}})
        else:
            echo("\n".join(map(safe_line, preview_lines(job, estimated, 0))))
        return
    if fresh:
        execution.renew([job.models["judge"]], store)
    finished = run_in_terminal(job, store)
    compared = _compare_boards(finished.run, other, chosen, draws, seed)
    if as_json and compared:
        echo_json(document.add_comparison(str(finished.run.summary), compared))
    else:
        print_run(finished, as_json, report.comparison_parts(compared))
    check_conclusive(finished.run.rows)


def _compare_boards(
    loaded: LoadedRun, other: tuple[MatchSource, ...], systems: tuple[SystemChoice, ...], draws: int | None, seed: int
) -> tuple[BoardComparison, ...]:
    """The boards of a run beside others; where that cannot be, what was paid for is shown all the same."""
    from distract.studies.leaderboard import sources
    from distract.studies.leaderboard.boards import board_pairs

    try:
        return (
            board_pairs.compare_boards(sources.read(f"run:{loaded.path}"), other, systems, draws, seed) if other else ()
        )
    except UsageError as error:
        print_lines([f"warning: not compared: {error}"])
        return ()


def _check_options() -> None:
    """See that no option is given that goes with a judge, where matches are played already."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in JUDGELESS_OPTIONS:
            raise UsageError(f"{option.opts[0]} goes with a judge that is asked; --matches rates what is there")


def _prepare_job(systems: tuple[SystemChoice, ...], draws: int | None, seed: int, more: dict[str, Any]) -> Job[Any]:
    """The tournament, ready to start."""
    from distract.studies.leaderboard.session import AttackSettings, prepare

    more["seed"] = seed
    setup, asking = set_up(more.pop("judge"), more, PROTOCOLS)
    attacks, lowest, targets = (more.pop(name) for name in ("attacks", "lowest", "targets"))
    attack = AttackSettings(attacks, lowest, targets, more.pop("generator"), asking, more.pop("verifier"))
    return prepare(setup, attack=attack, systems=systems, draws=draws, limit=more.pop("limit") or None, **more)
