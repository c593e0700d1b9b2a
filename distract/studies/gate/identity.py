"""Check that a gate compares one judge: the one whose replies are stored, and the one of a baseline.

A server does not say which weights answer, so before the gate trusts stored replies it repeats a few of their requests.
Only the verdict read from a reply counts, because a server that batches does not repeat a text letter by letter. A
higher flip rate shows that the judge got worse only if nothing else changed, so every other change is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from distract.core.errors import JudgeChanged, UsageError
from distract.core.exchange import ask_probes
from distract.core.frozen import ASKED, Reading, ask_members, compare, compare_members, list_served_changes
from distract.core.plan import PENDING, Plan, PlanResult, drive, is_enough, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count, line
from distract.core.recorder import list_differences
from distract.core.records import BASELINE, Case, CaseResult, Judgment, Reply, Request, Role
from distract.core.runs import LoadedRun, read_header
from distract.core.store import Answerer
from distract.core.usage import Tally
from distract.judging.comparison import track_usage
from distract.judging.consultation import consult
from distract.judging.verdicts import outcome
from distract.stats.measures import MEASURES, headline
from distract.studies.anchors import session, view
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import audit_case
from distract.studies.listener import Listener
from distract.studies.setup import Setup

# Parameters that may differ between compared runs.
_SETTINGS = ("judge", "identity", "reference", "manner", "limit", "seed", "generator", "asking", "verifier")
NARROW = 0.2  # lead of the largest probability below which a different judge is likely to decide differently


def check_comparable(baseline: LoadedRun, run: LoadedRun) -> list[str]:
    """Fail if two runs cannot be compared; return what differs otherwise."""
    if why := next(_obstacles(baseline, run), None):
        raise UsageError(f"{run.path} cannot be compared with {baseline.path}: {why}")
    return list_changes(baseline, run)


def check_directions(baseline: LoadedRun, run: Mapping[str, Any], measures: Iterable[str]) -> None:
    """Fail if a rate to compare is of rewritten winners, and a run with these parameters or its baseline has none."""
    if needy := [MEASURES[name] for name in measures if MEASURES[name].needs == "winners"]:
        names = {"the baseline": baseline.parameters, "the run": run}
        if one_way := [name for name, parameters in names.items() if not parameters.get("net")]:
            cure = f"attack again without --one-direction, or leave out --{needy[0].limit}"
            raise UsageError(f"{baseline.path} cannot be compared: {one_way[0]} has one direction; {cure}")


def unusable_reason(run: LoadedRun) -> str | None:
    """Explain why a run does not measure a judge fairly; None if it does."""
    if run.command == "gate":
        return "is a live gate, whose rates are biased because its own flips stop it; name a run of `distract attack`"
    if run.command != "attack":
        return f"is a run of `distract {run.command}`; name one of `distract attack`"
    return f"is not reliable: {run.flaw}" if run.flaw else None


def list_changes(baseline: LoadedRun, run: LoadedRun) -> list[str]:
    """List what differs between two comparable runs, the baseline's value first."""
    lists = (_differences, _rewrite_differences, _verdict_differences)
    return [line(note) for list_notes in lists for note in list_notes(baseline, run)]


def common_names(baseline: LoadedRun, run: LoadedRun) -> tuple[list[str], list[str]]:
    """Return the protocols and attacks of both runs, without controls."""
    old, new = baseline.parameters, run.parameters
    protocols = sorted(new["protocols"].keys() & old["protocols"].keys())
    left = {*old["attacks"]} - {*new["controls"], *old["controls"]}
    return protocols, [name for name in dict.fromkeys(new["attacks"]) if name in left]


