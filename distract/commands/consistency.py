"""``distract consistency``: do the verdicts on three and four responses to a prompt fit together?

It knows options and their order, and nothing of triples or figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.commands import (
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
from distract.commands.numbers import COUNT
from distract.commands.running import carried_out, inconclusive, renew
from distract.commands.showing import shown

if TYPE_CHECKING:
    from distract.manner import Orders

PROTOCOLS = ("pairwise", "rank")
"""Asked where none is named, as in the paper: the one shows two responses, the other three as well."""


@command()
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@data_options
@click.option(
    "--protocol", "protocols", multiple=True, help=f"Way of asking; repeatable. Default: {' and '.join(PROTOCOLS)}."
)
@click.option(
    "--sets",
    type=COUNT,
    default=4,
    show_default=True,
    help="Most triples, and most quadruples, of responses to a prompt, drawn by --seed.",
)
@manner_options
@draw_options
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@store_option
@model_options
@judge_options
@json_option
def consistency(
    judge: str,
    protocols: tuple[str, ...],
    orders: Orders,
    samples: int,
    answer_tokens: int | None,
    limit: int,
    seed: int,
    store: Path | None,
    fresh: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Measure whether the judge is transitive, and whether a third response changes its verdict on two others.

    It needs data with three or four responses to a prompt. Choice sets are shown in one order each, whatever --orders.
    """
    from distract.backends.catalogue import open_models
    from distract.consistency import preparing
    from distract.manner import Manner
    from distract.report.consistency import plan_lines
    from distract.report.tables import show
    from distract.writers import WRITERS

    _, loading, chosen = sort_out(more)
    opened = open_models({"judge": judge}, loading, WRITERS)
    say(opened.notes)
    prepared = preparing.prepare(
        judge=judge,
        backend=opened.models["judge"],
        protocols=protocols or PROTOCOLS,
        limit=limit or None,
        seed=seed,
        manner=Manner(orders, samples, answer_tokens, seed),
        prices=opened.prices,
        **chosen,
    )
    job = prepared.job
    about = job.parameters, prepared.asked.manner, job.prices
    if fresh:
        renew([job.models["judge"]], store)
    loaded = carried_out(job, store, lambda: preparing.estimate(prepared), lambda *known: plan_lines(*about, *known))
    if as_json:
        echo_json(loaded.summary)
    else:
        show(shown(loaded)[1]())
        echo(f"\nrun folder: {safe(str(job.out))}")
    inconclusive(loaded.rows)
