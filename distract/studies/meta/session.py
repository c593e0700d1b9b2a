"""From a user's request to the judges of a meta-evaluation: published ones, and one to ask about labelled cases.

People judged a pair of responses, or passed or failed one alone: each is a row for each protocol, and more for the
controls, which judge it again without any relevant change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import DataError, UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import line
from distract.core.records import BASELINE, PASS_MARK, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Row, Side
from distract.data import datasets
from distract.data.datasets import DataSet
from distract.judging.comparison import RowFactory, judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.judging.pass_marks import COMPARES, against_mark, find_mark
from distract.judging.published import PublishedRun
from distract.judging.texts import Texts
from distract.rewriting import writers
from distract.rewriting.memory import Memory, obtain_rewrite
from distract.rewriting.writers import WRITERS, Writer
from distract.stats.figure import count
from distract.stats.measures import MEASURES
from distract.studies.eligibility import check_fit, sample
from distract.studies.meta import measures
from distract.studies.meta.measures import JudgeRows, PairVerdicts
from distract.studies.meta.options import MetaOptions
from distract.studies.setup import Setup, spread

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier

Judged = tuple[Response, ...]  # what people judged: two responses, or the only one


@dataclass(frozen=True)
class MetaConfig:
    """The parameters of a run."""

    judge: str
    protocols: tuple[Protocol, ...]
    manner: Manner = DEFAULT
    helped: bool = False
    controls: tuple[Attack, ...] = ()  # attacks without any relevant change
    resample: bool = False  # whether to repeat sampled verdicts
    seed: int = 0  # for the controls and the shuffled orders
    # Data sets that always list the better response at the same place, so that the order must be drawn.
    shuffled: frozenset[str] = frozenset()
    marks: Mapping[str, float] = field(default_factory=dict)  # pass marks of the protocols that can judge one alone
    writer: Writer = WRITERS["rules"]
    verifier: Verifier | None = None


def list_judged(case: Case) -> list[Judged]:
    """List what people judged of a case: pairs, or its only response, which they passed or failed."""
    is_alone = case.passed is not None and len(case.originals) == 1
    return [case.originals] if is_alone else [*labelled_pairs(case)]


def labelled_pairs(case: Case) -> list[tuple[Response, Response]]:
    """Pair the original responses that the label covers, in the order of the data.

    If one of several responses is labelled better, these are the pairs with it; if the label is a tie, all pairs of
    responses that were not degraded.
    """
    originals = case.originals
    if case.preferred == "tie":
        originals = tuple(response for response in originals if response.severity is None)
    return [(a, b) for a, b in combinations(originals, 2) if a.author != b.author and label(case, a, b) is not None]


def judge_labelled(data: str, case: Case, p: MetaConfig) -> Plan[CaseResult]:
    """Judge everything that people judged of a case under every protocol."""
    memory: Memory = {}
    judged = list_judged(case)
    if data in p.shuffled:
        judged = [_draw_order(case, responses, p.seed) for responses in judged]
    jobs = [
        _judge(data, case, responses, protocol, p, memory)
        for protocol in p.protocols
        for responses in judged
        if len(responses) > 1 or protocol.name in p.marks
    ]
    parts: Sequence[list[Row]] = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part], [rewrite for rewrite in memory.values() if rewrite])


def is_one_sided(cases: Iterable[Case]) -> bool:
    """Whether the better response is always at the same place, in more than one pair.

    A judge that follows the order shown would then always be right in one order, and kappa would be meaningless.
    """
    labels = [label(case, *pair) for case in cases for pair in labelled_pairs(case)]
    strict = [preferred for preferred in labels if preferred != "tie"]
    return len(strict) > 1 and len({*strict}) == 1


def _draw_order(case: Case, judged: Judged, seed: int) -> Judged:
    names = [f"{response.author}\x1e{response.severity}" for response in judged]
    turned = hashlib.sha256("\x1e".join([str(seed), case.id, *names]).encode()).digest()[0] % 2
    return judged[::-1] if turned else judged


def _judge(data: str, case: Case, judged: Judged, protocol: Protocol, p: MetaConfig, memory: Memory) -> Plan[list[Row]]:
    a, b = judged[0], judged[-1]
    row = Row(case.id, case.cluster, "people", protocol.name, p.judge, BASELINE, side(a), side(b))
    row = replace(row, prompt_group=case.prompt_group, label=label(case, a, b), data=data, subset=case.source or "")
    if len(judged) == 1:
        row = replace(row, design="pass", b=Side(PASS_MARK), label="a" if case.passed else "b")
    comparison = Comparison(case, a, b)
    before = yield from judge_comparison(_make_factory(row, p), protocol, comparison, p.manner, p.helped)
    rows = [before]
    if before.excluded is not None:
        return rows
    for control in p.controls:
        changed = replace(row, attack=control.name)
        after = yield from _judge_control(changed, case, judged, protocol, control, p, memory)
        is_same = after.judgments and after.keys == before.keys
        rows.append(replace(changed, excluded=UNCHANGED) if is_same else after)
    if p.resample:
        again = _make_factory(replace(row, attack=RESAMPLED), p)
        rows.append((yield from resample_comparison(before, again, protocol, comparison, p.manner, p.helped)))
    return rows


def _make_factory(row: Row, p: MetaConfig) -> RowFactory:
    make = partial(replace, row)
    return against_mark(make, p.marks[row.protocol]) if row.design == "pass" else make


def _judge_control(
    row: Row, case: Case, judged: Judged, protocol: Protocol, control: Attack, p: MetaConfig, memory: Memory
) -> Plan[Row]:
    rewrites = list[Response]()
    for original in judged:
        rewrite = yield from obtain_rewrite(case, original, control, p, memory)
        if isinstance(rewrite, str):
            return replace(row, excluded=rewrite)
        rewrites.append(rewrite)
    a, b = rewrites[0], rewrites[-1]
    make = _make_factory(replace(row, a=side(a), b=row.b if len(judged) == 1 else side(b)), p)
    return (yield from judge_comparison(make, protocol, Comparison(case, a, b), p.manner, p.helped))


def group_runs(runs: Sequence[PublishedRun]) -> tuple[JudgeRows, ...]:
    """Merge one judge's runs by protocol."""
    protocols = sorted({run.protocol for run in runs})
    return tuple(_merge_runs([run for run in runs if run.protocol == name]) for name in protocols)


