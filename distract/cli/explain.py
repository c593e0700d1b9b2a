"""``distract explain``: the smallest part of a rewrite that still flips a verdict.

It knows options and their order, and nothing of texts or searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.shared import (
    Name,
    command,
    echo_json,
    json_option,
    judge_options,
    model_options,
    said,
    say,
    stop,
    store_option,
    warn,
)

if TYPE_CHECKING:
    from distract.core.records import Role
    from distract.core.runs import Loaded
    from distract.judging.judge import Judge
    from distract.studies.attack.flips import Flip
    from distract.studies.explain.run import Explained


@command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("case", type=Name())
@click.option("--protocol", "protocols", multiple=True, help="Only flips by this way of asking; repeatable.")
@click.option("--attack", "attacks", multiple=True, help="Only flips under this attack; repeatable.")
@click.option("--data", help="The data of the run, where they lie elsewhere by now; as for `distract attack`.")
@click.option("--responses", multiple=True, help="File of responses that goes with --data; repeatable.")
@store_option
@model_options
@judge_options
@json_option
def explain(
    run: Path,
    case: str,
    protocols: tuple[str, ...],
    attacks: tuple[str, ...],
    data: str | None,
    responses: tuple[str, ...],
    as_json: bool,
    **more: Any,
) -> None:
    """Show the fewest words that flip the verdict on a CASE of a RUN, the clearest flip first.

    The judge of the run is asked again, with parts of the rewrite; what it said then comes from the store (--store, if
    the run had its own).
    """
    from distract.core import runs
    from distract.core.errors import DistractError
    from distract.report.tables import colour, show
    from distract.studies.explain import rerun
    from distract.studies.explain import run as explaining
    from distract.studies.explain.view import explained_document, explained_parts, heading

    loaded = runs.load(run)
    warn(loaded)
    flips = explaining.flips_of(loaded, case, protocols, attacks)
    there = explaining.recorded(loaded, flips)
    found: list[Explained] = []
    with ExitStack() as stack:
        judge = None
        try:
            if len(there) < len(flips):
                whole = rerun.case_of(loaded, case, data, responses)
                judge = _judge(loaded, flips, stack, more)
        except DistractError as error:
            if not there:
                raise
            say([f"warning: {error}; what the run itself has found is shown"])
            flips = tuple(there)
        if judge is None:
            whole = there[flips[0]].case
        parts = explaining.explained(loaded, flips, whole, judge)
        if as_json:
            found += parts
            shared = {"judge": loaded.parameters["judge"], "case": case, "prompt": list(whole.prompt)}
            echo_json({**shared, "flips": [explained_document(one) for one in found]})
        else:
            show(heading(case, whole.prompt, loaded.parameters["judge"]))
            for one in parts:
                found.append(one)
                show(explained_parts(one, colour()))
    if all(isinstance(one.found, str) for one in found):
        stop("no flip could be explained (see the reasons above)", 3)


def _judge(run: Loaded, flips: Sequence[Flip], stack: ExitStack, more: dict[str, Any]) -> Judge:
    """The judge of a run, opened until the stack ends; what it used is said then."""
    from distract.core import registry
    from distract.judging.judge import Judge
    from distract.models.opener import open_models
    from distract.studies.execution import renew, sort_out
    from distract.studies.explain import rerun

    _, loading, rest = sort_out(more)
    name, manner = run.parameters["judge"], rerun.manner_of(run)
    helper = rerun.helper_of(run) if any(registry.protocol(flip.protocol).reference for flip in flips) else None
    wanted: dict[Role, str | None] = {"judge": name, "reference": helper[0] if helper else None}
    for model in wanted.values():
        rerun.check_server(run, model, loading.base_url)
    opened = open_models(wanted, loading)
    say(opened.notes)
    backend, reference = opened.models["judge"], opened.models.get("reference")
    rerun.check_same(run, name, run.parameters.get("identity"), backend.identity)
    if helper and reference:
        rerun.check_same(run, *helper, reference.identity)
    if rest["fresh"]:
        renew([backend], rest["store"])
    judge = stack.enter_context(Judge(name, backend, store=rest["store"], manner=manner, reference=reference))
    stack.enter_context(said(judge.tally, opened.prices))
    return judge
