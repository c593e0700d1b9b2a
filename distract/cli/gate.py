"""``distract gate`` and ``compare``: make a decision, and turn it into output and an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from distract.cli.command import check_options, command, explicit_options, typed_options
from distract.cli.gate_outputs import GateCommand, OutputOptions, Outputs
from distract.cli.pages import Pages, protected_paths
from distract.cli.run import unread_parts
from distract.cli.shared import CommandExit, echo, echo_json, print_lines, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import DistractError, UsageError
from distract.models.options import describe, setting
from distract.models.ranges import CONFIDENCE, PATH, SHARE, WholeRange
from distract.stats.measures import list_limited
from distract.studies.gate.options import EvidenceOptions, GateOptions
from distract.studies.options import JsonOptions, PageOptions

if TYPE_CHECKING:
    from distract.core.runs import LoadedRun
    from distract.report.blocks import Block

_plan = partial(setting, panel="Plan", typed="a plan asks no judge and decides nothing")


@dataclass(frozen=True, kw_only=True)
class _Options(GateOptions, OutputOptions, PageOptions, JsonOptions):
    plan: bool = _plan(False, "only calculate how many eligible cases a gate by one threshold needs")
    true_rate: float | None = _plan(None, "assumed rate of the judge, with --plan", SHARE)
    power: float = _plan(0.8, "chance of the right decision, with --plan", CONFIDENCE)
    checks: int = _plan(1, "protocols x attacks, with --plan", WholeRange(1, 10_000))


@command(_Options, kind=GateCommand)
def gate(options: _Options) -> None:
    """Decide whether rewrites mislead a judge too often.

    Reads a finished RUN of `attack`, or asks --judge only until the decision is clear. Thresholds come from the command
    line, else from the table `gate` of the nearest distract.toml or pyproject.toml. Fails closed.
    """
    from distract.report.terminal import show
    from distract.studies.gate.request import decide
    from distract.studies.gate.verdict import undecided_verdict
    from distract.studies.gate.view import gate_report
    from distract.studies.project import find_project

    if options.plan:
        _plan_gate(options)
        return
    written = explicit_options()
    if planned := [written[name] for name in PLAN_OPTIONS if name in written]:
        raise UsageError(f"{planned[0]} needs --plan")
    if options.probe and {"probe", "unlabelled_reason"} & typed_options().keys() == {"probe"}:
        options = replace(options, unlabelled_reason=None)  # from a file of settings, which --probe overrides
    pages, run = Pages.take(options), options.run
    outputs, judge = Outputs.of(options, options.as_json), options.judge or ""
    if not terminal().is_dry:
        config = options.config
        with suppress(OSError):  # there is no folder to search
            config = config or find_project()
        outputs.begin(protected_paths({**vars(options), "config": config}))
    try:
        with outputs.stop_commands():
            verdict, loaded = decide(options, written, terminal())
            if not options.as_json:
                show(gate_report(verdict))
                show(unread_parts(loaded) if loaded else ())
            elif run is None and loaded and loaded.command == "gate":  # print what the run folder holds
                echo_json(loaded.summary)
                print_lines(verdict.notes)
            else:
                echo_json(verdict.document())
            pages.write(lambda: chain(gate_report(verdict), list_rates(loaded) if loaded else ()), loaded)
            if run is None and loaded:
                echo(f"run folder: {safe_line(str(loaded.path))}", err=options.as_json)
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


PLAN_OPTIONS = ("true_rate", "power", "checks")
"""The options that only a plan takes."""


def _plan_gate(options: _Options) -> None:
    """Calculate how many eligible cases a gate needs."""
    from distract.report.blocks import sentences
    from distract.studies.gate.limits import load_settings, merge_limits
    from distract.studies.gate.power import analyse_power, power_report

    rows = [row for row in list_limited() if row.is_hit_rate]
    allowed = {"plan", "confidence", "config", "as_json", *PLAN_OPTIONS, *(row.key for row in rows)}
    check_options(allowed, "does not apply with --plan", typed_options())
    names = ("confidence", *(row.key for row in rows))
    overrides = {name: value for name in names if (value := getattr(options, name)) is not None}
    limits = merge_limits(load_settings(options.config), overrides)
    typed = [row for row in rows if row.key in overrides]
    given = [(row, limits.measures[row.name]) for row in typed or rows if row.name in limits.measures]
    if len(given) != 1:
        raise UsageError(f"--plan needs one of {', '.join(f'--{row.limit}' for row in rows)}")
    if options.true_rate is None:
        raise UsageError("--plan needs --true-rate, such as 0.02")
    ((row, threshold),), rate = given, options.true_rate
    if row.better == "high":
        threshold, rate = 1 - threshold, 1 - rate
    analysis = analyse_power(threshold, rate, options.power, limits.confidence, options.checks, row.name)
    print_result(options.as_json, analysis.document(), sentences(power_report(analysis), apart=False))


@dataclass(frozen=True, kw_only=True)
class _CompareOptions(EvidenceOptions, JsonOptions):
    before: Path = setting(MISSING, "earlier run", PATH, argument=True, metavar="RUN")
    now: Path = setting(MISSING, "later run", PATH, argument=True, metavar="RUN")


@command(_CompareOptions)
def compare(options: _CompareOptions) -> None:
    """Compare the rates of two RUNs: flips, gains, hollow wins.

    Both are of `attack` and on the same cases, the earlier one first. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.studies.gate import finished
    from distract.studies.gate.limits import Limits
    from distract.studies.gate.view import comparison_report

    before, now = options.before, options.now
    given = {name: value for name in describe(EvidenceOptions) if (value := getattr(options, name)) is not None}
    verdict = finished.decide(runs.load(now), Limits.of(**given), runs.load(before))
    print_result(options.as_json, verdict.document(), comparison_report(str(before), str(now), verdict))