def _merge_runs(runs: Sequence[PublishedRun]) -> JudgeRows:
    first, seen = runs[0], dict[measures.ComparisonUnit, PublishedRun]()
    for run in runs:
        if run.rules != first.rules and "" in {*run.rows, *first.rows}:
            raise UsageError(f"{run.source}: {run.judge} under {run.protocol} has other rules in {first.source}")
        units = [measures.comparison_unit(row)[0] for row in run.rows[next(iter(run.rows))] if row.attack == BASELINE]
        if twice := next((seen[unit] for unit in units if unit in seen), None):
            raise UsageError(
                f"{run.source}: {run.judge} under {run.protocol} judges a pair that {twice.source} judges too; name one"
            )
        seen.update(dict.fromkeys(units, run))
    names = dict.fromkeys(rule for run in runs for rule in run.rows)
    rows = {name: tuple([row for run in runs for row in run.rows.get(name, ())]) for name in names}
    rules = tuple(dict.fromkeys(rule for run in runs for rule in run.rules))
    ties, total = any(run.ties for run in runs), {run.calls for run in runs}
    convention = first.convention if all(run.convention == first.convention for run in runs) else ""
    calls = total.pop() if len(total) == 1 else None
    return JudgeRows(first.judge, first.protocol, rules, rows, ties, convention, calls)


def check_reproduction(run: PublishedRun) -> dict[str, Any]:
    """Compare LLMBar's published counts with distract's, by stored winners and by its parser."""
    if not run.statistics:
        return {}
    differ: dict[str, dict[str, Any]] = {rule: {} for rule in run.rules}
    for rule in run.rules:
        pairs = measures.collect_comparisons(run.rows[rule], None)
        right, both, equal = (_take_published(name, pairs) for name in ("accuracy", "accuracy_both_orders", "equal"))
        values = {"correct_False": right[::2], "correct_True": right[1::2], "correct_average": right}
        for name, own in {**values, "correct_both": both, "equal": equal}.items():
            k, n = int(sum(own)), len(own)
            # The average is published without its counts.
            counts, share = "" if name == "correct_average" else f"{k} / {n} = ", 100 * k / n
            if name in run.statistics and not _is_same(run.statistics[name], counts, share):
                differ[rule][name] = {"published": run.statistics[name], "ours": f"{counts}{share:.1f}%"}
    return {"published": dict(run.statistics), "not_reproduced": differ}


def _take_published(name: str, pairs: Sequence[PairVerdicts]) -> list[float]:
    measure = MEASURES[f"published_{name}"]
    trials = measures.list_trials(measure.per or "published", pairs, "llmbar")
    return [value for _, value in count(measure, trials).values.values()]


def _is_same(published: object, counts: str, share: float) -> bool:
    """Whether a published text begins with these counts and has this share; some have one decimal, some all of them."""
    text = str(published)
    try:
        # Half of the last decimal, and a little for rounding.
        return text.startswith(counts) and abs(float(text.rpartition(" = ")[2].rstrip("%")) - share) < 0.0501
    except ValueError:
        return False


