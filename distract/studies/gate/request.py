"""Run a gate from a user's options, on a finished run or by asking a judge; commands and Python calls share this."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from distract.core import runs
from distract.core.backend import RemoteBackend
from distract.core.errors import UsageError
from distract.core.printable import count, line
from distract.core.records import Role
from distract.core.runs import LoadedRun
from distract.core.store import DEFAULT_PATH, Answerer
from distract.core.usage import Tally
from distract.studies.anchors.anchor_file import AnchorSet, read_anchors
from distract.studies.anchors.session import require_anchors
from distract.studies.attack import session
from distract.studies.drift import JudgeChanged
from distract.studies.eligibility import Degradation, parse_attacks
from distract.studies.execution import run_job
from distract.studies.gate import canary, finished as run_gate, live, settings
from distract.studies.gate.comparable import list_changes, unusable_reason
from distract.studies.gate.limits import LIMITS, RATE_LIMITS, STYLE, Limits, name_option
from distract.studies.gate.measures import RATES, Measure, has_rate, list_kinds, list_truths
from distract.studies.gate.verdict import Verdict, undecided_verdict
from distract.studies.listener import Listener

RUN_OPTIONS = (
    *(*LIMITS, "run", "config", "baseline", "control"),
    *("junit", "github", "summary", "html", "markdown", "as_json"),
)
"""The options that also apply to a finished run."""


def decide(
    run: Path | None, more: dict[str, Any], written: Mapping[str, str], listener: Listener
) -> tuple[Verdict, LoadedRun | None]:
    """Decide whether rewrites mislead a judge too often."""
    baseline_path, control = more.pop("baseline", None), more.get("control", False)
    if more.get("max_rise") is not None and baseline_path is None:
        raise UsageError("--max-rise needs --baseline")
    overrides = {name: value for name in LIMITS if (value := more.pop(name, None)) is not None}
    limits = settings.merge_limits(settings.load_settings(more.pop("config", None)), overrides)
    anchors = None if (place := more.pop("anchors", None)) is None else read_anchors(place)
    baseline = _load_baseline(baseline_path)
    if baseline is None and not (limits.has_threshold or limits.style):
        options = " or ".join(map(name_option, RATE_LIMITS))
        raise UsageError(f"no threshold: give {options}, the same in [tool.distract.gate], or --baseline")
    if baseline is not None and control:
        raise UsageError("--control needs a threshold; with --baseline, the noise affects both runs alike")
    if run is None:
        if limits.style:
            option = name_option(STYLE[next(iter(limits.style))])
            raise UsageError(f"{option} needs a finished run: run `distract attack` first, then gate its folder")
        verdict, loaded = _decide_live(limits, overrides, baseline, anchors, more, listener)
    else:
        _check_finished(written)
        verdict, loaded = _decide_finished(run, limits, overrides, baseline, control)
    if loaded:
        verdict = replace(verdict, notes=(*verdict.notes, *_unmet_notes(limits, loaded.parameters)))
    if loaded and loaded.gap:
        verdict = replace(verdict, notes=(*verdict.notes, loaded.gap))
    return verdict, loaded


def _load_baseline(path: Path | None) -> LoadedRun | None:
    if path is None:
        return None
    loaded = runs.load(path)
    if why := unusable_reason(loaded):
        raise UsageError(f"{path} {why}")
    return loaded


def _check_finished(options: Mapping[str, str]) -> None:
    """Fail on options that only apply to a judge."""
    if "judge" in options:
        raise UsageError("name a finished run or a --judge, not both")
    if live_only := next((written for name, written in options.items() if name not in RUN_OPTIONS), None):
        raise UsageError(f"{live_only} needs --judge; it cannot change a finished run")


def _check_rates(overrides: Collection[str], parameters: Mapping[str, Any], remedy: str) -> None:
    """Fail on a threshold of the options that is for no attack: its rate would seem to be checked."""
    for measure in _list_unmet(overrides, parameters):
        option, truths = name_option(RATES[measure].limit), list_truths(measure)
        text = f"{option} is for attacks of truth {' or '.join(truths)}, and there is none"
        raise UsageError(f"{text}; {remedy} --attack all:{truths[-1]}")


def _unmet_notes(limits: Limits, parameters: Mapping[str, Any]) -> list[str]:
    """Name the thresholds of the settings that are for no attack of a run."""
    names = [rate.limit for rate in RATES.values() if getattr(limits, rate.limit) is not None]
    unmet = [name_option(RATES[measure].limit)[2:] for measure in _list_unmet(names, parameters)]
    return [f"not applied, as the run has no attack of that truth: {', '.join(unmet)}"] if unmet else []


def _list_unmet(names: Collection[str], parameters: Mapping[str, Any]) -> list[Measure]:
    """List the rates with one of these limits that no attack of a run has; none for a run without attacks."""
    is_empty = not list_kinds(parameters)
    limited = [measure for measure, rate in RATES.items() if rate.limit in names]
    return [] if is_empty else [measure for measure in limited if not has_rate(parameters, measure)]


def _decide_finished(
    run: Path, limits: Limits, overrides: Collection[str], baseline: LoadedRun | None, control: bool
) -> tuple[Verdict, LoadedRun]:
    loaded = runs.load(run)
    if loaded.command == "gate":
        decided = "whose decision is recorded; show it with `distract report`"
        raise UsageError(f"{run}: is a live gate, {loaded.flaw or decided}")
    loaded.check_command("attack")
    _check_rates(overrides, loaded.parameters, "run `distract attack` with")
    verdict = run_gate.decide_excess(loaded, limits) if control else run_gate.decide(loaded, limits, baseline)
    return replace(verdict, notes=(loaded.origin, *verdict.notes)), loaded


def _decide_live(
    limits: Limits,
    overrides: Collection[str],
    baseline: LoadedRun | None,
    anchors: AnchorSet | None,
    more: dict[str, Any],
    listener: Listener,
) -> tuple[Verdict, LoadedRun | None]:
    judge: str | None = more.pop("judge", None)
    store, fresh, trusts = more.pop("store", None), more.pop("fresh", False), more.pop("trust_store", False)
    budget, ahead = more.pop("budget", None), more.pop("ahead", 1)
    if judge is None:
        raise UsageError("name a finished run of `distract attack` or a --judge")
    named, protocols = parse_attacks(more.get("attacks", ())), more.get("protocols", ())
    if lower := [one.name for one in named if isinstance(one, Degradation)]:
        raise UsageError(f"{lower[0]} breaks constraints and has no flip rate; gate an attack without a severity")
    # The noise of a gate is the judge's own, whatever the attacks.
    chosen = {"limit": None, **more, "measures": ("flip_rate",), "is_matched": False}
    audited, setup = session.open_selection(judge, chosen, listener)
    audited = live.shuffle_prompts(audited, baseline)
    _check_rates(overrides, audited.parameters, "name some, as in")
    if not named and baseline is None:
        audited = live.drop_uncovered(audited, setup.protocols, limits)
    required = (*(attack.name for attack in named), *(protocol.name for protocol in setup.protocols if protocols))
    own = live.live_record(
        audited,
        setup.protocols,
        limits,
        control=more.get("control", False),
        baseline=baseline,
        budget=budget,
        ahead=ahead,
        required=required,
    )
    job = live.prepare(audited, setup, own, listener.preview_gate)
    checks: list[Callable[[Mapping[Role, Answerer], Tally], None]] = []
    if anchors is not None:
        checks.append(partial(require_anchors, anchors, setup, store or DEFAULT_PATH, listener))
        first = (
            f"before that, {count(len(anchors.anchors), 'comparison')} of {line(str(anchors.path))} are judged again"
        )
        job = replace(job, remarks=(*job.remarks, first))
    # Local and planted models are identified by their content.
    if isinstance(setup.backend, RemoteBackend) and not trusts:
        checks.append(partial(canary.check_judge, setup.judge, session.audit_config(audited, setup), job.cases))

    results: Mapping[str, Any] = {}

    def check_all(models: Mapping[Role, Answerer], tally: Tally) -> None:
        nonlocal results
        results = tally.checks
        for check in checks:
            check(models, tally)

    try:
        finished = run_job(job, store, listener, check_all if checks else None, is_fresh=fresh)
    except JudgeChanged as changed:
        verdict = replace(undecided_verdict(str(changed)), threshold=limits.max_flip_rate, confidence=limits.confidence)
        return replace(verdict, certify=limits.certify, identity_checks=results), None
    notes = tuple(list_changes(baseline, finished.run)) if baseline else ()
    return replace(finished.result, certify=limits.certify, notes=(*notes, *finished.result.notes)), finished.run
