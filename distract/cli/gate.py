"""``distract gate``, ``compare`` and ``plan-gate``: make a decision, and turn it into output and an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.cli.bounds import CONFIDENCE, SHARE
from distract.cli.command import PANELS, command, explicit_options
from distract.cli.gate_outputs import GateCommand, Outputs, output_options
from distract.cli.options import (
    PATH,
    audit_options,
    cost,
    group_options,
    json_option,
    judge_options,
    keep_text_option,
    model_options,
    option,
    out_option,
    probe_option,
    store_option,
)
from distract.cli.pages import Pages, page_options, protected_paths
from distract.cli.run import unread_parts
from distract.cli.shared import CommandExit, echo, echo_json, print_lines, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import DistractError, UsageError
from distract.models.ranges import WholeRange
from distract.stats.measures import list_limited

if TYPE_CHECKING:
    from distract.core.runs import LoadedRun
    from distract.report.blocks import Block

HIT_RATES = [row for row in list_limited() if row.is_hit_rate]

decision = partial(option, panel="Decision")

evidence_options = group_options(
    decision("--margin", help="Lead, in points or probability, up to which a verdict is a tie. Default: 0."),
    decision("--max-rise", help="Largest rise since the baseline to accept. Default: 0.05."),
    decision("--max-invalid-rate", help="Largest share of unreadable verdicts. Default: 0.2."),
    decision("--min-eligible", help="Smallest share of comparisons that must be eligible to pass. Default: 0.2."),
    decision("--min-n", help="Minimum number of verdicts that may pass. Default: 1."),
    decision("--confidence", help="Confidence of one-sided bounds. Default: 0.95."),
)
limit_options = group_options(
    *(option(f"--{row.limit}", panel=PANELS[not row.primary], help=row.limit_help) for row in list_limited()),
    evidence_options,
    decision("--certify/--no-certify", default=None, help="Count inconclusive as a failure (exit 1)."),
    decision("--config", type=PATH, help="File of settings, in place of the nearest distract.toml or pyproject.toml."),
)


@command(kind=GateCommand)
@click.argument("run", required=False, type=PATH)
@option("--judge", help="Judge to ask, only until the evidence suffices; `distract list` shows the forms.")
@limit_options
@decision("--baseline", type=PATH, help="Run of `attack` that the judge may not be worse than.")
@output_options
@page_options
@option("--attack", "attacks", multiple=True, help="Attack; repeatable. Default: assertiveness, prolixity, sycophancy.")
@audit_options
@decision("--anchors", type=PATH, help="File of anchors: decide only if the judge still gives their verdicts.")
@decision("--control", is_flag=True, help="Count only flips beyond the judge's own noise (null attack, resampling).")
@probe_option
@decision("--unlabelled-reason", metavar="TEXT", help="Why a judge may pass with --no-probe; a pass shows it.")
@option("--limit", default="all", help="Number of cases, drawn by --seed.")
@option("--seed", default=0, help="Seed for the order, the draw, the rewrites and sampling.")
@cost("--budget", help="Maximum number of model calls, including those answered from the store.")
@cost("--ahead", default=1, help="Prompts to judge in parallel, even if fewer might be enough. Ignored with --budget.")
@out_option
@keep_text_option
@store_option
@cost("--trust-store", is_flag=True, help="Use a server's stored replies without repeating a few requests as a check.")
@model_options
@judge_options
@json_option
def gate(run: Path | None, as_json: bool, junit: Path | None, github: bool, summary: Path | None, **more: Any) -> None:
    """Decide whether rewrites mislead a judge too often.

    Reads a finished RUN of `attack`, or asks --judge only until the decision is clear. Thresholds come from the command
    line, else from the table `gate` of the nearest distract.toml or pyproject.toml. Fails closed.
    """
    from distract.report.terminal import show
    from distract.studies.gate.request import decide
    from distract.studies.gate.verdict import undecided_verdict
    from distract.studies.gate.view import gate_report
    from distract.studies.project import find_project

    typed = [
        name
        for name in ("probe", "unlabelled_reason")
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if more["probe"] and typed == ["probe"]:
        more["unlabelled_reason"] = None  # from a file of settings, which --probe overrides
    pages = Pages.take(more)
    outputs, judge = Outputs(junit, github, summary, as_json), more["judge"] or ""
    if not terminal().is_dry:
        config = more["config"]
        with suppress(OSError):  # there is no folder to search
            config = config or find_project()
        outputs.begin(protected_paths({"run": run, **more, "config": config}))
    try:
        with outputs.stop_commands():
            verdict, loaded = decide(run, more, explicit_options(), terminal())
            if not as_json:
                show(gate_report(verdict))
                show(unread_parts(loaded) if loaded else ())
            elif run is None and loaded:  # print what the run folder holds
                echo_json(loaded.summary)
                print_lines(verdict.notes)
            else:
                echo_json(verdict.document())
            pages.write(lambda: chain(gate_report(verdict), list_rates(loaded) if loaded else ()), loaded)
            if run is None and loaded:
                echo(f"run folder: {safe_line(str(loaded.path))}", err=as_json)
    except DistractError as error:
        if not terminal().is_dry:
            outputs.end(undecided_verdict(f"the gate did not finish: {error}"), judge, (), ())
        raise
    if loaded:
        outputs.end(verdict, str(loaded.parameters["judge"]), loaded.rows, loaded.rewrites)
    else:
        outputs.end(verdict, judge, (), ())
    raise CommandExit(verdict.exit_code)


def list_rates(run: LoadedRun) -> Iterable[Block]:
    """The report of a finished run, and an unreadable answer.

    A live gate stops at a time that depends on its verdicts, so that the intervals of its rates would not hold.
    """
    from distract.core import registry
    from distract.core.job import summarise

    report = summarise(registry.get_study(run.command), run).report if run.command == "attack" else ()
    return chain(report, unread_parts(run))


@command()
@click.argument("before", metavar="RUN", type=PATH)
@click.argument("now", metavar="RUN", type=PATH)
@evidence_options
@json_option
def compare(before: Path, now: Path, as_json: bool, **options: Any) -> None:
    """Compare the rates of two RUNs: flips, gains, hollow wins.

    Both are of `attack` and on the same cases, the earlier one first. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.studies.gate import finished
    from distract.studies.gate.limits import Limits
    from distract.studies.gate.view import comparison_report

    limits = Limits.of(**{name: value for name, value in options.items() if value is not None})
    verdict = finished.decide(runs.load(now), limits, runs.load(before))
    print_result(as_json, verdict.document(), comparison_report(str(before), str(now), verdict))


