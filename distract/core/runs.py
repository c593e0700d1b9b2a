"""Read a run folder.

``run.json`` (parameters and versions) is written first and identifies the run; ``cases.jsonl`` holds the texts of what
is judged, to which rows and rewrites refer by the id of the case. ``rows.jsonl`` and ``rewrites.jsonl`` grow; so does
``texts.jsonl``, the judge's own words as far as ``--keep-text`` keeps them, which is not part of the run's identity.
``summary.json`` and, last, ``manifest.json`` end the run. The manifest records whether the run is complete: if a model
left a request unanswered, the same command asks again. Replies are in the store, so a killed run writes its files again
without paying for any reply twice. A shard has the parameters of the whole run, says in ``run.json`` which part it is,
and lists in ``plans.jsonl`` what each of its plans wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from distract.core import files, registry
from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.printable import line
from distract.core.records import Case, KeepText, Rewrite, Row
from distract.core.run_decoder import RecordFile, decode_case, decode_rewrite, decode_row
from distract.core.shard import Shard

MANIFEST = "manifest.json"
"""Written last: a run without it is unfinished."""

CHANGED = "its servers answered otherwise at the end than at the start; ask them everything again with --fresh"
"""The flaw of a run during which a judge changed."""

TEXTS = "texts.jsonl"
"""The judge's own words: not part of a run's records, and without a checksum."""

CASES = "cases.jsonl"
"""The cases of a run, without rewrites; runs of earlier versions have no such file."""

PLANS = "plans.jsonl"
"""What each plan of a shard wrote, with its place among those of the whole run."""

UNANSWERED = "some requests got no reply, so their verdicts are invalid; the command that made the run asks them again"

_MAX_BYTES = 256 * 10**6
"""Upper bound for run.json, summary.json and manifest.json."""


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run read back."""

    path: Path
    parameters: Mapping[str, Any]
    rows: Sequence[Row]  # all complete rows; those of a run just finished are read from disk on each iteration
    rewrites: Sequence[Rewrite]  # likewise
    flaw: str | None  # why the run must not be relied on (unfinished, damaged or a part)
    summary: str | None  # text of ``summary.json``, None for a run with a flaw
    source: Mapping[str, Any] | None = None  # path or name of the data, as the user gave it
    # In the order of the draw, with their originals; empty for a run of an earlier version.
    cases: Sequence[Case] = field(default=(), compare=False)
    unanswered: bool = False  # whether a request got no reply, so that the same command would ask again
    shard: Shard | None = None  # the part of a run that it is

    @property
    def command(self) -> str:
        return str(self.parameters.get("command", "attack"))

    def check_command(self, *commands: str) -> None:
        if self.command not in commands:
            expected = " or ".join(f"`distract {command}`" for command in commands)
            raise UsageError(f"{self.path}: is a run of `distract {self.command}`; name one of {expected}")

    @property
    def gap(self) -> str:
        """The gap in a finished run, in a sentence; empty if there is none."""
        return UNANSWERED if self.unanswered else ""

    @property
    def epoch(self) -> int:
        epoch = self._manifest.get("epoch")
        return epoch if isinstance(epoch, int) else 0

    @property
    def served(self) -> Mapping[str, Any]:
        """The models and configurations that servers reported, by role; empty if every reply was stored before."""
        return {name: value for name in ("reported", "fingerprints") if (value := self._manifest.get(name))}

    @property
    def origin(self) -> str:
        try:
            began = datetime.fromtimestamp(self._manifest["times"]["began"], UTC)
            when = f"on {began:%Y-%m-%d at %H:%M} UTC"
        except (LookupError, TypeError, ValueError, OverflowError, OSError):
            when = "at an unknown time"
        identity = self.parameters.get("identity")
        model = sorted(identity.items()) if isinstance(identity, dict) else []
        identified = ", ".join([str(self.parameters["judge"]), *(f"{name} {value}" for name, value in model)])
        made, stored = self._replies
        verb = f"judged {when} by" if made or not stored else f"put together {when} from stored replies of"
        older = f"; {stored:,} of {made + stored:,} replies were stored before" if made and stored else ""
        return line(f"{verb} {identified}{older}; nothing was asked again")

    def is_copy_of(self, other: LoadedRun) -> bool:
        """Whether the run is a copy of another, or holds the same replies of a server, which was not asked again."""
        own, others = self._manifest, other._manifest
        if not own or not others:
            return False
        made, stored = self._replies
        tables = [manifest.get("checksums") for manifest in (own, others)]
        rows = [sums["rows.jsonl"] for sums in tables if isinstance(sums, dict) and "rows.jsonl" in sums]
        identity = self.parameters.get("identity")
        is_stored = not made and stored > 0 and isinstance(identity, dict) and "server" in identity
        for manifest in (own, others):
            manifest.pop("texts", None)  # a copy may keep more of them
        return own == others or (is_stored and len(rows) == 2 and rows[0] == rows[1])

    def keeps(self, keep_text: KeepText) -> bool:
        """Whether ``texts.jsonl`` holds what is asked for; by default also if it holds more."""
        kept: object = self._manifest.get("texts", "failures")
        if keep_text == "failures":
            return kept != "none"
        return kept == keep_text and (keep_text == "none" or (self.path / TEXTS).exists())

    @property
    def _replies(self) -> tuple[int, int]:
        """The numbers of replies made for the run and stored before; 0 if unknown."""
        counts = self._manifest.get("replies")
        made, stored = (counts.get(name) if isinstance(counts, dict) else 0 for name in ("made", "stored"))
        return (made if isinstance(made, int) else 0), (stored if isinstance(stored, int) else 0)

    @property
    def has_changed(self) -> bool:
        """Whether its flaw is that the judge changed during the run."""
        return self.flaw == CHANGED

    @property
    def _manifest(self) -> dict[str, Any]:
        path = self.path / MANIFEST
        is_readable = path.is_file() and (not self.flaw or self.has_changed)
        return read_json(path) if is_readable else {}


