"""Sources of matches, files of votes and scores, stored judgments, labelled data sets, runs of distract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from distract.core.errors import DataError, UnknownName
from distract.data import datasets
from distract.data.formats import detect_format
from distract.data.tables import Table, open_table
from distract.judging.published import own_runs as folders
from distract.studies.leaderboard.sources import judgments, tables
from distract.studies.leaderboard.sources.records import from_rows, read_labelled, read_run
from distract.studies.leaderboard.sources.source import MatchSource

__all__ = ["FORMATS", "MatchSource", "from_rows", "read"]

ARENA, SCORES, JUDGMENTS, RUN = "arena", "scores", "mtbench-judges", "run"

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        ARENA: "rows of {model_a, model_b, winner}: JSON Lines, a JSON array, CSV or Parquet",
        SCORES: "rows of {model, score, question_id}, higher is better, in the same forms",
        JUDGMENTS: "judgments of pairs in both orders: JUDGE/pairwise/*.jsonl, or FastChat's *_pair.jsonl",
        RUN: "a run folder of distract",
        **{name: reader.summary for name, reader in datasets.READERS.items()},
    }
)
"""The formats that hold matches, with one line each; data sets hold them as labels."""


def read(spec: str) -> tuple[MatchSource, ...]:
    """Read the matches of a file, folder or data set, named as PATH or FORMAT:PATH."""
    prefix, colon, rest = spec.partition(":")
    if spec in datasets.BUILT_IN or (prefix == datasets.HUB and colon and not _exists(spec)):
        return (read_labelled(spec),)
    form, place = None, spec
    if colon and not _exists(spec):
        if prefix not in FORMATS:
            raise UnknownName("format of matches", prefix, [*FORMATS, datasets.HUB])
        form, place = prefix, rest
    path = Path(place)
    if form in datasets.READERS and place.startswith(f"{datasets.HUB}:") and not _exists(place):
        return (read_labelled(spec),)
    if not _exists(place):
        raise DataError(f"no such file (built-in data sets: {', '.join(datasets.BUILT_IN)})", path=place or spec)
    if not path.is_dir() and not path.is_file():
        raise DataError("is not a regular file", path=path)
    if form in (ARENA, SCORES) and path.is_dir():
        raise DataError("is a directory; name a file in it", path=path)
    table = None if path.is_dir() else open_table(path, "matches")
    form = form or (_detect_folder(path) if table is None else _detect_format(table))
    if form == RUN:
        return read_run(path)
    if form == JUDGMENTS:
        return judgments.read(path)
    if table is not None and form in (ARENA, SCORES):
        return ((tables.read_votes if form == ARENA else tables.read_scores)(table),)
    return (read_labelled(f"{form}:{place}"),)


def _detect_format(table: Table) -> str:
    """Detect a format by its columns; check for votes before the data sets that consist of them."""
    if judgments.is_judgment(dict.fromkeys(table.fields)):
        return JUDGMENTS
    if tables.is_vote(table.fields):
        return ARENA
    if tables.is_score(table.fields):
        return SCORES
    form = detect_format(table)
    if form is None and (not table.typed or not table.first or {*table.fields} & {*tables.MODELS, tables.WINNER}):
        return ARENA  # its reader reports what is missing
    if form is None:
        known = f"{', '.join(FORMATS)}); `distract list data` and `distract list matches` say what each holds"
        raise DataError(f"in no format that distract knows ({known}", path=table.where)
    return form


def _detect_folder(path: Path) -> str:
    if folders.can_read(path):
        return RUN
    if judgments.has_judgments(path):
        return JUDGMENTS
    for name, reader in datasets.READERS.items():
        if reader.gather and reader.gather(path):
            return name
    judges = sorted(folder.name for folder in path.iterdir() if folder.is_dir() and judgments.has_judgments(folder))
    hint = f"the folder of one judge ({', '.join(judges[:3])} …)" if judges else "a file in it"
    raise DataError(f"is a directory without a run or judgments; name {hint}", path=path)


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # too long for a name, or holds a character that no name may hold
        return False
