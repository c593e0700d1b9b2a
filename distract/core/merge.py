"""Join the shards of a run to the folder that a single run would have written, byte for byte but for its manifest.

Each shard lists what its plans wrote and where each stands among the plans of the whole run. Merged in that order,
lines are copied as they are and summed up as they pass, so that memory holds no more than the sums need.
"""

from __future__ import annotations

import heapq
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from distract.core import files, registry
from distract.core.errors import DataError, DistractError, UsageError, write_error
from distract.core.job import FinishedRun
from distract.core.locks import LOCK_NAME, occupy
from distract.core.recorder import Recorder, check_folder, list_differences
from distract.core.records import KeepText
from distract.core.run_decoder import RecordFile, decode_case, decode_line, decode_rewrite, decode_row
from distract.core.runs import (
    CASES,
    MANIFEST,
    PLANS,
    TEXTS,
    UNANSWERED,
    Header,
    LoadedRun,
    find_flaw,
    has_unanswered,
    open_records,
    read_header,
    read_json,
    run_files,
)
from distract.core.shard import Shard

HELD = 4096
"""Plans to hold in memory, of all shards together: a shard's files are open only while some of its plans are read."""


def _decode_text(text: dict[str, Any]) -> dict[str, Any]:
    if not (isinstance(text["key"], str) and isinstance(text["failure"], str | None)):
        raise TypeError("its key or failure is no text")
    return text


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "cases": decode_case,
    "rows": decode_row,
    "rewrites": decode_rewrite,
    "texts": _decode_text,
}
"""What a plan wrote, by file."""

_OWN_NAMES = (*run_files(), TEXTS, MANIFEST)
_OWN_FILE = re.compile(rf"({'|'.join(map(re.escape, _OWN_NAMES))})(\.\d+\.part)?|{re.escape(LOCK_NAME)}")
"""What a merge writes, with leftovers of one that was killed."""


@dataclass(frozen=True)
class ShardRun:
    """A finished shard."""

    path: Path
    header: Header
    shard: Shard
    manifest: Mapping[str, Any]


def read_shards(paths: Sequence[Path]) -> list[ShardRun]:
    """Read the shards of one run, in order; reports in one line all that is wrong."""
    shards, problems = list[ShardRun](), list[str]()
    for path in paths:
        header = read_header(path)
        if header.shard is None:
            problems.append(f"{path} is no shard; name run folders that were made with --shard")
        elif flaw := find_flaw(path, header.files) or (UNANSWERED if has_unanswered(path) else None):
            problems.append(f"{path} is not complete: {flaw}")
        elif (texts := (manifest := read_json(path / MANIFEST)).get("texts")) not in get_args(KeepText):
            problems.append(f"{path} does not say which answers it keeps; run it again")
        elif texts != "none" and not (path / TEXTS).is_file():
            problems.append(f"{path} has lost its {TEXTS}; run it again")
        else:
            shards.append(ShardRun(path, header, header.shard, manifest))
    if not problems:
        problems = [*_list_strangers(shards)] or [*_list_doubles(shards)] or [*_list_missing(shards)]
    if problems:
        raise UsageError("; ".join(problems))
    return sorted(shards, key=lambda one: one.shard.number)


def _list_strangers(shards: Sequence[ShardRun]) -> Iterator[str]:
    first, *others = shards
    for one in others:
        if differ := list_differences(first.header.parameters, one.header.parameters):
            yield f"{one.path} belongs to another run than {first.path} (they differ in {', '.join(differ)})"
        elif one.shard.of != first.shard.of:
            yield f"{one.path} is shard {one.shard}, but {first.path} is shard {first.shard}"
        elif one.manifest.get("texts") != first.manifest.get("texts"):
            yield f"{one.path} keeps other answers than {first.path}; run it again with the same --keep-text"


def _list_doubles(shards: Sequence[ShardRun]) -> Iterator[str]:
    known: dict[Shard, Path] = {}
    for one in shards:
        if one.shard in known:
            yield f"{known[one.shard]} and {one.path} are both shard {one.shard}"
        known[one.shard] = one.path


def _list_missing(shards: Sequence[ShardRun]) -> Iterator[str]:
    of = shards[0].shard.of
    if missing := [f"{number}/{of}" for number in sorted({*range(1, of + 1)} - {one.shard.number for one in shards})]:
        noun, verb = ("shard", "is") if len(missing) == 1 else ("shards", "are")
        yield f"{noun} {', '.join(missing)} {verb} missing"


