"""``distract try``: one pair, with the prompt as it is sent, the raw answer, and what is read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import partial

from distract.cli.command import command
from distract.cli.inquiry import consult
from distract.cli.shared import echo, echo_json, exit_with
from distract.cli.terminal import CLOSING, terminal
from distract.judging.orders import Temperature
from distract.models.options import setting
from distract.models.ranges import DATA_TEXT
from distract.studies.options import JUDGE, JsonOptions, JudgeOptions, columns_option, ways_of_asking

_text = partial(setting, None, kind=DATA_TEXT)


@dataclass(frozen=True, kw_only=True)
class _Options(Temperature, JudgeOptions, JsonOptions):
    judge: str = setting(MISSING, "judge", JUDGE, argument=True, metavar="JUDGE")
    protocols: tuple[str, ...] = ways_of_asking("that of the judge, or the basic ones")
    data: str | None = setting(
        None, "data with the case: built-in name, path, or FORMAT:PATH. Default: a built-in pair"
    )
    columns: Mapping[str, str] = columns_option()
    case_id: str | None = _text(help="case of the data. Default: the first", flag="--case")
    question: str | None = _text(help="question of a pair of your own")
    response_a: str | None = _text(help="its first response")
    response_b: str | None = _text(help="its second response")
    reference: str | None = _text(help="its reference answer, if the prompt shows one")
    criterion: str | None = _text(help="its criterion. Default: distract's own")


@command(_Options, "try")
def try_judge(options: _Options) -> None:
    """Judge one pair; show the prompts, the answers and how they are read.

    JUDGE is a name as for --judge, or a judge file (judge.toml). Run this first with a judge or a prompt of your own.
    """
    from distract.core import registry
    from distract.core.backend import RemoteBackend, describe_rendering
    from distract.core.errors import redirect_output
    from distract.judging import trial, trial_view
    from distract.models.opener import open_models
    from distract.models.options import Options, narrow
    from distract.studies.execution import choose_manner

    judge = options.judge
    names = ("question", "response_a", "response_b", "reference", "criterion")
    texts = {name: getattr(options, name) for name in names}
    case = trial.choose_case(options.data, options.case_id, texts, options.columns)
    opened = open_models({"judge": judge}, narrow(options, Options))
    terminal().say(opened.notes)
    backend = opened.models["judge"]
    chosen, pair = registry.choose_protocols(options.protocols, backend), trial.compare_case(case)
    manner = choose_manner(options, backend)
    if terminal().is_dry:
        trials = [trial.try_protocol(None, protocol, pair, manner) for protocol in chosen]
    else:
        with redirect_output(), consult(judge, backend, opened.prices, options) as asker:
            trials = [trial.try_protocol(asker, protocol, pair, manner) for protocol in chosen]
    notes = describe_rendering({"judge": backend})
    if isinstance(backend, RemoteBackend) or backend.identity.get("engine") == "inspect":
        notes.append("the server renders these messages by a chat template of its own, which is not shown")
    if options.as_json:
        documents = [trial_view.trial_document(one) for one in trials]
        echo_json({"judge": judge, "case": case.id, "notes": notes, "trials": documents})
    else:
        for text in trial_view.show_trials(judge, case.id, trials, notes):
            echo(text)
    if terminal().is_dry:
        if not options.as_json:
            echo(f"\n{CLOSING}")
    elif unread := [one.protocol.name for one in trials if one.outcome is None]:
        exit_with(f"no verdict could be read with {', '.join(unread)} (see the reasons above)", 3)
