"""Commands that write data with a generator model: rewrite, make-pairs, make-tweakset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.command import command
from distract.cli.options import (
    attack_option,
    best_of_option,
    data_options,
    draw_options,
    generator_options,
    group_options,
    json_option,
    model_options,
    option,
    rewriting,
    store_option,
    verifier_option,
)
from distract.cli.run import run_in_terminal
from distract.cli.shared import echo, exit_with, print_result, report_usage, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import UsageError, redirect_output
from distract.core.printable import count

if TYPE_CHECKING:
    from distract.models.options import Options
    from distract.studies.make.maker import MakeJob

file_options = group_options(
    draw_options,
    option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON Lines file to write."),
    store_option,
    model_options,
    json_option,
)
making_options = group_options(
    rewriting("--generator", required=True, help="Model that writes, named like a judge."),
    generator_options,
    file_options,
)


@command()
@data_options
@attack_option
@option("--measure", "measures", multiple=True, help="Measures that the rewrites are for. Default: all that fit.")
@rewriting("--generator", default="rules", help="Who rewrites: rules, or a model.")
@generator_options
@best_of_option
@verifier_option
@file_options
def rewrite(
    generator: str, verifier: str | None, limit: int, out: Path, store: Path | None, as_json: bool, **more: Any
) -> None:
    """Record rewrites, so that every judge meets the same ones.

    `distract attack --data FILE --generator recorded` uses them. Rejected rewrites are recorded with the reasons.
    """
    from distract.models.opener import open_models
    from distract.rewriting.writer_choice import name_verifier
    from distract.rewriting.writers import WRITERS
    from distract.studies.attack import session
    from distract.studies.execution import split_options
    from distract.studies.make import rewrites

    if generator == "recorded":
        raise UsageError("rewrite writes new rewrites; name rules or a model with --generator")
    sampling, loading, selection = split_options(more)
    verifier = name_verifier(generator, verifier)
    opened = open_models({"generator": generator, "verifier": verifier}, loading, WRITERS)
    terminal().say(opened.notes)
    selected = session.select(
        generator=generator, verifier=verifier, models=opened.models, asking=sampling, limit=limit or None, **selection
    )
    job = rewrites.prepare(selected, out, opened.prices)
    _check_out(out)
    finished = run_in_terminal(job, store, doing="writing")
    print_result(as_json, finished.document, finished.report)
    if not any(rewrite.is_accepted for rewrite in finished.result.rewrites):
        # The file records this too: a failing writer is a result, as in a run.
        echo("warning: no rewrite was accepted, so this file cannot be used to attack a judge", err=True)


@command("make-pairs")
@data_options
@rewriting("--verifier", help="Model that checks whether each answer says what the reference says.")
@making_options
def make_pairs(
    data: str,
    responses: tuple[str, ...],
    columns: dict[str, str],
    verifier: str | None,
    generator: str,
    limit: int,
    seed: int,
    **more: Any,
) -> None:
    """Make a better and a worse answer from each reference.

    The reference is the good response of a case (after CALM). Both should be correct, complete and about equally
    long; the worse one lacks coherence and clarity.
    """
    from distract.studies.execution import split_options
    from distract.studies.make import maker

    sampling, loading, where = split_options(more)
    job = maker.pair_job(data, responses, generator, sampling, verifier, limit or None, seed, columns)
    _execute_job(job, {"generator": generator, "verifier": verifier}, loading, **where)


@command("make-tweakset")
@option("--data", required=True, help="Prompts with format requirements, as ifeval:PATH.")
@making_options
def make_tweakset(data: str, generator: str, limit: int, seed: int, **more: Any) -> None:
    """Make cases with format constraints from IFEval's prompts.

    Each has a compliant response and worse ones. Splits question and format, keeps or adds three easy, compatible
    requirements, has a compliant response written and checked, and derives versions by rule that break one, two and
    three requirements.
    """
    from distract.studies.execution import split_options
    from distract.studies.make import maker

    sampling, loading, where = split_options(more)
    job = maker.tweakset_job(data, generator, sampling, limit or None, seed)
    _execute_job(job, {"generator": generator}, loading, **where)


def _check_out(out: Path) -> None:
    """Check that the file can be written and is not an input of the command; a dry run writes none."""
    if terminal().is_dry:
        return
    from distract.cli.pages import check_free, protected_paths

    check_free(out, protected_paths({**click.get_current_context().params, "out": None}), "--out")


def _execute_job(
    job: MakeJob, names: Mapping[Any, str | None], loading: Options, *, out: Path, store: Path | None, as_json: bool
) -> None:
    from distract.core import job as jobs
    from distract.core.store import DEFAULT_PATH
    from distract.core.usage import Tally
    from distract.models.opener import open_models
    from distract.report.progress import Progress
    from distract.studies.make.maker import make_cases
    from distract.studies.make.rewrites import save
    from distract.studies.rewrite_view import yield_report

    place = store or DEFAULT_PATH
    opened = open_models(names, loading)
    terminal().say(opened.notes)
    _check_out(out)
    heading = f"data {safe_line(job.name)}, {count(len(job.plans), 'prompt')}; generator {safe_line(job.generator)}"
    if terminal().is_dry:
        from distract.cli.dry_run import preview_making

        preview_making(job, opened, place, heading)
    echo(heading, err=True)
    tally = Tally()
    with (
        redirect_output(),
        report_usage(tally, opened.prices),
        jobs.open_stores(opened.models, place) as models,
        Progress(len(job.plans), "writing") as progress,
    ):
        cases, document = make_cases(job, models, tally, progress.update)
    if cases:
        save(cases, out)
    print_result(as_json, document, yield_report(document))
    if not cases:
        exit_with("nothing was made, and no file was written (see the reasons above)", 3)
