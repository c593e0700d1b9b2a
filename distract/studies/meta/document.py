"""The JSON document of meta-evaluation: what ``--json`` prints, and what ``summary.json`` of each judge's run holds.

Figures are rounded to four decimals, and nothing in it differs between two runs of the same command from the same
store. It knows no measure by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from distract.core.records import BASELINE, Row
from distract.judging.published import PublishedRun
from distract.stats.figure import flatten
from distract.studies.meta.comparisons import Agreement, JudgeRows
from distract.studies.meta.measures import figures
from distract.studies.meta.panel import Panel, compare_judges, find_base
from distract.studies.meta.published_judges import check_reproduction, group_runs

_RECORD = ("data", "left_out", "limit", "seed", "manner", "reference", "self_judging")


@dataclass(frozen=True)
class JudgeSource:
    """One judge with where its verdicts come from.

    Attributes:
        name: of the judge.
        judged: it, asked in each way.
        record: what decided the verdicts, JSON values only.
        controls: names of those that its rows hold.
        base: the protocol that the user wants others to be compared with.
        notes: what is to be said about it, one line each.
    """

    name: str
    judged: tuple[JudgeRows, ...]
    record: Mapping[str, Any]
    controls: tuple[str, ...] = ()
    base: str | None = None
    notes: tuple[str, ...] = ()

    def reasons(self, what: Literal["excluded", "invalid"]) -> Counter[str]:
        """Why comparisons were not made, also under a control, or verdicts are none, each with how often."""
        rows = [row for one in self.judged for row in one.by(one.headline)]
        if what == "excluded":
            under = {row.attack: "" if row.attack == BASELINE else f"under {row.attack}: " for row in rows}
            return Counter(under[row.attack] + row.excluded for row in rows if row.excluded)
        rows = [row for row in rows if row.attack == BASELINE]
        return Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure)


@dataclass(frozen=True)
class MetaResult:
    """Everything that a command found out, for both kinds of readers.

    Attributes:
        panel: the judges compared; None with fewer than two.
    """

    sources: tuple[JudgeSource, ...]
    figures: tuple[Agreement, ...]
    base: str | None
    panel: Panel | None = None
    controls: tuple[str, ...] = field(default=())


def from_run(parameters: Mapping[str, Any], rows: Sequence[Row]) -> JudgeSource:
    """A judge that was asked, from the run of it."""
    by = {name: tuple(row for row in rows if row.protocol == name) for name in parameters["protocols"]}
    made = tuple(
        JudgeRows(parameters["judge"], name, tuple(rules), {"": by[name]}, name in parameters["ties"])
        for name, rules in parameters["protocols"].items()
    )
    record = {name: parameters[name] for name in _RECORD}
    return JudgeSource(parameters["judge"], made, record, tuple(parameters["controls"]), parameters["base"])


def from_published(runs: Sequence[PublishedRun]) -> list[JudgeSource]:
    """Judges whose verdicts were stored by somebody, in the order of their names."""
    names = sorted({run.judge for run in runs})
    made = []
    for name in names:
        mine = [run for run in runs if run.judge == name]
        sources = [
            {
                "protocol": run.protocol,
                "data": run.data,
                "file": run.source,
                "sha256": run.sha256,
                **check_reproduction(run),
            }
            for run in mine
        ]
        notes = tuple(f"{run.protocol} on {run.data}: {note}" for run in mine for note in run.notes)
        rows = [row for run in mine for found in run.rows.values() for row in found]
        controls = tuple(sorted({row.attack for row in rows} - {BASELINE}))
        made.append(JudgeSource(name, group_runs(mine), {"replayed": sources}, controls, notes=notes))
    return made


def measure_judges(sources: Sequence[JudgeSource], base: str | None = None) -> MetaResult:
    """Measure judges, and compare them where there are several."""
    everything = [one for source in sources for one in source.judged]
    controls = tuple(dict.fromkeys(name for source in sources for name in source.controls))
    found = figures(everything, controls)
    compared = find_base([one.protocol for one in everything], base)
    return MetaResult(tuple(sources), tuple(found), compared, compare_judges(everything, found, compared), controls)


def document(sources: Sequence[JudgeSource]) -> dict[str, Any]:
    """What was found out, as JSON values."""
    wanted = next((source.base for source in sources if source.base), None)
    return result_document(measure_judges(sources, wanted))


def result_document(found: MetaResult) -> dict[str, Any]:
    """A result as JSON values."""
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
        for source in found.sources
    ]
    return {
        "command": "meta",
        "base": found.base,
        "controls": list(found.controls),
        "judges": judges,
        "panel": None if found.panel is None else _round_numbers(asdict(found.panel)),
        "results": [flatten(figure, "compared") for figure in found.figures],
    }


def _round_numbers(value: Any) -> Any:
    """JSON values with numbers that are no counts to four decimals, however deep."""
    if isinstance(value, dict):
        return {name: _round_numbers(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_round_numbers(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value
