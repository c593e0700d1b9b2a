"""``distract try``: one pair, with the prompt as it is sent, the raw answer, and what is read from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distract.cli.command import command
from distract.cli.options import NameType, asking_options, map_option, option, protocol_option
from distract.cli.shared import echo, echo_json, exit_with, report_usage
from distract.cli.terminal import CLOSING, terminal


@command("try")
@click.argument("judge")
@protocol_option("that of the judge, or the basic ones")
@option("--data", help="Data with the case: built-in name, path, or FORMAT:PATH. Default: a built-in pair.")
@map_option
@option("--case", "case_id", type=NameType(), help="Case of the data. Default: the first.")
@option("--question", type=NameType(), help="Question of a pair of your own.")
@option("--response-a", type=NameType(), help="Its first response.")
@option("--response-b", type=NameType(), help="Its second response.")
@option("--reference", type=NameType(), help="Its reference answer, if the prompt shows one.")
@option("--criterion", type=NameType(), help="Its criterion. Default: distract's own.")
@asking_options
def try_judge(
    judge: str,
    protocols: tuple[str, ...],
    data: str | None,
    columns: dict[str, str],
    case_id: str | None,
    store: Path | None,
    fresh: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Judge one pair; show the prompts, the answers and how they are read.

    JUDGE is a name as for --judge, or a judge file (judge.toml). Run this first with a judge or a prompt of your own.
    """
    from distract.core import registry
    from distract.core.errors import redirect_output
    from distract.judging import trial, trial_view
    from distract.judging.judge import Judge
    from distract.models.opener import open_models
    from distract.studies.execution import renew, split_options

    _, loading, texts = split_options(more)
    case = trial.choose_case(data, case_id, texts, columns)
    opened = open_models({"judge": judge}, loading)
    terminal().say(opened.notes)
    backend = opened.models["judge"]
    chosen, pair = registry.choose_protocols(protocols, backend), trial.compare_case(case)
    if terminal().is_dry:
        trials = [trial.try_protocol(None, protocol, pair) for protocol in chosen]
    else:
        if fresh:
            renew([backend], store)
        with redirect_output(), Judge(judge, backend, store=store) as asker, report_usage(asker.tally, opened.prices):
            trials = [trial.try_protocol(asker, protocol, pair) for protocol in chosen]
    if as_json:
        echo_json({"judge": judge, "case": case.id, "trials": [trial_view.trial_document(one) for one in trials]})
    else:
        for text in trial_view.show_trials(judge, case.id, trials):
            echo(text)
    if terminal().is_dry:
        if not as_json:
            echo(f"\n{CLOSING}")
    elif unread := [one.protocol.name for one in trials if one.outcome is None]:
        exit_with(f"no verdict could be read with {', '.join(unread)} (see the reasons above)", 3)
