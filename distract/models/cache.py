"""Facts kept in the user's cache folder, in JSON files that are replaced whole; digests of files are among them.

If a file is missing, damaged or unwritable, the fact is computed again; this is never an error. Digests are remembered
by path, size, times and inode: overwriting a file changes its ctime even if its size and mtime are put back. Clocks of
file systems tick in milliseconds, so a file written just before it is read is not remembered: a second write within the
same tick would leave no trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.errors import UsageError

CACHE_FILE = "digests.json"
SETTLE_TIME = 100_000_000
"""Nanoseconds that must have passed since a file was last written for its digest to be remembered."""

_IRRELEVANT = re.compile(
    r"\..*|readme.*|licen[cs]e.*|notice.*|(optimizer|scheduler|scaler|rng_state|trainer_state|training_args|events\.out).*"
    r"|.*\.(md|png|jpe?g|gif|svg|pdf|log|onnx|h5|msgpack|ot)",
    re.IGNORECASE,
)
"""Files in a model's folder without effect on replies: documentation, training state, weights for other frameworks."""


def find_hub_folder(model: str, revision: str | None) -> Path | None:
    """Find the files of a model of the hub that have been fetched before; needs no library."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"models--{model.replace('/', '--')}"
    reference = folder / "refs" / (revision or "main")
    try:
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    except (OSError, ValueError):
        return None
    return folder / "snapshots" / commit if commit else None


def recall(file: Path) -> dict[str, Any]:
    """Facts in a file; empty if it holds no JSON object."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def keep(file: Path, facts: Mapping[str, Any]) -> None:
    """Replace the facts in a file in one step."""
    with contextlib.suppress(OSError, UsageError):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, json.dumps(facts, indent=1) + "\n")


def digest(file: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digests(paths: Iterable[Path], folder: Path) -> tuple[dict[Path, str], int]:
    """Digests of files, and the number of bytes read for those not remembered in the cache folder."""
    known, fresh = recall(folder / CACHE_FILE), dict[str, list[object]]()
    results: dict[Path, str] = {}
    read = 0
    try:
        for file in paths:
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
        if fresh:  # keep entries that another process added meanwhile, and forget files that no longer exist
            entries = {**recall(folder / CACHE_FILE), **fresh}
            keep(folder / CACHE_FILE, {path: entry for path, entry in entries.items() if Path(path).exists()})
    return results, read


def folder_digest(model: Path, folder: Path) -> tuple[str, int]:
    """One digest of all files in a model's folder that affect its replies, and the number of bytes read for it."""
    # These are the files at the top (weights, configuration, tokenizer, templates, code) and the additional chat
    # templates, except those that certainly have no effect.
    places = [*model.iterdir(), *model.glob("additional_chat_templates/*")]
    relevant = sorted(file for file in places if file.is_file() and not _IRRELEVANT.fullmatch(file.name))
    results, read = digests(relevant, folder)
    parts = [(file.relative_to(model).as_posix(), value) for file, value in results.items()]
    return hashlib.sha256(repr(parts).encode()).hexdigest(), read


def _stamp(file: Path) -> list[int]:
    """Attributes that change when a file is written, even in place."""
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
