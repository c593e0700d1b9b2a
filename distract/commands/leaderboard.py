"""``distract leaderboard``: ratings from matches, and what an attack does to them.

It knows options and their order, and nothing of ratings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.commands import (
    Name,
    asking_options,
    best_of_option,
    command,
    data_options,
    draw_options,
    echo,
    echo_json,
    json_option,
    judge_options,
    manner_options,
    model_options,
    safe,
    say,
    sort_out,
    store_option,
)
from distract.commands.numbers import COUNT, Whole
from distract.commands.running import asked, carried_out, inconclusive, renew
from distract.commands.showing import shown
from distract.errors import UsageError

if TYPE_CHECKING:
    from distract.boards.chosen import Chosen
    from distract.boards.comparing import Compared
    from distract.boards.sources import Source
    from distract.manner import Orders
    from distract.runfolder import Loaded
    from distract.tournament.preparing import Prepared

PROTOCOLS = ("absolute", "pairwise")
"""Asked where none is named: the paper's two, side by side."""

WITHOUT_A_JUDGE = ("matches", "against", "systems", "anchor", "draws", "seed", "as_json")
"""The options that go with matches that are played already."""


@command()
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@click.option("--matches", help="Instead of asking a judge: a file of matches or votes, or a run; PATH or FORMAT:PATH.")
@click.option("--against", help="Matches or a run, as for --matches, whose boards are compared with these.")
@data_options
@click.option(
    "--models", type=Name(), multiple=True, help="Who plays, by name, joined by commas; repeatable. Default: everybody."
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
@click.option("--anchor", type=Name(), help="Model whose rating is fixed (bradley-terry, style-control).")
@click.option("--attack", "attacks", multiple=True, help="Distractor for the lowest models; repeatable.")
@click.option("--lowest", type=COUNT, help="How many of them, by each protocol's own board. Default: 3.")
@click.option("--target", "targets", multiple=True, help="Model to attack instead of the lowest; repeatable.")
@click.option("--pairs", type=COUNT, help="Most matches of a protocol, in a balanced design. Default: all.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what it takes, and stop.")
@click.option(
    "--draws",
    type=Whole(2, 100_000),
    help="Of prompts, for intervals. Default: 1000, fewer where they would take long.",
)
@click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it.")
@manner_options
@click.option(
    "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
)
@asking_options
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
    from distract.boards import comparing, document, sources
    from distract.boards.chosen import choose, renamed
    from distract.report import leaderboard as report
    from distract.report.tables import show
    from distract.tournament.estimating import estimate

    chosen = choose(systems, anchor)
    say(renamed(systems))
    other = sources.read(against) if against is not None else ()
    if matches is not None:
        _alone()
        found = sources.read(matches)
        rated = comparing.rated(found, chosen, draws, seed)
        compared = comparing.compared(found, other, chosen, draws, seed)
        if as_json:
            echo_json(document.matches_document(rated, compared))
        else:
            show(report.matches_parts(rated, compared))
        return
    prepared = _prepared(chosen, draws, seed, more)
    if other:
        ways = [
            (name, rule) for name, rules in prepared.job.parameters["protocols"].items() for rule in rules or [None]
        ]
        comparing.comparable(ways, prepared.job.parameters["models"], other)
    if only_plan:
        expected = estimate(prepared)
        lines = list(report.plan_lines(prepared, expected, 0))
        echo_json(report.plan_document(prepared, expected)) if as_json else echo("\n".join(map(safe, lines)))
        return
    if fresh:
        renew([prepared.job.models["judge"]], store)
    loaded = carried_out(
        prepared.job, store, lambda: estimate(prepared), lambda *known: report.plan_lines(prepared, *known)
    )
    compared = _compared(loaded, other, chosen, draws, seed)
    if as_json and not compared:
        echo_json(loaded.summary)
    elif as_json:
        echo_json(document.with_comparison(str(loaded.summary), compared))
    else:
        show(shown(loaded)[1]())
        show(report.compared_parts(compared))
        echo(f"\nrun folder: {safe(str(prepared.job.out))}")
    inconclusive(loaded.rows)


def _compared(
    loaded: Loaded, other: tuple[Source, ...], systems: tuple[Chosen, ...], draws: int | None, seed: int
) -> tuple[Compared, ...]:
    """The boards of a run beside others; where that cannot be, what was paid for is shown all the same."""
    from distract.boards import comparing, sources

    try:
        return comparing.compared(sources.read(f"run:{loaded.path}"), other, systems, draws, seed) if other else ()
    except UsageError as error:
        say([f"warning: not compared: {error}"])
        return ()


def _alone() -> None:
    """See that no option is given that goes with a judge, where matches are played already."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in WITHOUT_A_JUDGE:
            raise UsageError(f"{option.opts[0]} goes with a judge that is asked; --matches rates what is there")


def _prepared(systems: tuple[Chosen, ...], draws: int | None, seed: int, more: dict[str, Any]) -> Prepared:
    """The tournament, ready to start."""
    from distract.manner import Manner
    from distract.tournament.preparing import Attacked, prepare

    asking, loading, chosen = sort_out(more)
    generator, verifier, helping = (chosen.pop(name) for name in ("generator", "verifier", "reference_model"))
    models = asked(chosen["judge"], generator, verifier, helping, loading)
    attacks, lowest, targets = (chosen.pop(name) for name in ("attacks", "lowest", "targets"))
    orders: Orders = chosen.pop("orders")
    manner = Manner(orders, chosen.pop("samples"), chosen.pop("answer_tokens"), seed)
    protocols, limit = chosen.pop("protocols") or PROTOCOLS, chosen.pop("limit") or None
    return prepare(
        backend=models.judge,
        protocols=protocols,
        attack=Attacked(attacks, lowest, targets, generator, asking, verifier, models.models),
        systems=systems,
        draws=draws,
        limit=limit,
        seed=seed,
        manner=manner,
        reference=models.reference,
        prices=models.prices,
        **chosen,
    )
