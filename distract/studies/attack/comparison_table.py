"""The comparisons of a run as one flat table, for pandas, spreadsheets and Parquet."""

from __future__ import annotations

import io
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from distract.core import files
from distract.core.errors import UsageError, install_command
from distract.core.records import BASELINE, Row
from distract.core.runs import LoadedRun
from distract.judging.pass_marks import read_verdict
from distract.studies.attack.flips import strengths
from distract.studies.attack.outcomes import pair_unit
from distract.studies.attack.truths import read_truths

COLUMNS: Mapping[str, type] = {
    "case": str,
    "prompt": str,
    "data": str,
    "design": str,
    "attack": str,
    "truth": str,
    "protocol": str,
    "rule": str,
    "response": str,
    "response_severity": int,
    "rival": str,
    "rival_severity": int,
    "before": str,
    "after": str,
    "flipped": bool,
    "margin_before": float,
    "margin_after": float,
    "label": str,
    "failure": str,
    "excluded": str,
    "case_line": int,
    "rewrite_line": int,
    "calls": int,
    "tokens_in": int,
    "tokens_out": int,
}
"""The columns with their types; each may be empty. ``docs/reading-results.md`` describes them."""


def list_comparisons(run: LoadedRun) -> Iterator[dict[str, Any]]:
    """Yield one record for each comparison of a run and each rule by which its protocol decides, in plan order."""
    rules = run.parameters["protocols"]
    case_lines = {(case.id, case.cluster): number for number, case in enumerate(run.cases, 1)}
    rewrite_lines: dict[Hashable, int] = {}
    for number, one in enumerate(run.rewrites, 1):
        written = one.response
        if one.is_accepted:
            rewrite_lines.setdefault((one.case, written.author, written.severity, written.attack), number)
    earlier = {_pair(row): row for row in run.rows if row.attack == BASELINE}
    truths = read_truths(run.parameters)
    for row in run.rows:
        side = _find_rewritten(row)
        response, rival = (row.a, row.b) if side == "a" else (row.b, row.a)
        before = row if row.attack == BASELINE else earlier.get(_pair(row))
        after = None if row.attack == BASELINE else row
        failures = dict.fromkeys(str(judgment.failure) for judgment in row.judgments if judgment.failure)
        tokens_in, tokens_out = map(sum, zip(*row.tokens, strict=True)) if row.tokens else (0, 0)
        record = {
            "case": row.case,
            "prompt": row.cluster,
            "data": row.data or None,
            "design": row.design,
            "attack": row.attack,
            "truth": "worse" if row.design == "severity" else truths.get(row.attack),
            "protocol": row.protocol,
            "response": response.author,
            "response_severity": response.severity,
            "rival": rival.author,
            "rival_severity": rival.severity,
            "label": _name_side(row.label, side),
            "failure": "; ".join(failures) or None,
            "excluded": row.excluded,
            "case_line": case_lines.get((row.case, row.cluster)),
            "rewrite_line": rewrite_lines.get((row.case, response.author, response.severity, response.attack)),
            "calls": len(row.keys),
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
        }
        for rule in rules[row.protocol] or (None,):
            verdicts = [
                _name_side(read_verdict(one, one.judgments, rule), side) if one else None for one in (before, after)
            ]
            margins = [_measure_lead(one, rule, side) if one else None for one in (before, after)]
            both = {"before": verdicts[0], "after": verdicts[1]}
            leads = {"margin_before": margins[0], "margin_after": margins[1]}
            values = {**record, "rule": rule, **both, "flipped": _is_flipped(row, *verdicts), **leads}
            yield {name: values[name] for name in COLUMNS}


def write_parquet(run: LoadedRun, path: Path, option: str) -> None:
    """Write the table as Parquet.

    Raises:
        UsageError: pyarrow is not installed, or the file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(f"{option} needs pyarrow, which is not installed: {install_command('parquet')}") from error
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(list_comparisons(run)), schema), file)
    files.write(path, file.getvalue(), option)


def _pair(row: Row) -> Hashable:
    return (row.design, row.protocol, row.data, row.subset, row.beside, row.place, *pair_unit(row))


def _find_rewritten(row: Row) -> Literal["a", "b"]:
    """Return the side that the attack rewrote; before a rewrite, the side that it would or a."""
    if row.target is not None:
        return row.target
    return "b" if row.design in ("fixed", "severity") or (row.b.attack and not row.a.attack) else "a"


def _name_side(verdict: str | None, side: str) -> str | None:
    return verdict if verdict in (None, "tie") else "response" if verdict == side else "rival"


def _measure_lead(row: Row, rule: str | None, side: str) -> float | None:
    if not row.judgments or any(judgment.failure for judgment in row.judgments):
        return None
    own, other = strengths(row.judgments, rule, mirrored=side == "b")
    return own - other


def _is_flipped(row: Row, before: str | None, after: str | None) -> bool | None:
    """Whether the other response wins after the rewrite; None if either verdict is missing, or the first is a tie."""
    if row.design != "flip" or None in (before, after) or before == "tie":
        return None
    return after not in (before, "tie")
