"""``distract gate``, ``compare`` and ``plan-gate``: options to decisions, decisions to output and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from distract.cli.attack_options import audit_options
from distract.cli.gate_outputs import GateCommand, Outputs, output_options, protected_paths
from distract.cli.number_types import CONFIDENCE, INNER_SHARE, SHARE, WholeType, click_type
from distract.cli.run import Terminal, unread_parts
from distract.cli.shared import (
    CommandExit,
    command,
    echo,
    echo_json,
    group_options,
    json_option,
    judge_options,
    model_options,
    print_lines,
    safe_line,
    store_option,
)
from distract.core.errors import DistractError

evidence_options = group_options(
    click.option(
        "--max-rise", type=click_type("max_rise"), help="Largest rise since the baseline to accept. Default: 0.05."
    ),
    click.option(
        "--max-invalid-rate",
        type=click_type("max_invalid_rate"),
        help="Largest share of unreadable verdicts. Default: 0.2.",
    ),
    click.option(
        "--min-eligible",
        type=click_type("min_eligible"),
        help="Smallest share of comparisons that must be eligible to pass. Default: 0.2.",
    ),
    click.option("--min-n", type=click_type("min_n"), help="Fewest verdicts that may pass. Default: 1."),
    click.option("--confidence", type=click_type("confidence"), help="Of one-sided bounds. Default: 0.95."),
)
limit_options = group_options(
    click.option(
        "--max-flip-rate", type=click_type("max_flip_rate"), help="Largest flip rate to accept, such as 0.10."
    ),
    evidence_options,
    click.option("--certify/--no-certify", default=None, help="Inconclusive counts as a failure (exit 1)."),
    click.option("--config", type=click.Path(path_type=Path), help="pyproject.toml with [tool.distract.gate]."),
)


@command(kind=GateCommand)
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
@click.option(
    "--limit", type=click_type("limit"), default="all", show_default=True, help="Number of cases, drawn by --seed."
)
@click.option(
    "--seed", type=click_type("seed"), default=0, show_default=True, help="Of order, draw, rewrites and sampling."
)
@click.option(
    "--budget", type=click_type("budget"), help="Most calls of models, those answered from the store included."
)
@click.option(
    "--ahead",
    type=click_type("ahead"),
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
    from distract.studies.gate.request import decide
    from distract.studies.gate.settings import find_project
    from distract.studies.gate.verdict import undecided_verdict
    from distract.studies.gate.view import gate_report

    outputs, judge = Outputs(junit, github, summary, as_json), more["judge"] or ""
    outputs.begin(protected_paths({"run": run, **more, "config": more["config"] or find_project()}))
    try:
        with outputs.stop_commands():
            verdict, loaded = decide(run, more, _explicit_options(), Terminal())
            if not as_json:
                show(gate_report(verdict))
                show(unread_parts(loaded) if loaded else ())
            elif run is None and loaded:  # what the run folder holds, which knows no other run
                echo_json(loaded.summary)
                print_lines(verdict.notes)
            else:
                echo_json(verdict.document())
            if run is None and loaded:
                echo(f"run folder: {safe_line(str(loaded.path))}", err=as_json)
    except DistractError as error:
        outputs.end(undecided_verdict(f"the gate did not end: {error}"), judge, (), ())
        raise
    if loaded:
        outputs.end(verdict, str(loaded.parameters["judge"]), loaded.rows, loaded.rewrites)
    else:
        outputs.end(verdict, judge, (), ())
    raise CommandExit(verdict.exit_code)


@command()
@click.argument("before", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("now", metavar="RUN", type=click.Path(path_type=Path))
@evidence_options
@json_option
def compare(before: Path, now: Path, as_json: bool, **given: Any) -> None:
    """Compare the flip rates of two RUNs of `attack` on the same cases, the earlier one first. Ends with 0."""
    from distract.core import runs
    from distract.report.tables import show
    from distract.studies.gate import finished
    from distract.studies.gate.limits import Limits
    from distract.studies.gate.view import comparison_report

    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    verdict = finished.decide(runs.load(now), limits, runs.load(before))
    if as_json:
        echo_json(verdict.document())
    else:
        show(comparison_report(str(before), str(now), verdict))


@command("plan-gate")
@click.option("--max-flip-rate", "threshold", type=INNER_SHARE, required=True, help="Threshold of the gate.")
@click.option("--power", type=CONFIDENCE, default=0.8, show_default=True, help="Chance of the right decision.")
@click.option("--true-rate", type=SHARE, required=True, help="Flip rate that the judge is taken to have.")
@click.option("--confidence", type=CONFIDENCE, default=0.95, show_default=True, help="Of one-sided bounds.")
@click.option("--checks", type=WholeType(1, 10_000), default=1, show_default=True, help="Protocols x attacks.")
@json_option
def plan_gate(threshold: float, power: float, true_rate: float, confidence: float, checks: int, as_json: bool) -> None:
    """Say how many eligible cases a gate needs."""
    from distract.studies.gate.power_plan import analyse_power, power_report

    found = analyse_power(threshold, true_rate, power, confidence, checks)
    if as_json:
        echo_json(found.document())
    else:
        from rich.text import Text

        from distract.report.tables import show

        show(map(Text, power_report(found)))


def _explicit_options() -> dict[str, str]:
    """The options of the command line, by name, as they are written there."""
    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    return {option.name or "": option.opts[0] for option in context.command.params if option.name in given}