def list_warnings(shards: Sequence[ShardRun]) -> Iterator[str]:
    """Warn of libraries, and of models that servers reported, that differ between shards: verdicts may differ too."""
    first, *others = (one.header.versions for one in shards)
    differ = sorted({name for other in others for name in list_differences(first, other)})
    if differ:
        yield f"warning: the shards were made with different versions of {', '.join(differ)}; run.json has the first's"
    served = {one.path: _join_names([one.manifest.get("reported")]) for one in shards}
    for role in sorted({role for names in served.values() for role in names}):
        models = {path: sorted(names[role]) for path, names in served.items() if names.get(role)}
        start = next(iter(models))
        if other := next((path for path in models if models[path] != models[start]), None):
            parts = [f"{', '.join(models[path])} in {path}" for path in (start, other)]
            yield f"warning: the servers reported different models as the {role}: {', '.join(parts)}"


def merge(shards: Sequence[ShardRun], out: Path, command: str = "") -> FinishedRun[Any]:
    """Write the run of all shards, which ``read_shards`` has checked, in a step: a merge that fails changes nothing."""
    _check_out(shards, out)
    header, keep_text = shards[0].header, shards[0].manifest["texts"]
    parameters = header.parameters
    study = registry.get_study(str(parameters.get("command", "attack")))
    sums = study.measures(parameters)
    try:
        files.make_folder(out.parent)
        beside = Path(os.path.realpath(out)).parent  # on its file system, where a link leads to another
        _remove_leftovers(beside, out.name)
        # The lock tells the part of a merge that goes on from that of one that was killed.
        with TemporaryDirectory(prefix=f".{out.name}.", suffix=".part", dir=beside) as folder, occupy(Path(folder)):
            part = Path(folder) / "run"
            with Recorder(part, parameters, header.source, keep_text, versions=header.versions) as record:
                for plan in _merge_plans(shards):
                    lines = {name: [line for line, _ in pairs] for name, pairs in plan.parts.items() if name != "texts"}
                    record.write(lines, plan.records("texts"))
                    sums.add(plan.records("rows"), plan.records("rewrites"))
                total = sums.result()
                text = record.finish(study.document(parameters, total), _sum_manifests(shards, command))
            if not out.exists():
                files.move(part, out)
            else:
                with occupy(out):
                    _check_out(shards, out)  # a file may have come since
                    # The manifest goes first and comes last, so that a run cut short between is never complete.
                    files.remove(out / MANIFEST)
                    for name in _OWN_NAMES:
                        files.move(part / name, out / name)
    except OSError as error:
        raise write_error(error, error.filename or out, "name a folder with --out") from error
    cases = RecordFile(out / CASES, decode_case)
    rows, rewrites = open_records(out)
    run = LoadedRun(out, parameters, rows, rewrites, None, text, source=header.source, cases=cases)
    return FinishedRun(study, run, total)


def _remove_leftovers(beside: Path, name: str) -> None:
    """Remove what merges into a folder left where they were killed; a part that holds anything else stays."""
    is_part = re.compile(rf"\.{re.escape(name)}\.[a-z0-9_]{{8}}\.part").fullmatch
    for folder in [path for path in beside.glob(".*.part") if is_part(path.name) and not path.is_symlink()]:
        with suppress(OSError, DistractError):
            run, names = folder / "run", {path.name for path in folder.iterdir()}
            written = [*run.iterdir()] if "run" in names and not run.is_symlink() else []
            is_own = all(_OWN_FILE.fullmatch(path.name) for path in written) and not run.is_symlink()
            if is_own and {LOCK_NAME} <= names <= {LOCK_NAME, "run"}:
                with occupy(folder):
                    for path in written:
                        files.remove(path)
                    if "run" in names:
                        run.rmdir()
                folder.rmdir()


def _check_out(shards: Sequence[ShardRun], out: Path) -> None:
    """Refuse a folder that holds anything but an earlier merge of the same run, and one around or inside a shard."""
    place = Path(os.path.realpath(out))
    for one in shards:
        shard = Path(os.path.realpath(one.path))
        if place in shard.parents or shard in place.parents:
            where = "is in the folder of a shard" if shard in place.parents else f"holds the shard {one.path}"
            raise UsageError(f"{out}: {where}; name another folder with --out")
    check_folder(out, shards[0].header.parameters)
    if (out / MANIFEST).exists() and "shards" not in read_json(out / MANIFEST):
        raise UsageError(f"{out}: holds the whole run already, made without shards; name another folder with --out")
    names = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if other := next((name for name in names if not _OWN_FILE.fullmatch(name)), None):
        raise UsageError(f"{out}: holds {other}, which no merge writes; move it, or name another folder with --out")
    for name in _OWN_NAMES:
        files.check_ownership(out / name)


@dataclass(frozen=True, slots=True)
class _PlanRecord:
    """What one plan wrote: lines with the records in them, by file."""

    path: Path
    stage: int
    position: int
    parts: Mapping[str, Sequence[tuple[str, Any]]]

    @property
    def key(self) -> tuple[int, int]:
        return self.stage, self.position

    def records(self, name: str) -> list[Any]:
        return [record for _, record in self.parts.get(name, ())]


