"""Run folders of distract: comparisons of two authors before any rewrite, as rows of the design ``people``.

Swap convention: none, rows are in terms of a and b. Rows of the designs ``people`` and ``pass`` are kept; a row of
``flip`` from before a rewrite compares the same two authors and becomes one of ``people``. A run folder may store no
answers of the judge, so only the protocol's own rules apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from distract.core import runs
from distract.core.errors import DataError, UsageError
from distract.core.records import BASELINE
from distract.judging.published.published_runs import PublishedRun, check_name, checksum, read_output
from distract.judging.texts import find_run_texts


def can_read(path: Path) -> bool:
    """Whether a folder is a run."""
    return (path / "run.json").is_file()


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the runs of a folder, one for each protocol."""
    (path,) = paths
    loaded = runs.load(path)
    if loaded.flaw:
        raise UsageError(f"{path}: {loaded.flaw}")
    parameters = loaded.parameters
    data = _data_name(parameters["data"], path)
    judge = check_name(parameters["judge"], path, "judge")
    sha256 = checksum([read_output(path / "run.json"), read_output(path / "rows.jsonl")])
    rows = [
        replace(row, design="pass" if row.design == "pass" else "people", data=row.data or data)
        for row in loaded.rows
        if row.design in ("people", "pass") or (row.design == "flip" and row.attack == BASELINE and row.target is None)
    ]
    texts = find_run_texts(loaded)
    published = []
    for protocol, rules in parameters["protocols"].items():
        if protocol_rows := tuple(row for row in rows if row.protocol == protocol):
            name, ties = check_name(protocol, path, "protocols"), protocol in parameters["ties"]
            run = PublishedRun(judge, name, data, tuple(rules), {"": protocol_rows}, ties, str(path), sha256)
            published.append(replace(run, texts=texts))
    if not published:
        raise DataError("holds no comparison of two authors before a rewrite", path=path)
    return tuple(published)


def _data_name(value: object, path: Path) -> str:
    """Name the run's data set; empty if it has several, which are named in its rows."""
    sets = value if isinstance(value, list) else [value]
    name = sets[0].get("name") if len(sets) == 1 and isinstance(sets[0], dict) else None
    return check_name(name, path, "data.name") if isinstance(name, str) else ""
