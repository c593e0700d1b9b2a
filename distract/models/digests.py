"""SHA-256 digests of files, computed once and then remembered by path, size, times and inode.

Overwriting a file changes its ctime even if its size and mtime are put back, so a remembered digest matches the bytes
on disk. Clocks of file systems tick in milliseconds, so a file written just before it is read is not remembered: a
second write within the same tick would leave no trace.
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
"""Files in a model's folder that affect no reply: documentation, training state, weights for other frameworks."""


def digest(file: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digests(files: Iterable[Path], cache: Path) -> tuple[dict[Path, str], int]:
    """Digests of files, and how many bytes were read for those not remembered."""
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
        if fresh:  # entries that another process added meanwhile stay; files that are gone are forgotten
            entries = {**recall(cache / CACHE_FILE), **fresh}
            keep(cache / CACHE_FILE, {path: entry for path, entry in entries.items() if Path(path).exists()})
    return results, read


def folder_digest(folder: Path, cache: Path) -> tuple[str, int]:
    """One digest of all files in a model's folder that affect its replies, and how many bytes were read for it.

    These are the files at the top (weights, configuration, tokenizer, templates, code) and the additional chat
    templates, except those that certainly affect nothing.
    """
    places = [*folder.iterdir(), *folder.glob("additional_chat_templates/*")]
    files = sorted(file for file in places if file.is_file() and not _IRRELEVANT.fullmatch(file.name))
    results, read = digests(files, cache)
    parts = [(file.relative_to(folder).as_posix(), value) for file, value in results.items()]
    return hashlib.sha256(repr(parts).encode()).hexdigest(), read


def _stamp(file: Path) -> list[int]:
    """Attributes that change when a file is written, even in place."""
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
