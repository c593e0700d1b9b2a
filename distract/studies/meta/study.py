"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from distract.core.records import BASELINE, Row
from distract.core.study import BufferedSums, Study
from distract.judging.published import PublishedRun
from distract.stats.figure import flatten
from distract.studies.meta.comparisons import Agreement, JudgeRows
from distract.studies.meta.measures import figures
from distract.studies.meta.panel import Panel, compare_judges, find_base
from distract.studies.meta.published_judges import check_reproduction, group_runs

_RECORD = ("data", "left_out", "limit", "seed", "manner", "reference", "self_judging")


@dataclass(frozen=True)
class JudgeSource:
    """One judge with the origin of its verdicts."""

    name: str
    judged: tuple[JudgeRows, ...]  # the judge under each protocol
    record: Mapping[str, Any]  # the parameters behind the verdicts, as JSON values
    controls: tuple[str, ...] = ()  # names of the controls in its rows
    notes: tuple[str, ...] = ()  # warnings for the reader, one line each

    def reasons(self, kind: Literal["excluded", "invalid"]) -> Counter[str]:
        """Count exclusions, also under a control, or invalid verdicts, by reason."""
        rows = [row for one in self.judged for row in one.by(one.headline)]
        if kind == "excluded":
            under = {row.attack: "" if row.attack == BASELINE else f"under {row.attack}: " for row in rows}
            return Counter(under[row.attack] + row.excluded for row in rows if row.excluded)
        rows = [row for row in rows if row.attack == BASELINE]
        return Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure)


@dataclass(frozen=True)
class MetaResult:
    """The result of a command; ``panel`` compares the judges, and is None with fewer than two."""

    sources: tuple[JudgeSource, ...]
    figures: tuple[Agreement, ...]
    base: str | None
    panel: Panel | None = None
    controls: tuple[str, ...] = field(default=())


def from_run(parameters: Mapping[str, Any], rows: Sequence[Row]) -> JudgeSource:
    """Build a judge from its run."""
    name = parameters["judge"]
    judged = tuple(
        JudgeRows(
            name,
            protocol,
            tuple(rules),
            {"": tuple(row for row in rows if row.protocol == protocol)},
            protocol in parameters["ties"],
        )
        for protocol, rules in parameters["protocols"].items()
    )
    record = {field: parameters[field] for field in _RECORD}
    return JudgeSource(name, judged, record, tuple(parameters["controls"]))


def from_published(runs: Sequence[PublishedRun]) -> list[JudgeSource]:
    """Build judges from stored verdicts, in the order of their names."""
    judges = []
    for name in sorted({run.judge for run in runs}):
        own = [run for run in runs if run.judge == name]
        sources = [
            {
                "protocol": run.protocol,
                "data": run.data,
                "file": run.source,
                "sha256": run.sha256,
                **check_reproduction(run),
            }
            for run in own
        ]
        notes = tuple(f"{run.protocol} on {run.data}: {note}" for run in own for note in run.notes)
        attacks = {row.attack for run in own for rows in run.rows.values() for row in rows}
        controls = tuple(sorted(attacks - {BASELINE}))
        judges.append(JudgeSource(name, group_runs(own), {"replayed": sources}, controls, notes=notes))
    return judges


def measure_judges(sources: Sequence[JudgeSource], base: str | None = None) -> MetaResult:
    """Measure judges, and compare them where there are several."""
    judged = [one for source in sources for one in source.judged]
    controls = tuple(dict.fromkeys(name for source in sources for name in source.controls))
    measured = figures(judged, controls)
    base = find_base([one.protocol for one in judged], base)
    return MetaResult(tuple(sources), tuple(measured), base, compare_judges(judged, measured, base), controls)


def document(result: MetaResult) -> dict[str, Any]:
    """Build the JSON document of a result."""
    judges = [
        {
            "judge": source.name,
            "protocols": {one.protocol: list(one.rules) for one in source.judged},
            "ties": [one.protocol for one in source.judged if one.ties],
            "notes": list(source.notes),
            "excluded": dict(sorted(source.reasons("excluded").items())),
            "invalid": dict(sorted(source.reasons("invalid").items())),
            **source.record,
        }
        for source in result.sources
    ]
    return {
        "command": "meta",
        "base": result.base,
        "controls": list(result.controls),
        "judges": judges,
        "panel": None if result.panel is None else _round_numbers(asdict(result.panel)),
        "results": [flatten(figure, "compared") for figure in result.figures],
    }


def _round_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round_numbers(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_round_numbers(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def _report(_: Mapping[str, Any], result: MetaResult) -> Iterable[Any]:
    from distract.studies.meta.view import report_parts

    return report_parts(result)


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=lambda p: BufferedSums(lambda rows, _rewrites, _flaw: measure_judges([from_run(p, rows)], p["base"])),
    document=lambda _, result: document(result),
    report=_report,
)
