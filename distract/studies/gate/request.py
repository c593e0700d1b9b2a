"""Run a gate from a user's options, on a finished run or by asking a judge; commands and Python calls share this."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from distract.core import runs
from distract.core.backend import RemoteBackend
from distract.core.errors import JudgeChanged, UsageError
from distract.core.job import Job
from distract.core.plugin import Protocol
from distract.core.printable import count, line
from distract.core.records import Case, Role
from distract.core.runs import LoadedRun
from distract.core.store import DEFAULT_PATH, Answerer
from distract.core.usage import Tally
from distract.data.good_responses import pairs
from distract.stats.measures import MEASURES
from distract.stats.trials import Design, Measure
from distract.studies.anchors.session import AnchorSet, choose_way, estimate, read_anchors
from distract.studies.attack import session
from distract.studies.attack.session import AttackSelection
from distract.studies.eligibility import Degradation, parse_attacks
from distract.studies.execution import run_job, set_up
from distract.studies.gate import finished as run_gate, identity, live
from distract.studies.gate.identity import list_changes, unusable_reason
from distract.studies.gate.limits import KINDS, Limits, has_rate, list_kinds, list_rates, load_settings, merge_limits
from distract.studies.gate.noise import NO_FLIPS
from distract.studies.gate.options import GateOptions
from distract.studies.gate.verdict import Verdict, undecided_verdict
from distract.studies.listener import Listener


def shuffle_prompts(selected: AttackSelection, baseline: LoadedRun | None) -> AttackSelection:
    """Put cases in random order, prompt by prompt, and drop those that the baseline lacks."""
    cases = selected.cases
    if baseline is not None:
        judged = {row.case for row in baseline.rows}
        cases = tuple(case for case in cases if case.id in judged)
        if baseline.parameters["data"]["sha256"] != selected.data.checksum or not cases:
            raise UsageError(f"{baseline.path}: is a run on other data or cases; compare on the same cases")
    by_prompt: dict[str, list[Case]] = {}
    for case in cases:
        by_prompt.setdefault(case.prompt_group, []).append(case)
    prompts = list(by_prompt.values())
    random.Random(selected.seed).shuffle(prompts)
    ordered = tuple(case for prompt in prompts for case in prompt)
    return replace(selected, cases=ordered, parameters={**selected.parameters, "limit": len(ordered)})


def add_pairs(selected: AttackSelection) -> AttackSelection:
    """Judge pairs before any rewrite too, without which nothing shows that the judge can tell good from bad."""
    scope = selected.scope
    if not any(pairs(case) for case in selected.cases):
        return selected
    designs, compared = (frozenset[Design]({*names, "flip"}) for names in (scope.designs, scope.compared))
    return replace(selected, scope=replace(scope, designs=designs, compared=compared))


def drop_uncovered(selected: AttackSelection, protocols: Sequence[Protocol], limits: Limits) -> AttackSelection:
    """Drop the default attacks of effects without any threshold."""
    kinds, scope = list_kinds(selected.parameters), selected.scope
    places = [*limits.list_places((protocol.name for protocol in protocols), kinds.values())]
    dropped = {*kinds} - {place.attack.name for place in limits.keep_covered(places)}
    names = [name for name in selected.parameters["attacks"] if name not in dropped]
    scope = replace(scope, attacks=tuple(attack for attack in scope.attacks if attack.name not in dropped))
    return replace(selected, scope=scope, parameters={**selected.parameters, "attacks": names})


RUN_OPTIONS = (
    *(*KINDS, "run", "config", "baseline", "control"),
    *("probe", "unlabelled_reason"),
    *("junit", "github", "summary", "html", "markdown", "as_json"),
)
"""The options that also apply to a finished run."""


def decide(options: GateOptions, written: Mapping[str, str], listener: Listener) -> tuple[Verdict, LoadedRun | None]:
    """Decide whether rewrites mislead a judge too often; ``written`` has the options given, by name."""
    unlabelled_reason, control = _check_waiver(options.probe, options.unlabelled_reason), options.control
    if options.max_rise is not None and options.baseline is None:
        raise UsageError("--max-rise needs --baseline")
    overrides = {name: value for name in KINDS if (value := getattr(options, name)) is not None}
    limits = merge_limits(load_settings(options.config), overrides)
    anchors = None if options.anchors is None else read_anchors(options.anchors)
    baseline = None if options.baseline is None else runs.load(options.baseline)
    if baseline is not None and (why := unusable_reason(baseline)):
        raise UsageError(f"{options.baseline} {why}")
    if baseline is None and not (limits.measures or limits.others):
        flags = " or ".join(f"--{row.limit}" for row in list_rates() if row.is_paired)
        raise UsageError(f"no threshold: give {flags}, the same in [tool.distract.gate], or --baseline")
    if baseline is not None and control:
        raise UsageError("--control needs a threshold; with --baseline, the noise affects both runs alike")
    if "max_margin" in overrides and not limits.beyond_noise:
        raise UsageError("--max-margin needs --beyond-noise")
    if limits.beyond_noise and limits.margin:
        raise UsageError("--margin is a fixed margin, --beyond-noise estimates one: give one of them")
    if limits.beyond_noise and (other := "--baseline" if baseline else "--control" if control else ""):
        raise UsageError(f"--beyond-noise allows for noise by a threshold on flips: leave {other} out")
    if options.run is None:
        if limits.means:
            option = MEASURES[limits.means[0]].limit
            raise UsageError(f"--{option} needs a finished run: run `distract attack` first, then gate its folder")
        verdict, loaded = _decide_live(options, limits, overrides, baseline, anchors, listener, unlabelled_reason)
    else:
        if "judge" in written:
            raise UsageError("name a finished run or a --judge, not both")
        if live_only := [option for name, option in written.items() if name not in RUN_OPTIONS]:
            raise UsageError(f"{live_only[0]} needs --judge; it cannot change a finished run")
        verdict, loaded = _decide_finished(options.run, limits, overrides, baseline, control, unlabelled_reason)
    if loaded:
        verdict = replace(verdict, notes=(*verdict.notes, *_unmet_notes(limits, loaded.parameters)))
    if loaded and loaded.gap:
        verdict = replace(verdict, notes=(*verdict.notes, loaded.gap))
    return verdict, loaded


def _check_waiver(is_probed: bool, reason: str | None) -> str:
    """Return why a judge may pass although nothing shows that it can tell good from bad; empty if it may not."""
    if is_probed and reason is not None:
        raise UsageError("--unlabelled-reason needs --no-probe: a probe shows whether the judge may pass")
    if not is_probed and not (reason or "").strip():
        raise UsageError("--no-probe needs --unlabelled-reason TEXT, such as 'it rates one criterion'; a pass shows it")
    return reason or ""


def _check_rates(overrides: Collection[str], parameters: Mapping[str, Any], remedy: str) -> None:
    """Fail on a threshold of the options that is for no attack: its rate would seem to be checked."""
    for row in _list_unmet(overrides, parameters):
        text = f"--{row.limit} is for attacks of effect {' or '.join(row.limited_effects)}, and there is none"
        raise UsageError(f"{text}; {remedy} --attack all:{row.limited_effects[-1]}")


def _unmet_notes(limits: Limits, parameters: Mapping[str, Any]) -> list[str]:
    """Name the thresholds of the settings that are for no attack of a run."""
    unmet = [row.limit for row in _list_unmet([MEASURES[name].key for name in limits.measures], parameters)]
    return [f"not applied, as the run has no attack of that effect: {', '.join(unmet)}"] if unmet else []


def _list_unmet(keys: Collection[str], parameters: Mapping[str, Any]) -> list[Measure]:
    """List the rates with one of these limits that no attack of a run has; none for a run without attacks."""
    limited = [row for row in list_rates() if row.key in keys and row.is_paired]
    return [row for row in limited if list_kinds(parameters) and not has_rate(parameters, row.name)]


def _decide_finished(
    run: Path,
    limits: Limits,
    overrides: Collection[str],
    baseline: LoadedRun | None,
    control: bool,
    unlabelled_reason: str,
) -> tuple[Verdict, LoadedRun]:
    loaded = runs.load(run)
    if loaded.command == "gate":
        decided = "whose decision is recorded; show it with `distract report`"
        raise UsageError(f"{run}: is a live gate, {loaded.flaw or decided}")
    loaded.check_command("attack")
    _check_rates(overrides, loaded.parameters, "run `distract attack` with")
    verdict = run_gate.decide(loaded, limits, baseline, control, unlabelled_reason)
    return replace(verdict, notes=(loaded.origin, *verdict.notes)), loaded


def _decide_live(
    options: GateOptions,
    limits: Limits,
    overrides: Collection[str],
    baseline: LoadedRun | None,
    anchors: AnchorSet | None,
    listener: Listener,
    unlabelled_reason: str,
) -> tuple[Verdict, LoadedRun | None]:
    if options.judge is None:
        raise UsageError("name a finished run of `distract attack` or a --judge")
    named, control = parse_attacks(options.attacks), options.control
    if lower := [one.name for one in named if isinstance(one, Degradation)]:
        raise UsageError(f"{lower[0]} breaks constraints and has no flip rate; gate an attack without a severity")
    # The noise of a gate is the judge's own, whatever the attacks.
    measures = ["flip_rate"] if limits.has_threshold or not limits.measures else []
    measures += [name for name in limits.measures if not MEASURES[name].is_paired or MEASURES[name].needs]
    measures += ["flip_rate_beyond_margin"] if limits.beyond_noise else []
    setup = set_up(options, listener)
    selected = session.select(options, setup.helpers, measures=measures, is_matched=False)
    audited = add_pairs(shuffle_prompts(selected, baseline))
    _check_rates(overrides, audited.parameters, "name some, as in")
    if not named and baseline is None:
        audited = drop_uncovered(audited, setup.protocols, limits)
    required = (
        *(attack.name for attack in named),
        *(protocol.name for protocol in setup.protocols if options.protocols),
    )
    bounds = (baseline, options.budget, options.ahead, required, unlabelled_reason)
    own = live.live_record(audited, setup.protocols, limits, control, *bounds)
    job: Job[Any] = live.prepare(audited, setup, own, listener.preview_gate)
    if limits.beyond_noise:
        if options.budget is not None:
            raise UsageError(
                "--beyond-noise judges all cases, so that --budget cannot stop it: give a --limit of cases"
            )
        if all(measure != "flip_rate" for *_, measure in own["checks"]):
            raise UsageError(NO_FLIPS)
        # An estimated margin holds for a whole run, not at every look at it.
        job = session.prepare(audited, setup)
        job = replace(job, remarks=("gate: --beyond-noise judges all cases, then decides as on a finished run",))
    checks: list[Callable[[Mapping[Role, Answerer], Tally], None]] = []
    if anchors is not None:
        checks.append(partial(identity.require_anchors, anchors, setup, options.store or DEFAULT_PATH, listener))
        remark = (
            f"before that, {count(len(anchors.anchors), 'comparison')} of {line(str(anchors.path))} are judged again"
        )
        job = replace(
            job, remarks=(*job.remarks, remark), before=partial(estimate, choose_way(anchors, setup), anchors.anchors)
        )
    # Local and planted models are identified by their content.
    if isinstance(setup.backend, RemoteBackend) and not options.trust_store:
        checks.append(partial(identity.check_judge, setup.judge, session.audit_config(audited, setup), job.cases))

    results: Mapping[str, Any] = {}

    def check_all(models: Mapping[Role, Answerer], tally: Tally) -> None:
        nonlocal results
        results = tally.checks
        for check in checks:
            check(models, tally)

    try:
        finished = run_job(job, options.store, listener, check_all if checks else None, is_fresh=options.fresh)
    except JudgeChanged as changed:
        verdict = replace(undecided_verdict(str(changed)), threshold=limits.measures.get("flip_rate"))
        verdict = replace(verdict, confidence=limits.confidence, certify=limits.certify, identity_checks=results)
        return verdict, None
    if limits.beyond_noise:
        return run_gate.decide(finished.run, limits, unlabelled_reason=unlabelled_reason), finished.run
    notes = tuple(list_changes(baseline, finished.run)) if baseline else ()
    return replace(finished.result, certify=limits.certify, notes=(*notes, *finished.result.notes)), finished.run
