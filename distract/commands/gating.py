"""``distract gate``, ``compare`` and ``plan-gate``: options to decisions, decisions to output and exit codes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.backend import Remote
from distract.commands import (
    Conclusion,
    command,
    echo,
    echo_json,
    json_option,
    judge_options,
    model_options,
    options,
    safe,
    say,
    store_option,
)
from distract.commands.auditing import audit_options, selected
from distract.commands.numbers import CONFIDENCE, COUNT, INNER_SHARE, LIMIT, SEED, SHARE, Whole
from distract.commands.outputs import Closing, Outputs, output_options, places, undecided
from distract.commands.running import carried_out, renew, unread
from distract.errors import DistractError, UsageError

if TYPE_CHECKING:
    from distract.runfolder import Loaded
    from distract.studies.gate.limits import Limits
    from distract.studies.gate.records import Verdict

sure_options = options(
    click.option("--max-rise", type=INNER_SHARE, help="Largest rise since the baseline to accept. Default: 0.05."),
    click.option("--max-invalid-rate", type=SHARE, help="Largest share of unreadable verdicts. Default: 0.2."),
    click.option(
        "--min-eligible",
        type=SHARE,
        help="Smallest share of comparisons that must be eligible to pass. Default: 0.2.",
    ),
    click.option("--min-n", type=COUNT, help="Fewest verdicts that may pass. Default: 1."),
    click.option("--confidence", type=CONFIDENCE, help="Of one-sided bounds. Default: 0.95."),
)
limit_options = options(
    click.option("--max-flip-rate", type=INNER_SHARE, help="Largest flip rate to accept, such as 0.10."),
    sure_options,
    click.option("--certify/--no-certify", default=None, help="Inconclusive counts as a failure (exit 1)."),
    click.option("--config", type=click.Path(path_type=Path), help="pyproject.toml with [tool.distract.gate]."),
)
LIMITS = ("max_flip_rate", "max_rise", "max_invalid_rate", "min_eligible", "min_n", "confidence", "certify")

WITH_A_RUN = (*LIMITS, "run", "config", "baseline", "control", "junit", "github", "summary", "as_json")
"""The options that go with a finished run too."""


@command(kind=Closing)
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--judge", help="Judge to ask, only until the evidence suffices; `distract list` shows the forms.")
@limit_options
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="Run of `attack` that the judge may not be worse than."
)
@output_options
@click.option("--attack", "attacks", multiple=True, help="Attack; repeatable. Default: the distractors.")
@audit_options
@click.option(
    "--control", is_flag=True, help="Count only flips beyond the judge's own noise (null attack, resampling)."
)
@click.option("--limit", type=LIMIT, default="all", show_default=True, help="Number of cases, drawn by --seed.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of order, draw, rewrites and sampling.")
@click.option("--budget", type=COUNT, help="Most calls of models, those answered from the store included.")
@click.option(
    "--ahead",
    type=COUNT,
    default=1,
    show_default=True,
    help="Prompts to judge at once though fewer might do, without a --budget: faster with a server.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@store_option
@click.option(
    "--trust-store", is_flag=True, help="Judge by the stored replies of a server without asking it a few again."
)
@model_options
@judge_options
@json_option
def gate(run: Path | None, as_json: bool, junit: Path | None, github: bool, summary: Path | None, **more: Any) -> None:
    """Decide whether a judge flips too often: ask --judge until that is clear, or read a finished RUN of `attack`.

    Thresholds come from the command line, else from [tool.distract.gate] of the nearest pyproject.toml. Fails closed.
    """
    from distract.report.tables import show
    from distract.studies.gate.settings import nearest
    from distract.studies.gate.view import gate_report

    outputs, judge = Outputs(junit, github, summary, as_json), more["judge"] or ""
    outputs.begin(places({"run": run, **more, "config": more["config"] or nearest()}))
    try:
        with outputs.no_commands():
            verdict, loaded = _decided(run, more)
            if loaded and loaded.gap:
                verdict = replace(verdict, notes=(*verdict.notes, loaded.gap))
            if not as_json:
                show(gate_report(verdict))
                show(unread(loaded) if loaded else ())
            elif run is None and loaded:  # what the run folder holds, which knows no other run
                echo_json(loaded.summary)
                say(verdict.notes)
            else:
                echo_json(verdict.document())
            if run is None and loaded:
                echo(f"run folder: {safe(str(loaded.path))}", err=as_json)
    except DistractError as error:
        outputs.end(undecided(f"the gate did not end: {error}"), judge, (), ())
        raise
    if loaded:
        outputs.end(verdict, str(loaded.parameters["judge"]), loaded.rows, loaded.rewrites)
    else:
        outputs.end(verdict, judge, (), ())
    raise Conclusion(verdict.exit_code)


@command()
@click.argument("before", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("now", metavar="RUN", type=click.Path(path_type=Path))
@sure_options
@json_option
def compare(before: Path, now: Path, as_json: bool, **given: Any) -> None:
    """Compare the flip rates of two RUNs of `attack` on the same cases, the earlier one first. Ends with 0."""
    from distract import runfolder
    from distract.report.tables import show
    from distract.studies.gate import run_gate
    from distract.studies.gate.comparing import comparing_report
    from distract.studies.gate.limits import Limits

    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    verdict = run_gate.decide(runfolder.load(now), limits, runfolder.load(before))
    if as_json:
        echo_json(verdict.document())
    else:
        show(comparing_report(str(before), str(now), verdict))


@command("plan-gate")
@click.option("--max-flip-rate", "threshold", type=INNER_SHARE, required=True, help="Threshold of the gate.")
@click.option("--power", type=CONFIDENCE, default=0.8, show_default=True, help="Chance of the right decision.")
@click.option("--true-rate", type=SHARE, required=True, help="Flip rate that the judge is taken to have.")
@click.option("--confidence", type=CONFIDENCE, default=0.95, show_default=True, help="Of one-sided bounds.")
@click.option("--checks", type=Whole(1, 10_000), default=1, show_default=True, help="Protocols x attacks.")
@json_option
def plan_gate(threshold: float, power: float, true_rate: float, confidence: float, checks: int, as_json: bool) -> None:
    """Say how many eligible cases a gate needs."""
    from distract.studies.gate.plan_view import plan_report
    from distract.studies.gate.planning import plan

    found = plan(threshold, true_rate, power, confidence, checks)
    if as_json:
        echo_json(found.document())
    else:
        from rich.text import Text

        from distract.report.tables import show

        show(map(Text, plan_report(found)))


def _decided(run: Path | None, more: dict[str, Any]) -> tuple[Verdict, Loaded | None]:
    """What the gate comes to, and the run that it rests on; None where no run may be relied on."""
    if more["max_rise"] is not None and more["baseline"] is None:
        raise UsageError("--max-rise goes with --baseline: without one nothing can have risen")
    limits, baseline = _limits(more), _baseline(more.pop("baseline"))
    if baseline is None and not limits.has_threshold:
        raise UsageError("no threshold: give --max-flip-rate, or max-flip-rate in [tool.distract.gate], or --baseline")
    if baseline is not None and more["control"]:
        raise UsageError("--control goes with a threshold; against --baseline the noise is in both runs")
    if run is None:
        return _live(limits, baseline, more)
    _finished_only()
    verdict, loaded = _finished(run, limits, baseline, control=more["control"])
    return replace(verdict, notes=(loaded.origin, *verdict.notes)), loaded


def _limits(more: dict[str, Any]) -> Limits:
    """What is accepted: the options that were given over the file. They are taken out of ``more``."""
    from distract.studies.gate import settings

    given = {name: value for name in LIMITS if (value := more.pop(name)) is not None}
    return settings.limits(settings.load(more.pop("config")), given)


def _baseline(path: Path | None) -> Loaded | None:
    """The run that the judge may not be worse than.

    Raises:
        UsageError: it is no fair measure.
    """
    from distract import runfolder
    from distract.studies.gate.comparable import unusable

    if path is None:
        return None
    loaded = runfolder.load(path)
    if why := unusable(loaded):
        raise UsageError(f"{path} {why}")
    return loaded


def _finished_only() -> None:
    """See that no option is given that goes with a judge that is asked."""
    context = click.get_current_context()
    if context.get_parameter_source("judge") is ParameterSource.COMMANDLINE:
        raise UsageError("name a finished run, or a judge to ask with --judge, not both")
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in WITH_A_RUN:
            raise UsageError(f"{option.opts[0]} goes with --judge, which is asked; a finished run is read as it is")


def _finished(run: Path, limits: Limits, baseline: Loaded | None, control: bool) -> tuple[Verdict, Loaded]:
    """Decide by a run of ``attack``, or say again what a live gate decided."""
    from distract import runfolder
    from distract.studies.gate import excess, run_gate

    loaded = runfolder.load(run)
    if loaded.command == "gate":
        decided = "which has decided; `distract report` shows it again"
        raise UsageError(f"{run}: is a live gate, {loaded.flaw or decided}")
    loaded.expect("attack")
    return (excess.decide(loaded, limits) if control else run_gate.decide(loaded, limits, baseline)), loaded


def _live(limits: Limits, baseline: Loaded | None, more: dict[str, Any]) -> tuple[Verdict, Loaded | None]:
    """Ask the judge, only as much as it needs."""
    from distract import registry, session
    from distract.plan import Degradation
    from distract.studies.gate import canary, live
    from distract.studies.gate.comparable import changes
    from distract.studies.gate.view import gate_lines

    judge, budget, ahead, store, out = (more.pop(name) for name in ("judge", "budget", "ahead", "store", "out"))
    fresh, trusts = more.pop("fresh"), more.pop("trust_store")
    if judge is None:
        raise UsageError("name a finished run of `distract attack`, or a judge to ask with --judge")
    control = more["control"]
    if lower := [name for name in more["attacks"] if isinstance(registry.composed(name), Degradation)]:
        raise UsageError(f"{lower[0]} breaks constraints and has no flip rate; gate an attack without a severity")
    audited, setup = selected(judge, {**more, "out": out, "measures": ("flip_rate",)})
    audited = live.within(audited, baseline)
    named = (*more["attacks"], *(protocol.name for protocol in setup.protocols if more["protocols"]))
    how_much = {"budget": budget, "ahead": ahead, "named": named}
    own = live.record(audited, setup.protocols, limits, control=control, baseline=baseline, **how_much)
    job = live.prepare(audited, setup, own, gate_lines)
    if fresh:
        renew([job.models["judge"]], store)
    # Local models and planted ones are told apart by what they are.
    is_doubted = isinstance(job.models["judge"], Remote) and not trusts
    check = partial(canary.check, judge, session.design(audited, setup), job.cases) if is_doubted else None
    try:
        finished = carried_out(job, store, check)
    except canary.Changed as changed:
        verdict = replace(undecided(str(changed)), threshold=limits.max_flip_rate, confidence=limits.confidence)
        return replace(verdict, certify=limits.certify), None
    notes = tuple(changes(baseline, finished.run)) if baseline else ()
    return replace(finished.result, certify=limits.certify, notes=notes), finished.run