def _merge_plans(shards: Sequence[ShardRun]) -> Iterator[_PlanRecord]:
    """Yield the plans of the whole run in order; fail if one is missing or there twice."""
    portion = max(1, HELD // len(shards))
    last: _PlanRecord | None = None
    for plan in heapq.merge(*(_read_plans(one, portion) for one in shards), key=lambda plan: plan.key):
        follows = [(0, 0)] if last is None else [(last.stage, last.position + 1), (last.stage + 1, 0)]
        if last is not None and plan.key == last.key:
            raise UsageError(f"{last.path} and {plan.path} both hold case {plan.position + 1}; run one of them again")
        if plan.key not in follows:
            raise UsageError(f"{plan.path}: no shard holds the case before case {plan.position + 1}; run them again")
        last = plan
        yield plan


def _read_plans(one: ShardRun, portion: int) -> Iterator[_PlanRecord]:
    plans = _Tail(one.path / PLANS, _decode_plan)
    tails = {name: _Tail(one.path / f"{name}.jsonl", decode) for name, decode in _DECODERS.items()}
    if one.manifest.get("texts") == "none":
        del tails["texts"]
    while entries := [entry for _, entry in plans.take(portion)]:
        parts = {name: iter(tail.take(sum(entry[name] for entry in entries))) for name, tail in tails.items()}
        for entry in entries:
            lines = {name: list(islice(part, entry[name])) for name, part in parts.items()}
            if wrong := [name for name, part in lines.items() if len(part) != entry[name]]:
                raise DataError(f"holds fewer lines than {PLANS} counts; run it again", path=tails[wrong[0]].path)
            yield _PlanRecord(one.path, entry["stage"], entry["position"], lines)
    for tail in tails.values():
        if tail.take(1):
            raise DataError(f"holds more lines than {PLANS} counts; run it again", path=tail.path)


def _decode_plan(value: dict[str, Any]) -> dict[str, int]:
    names = ("stage", "position", *_DECODERS)
    if not all(isinstance(value[name], int) and 0 <= value[name] < 2**31 for name in names):
        raise ValueError("a count is not a whole number")
    return {name: value[name] for name in names}


@dataclass(slots=True)
class _Tail:
    """The lines of a file that are still to be read; the file is open only meanwhile."""

    path: Path
    decode: Callable[[Any], Any]
    start: int = 0
    number: int = 0

    def take(self, count: int) -> list[tuple[str, Any]]:
        """Take up to ``count`` lines with their records."""
        if not count:
            return []
        with files.open_own(self.path) as file:
            file.seek(self.start)
            lines = list(islice(file, count))
        self.start += sum(map(len, lines))
        taken = []
        for line in lines:
            self.number += 1
            record = decode_line(line.rstrip(b"\n"), self.decode, self.path, self.number)
            taken.append((line.rstrip(b"\n").decode(), record))
        return taken


def _sum_manifests(shards: Sequence[ShardRun], command: str) -> dict[str, Any]:
    """Sum what the shards used, and name them."""
    manifests = [one.manifest for one in shards]
    totals = _sum_values([{name: one.get(name) for name in ("replies", "dollars")} for one in manifests])
    times = [one["times"] for one in manifests if isinstance(one.get("times"), dict)]
    began, seconds = (
        [time[name] for time in times if isinstance(time.get(name), float)] for name in ("began", "seconds")
    )
    totals["times"] = {**({"began": min(began)} if began else {}), "seconds": round(sum(seconds), 3)}
    served = {name: _join_names(one.get(name) for one in manifests) for name in ("reported", "fingerprints")}
    epochs = [epoch for one in manifests if isinstance(epoch := one.get("epoch"), int)]
    named = [
        {"shard": str(one.shard), "run": str(one.path), "command": one.manifest.get("command", "")} for one in shards
    ]
    return {
        **{name: value for name, value in (*totals.items(), *served.items()) if value},
        **({"epoch": min(epochs)} if epochs else {}),  # the oldest: no reply is newer than the run claims
        **({"command": command} if command else {}),
        "shards": named,
    }


def _sum_values(values: Sequence[Any]) -> Any:
    """Sum numbers, also inside objects; anything else is left out."""
    values = [value for value in values if value is not None]
    if values and all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: _sum_values([value.get(name) for value in values]) for name in names}
    if values and all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return sum(values)
    return None


def _join_names(tables: Iterable[Any]) -> dict[str, list[str]]:
    """Join the names that servers reported in each shard, by role."""
    joined: dict[str, dict[str, None]] = {}
    for table in tables:
        for role, names in table.items() if isinstance(table, dict) else ():
            texts = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
            joined.setdefault(role, {}).update(dict.fromkeys(texts))
    return {role: list(names) for role, names in joined.items()}
