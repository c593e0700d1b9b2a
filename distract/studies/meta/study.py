"""``distract meta``: how far a judge agrees with people and with itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.core.records import Row
from distract.core.study import BufferedSums, Study
from distract.judging.texts import Texts
from distract.stats.figure import flatten, round_values
from distract.studies.meta.measures import JudgeRows
from distract.studies.meta.panel import MetaResult, measure_judges
from distract.studies.meta.session import JudgeSource
from distract.studies.meta.view import report_parts

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
    fields = (*_RECORD, *marks, *(["not_asked"] if "not_asked" in parameters else []))
    record = {field: parameters[field] for field in fields}
    origins, reasons = record.get("pass_mark_origins", {}), record.get("not_asked", {})
    notes = [f"{one}: a score from {record['pass_marks'][one]:g} passes ({origin})" for one, origin in origins.items()]
    notes += [f"left out of pass or fail: {one} {reason}" for one, reason in reasons.items()]
    return JudgeSource(name, tuple(judged), record, tuple(parameters["controls"]), tuple(notes), texts or Texts())


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
    panels = {
        design: asdict(panel, dict_factory=lambda items: round_values(dict(items)))
        for design, panel in result.panels.items()
    }
    return {
        "command": "meta",
        "base": result.base,
        "controls": list(result.controls),
        "judges": judges,
        "panel": panels.get("people"),
        "confusion": [asdict(one) for one in result.confusions],
        "results": [flatten(figure, "compared") for figure in result.figures],
        **({"pass_panel": panels["pass"]} if "pass" in panels else {}),
    }


STUDY = Study(
    name="meta",
    schema={"data": [{"name": str, "cases": int}], "base": str | None},
    sums=lambda p: BufferedSums(lambda rows, _rewrites, _flaw: measure_judges([from_run(p, rows)], p["base"])),
    document=lambda _, result: document(result),
    report=lambda _, result: report_parts(result),
)
