"""Which published runs a file or folder holds.

Formats are told by the names of files and by their first bytes, so that a folder is searched without being read. It
knows no field beyond that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from distract.core.errors import DataError, DistractError
from distract.judging.published import fastchat, judgebench, llmbar, mt_bench, own_runs, reife
from distract.judging.published.output_files import first_object, head
from distract.judging.published.published_runs import PublishedRun

_Read = Callable[[Sequence[Path]], tuple[PublishedRun, ...]]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of JSON Lines.

    Attributes:
        fits: whether the first object of a file is one of its rows.
        read: the runs of the files of one run.
        run: the same for all files of one run.
    """

    fits: Callable[[Mapping[str, Any]], bool]
    read: _Read
    run: Callable[[Path], Path]


def _file_key(path: Path) -> Path:
    return path


def _folder_key(path: Path) -> Path:
    return path.parent


FORMS = (
    FileFormat(mt_bench.can_read, mt_bench.read, _folder_key),
    FileFormat(fastchat.can_read, fastchat.read, _file_key),
    FileFormat(judgebench.can_read, judgebench.read, _file_key),
    FileFormat(reife.can_read, reife.read, reife.unswapped_path),
)

KNOWN = (
    "LLMBar's result.json; MT-Bench-style judgments of pairs; FastChat's *_pair.jsonl; JudgeBench's outputs; ReIFE's "
    "results; run folders"
)


def load(path: str) -> tuple[PublishedRun, ...]:
    """Read published runs."""
    where = Path(path)
    if where.is_dir():
        passed = list[DistractError]()
        found = [run for part in _search_folder(where, passed) for run in part]
        if not found and passed:
            raise passed[0]
        if not found:
            raise DataError(f"holds nothing that can be replayed ({KNOWN})", path=where)
        notes = tuple(f"passed over: {why}" for why in passed)
        return replace(found[0], notes=found[0].notes + notes), *found[1:]
    if not where.is_file():
        raise DataError("is no regular file" if where.exists() else "no such file or folder", path=where)
    if llmbar.can_read(where):
        return llmbar.read([where])
    form = _detect_format(where)
    if form is None:
        empty = not head(where)
        raise DataError("is empty" if empty else f"in no format that can be replayed ({KNOWN})", path=where)
    return form.read(_find_partners(where) if form.read is reife.read else [where])


def _detect_format(path: Path) -> FileFormat | None:
    value = first_object(path)
    return None if value is None else next((form for form in FORMS if form.fits(value)), None)


def _find_partners(path: Path) -> list[Path]:
    """The files of both orders, as far as they exist."""
    key = reife.unswapped_path(path)
    beside = sorted(other for other in path.parent.glob("*.jsonl") if reife.unswapped_path(other) == key)
    return [other for other in beside if other.is_file()] or [path]


def _search_folder(folder: Path, passed: list[DistractError]) -> Iterator[tuple[PublishedRun, ...]]:
    """The runs in and below a folder, one group of files after the other.

    Run folders of ours that cannot be replayed (of another command, unfinished) are passed over: a folder of runs holds
    such too, while a damaged file of published judgments is a part of a run that must not go missing.
    """
    groups: dict[tuple[_Read, Path], list[Path]] = {}
    for where in sorted(_walk_folder(folder)):
        if where.is_dir():
            groups[_read_run_folder, where] = [where]
        elif where.suffix == ".json":
            if llmbar.can_read(where):
                groups[llmbar.read, where] = [where]
        elif form := _detect_format(where):
            groups.setdefault((form.read, form.run(where)), []).append(where)
    for (read, _), files in groups.items():
        try:
            yield read(files)
        except DistractError as error:
            if read is not _read_run_folder:
                raise
            passed.append(error)


def _read_run_folder(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    (path,) = paths
    return own_runs.read(path)


def _walk_folder(folder: Path) -> Iterator[Path]:
    """What may be a published run by its name: run folders, and files outside of them."""
    for name, folders, files in os.walk(folder, onerror=_raise_unreadable):
        here = Path(name)
        if own_runs.can_read(here):
            folders.clear()
            yield here
            continue
        folders[:] = [one for one in folders if not one.startswith(".")]
        for file in files:
            where = here / file
            if (file == "result.json" or where.suffix == ".jsonl") and where.is_file():
                yield where


def _raise_unreadable(error: OSError) -> NoReturn:
    raise DataError(f"cannot be read: {error.strerror}", path=error.filename) from error
