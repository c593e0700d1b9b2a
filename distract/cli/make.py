"""Commands that write data with a generator model: rewrite, make-pairs, make-tweakset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.command import command
from distract.cli.inquiry import Inquiry, ask
from distract.cli.pages import check_out
from distract.cli.run import run_in_terminal
from distract.cli.shared import echo, exit_with, print_result
from distract.cli.terminal import terminal
from distract.core.errors import UsageError
from distract.core.printable import count
from distract.models.options import ModelOptions, Options, narrow, setting
from distract.models.ranges import FILE
from distract.rewriting.generator_options import GeneratorOptions, TextOptions
from distract.studies.attack.options import ScopeOptions
from distract.studies.options import DataOptions, DrawOptions, JsonOptions, StoreOptions, rewriting

if TYPE_CHECKING:
    from distract.studies.make.maker import MakeJob


@dataclass(frozen=True, kw_only=True)
class _FileOptions(DrawOptions, StoreOptions, ModelOptions, JsonOptions):
    out: Path = setting(MISSING, "JSON Lines file to write", FILE, writes="file")


@dataclass(frozen=True, kw_only=True)
class _RewriteOptions(ScopeOptions, _FileOptions):
    measures: tuple[str, ...] = setting(
        (), "measures that the rewrites are for. Default: all that fit", flag="--measure"
    )
    generator: str = rewriting("rules", "who rewrites: rules, or a model")


@dataclass(frozen=True, kw_only=True)
class _MakingOptions(TextOptions, _FileOptions):
    generator: str = rewriting(MISSING, "model that writes, named like a judge")


@dataclass(frozen=True, kw_only=True)
class _PairOptions(DataOptions, _MakingOptions):
    verifier: str | None = rewriting(None, "model that checks whether each answer says what the reference says")


@dataclass(frozen=True, kw_only=True)
class _TweakOptions(_MakingOptions):
    data: str = setting(MISSING, "prompts with format requirements, as ifeval:PATH")


@command(_RewriteOptions)
def rewrite(options: _RewriteOptions) -> None:
    """Record rewrites, so that every judge meets the same ones.

    `distract attack --data FILE --generator recorded` uses them. Rejected rewrites are recorded with the reasons.
    """
    from distract.models.opener import open_models
    from distract.rewriting.writer_choice import name_verifier
    from distract.rewriting.writers import WRITERS
    from distract.studies.attack import session
    from distract.studies.make import rewrites

    generator = options.generator
    if generator == "recorded":
        raise UsageError("rewrite writes new rewrites; name rules or a model with --generator")
    verifier = name_verifier(generator, options.verifier)
    opened = open_models({"generator": generator, "verifier": verifier}, narrow(options, Options), WRITERS)
    terminal().say(opened.notes)
    selected = session.select(options, opened.models, measures=options.measures)
    job = rewrites.prepare(selected, options.out, opened.prices)
    check_out(options.out)
    finished = run_in_terminal(job, options, doing="writing")
    print_result(options.as_json, finished.document, finished.report)
    if not any(rewrite.is_accepted for rewrite in finished.result.rewrites):
        # The file records this too: a failing writer is a result, as in a run.
        echo("warning: no rewrite was accepted, so this file cannot be used to attack a judge", err=True)


@command(_PairOptions)
def make_pairs(options: _PairOptions) -> None:
    """Make a better and a worse answer from each reference.

    The reference is the good response of a case (after CALM). Both should be correct, complete and about equally
    long; the worse one lacks coherence and clarity.
    """
    from distract.studies.make import maker

    job = maker.pair_job(
        options.data,
        options.responses,
        options.generator,
        narrow(options, GeneratorOptions),
        options.verifier,
        options.limit,
        options.seed,
        options.columns,
    )
    _execute_job(job, {"generator": options.generator, "verifier": options.verifier}, options)


@command(_TweakOptions)
def make_tweakset(options: _TweakOptions) -> None:
    """Make cases with format constraints from IFEval's prompts.

    Each has a compliant response and worse ones. Splits question and format, keeps or adds three easy, compatible
    requirements, has a compliant response written and checked, and derives versions by rule that break one, two and
    three requirements.
    """
    from distract.studies.make import maker

    generator, sampling = options.generator, narrow(options, GeneratorOptions)
    job = maker.tweakset_job(options.data, generator, sampling, options.limit, options.seed)
    _execute_job(job, {"generator": generator}, options)


def _execute_job(job: MakeJob, names: Mapping[Any, str | None], options: _MakingOptions) -> None:
    from distract.core.job import open_stores
    from distract.models.opener import open_models
    from distract.studies.make import maker
    from distract.studies.make.rewrites import save
    from distract.studies.rewrite_view import yield_report

    opened, size = open_models(names, narrow(options, Options)), len(job.plans)
    terminal().say(opened.notes)
    heading = f"data {job.name}, {count(size, 'prompt')}; generator {job.generator}"
    about = {"generator": job.generator, "cases": size}
    inquiry = Inquiry(opened.models, opened.prices, heading, about, lambda: maker.estimate_most(job), options.out)
    with (
        ask(inquiry, options, "writing", size) as (store, tally, progress),
        open_stores(opened.models, store) as models,
    ):
        cases, document = maker.make_cases(job, models, tally, progress)
    if cases:
        save(cases, options.out)
    print_result(options.as_json, document, yield_report(document))
    if not cases:
        exit_with("nothing was made, and no file was written (see the reasons above)", 3)
