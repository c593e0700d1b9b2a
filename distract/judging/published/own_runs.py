"""Run folders of our own: comparisons of two authors before any rewrite, as rows of people's comparisons.

Swap convention: none, rows tell everything in terms of a and b. A row of the design ``people`` is taken as it is; one
of ``flip`` from before a rewrite compares the same two authors, and becomes one. Texts are not stored in a run folder,
so the protocol's own rules are the only ones. It knows no measure.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distract.core import runs
from distract.core.errors import DataError, UsageError
from distract.core.records import BASELINE, Row
from distract.judging.published.output_files import checksum, named, opened
from distract.judging.published.published_runs import Published


def fits(path: Path) -> bool:
    """Whether a folder is a run."""
    return (path / "run.json").is_file()


def read(path: Path) -> tuple[Published, ...]:
    """The runs of a folder, one for each protocol.

    Raises:
        DataError: it is none, or holds no comparison of two authors.
        UsageError: it is unfinished or damaged.
    """
    loaded = runs.load(path)
    if loaded.flaw:
        raise UsageError(f"{path}: {loaded.flaw}")
    parameters = loaded.parameters
    data = _data(parameters["data"], path)
    judge = named(parameters["judge"], path, "judge")
    sha256 = checksum([opened(path / "run.json"), opened(path / "rows.jsonl")])
    rows = [_as_people(row, data) for row in loaded.rows if _between_authors(row)]
    found = []
    for protocol, rules in parameters["protocols"].items():
        if own := tuple(row for row in rows if row.protocol == protocol):
            found.append(
                Published(
                    judge=judge,
                    protocol=named(protocol, path, "protocols"),
                    data=data,
                    rules=tuple(rules),
                    rows={"": own},
                    ties=protocol in parameters["ties"],
                    source=str(path),
                    sha256=sha256,
                    cases={},
                    convention="",
                    statistics={},
                    calls=None,
                )
            )
    if not found:
        raise DataError("holds no comparison of two authors before a rewrite", path=path)
    return tuple(found)


def _data(value: object, path: Path) -> str:
    """The name of the run's data set; empty where it has several, which its rows name."""
    sets = value if isinstance(value, list) else [value]
    name = sets[0].get("name") if len(sets) == 1 and isinstance(sets[0], dict) else None
    return named(name, path, "data.name") if isinstance(name, str) else ""


def _between_authors(row: Row) -> bool:
    baseline = row.attack == BASELINE and row.target is None
    return row.design == "people" or (row.design == "flip" and baseline)


def _as_people(row: Row, data: str) -> Row:
    return replace(row, design="people", data=row.data or data)