@dataclass(frozen=True)
class JudgeSource:
    """One judge with the origin of its verdicts."""

    name: str
    judged: tuple[JudgeRows, ...]  # the judge under each protocol
    record: Mapping[str, Any]  # the parameters behind the verdicts, as JSON values
    controls: tuple[str, ...] = ()  # names of the controls in its rows
    notes: tuple[str, ...] = ()  # warnings for the reader, one line each
    texts: Texts = field(default_factory=Texts)

    def reasons(self, kind: Literal["excluded", "invalid"]) -> Counter[str]:
        """Count exclusions, also under a control, or invalid verdicts, by reason."""
        rows = [row for one in self.judged for row in one.by(one.headline)]
        if kind == "excluded":
            under = {row.attack: "" if row.attack == BASELINE else f"under {row.attack}: " for row in rows}
            return Counter(under[row.attack] + row.excluded for row in rows if row.excluded)
        rows = [row for row in rows if row.attack == BASELINE]
        return Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure)


def from_published(runs: Sequence[PublishedRun]) -> list[JudgeSource]:
    """Build judges from stored verdicts, in the order of their names."""
    judges = []
    for name in sorted({run.judge for run in runs}):
        own = [run for run in runs if run.judge == name]
        sources = [
            {
                **{"protocol": run.protocol, "data": run.data, "file": run.source, "sha256": run.sha256},
                **check_reproduction(run),
            }
            for run in own
        ]
        notes = tuple(f"{run.protocol} on {run.data}: {note}" for run in own for note in run.notes)
        attacks = {row.attack for run in own for rows in run.rows.values() for row in rows}
        known = [run.all_texts for run in own]
        cases = {place: case for texts in known for place, case in texts.cases.items()}
        texts = Texts(cases, tuple(dict.fromkeys(folder for texts in known for folder in texts.runs)))
        controls = tuple(sorted(attacks - {BASELINE}))
        judges.append(JudgeSource(name, group_runs(own), {"replayed": sources}, controls, notes, texts))
    return judges


_RECORD = ("data", "left_out", "limit", "seed", "manner", "reference", "self_judging")


def from_run(parameters: Mapping[str, Any], rows: Sequence[Row], texts: Texts | None = None) -> JudgeSource:
    """Build a judge from its run; ``texts`` are those behind its rows, if they are to be shown."""
    name = parameters["judge"]
    judged = []
    for protocol, rules in parameters["protocols"].items():
        own = {"": tuple(row for row in rows if row.protocol == protocol)}
        judged.append(JudgeRows(name, protocol, tuple(rules), own, protocol in parameters["ties"]))
    # Marks without an origin are those of protocols that judged no response alone.
    marks = ("pass_marks", "pass_mark_origins") if "pass_mark_origins" in parameters else ()
    more = ("not_asked",) if "not_asked" in parameters else ()
    record = {field: parameters[field] for field in (*_RECORD, *marks, *more)}
    origins, reasons = record.get("pass_mark_origins", {}), record.get("not_asked", {})
    notes = [f"{one}: a score from {record['pass_marks'][one]:g} passes ({origin})" for one, origin in origins.items()]
    notes += [f"left out of pass or fail: {one} {reason}" for one, reason in reasons.items()]
    return JudgeSource(name, tuple(judged), record, tuple(parameters["controls"]), tuple(notes), texts or Texts())


@dataclass(frozen=True)
class MetaSelection:
    """The labelled cases on which to compare judges with people."""

    sets: Mapping[str, DataSet]  # the data sets by a unique name
    cases: tuple[tuple[str, Case], ...]  # the drawn cases with the name of their data set, in the order of the data
    left_out: Mapping[str, int]  # number of cases without a label, or left out by a reader, by reason
    # Data sets that always list the better response at the same place; the order is drawn there.
    shuffled: frozenset[str]
    limit: int | None  # number of cases to draw of each data set; None for all
    seed: int


