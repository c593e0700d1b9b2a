"""Commands that write data with a generator model: rewrite, make-pairs, make-tweakset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.run import run_in_terminal
from distract.cli.shared import (
    best_of_option,
    command,
    data_options,
    draw_options,
    echo,
    echo_json,
    exit_with,
    generator_options,
    group_options,
    json_option,
    model_options,
    print_lines,
    report_usage,
    safe_line,
    store_option,
)
from distract.core.errors import UsageError
from distract.core.printable import count

if TYPE_CHECKING:
    from distract.models.options import Options
    from distract.studies.make.maker import MakeJob

out_option = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON Lines file to write."
)
making_options = group_options(
    click.option("--generator", required=True, help="Model that writes, named like a judge."),
    generator_options,
    draw_options,
    out_option,
    store_option,
    model_options,
    json_option,
)


@command()
@data_options
@click.option("--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable.")
@click.option("--measure", "measures", multiple=True, help="Measures that the rewrites are for. Default: all that fit.")
@click.option("--generator", default="rules", show_default=True, help="Who rewrites: rules, or a model.")
@generator_options
@best_of_option
@click.option("--verifier", help="Model, named like a judge, that is asked whether a rewrite says the same.")
@draw_options
@out_option
@store_option
@model_options
@json_option
def rewrite(
    generator: str,
    verifier: str | None,
    limit: int,
    out: Path,
    store: Path | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Write rewrites and record them with the data, so that judges can be attacked with the same ones.

    `distract attack --data FILE --generator recorded` then uses them. A rejected rewrite is recorded with its reasons.
    """
    from distract.models.opener import open_models
    from distract.report.tables import show
    from distract.rewriting.writers import WRITERS
    from distract.studies.attack import session
    from distract.studies.execution import split_options
    from distract.studies.make import rewrites

    if generator == "recorded":
        raise UsageError("rewrite writes new rewrites; name rules or a model with --generator")
    asking, loading, chosen = split_options(more)
    opened = open_models({"generator": generator, "verifier": verifier}, loading, WRITERS)
    print_lines(opened.notes)
    writing: dict[str, Any] = {"generator": generator, "verifier": verifier, "models": opened.models, "asking": asking}
    selected = session.select(**writing, limit=limit or None, **chosen)
    job = rewrites.prepare(selected, out, opened.prices)
    _check_out(out)
    finished = run_in_terminal(job, store, doing="writing")
    echo_json(finished.document) if as_json else show(finished.report)
    if not any(made.is_accepted for made in finished.result.rewrites):
        # The file says so as well: a writer that fails is a result, and the same one as in a run.
        echo("warning: no rewrite was accepted, so that a judge cannot be attacked with this file", err=True)


@command("make-pairs")
@data_options
@click.option("--verifier", help="Model that is asked whether each answer says what the reference says.")
@making_options
def make_pairs(
    data: str,
    responses: tuple[str, ...],
    verifier: str | None,
    generator: str,
    limit: int,
    seed: int,
    **more: Any,
) -> None:
    """Make a better and a worse answer from each reference: the good response of a case (after CALM).

    Both are to be correct and complete and about equally long; the worse one lacks coherence and clarity.
    """
    from distract.studies.execution import split_options
    from distract.studies.make import maker

    asking, loading, where = split_options(more)
    found = maker.pair_job(data, responses, generator, asking, verifier, limit or None, seed)
    _execute_job(found, {"generator": generator, "verifier": verifier}, loading, **where)


@command("make-tweakset")
@click.option("--data", required=True, help="Prompts with format requirements, as ifeval:PATH.")
@making_options
def make_tweakset(data: str, generator: str, limit: int, seed: int, **more: Any) -> None:
    """Make cases with format constraints from IFEval's prompts: a compliant response and worse ones.

    Question and format are split, three easy requirements that go together are kept or added, a compliant response is
    written and checked, and versions that break one, two and three requirements are made of it by rule.
    """
    from distract.studies.execution import split_options
    from distract.studies.make import maker

    asking, loading, where = split_options(more)
    found = maker.tweakset_job(data, generator, asking, limit or None, seed)
    _execute_job(found, {"generator": generator}, loading, **where)


def _check_out(out: Path) -> None:
    """See that the file can be written, and is none of those that the command is given."""
    from distract.cli.gate_outputs import check_free, protected_paths

    check_free(out, protected_paths({**click.get_current_context().params, "out": None}), "--out")


def _execute_job(
    job: MakeJob, names: Mapping[Any, str | None], loading: Options, *, out: Path, store: Path | None, as_json: bool
) -> None:
    from distract.core import job as jobs
    from distract.core.store import DEFAULT_PATH
    from distract.core.usage import Tally
    from distract.models.opener import open_models
    from distract.report.progress import Progress
    from distract.report.tables import show
    from distract.studies.make.maker import make_cases
    from distract.studies.make.rewrites import save
    from distract.studies.rewrite_view import yield_report

    who = open_models(names, loading)
    print_lines(who.notes)
    _check_out(out)
    echo(
        f"data {safe_line(job.name)}, {count(len(job.plans), 'prompt')}; generator {safe_line(job.generator)}", err=True
    )
    tally = Tally()
    with (
        report_usage(tally, who.prices),
        jobs.open_stores(who.models, store or DEFAULT_PATH) as models,
        Progress(len(job.plans), "writing") as progress,
    ):
        cases, found = make_cases(job, models, tally, progress.update)
    if cases:
        save(cases, out)
    echo_json(found) if as_json else show(yield_report(found))
    if not cases:
        exit_with("nothing was made, and no file was written (see the reasons above)", 3)
