"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.core.records import Row
from distract.core.study import BufferedSums, Study
from distract.judging.texts import Texts
from distract.stats.figure import flatten
from distract.studies.meta.comparisons import JudgeRows
from distract.studies.meta.panel import MetaResult, Panel, measure_judges
from distract.studies.meta.published_judges import JudgeSource

_RECORD = ("data", "left_out", "limit", "seed", "manner", "reference", "self_judging")


def from_run(parameters: Mapping[str, Any], rows: Sequence[Row], texts: Texts | None = None) -> JudgeSource:
    """Build a judge from its run; ``texts`` are those behind its rows, if they are to be shown."""
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
    if "pass_mark_origins" in parameters:
        record |= {field: parameters[field] for field in ("pass_marks", "pass_mark_origins")}
    if "not_asked" in parameters:
        record["not_asked"] = parameters["not_asked"]
    return JudgeSource(
        name, judged, record, tuple(parameters["controls"]), tuple(_list_notes(record)), texts or Texts()
    )


def _list_notes(record: Mapping[str, Any]) -> Iterator[str]:
    for protocol, mark in record.get("pass_marks", {}).items():
        yield f"{protocol}: a score from {mark:g} passes ({record['pass_mark_origins'][protocol]})"
    for protocol, reason in record.get("not_asked", {}).items():
        yield f"left out of pass or fail: {protocol} {reason}"


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
    pass_panel = {"pass_panel": _describe_panel(result.panels["pass"])} if "pass" in result.panels else {}
    return {
        "command": "meta",
        "base": result.base,
        "controls": list(result.controls),
        "judges": judges,
        "panel": _describe_panel(result.panels.get("people")),
        "confusion": [one.document for one in result.confusions],
        "results": [flatten(figure, "compared") for figure in result.figures],
        **pass_panel,
    }


def _describe_panel(panel: Panel | None) -> dict[str, Any] | None:
    return None if panel is None else _round_numbers(asdict(panel))


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
