"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.core.records import Row
from distract.core.study import BufferedSums, Study
from distract.stats.figure import flatten
from distract.studies.meta.comparisons import JudgeRows
from distract.studies.meta.panel import MetaResult, measure_judges
from distract.studies.meta.published_judges import JudgeSource

_RECORD = ("data", "left_out", "limit", "seed", "manner", "reference", "self_judging")


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