def _obstacles(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    if baseline.path.resolve() == run.path.resolve() or run.is_copy_of(baseline) or baseline.is_copy_of(run):
        yield "they are the same run, or one has the replies of the other; name two (`--fresh` asks the judge again)"
    for name, one in (("the baseline", baseline), ("the new run", run)):
        if why := unusable_reason(one):
            yield f"{name} {why}"
    data = [one.parameters["data"] for one in (baseline, run)]
    contents = [(one.get("sha256"), one.get("map")) for one in data]
    if data[0].get("sha256") is None or contents[0] != contents[1]:
        names = ", then ".join(str(one["name"]) for one in data)
        yield f"their data are not the same ({names}); compare runs on one file"
    kinds = {"protocols": "protocol in common", "attacks": "attack in common besides controls"}
    for (name, kind), shared in zip(kinds.items(), common_names(baseline, run), strict=True):
        if not shared:
            names = ", then ".join(" ".join(one.parameters[name]) or "none" for one in (baseline, run))
            yield f"they have no {kind} ({names})"


def _differences(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    before, now = baseline.parameters, run.parameters
    for name in ("protocols", "attacks"):
        if alone := sorted(({*before[name]} ^ {*now[name]}) - {*before["controls"], *now["controls"]}):
            yield f"{name} of one run only, not compared: {', '.join(alone)}"
    for setting in _SETTINGS:
        yield from _setting_changes(setting, before.get(setting), now.get(setting))
    for name in ("prompts", "code"):
        old, new = (value if isinstance(value := one.get(name), dict) else {} for one in (before, now))
        if changed := [key for key in list_differences(old, new) if key in old and key in new]:
            yield f"{name} that changed: {', '.join(changed)}"
    versions = [read_header(one.path).versions if one.path.exists() else {} for one in (baseline, run)]
    yield from _setting_changes("versions", *versions)
    yield from list_served_changes(baseline.served, run.served)


def _setting_changes(name: str, before: Any, now: Any) -> Iterator[str]:
    """Compare a setting, key by key if it is an object."""
    old, new = (value if isinstance(value, dict) else {"": value} for value in (before, now))
    for key in list_differences(old, new):
        if (name, key) != ("manner", "seed"):  # the manner repeats the seed of the run
            texts = [_format_value(one.get(key)) for one in (old, new)]
            yield f"{f'{name}, {key}' if key else name}: {', then '.join(texts)}"


def _format_value(value: Any) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _rewrite_differences(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    """Report whether the attacks wrote different texts, which may explain a rise as well."""
    attacks = {*common_names(baseline, run)[1]}
    before, now = (
        {
            (rewrite.case, one.author, one.severity, one.attack): one.turns
            for rewrite in loaded.rewrites
            if (one := rewrite.response).attack in attacks and rewrite.is_accepted
        }
        for loaded in (baseline, run)
    )
    common = now.keys() & before.keys()
    if changed := sum(now[key] != before[key] for key in common):
        rewrites = f"{changed} of {count(len(common), 'rewrite')} of both runs"
        yield f"{rewrites} differ in their texts: they may explain a rise"


def _verdict_differences(baseline: LoadedRun, run: LoadedRun) -> Iterator[str]:
    """Report whether the judge gave other verdicts on the same requests, before any rewrite."""
    before, now = (
        {
            (row.protocol, row.keys): Reading(outcome(row.judgments, headline("flip_rate", rules[row.protocol])))
            for row in one.rows
            if row.attack == BASELINE and row.keys and row.protocol in rules
        }
        for one in (baseline, run)
        for rules in [one.parameters["protocols"]]
    )
    result = compare([one for one in before.items() if one[0] in now], lambda keys: [now[key] for key in keys])
    if result.status != "unchanged":
        yield f"the judge, on the same requests before any rewrite: {result.describe()}"


Rereader = Callable[[Reply], Reading]  # reads the verdict of an order with another reply to one of its requests


def check_judge(
    judge: str, design: AuditConfig, cases: Sequence[Case], models: Mapping[Role, Answerer], tally: Tally
) -> None:
    """Repeat a few requests of a run whose replies are stored, and fail if the judge has changed."""
    backend, store = models["judge"]
    stored = _find_stored(design, cases, models) if len(store) else {}
    if not stored:
        return
    steady = {key: verdict for key, (request, verdict, _) in stored.items() if request.temperature == 0}
    chosen = [stored[key] for key in choose_stored(steady)]
    if not chosen:
        raise JudgeChanged(
            f"cannot tell whether judge {judge} has changed since its verdicts were stored: all of them are sampled; "
            "use --fresh to ask everything again, or --trust-store to rely on the store"
        )
    with store.claims() as claims:
        ask_probes("judge", models["judge"], tally, claims)
    advice = (
        "use --fresh to ask everything again, --judge-version TEXT to tell the new judge from the old, or "
        "--trust-store to rely on the store"
    )
    frozen = [(request, verdict) for request, verdict, _ in chosen]
    rereads = {request.key: reread for request, _, reread in chosen}
    now = ask_members(backend, [one for one, _ in frozen], lambda one, reply: rereads[one.key](reply), tally)
    compare_members(frozen, now, tally, "canary", "its stored replies", advice)


def _find_stored(
    design: AuditConfig, cases: Sequence[Case], models: Mapping[Role, Answerer]
) -> dict[bytes, tuple[Request, Reading, Rereader]]:
    """Find the judge's stored replies that decide verdicts of a run, by key, and these verdicts.

    Only the last replies of a comparison decide it: another wording of an earlier analysis changes no verdict.
    """
    deciding = dict[int, tuple[Reading, Rereader]]()
    known = dict[bytes, tuple[Request, Reply]]()

    def ask(protocol: Protocol, comparison: Comparison) -> Plan[Judgment]:
        rounds = list[dict[str, Reply]]()
        judgment = yield from tap(
            consult(protocol, comparison),
            on_replies=lambda *both: rounds.append({one.key: reply for one, reply in zip(*both, strict=True)}),
        )
        replies = {key: reply for one in rounds for key, reply in one.items()}
        for key, reply in rounds[-1].items() if rounds else ():
            reread = partial(_reread, protocol, comparison, replies, key)
            deciding.setdefault(id(reply), (_read(judgment, protocol), reread))
        return judgment

    def answer(requests: Sequence[Request]) -> Sequence[Reply] | PlanResult[CaseResult]:
        """Answer as far as replies are stored."""
        keys = [models[request.to][1].key(request) for request in requests]
        for role, (_, store) in models.items():
            pairs = zip(keys, requests, strict=True)
            new = {key: request for key, request in pairs if request.to == role and key not in known}
            known.update((key, (new[key], reply)) for key, reply in store.get(list(new)).items())
        replies = [known[key][1] if key in known else PENDING for key in keys]
        return replies if is_enough(requests, replies) else PlanResult(CaseResult())

    watched = tuple(replace(protocol, ask=partial(ask, protocol)) for protocol in design.protocols)
    for case in cases:
        drive(audit_case(case, replace(design, protocols=watched)), answer)
    judged = {key: pair for key, pair in known.items() if pair[0].to == "judge" and id(pair[1]) in deciding}
    return {key: (request, *deciding[id(reply)]) for key, (request, reply) in judged.items()}


def _reread(protocol: Protocol, comparison: Comparison, replies: Mapping[str, Reply], key: str, new: Reply) -> Reading:
    """Read an order with a new reply to one of its requests."""
    replies = {**replies, key: new}

    def answer(requests: Sequence[Request]) -> Sequence[Reply] | PlanResult[Any]:
        keys = [request.key for request in requests]
        return [replies[key] for key in keys] if replies.keys() >= {*keys} else PlanResult((None, {}))

    judgment, _ = drive(track_usage(comparison.case.id, protocol, consult(protocol, comparison)), answer)
    return _read(judgment, protocol)


def _read(judgment: Judgment | None, protocol: Protocol) -> Reading:
    """Read a verdict; one in words with its scores, and None for an order that was cut short."""
    if judgment is None or judgment.read == "choices":
        return session.read_verdict((judgment,) if judgment else (), protocol)
    return Reading((judgment.preferred, judgment.ratings or judgment.scores))


def choose_stored(verdicts: Mapping[bytes, Reading]) -> list[bytes]:
    """Choose which requests to repeat, by the keys of their replies: smallest keys, narrow leads first."""
    ordered = sorted(verdicts)
    narrow = [key for key in ordered if (1.0 if (lead := verdicts[key].lead) is None else lead) < NARROW][: ASKED // 2]
    return narrow + [key for key in ordered if key not in narrow][: ASKED - len(narrow)]


def require_anchors(
    anchors: session.AnchorSet, setup: Setup, store: Path, listener: Listener, _: Mapping[Role, Answerer], tally: Tally
) -> None:
    """Fail if a judge is not the one that the anchors are of; only the tokens of the check count as the run's."""
    chosen = session.choose_way(anchors, setup)
    result = session.check(anchors, chosen, store, Tally(tokens=tally.tokens))
    summary, path = view.summarise(result), anchors.path
    tally.checks["anchors"] = view.check_document(anchors, chosen, result)
    if result.status != "unchanged":
        raise JudgeChanged(
            f"{path}: the judge is not the one of the anchors: {summary}; `distract anchors check {path}` shows which "
            "verdicts"
        )
    unused = f"{path}: the anchors were asked for by {anchors.protocol}, which this gate does not use"
    is_used = anchors.protocol in [protocol.name for protocol in setup.protocols]
    listener.say([f"{path}: {summary}", *view.list_notes(anchors, chosen), *([] if is_used else [unused])])