def select(
    specs: Sequence[str],
    responses: Sequence[str],
    limit: int | None,
    seed: int,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> MetaSelection:
    """Read data sets and draw their labelled cases."""
    for option, value in (("--responses", responses), ("--map", columns)):
        if value and len(specs) != 1:
            raise UsageError(f"{option}: needs exactly one --data")
    loaded = [datasets.load(spec, responses, seed, columns, limit) for spec in specs]
    for index, one in enumerate(loaded):
        if any(one.checksum == other.checksum for other in loaded[:index]):
            raise UsageError(f"--data {specs[index]}: is given twice")
    left_out = Counter[str]()
    cases: list[tuple[str, Case]] = []
    sets = dict(zip(distinct_names([one.name for one in loaded], specs), loaded, strict=True))
    for name, one in sets.items():
        labelled = [case for case in one.cases if list_judged(case)]
        if not labelled:
            problem = "no case says which of two responses people prefer, or whether one passes; name labelled data"
            raise DataError(problem, path=name)
        left_out += one.left_out
        left_out["nobody says which response is better"] += len(one.cases) - len(labelled)
        cases += [(name, case) for case in sample(labelled, limit, seed)]
    shuffled = frozenset(name for name, one in sets.items() if is_one_sided(one.cases))
    reasons = {reason: n for reason, n in sorted(left_out.items()) if n}
    return MetaSelection(sets, tuple(cases), reasons, shuffled, limit, seed)


def distinct_names(names: Sequence[str], specs: Sequence[str]) -> list[str]:
    """Give each data set a unique name: its own, or the shortest end of its folder that none of the same name has."""
    unique, ends = [], {spec: _list_ends(Path(spec.rpartition(":")[2]).parts[:-1]) for spec in specs}
    for name, spec in zip(names, specs, strict=True):
        alike = [ends[other] for other, same in zip(specs, names, strict=True) if same == name and other != spec]
        free = (end for end in ends[spec] if not any(end in other for other in alike))
        unique.append(next(free, spec) if alike else name)
    # A folder may have the name of another data set's file.
    return unique if len({*unique}) == len(unique) else list(specs)


def _list_ends(folders: Sequence[str]) -> list[str]:
    return ["/".join(folders[start:]) for start in reversed(range(len(folders)))]


def prepare(options: MetaOptions, setup: Setup, selected: MetaSelection) -> Job[Any]:
    """Prepare the job of one judge; a protocol that the user named has to fit."""
    pass_mark, control = options.pass_mark, options.control
    cases = [case for _, case in selected.cases]
    pairs = [case for case in cases if labelled_pairs(case)]
    alone = [case for case in cases if not labelled_pairs(case)]
    not_asked = {one.name: COMPARES for one in setup.protocols if not one.rules} if alone else {}
    if not pairs:
        scoring = tuple(protocol for protocol in setup.protocols if protocol.rules)
        if not_asked and (options.protocols or not scoring):
            raise UsageError(f"{next(iter(not_asked))} {COMPARES}; name a way of asking, or a judge, that scores one")
        setup = replace(setup, protocols=scoring)
    if pass_mark is not None and not alone:
        raise UsageError("--pass-mark: the data hold no response that people passed or failed")
    marks = {one.name: find_mark(one, pass_mark) for one in setup.protocols if one.rules} if alone else {}
    # A response that is judged alone needs no second one.
    check_fit(setup.protocols, {"flip"} if pairs else {"fixed"}, pairs or alone, helped=setup.helped)
    controls = registry.controls() if control else ()
    values = {name: mark.value for name, mark in marks.items()}
    origins = {name: mark.origin for name, mark in marks.items()}
    asked = (setup.judge, setup.protocols, setup.manner, setup.helped)
    design = MetaConfig(*asked, controls, control, selected.seed, selected.shuffled, values)
    # Only with responses that are judged alone, so that other runs keep their identity.
    alone_only = {"pass_marks": values, "pass_mark_origins": origins, "not_asked": not_asked}
    drawn = Counter(name for name, _ in selected.cases)
    parameters = {
        "data": [
            {**one.record, "name": name, "drawn": drawn[name], "shuffled": name in selected.shuffled}
            for name, one in selected.sets.items()
        ],
        "left_out": dict(selected.left_out),
        "limit": selected.limit,
        "seed": selected.seed,
        "controls": [attack.name for attack in controls] + ([RESAMPLED] if control else []),
        "writing": writers.checksum(controls),
        **{name: value for name, value in alone_only.items() if value},
        "self_judging": setup.kin_notes((), {one.author for case in cases for one in case.originals}),
    }

    def stages(*_: object) -> Iterator[Plans]:
        yield (judge_labelled(name, case, design) for name, case in selected.cases)

    def samples(protocol: Protocol) -> Iterator[StageSample]:
        own = replace(design, protocols=(protocol,))
        part = [pair for one in selected.sets for pair in spread([p for p in selected.cases if p[0] == one])]
        plans = (judge_labelled(name, case, own) for name, case in part)
        yield StageSample(plans, len(selected.cases) / len(part), protocol.name == setup.protocols[0].name)

    sets = ", ".join(map(line, sorted(selected.shuffled)))
    note = f"the better response is always listed at the same place in {sets}; the seed draws the order there"
    study, heading = registry.get_study("meta"), [note] if sets else []
    return setup.start(study, parameters, cases=cases, stages=stages, samples=samples, heading=heading)