def run_files(shard: Shard | None = None) -> tuple[str, ...]:
    return ("run.json", CASES, "rows.jsonl", "rewrites.jsonl", *([PLANS] if shard else []), "summary.json")


@dataclass(frozen=True, slots=True)
class Header:
    """The content of ``run.json``."""

    parameters: Mapping[str, Any]
    versions: Mapping[str, Any]
    source: Mapping[str, Any] | None
    shard: Shard | None

    @property
    def files(self) -> tuple[str, ...]:
        return run_files(self.shard)


def read_header(path: Path) -> Header:
    if not path.is_dir():
        raise DataError("no such run folder" if not path.exists() else "is a file; name a run folder", path=path)
    if not (path / "run.json").exists():
        raise DataError("is not a run folder (it holds no run.json)", path=path)
    values = read_json(path / "run.json")
    parameters, versions, source = (values.get(name) for name in ("parameters", "versions", "source"))
    if not isinstance(parameters, dict) or not _is_complete(parameters):
        raise DataError("does not hold the parameters of a run; run the command again", path=path / "run.json")
    try:
        shard = Shard.parse(values["shard"]) if "shard" in values else None
    except UsageError as error:
        raise DataError(str(error), path=path / "run.json", field="shard") from error
    return Header(
        parameters, versions if isinstance(versions, dict) else {}, source if isinstance(source, dict) else None, shard
    )


def load(path: Path, shard: Shard | None = None) -> LoadedRun:
    """Load a run, or a shard of one: a shard that nobody asks for has a flaw, since it is only a part."""
    header = read_header(path)
    parameters = header.parameters
    records = open_records(path)
    cases = RecordFile(path / CASES, decode_case)
    rows, rewrites = _group_rows(tuple(records[0]), cases), tuple(records[1])
    if any(len(row.keys) != len(row.tokens) for row in rows):
        raise DataError("does not hold the tokens of each request; run it again", path=path / "rows.jsonl")
    cut = any(file.cut for file in (cases, *records))
    flaw = find_flaw(path, header.files) or ("a row is cut off; run it again" if cut else None)
    if flaw is None and header.shard and header.shard != shard:
        flaw = f"the run is only shard {header.shard}; join all shards with `distract merge`"
    return LoadedRun(
        path=path,
        parameters=parameters,
        rows=rows,
        rewrites=rewrites,
        flaw=flaw,
        summary=None if flaw else _read_text(path / "summary.json"),
        source=header.source,
        cases=cases,
        unanswered=flaw is None and has_unanswered(path),
        shard=header.shard,
    )


def _group_rows(rows: tuple[Row, ...], cases: Iterable[Case]) -> tuple[Row, ...]:
    """Add the prompt groups of cases to the rows of an earlier version, which has none."""
    if all(row.prompt_group for row in rows):
        return rows
    groups = {(case.id, case.cluster): case.prompt_group for case in cases}
    return tuple(replace(row, prompt_group=row.prompt_group or groups.get((row.case, row.cluster), "")) for row in rows)


def open_records(path: Path) -> tuple[RecordFile[Row], RecordFile[Rewrite]]:
    return RecordFile(path / "rows.jsonl", decode_row), RecordFile(path / "rewrites.jsonl", decode_rewrite)


def read_texts(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read the judge's own words; skip damaged lines."""
    try:
        with files.open_own(path / TEXTS) as file:
            for text in file:
                with suppress(ValueError, RecursionError):
                    value = json.loads(text)
                    if isinstance(value, dict):
                        yield value
    except OSError:
        return  # older runs have no such file


def has_unanswered(path: Path) -> bool:
    # Manifests of earlier versions call every run complete.
    replies = read_json(path / MANIFEST).get("replies")
    return isinstance(replies, dict) and bool(replies.get("unanswered"))


def find_flaw(path: Path, names: tuple[str, ...]) -> str | None:
    """Explain why a folder does not hold a finished, undamaged run."""
    if not (path / MANIFEST).exists():
        return "the run is unfinished; the command that began it resumes it"
    try:
        manifest = read_json(path / MANIFEST)
    except DataError as error:
        return f"{error}; run it again"
    checksums = manifest.get("checksums")
    for name in names:
        recorded = checksums.get(name) if isinstance(checksums, dict) else None
        if name == CASES and recorded is None and not (path / name).exists():
            continue
        if not (path / name).exists() or recorded != checksum(path / name):
            return f"{name} does not match its checksum; run it again"
    checks = (value for value in manifest.values() if isinstance(value, dict))
    return CHANGED if any(check.get("status", "unchanged") != "unchanged" for check in checks) else None


def _is_complete(parameters: Mapping[str, Any]) -> bool:
    try:
        study = registry.get_study(str(parameters.get("command", "attack")))
    except UnknownName:
        return False
    return study.fits(parameters)


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path))
    except (ValueError, RecursionError, OSError) as error:
        raise DataError(f"cannot be read as JSON ({error})", path=path) from error
    if not isinstance(value, dict):
        raise DataError("expected a JSON object", path=path)
    return value


def _read_text(path: Path) -> str:
    with files.open_own(path) as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise DataError(f"has more than {_MAX_BYTES // 10**6} MB, too much for a run; run it again", path=path)
    return text.decode()


def checksum(path: Path) -> str:
    with files.open_own(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
