"""SHA-256 digests of files, computed once and then remembered by path, size, times and inode.

Overwriting a file changes its ctime even if its size and mtime are put back, so a remembered digest is that of the
bytes on disk. Clocks of file systems tick in milliseconds: we do not remember a file that was written just before we
read it, since a second write within the same tick would leave no trace.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from pathlib import Path

from distract.models.cache import keep, recall

CACHE_FILE = "digests.json"
SETTLE_TIME = 100_000_000
"""Nanoseconds that must have passed since a file was last written for its digest to be remembered."""

_IRRELEVANT = re.compile(
    r"\..*|readme.*|licen[cs]e.*|notice.*|(optimizer|scheduler|scaler|rng_state|trainer_state|training_args|events\.out).*"
    r"|.*\.(md|png|jpe?g|gif|svg|pdf|log|onnx|h5|msgpack|ot)",
    re.IGNORECASE,
)
"""Files in a model's folder that decide no reply: about the model, of its training, for other frameworks."""


def digest(file: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digests(files: Iterable[Path], cache: Path) -> tuple[dict[Path, str], int]:
    """The digests of files, and how many bytes were read to compute those that were not remembered."""
    known, fresh = recall(cache / CACHE_FILE), dict[str, list[object]]()
    results: dict[Path, str] = {}
    read = 0
    try:
        for file in files:
            path, stamp, begin = str(file.absolute()), _stamp(file), time.time_ns()
            entry = known.get(path)
            if isinstance(entry, list) and entry[:-1] == stamp:
                results[file] = str(entry[-1])
                continue
            results[file] = digest(file)
            read += stamp[0]
            if _stamp(file) == stamp and stamp[2] < begin - SETTLE_TIME:
                fresh[path] = [*stamp, results[file]]
    finally:
        if fresh:  # whatever another process has added meanwhile stays; files that are gone are forgotten
            entries = {**recall(cache / CACHE_FILE), **fresh}
            keep(cache / CACHE_FILE, {path: entry for path, entry in entries.items() if Path(path).exists()})
    return results, read


def folder_digest(folder: Path, cache: Path) -> tuple[str, int]:
    """One digest of everything in a model's folder that decides its replies, and how many bytes were read for it.

    That is every file at its top (weights, configuration, tokenizer, templates, code) and its additional chat
    templates, except those that certainly decide nothing.
    """
    places = [*folder.iterdir(), *folder.glob("additional_chat_templates/*")]
    files = sorted(file for file in places if file.is_file() and not _IRRELEVANT.fullmatch(file.name))
    results, read = digests(files, cache)
    parts = [(file.relative_to(folder).as_posix(), value) for file, value in results.items()]
    return hashlib.sha256(repr(parts).encode()).hexdigest(), read


def _stamp(file: Path) -> list[int]:
    """What changes when a file is written, even in place."""
    found = file.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
