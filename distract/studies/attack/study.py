"""``distract attack``: how often a rewrite that changes only style changes the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from distract.core.records import Rewrite, Row
from distract.core.study import Study
from distract.stats.figure import flatten, flatten_ranked
from distract.stats.measures import MEASURES
from distract.stats.trials import STYLES
from distract.studies.attack import measures
from distract.studies.attack.measures import AttackResult, rank_strengths
from distract.studies.attack.options import PROTOCOLS, AttackOptions
from distract.studies.attack.ranks import check_protocols, rank_protocols
from distract.studies.attack.style import trace_margins
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import read_effects
from distract.studies.rewrite_counts import CompactRewrites, count_reasons
from distract.studies.setup import ROW_FIELDS, Setup

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.core.runs import LoadedRun

_SHARED = (
    *("judge", "data", "left_out", "limit", "seed", "attacks", "degradations", "protocols", "ties", "manner"),
    *("reference", "generator", "asking", "verifier", "self_judging"),
)


def document(parameters: Mapping[str, Any], measured: AttackResult) -> dict[str, Any]:
    """Combine the parameters of ``run.json`` and the result into a run's summary."""
    exchanges = {one.protocol: asdict(one.exchanges) for one in measured.usable if one.exchanges}
    return {
        **{name: parameters[name] for name in _SHARED},
        "rejected": count_reasons(measured.rewrites),
        "usable": {one.protocol: one.usable for one in measured.usable},
        **({"exchanges": exchanges} if exchanges else {}),
        "ranking": [flatten_ranked(one, "attack") for one in measured.standings],
        "directions": "both" if parameters.get("net") else "one",
        "control_of": dict(parameters.get("control_of", {})),
        "strength": [flatten_ranked(one, "invalid", "excluded") for one in measured.strengths],
        "flips_by_margin": [{**asdict(curve), "points": [*map(list, curve.points)]} for curve in measured.curves],
        "results": [flatten(figure) for figure in measured.figures],
    }


class _AttackSums:
    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._briefs = CompactRows.of_run(parameters)
        self._rewrites = CompactRewrites()
        self._excluded, self._invalid = Counter[str](), Counter[str]()

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        self._briefs.extend(rows)
        for row in rows:
            self._excluded.update([row.excluded] if row.excluded else [])
            self._invalid.update(judgment.failure for judgment in row.judgments if judgment.failure)
        self._rewrites.extend(rewrites)

    def result(self, flaw: str | None = None) -> AttackResult:
        p = self._parameters
        rules, effects, briefs = p["protocols"], read_effects(p), self._briefs
        styles = [attack for attack in p["attacks"] if effects[attack] in STYLES]
        usable = check_protocols(briefs, rules, p.get("exchange"))
        figures, standings = measures.figures(briefs, self._rewrites, p), rank_protocols(briefs, p, styles, usable)
        curves, strengths = trace_margins(briefs, rules, styles), rank_strengths(figures, p)
        counts = (len({*briefs.groups.values()}), self._excluded, self._invalid)
        return AttackResult(figures, usable, standings, self._rewrites, *counts, curves, strengths)


def _report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[Any]:
    from distract.studies.attack.view import run_report

    return run_report(parameters, measured)


def _interim(parameters: Mapping[str, Any], measured: AttackResult) -> str:
    from distract.studies.attack.view import interim_sentence

    return interim_sentence(parameters, measured.figures)


def _plan(options: AttackOptions, setup: Setup) -> Job[AttackResult]:
    from distract.studies.attack.session import prepare, select

    return prepare(select(options, setup.helpers, measures=options.measures), setup)


def browse_flips(run: LoadedRun) -> dict[str, Any] | None:
    """The flips that the page of a run shows side by side."""
    from distract.studies.attack.flip_view import build_flip_data

    return build_flip_data(run)


def _has_figures(options: AttackOptions, measured: AttackResult) -> bool:
    # Ties alone have a share of flips among all pairs, but show nothing.
    names = {row.name for row in MEASURES.values() if row.designs} - {"flip_rate_of_all"} | {*options.measures}
    return any(figure.n for figure in measured.figures if figure.measure in names)


STUDY = Study(
    name="attack",
    options=AttackOptions,
    protocols=PROTOCOLS,
    plan=_plan,
    designs={
        "fixed": "a good response against its rewrite",
        "flip": "responses of two authors, before and after",
        "severity": "a good response against a worse one, whose severity b has",
        "exchange": "the response to a question against that to another, named by their cases; a is the right one",
    },
    row_fields=ROW_FIELDS,
    schema={
        **{"data": {"name": str, "cases": int}, "limit": int, "attacks": [str], "degradations": [str]},
        **{"generator": str, "asking": dict | None, "verifier": dict | None},
    },
    measures=_AttackSums,
    document=document,
    sections=_report,
    page=browse_flips,
    has_figures=_has_figures,
    interim=_interim,
)
