"""``distract consistency``: do the verdicts on three and four responses to a prompt fit together?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distract.cli.number_types import COUNT
from distract.cli.run import check_conclusive, print_run, run_in_terminal, set_up
from distract.cli.shared import (
    command,
    data_options,
    draw_options,
    json_option,
    judge_options,
    manner_options,
    model_options,
    store_option,
)

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
def consistency(judge: str, store: Path | None, fresh: bool, as_json: bool, **more: Any) -> None:
    """Measure whether the judge is transitive, and whether a third response changes its verdict on two others.

    It needs data with three or four responses to a prompt. Choice sets are shown in one order each, whatever --orders.
    """
    from distract.studies import execution
    from distract.studies.consistency import session

    setup, _ = set_up(judge, more, PROTOCOLS)
    job = session.prepare(setup, limit=more.pop("limit") or None, **more)
    if fresh:
        execution.renew([job.models["judge"]], store)
    finished = run_in_terminal(job, store)
    print_run(finished, as_json)
    check_conclusive(finished.run.rows)
