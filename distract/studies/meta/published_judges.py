"""Use stored runs as judges, and check distract's counts against the published ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from distract.core.errors import UsageError
from distract.core.records import BASELINE, Row
from distract.judging.published import PublishedRun
from distract.judging.texts import Texts
from distract.studies.meta.comparisons import (
    ComparisonUnit,
    JudgeRows,
    PairVerdicts,
    collect_comparisons,
    comparison_unit,
)


def group_runs(runs: Sequence[PublishedRun]) -> tuple[JudgeRows, ...]:
    """Merge one judge's runs by protocol."""
    protocols: dict[str, list[PublishedRun]] = defaultdict(list)
    for run in runs:
        protocols[run.protocol].append(run)
    return tuple(_merge_runs(protocols[name]) for name in sorted(protocols))


def _merge_runs(runs: Sequence[PublishedRun]) -> JudgeRows:
    first, seen = runs[0], dict[ComparisonUnit, PublishedRun]()
    for run in runs:
        if ("" in run.rows) != ("" in first.rows) or ("" in run.rows and run.rules != first.rules):
            raise UsageError(f"{run.source}: {run.judge} under {run.protocol} has other rules in {first.source}")
        units = [comparison_unit(row)[0] for row in run.rows[next(iter(run.rows))] if row.attack == BASELINE]
        if twice := next((seen[unit] for unit in units if unit in seen), None):
            raise UsageError(
                f"{run.source}: {run.judge} under {run.protocol} judges a pair that {twice.source} judges too; name one"
            )
        seen.update(dict.fromkeys(units, run))
    rows: dict[str, tuple[Row, ...]] = {}
    for run in runs:
        for rule, judged in run.rows.items():
            rows[rule] = (*rows.get(rule, ()), *judged)
    rules = tuple(dict.fromkeys(rule for run in runs for rule in run.rules))
    calls = {run.calls for run in runs}
    return JudgeRows(
        first.judge,
        first.protocol,
        rules,
        rows,
        any(run.ties for run in runs),
        first.convention if all(run.convention == first.convention for run in runs) else "",
        calls.pop() if len(calls) == 1 else None,
    )


def check_reproduction(run: PublishedRun) -> dict[str, Any]:
    """Compare LLMBar's published counts with distract's, by stored winners and by its parser."""
    if not run.statistics:
        return {}
    differ = {}
    for rule in run.rules:
        counts = count_verdicts(collect_comparisons(run.rows[rule], None).pairs)
        differ[rule] = {
            name: {"published": run.statistics[name], "ours": _format_count(name, *count)}
            for name, count in counts.items()
            if name in run.statistics and not _is_same(run.statistics[name], name, *count)
        }
    return {"published": dict(run.statistics), "not_reproduced": differ}


def count_verdicts(pairs: Sequence[PairVerdicts]) -> dict[str, tuple[int, int]]:
    """Count k of n as LLMBar does: an unparsed verdict is wrong and stays in n, two unparsed ones are equal."""
    n = len(pairs)
    unswapped, swapped = (sum(pair.verdicts[order] == pair.label for pair in pairs) for order in (0, 1))
    return {
        "correct_False": (unswapped, n),
        "correct_True": (swapped, n),
        _AVERAGE: (unswapped + swapped, 2 * n),
        "correct_both": (sum(pair.is_right for pair in pairs), n),
        "equal": (sum(pair.is_equal for pair in pairs), n),
    }


_AVERAGE = "correct_average"
"""Published without its counts."""


def _format_count(name: str, k: int, n: int) -> str:
    share = f"{100 * k / n:.1f}%"
    return share if name == _AVERAGE else f"{k} / {n} = {share}"


def _is_same(published: object, name: str, k: int, n: int) -> bool:
    """Whether a published text is k of n; some have one decimal, some all of them."""
    counts, _, share = str(published).rpartition(" = ")
    try:
        # Half of the last decimal, and a little for rounding.
        return (name == _AVERAGE or counts == f"{k} / {n}") and abs(float(share.rstrip("%")) - 100 * k / n) < 0.0501
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
        known = [run.all_texts for run in own]
        cases = {place: case for texts in known for place, case in texts.cases.items()}
        folders = tuple(dict.fromkeys(folder for texts in known for folder in texts.runs))
        record = {"replayed": sources}
        judges.append(JudgeSource(name, group_runs(own), record, controls, notes, Texts(cases, folders)))
    return judges