@command("plan-gate")
@group_options(*(option(f"--{row.limit}", help=f"Threshold on the {row.words}.") for row in HIT_RATES))
@option("--power", bounds=CONFIDENCE, default=0.8, help="Chance of the right decision.")
@option("--true-rate", bounds=SHARE, required=True, help="Assumed rate of the judge.")
@option("--confidence", default=0.95, help="Confidence of one-sided bounds.")
@option("--checks", bounds=WholeRange(1, 10_000), default=1, help="Protocols x attacks.")
@json_option
def plan_gate(
    power: float, true_rate: float, confidence: float, checks: int, as_json: bool, **limits: float | None
) -> None:
    """Calculate how many eligible cases a gate needs."""
    from distract.report.blocks import sentences
    from distract.studies.gate.power import analyse_power, power_report

    given = [(row, limit) for row in HIT_RATES if (limit := limits[row.key]) is not None]
    if len(given) != 1:
        raise UsageError(f"give one of {', '.join(f'--{row.limit}' for row in HIT_RATES)}")
    ((row, threshold),) = given
    if row.better == "high":
        threshold, true_rate = 1 - threshold, 1 - true_rate
    analysis = analyse_power(threshold, true_rate, power, confidence, checks, row.name)
    print_result(as_json, analysis.document(), sentences(power_report(analysis), apart=False))
