"""Find the published runs in a file or folder.

A file's name and first bytes determine its format, so that a folder is searched without reading whole files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from distract.core.errors import DataError, DistractError
from distract.data.tables import open_table
from distract.judging.published import inspect_logs, judgebench, llmbar, mt_bench, own_runs, promptfoo, reife
from distract.judging.published.published_runs import PublishedRun, first_object

_Read = Callable[[Sequence[Path]], tuple[PublishedRun, ...]]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FileFormat(Generic[_T]):
    """A format of files; ``_T`` is what tells it: a path, or the first object of JSON Lines."""

    fits: Callable[[_T], bool]
    read: _Read  # reads the files of one run, or of several that belong together
    run: Callable[[Path], Path] = lambda path: path  # a key that the files to read together share


LLMBAR = FileFormat(llmbar.can_read, llmbar.read)
WHOLE = (
    LLMBAR,
    FileFormat(inspect_logs.can_read, inspect_logs.read, lambda path: Path()),
    FileFormat(promptfoo.can_read, promptfoo.read, lambda path: Path()),
)
LINES: tuple[FileFormat[Mapping[str, Any]], ...] = (
    FileFormat(mt_bench.PAIRWISE.can_read, mt_bench.PAIRWISE.read, lambda path: path.parent),
    FileFormat(mt_bench.FASTCHAT.can_read, mt_bench.FASTCHAT.read),
    FileFormat(judgebench.can_read, judgebench.read),
    FileFormat(reife.can_read, reife.read, reife.unswapped_path),
    FileFormat(promptfoo.is_result, promptfoo.read, lambda path: Path()),
)

KNOWN = (
    "LLMBar's result.json; MT-Bench-style judgments of pairs; FastChat's *_pair.jsonl; JudgeBench's outputs; ReIFE's "
    "results; logs of inspect_ai; results of promptfoo; run folders"
)


def load(path: str) -> tuple[PublishedRun, ...]:
    """Read the published runs in a file or folder."""
    where = Path(path)
    if where.is_dir():
        skipped = list[DistractError]()
        runs = [run for group in _search_folder(where, skipped) for run in group]
        if not runs and skipped:
            raise skipped[0]
        if not runs:
            raise DataError(f"holds nothing that can be replayed ({KNOWN})", path=where)
        notes = tuple(f"passed over: {error}" for error in skipped)
        return replace(runs[0], notes=runs[0].notes + notes), *runs[1:]
    if not where.is_file():
        raise DataError("is not a regular file" if where.exists() else "no such file or folder", path=where)
    form = _detect_whole(where) or _detect_lines(where)
    if form is None:
        open_table(where, "judgments")  # what it says of a file that is no table comes first
        raise DataError(f"in no format that can be replayed ({KNOWN})", path=where)
    return form.read(_find_partners(where) if form.read is reife.read else [where])


def _detect_whole(path: Path) -> FileFormat[Path] | None:
    return next((form for form in WHOLE if form.fits(path)), None)


def _detect_lines(path: Path) -> FileFormat[Mapping[str, Any]] | None:
    value = first_object(path)
    return None if value is None else next((form for form in LINES if form.fits(value)), None)


def _find_partners(path: Path) -> list[Path]:
    """Return the existing files of both orders."""
    key = reife.unswapped_path(path)
    siblings = sorted(path.parent.glob("*.jsonl"))
    return [other for other in siblings if reife.unswapped_path(other) == key and other.is_file()] or [path]


def _search_folder(folder: Path, skipped: list[DistractError]) -> Iterator[tuple[PublishedRun, ...]]:
    """Read the runs in and below a folder.

    Run folders of distract that cannot be replayed (of another command, unfinished) are skipped, because a folder of
    runs may hold such. A damaged file of published judgments is an error, because no part of a run must be missing.
    """
    groups: dict[tuple[_Read, Path], list[Path]] = {}
    for where in sorted(_walk_folder(folder)):
        if where.is_dir():
            groups[own_runs.read, where] = [where]
        elif form := _detect_lines(where) if where.suffix == ".jsonl" else _detect_whole(where):
            if form is LLMBAR and where.name != "result.json":
                continue  # LLMBar's data sets begin like its results
            groups.setdefault((form.read, form.run(where)), []).append(where)
    for (read, _), files in groups.items():
        try:
            yield read(files)
        except DistractError as error:
            if read is not own_runs.read:
                raise
            skipped.append(error)


def _walk_folder(folder: Path) -> Iterator[Path]:
    """List possible published runs by name: run folders, and files outside of them."""
    for root, folders, files in os.walk(folder, onerror=_raise_unreadable):
        here = Path(root)
        if own_runs.can_read(here):
            folders.clear()
            yield here
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in files:
            where = here / file
            if where.suffix in (".json", ".jsonl", ".eval") and where.is_file():
                yield where


def _raise_unreadable(error: OSError) -> NoReturn:
    raise DataError(f"cannot be read: {error.strerror}", path=error.filename) from error
