"""Runs of each study that can be divided, on small data, as a whole or as a shard."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders import finish, select, set_up, write_several

from distract.core import merge
from distract.core.job import Job
from distract.core.records import Reply, Request
from distract.core.shard import Shard
from distract.core.usage import Tally
from distract.models.options import record
from distract.models.scripted import ScriptedBackend
from distract.studies import execution
from distract.studies.attack import session as attack
from distract.studies.consistency import session as consistency
from distract.studies.consistency.options import ConsistencyOptions
from distract.studies.leaderboard import session as leaderboard
from distract.studies.leaderboard.options import LeaderboardOptions
from distract.studies.meta import session as meta
from distract.studies.meta.options import MetaOptions

STUDIES = {
    "attack": ("pairwise", "pointwise", "cot"),
    "meta": ("pairwise", "absolute", "cot"),
    "consistency": ("pairwise", "rank"),
    "leaderboard": ("pairwise", "cot"),
}
"""The studies and the ways of asking of their runs."""


def say(request: Request) -> Reply:
    """Answer at random, but the same to each request: a verdict in words, or none for an eighth of the requests."""
    draw = int(request.key[:8], 16)
    outcomes = [text for _, text in request.slots.outcomes] if request.slots else []
    return Reply("Hm." if draw % 8 == 0 or not outcomes else f"So: {outcomes[draw % len(outcomes)]}")


def write_data() -> str:
    """Write labelled cases with four responses each, two cases for each prompt."""
    path = Path("d.jsonl")
    if not path.exists():
        lines = Path(write_several("several.jsonl", prompts=8)).read_text(encoding="utf-8").splitlines()
        cases = [
            {**json.loads(line), "prompt": f"What is {at // 2}?", "preferred": f"m{at % 4}"}
            for at, line in enumerate(lines)
        ]
        path.write_text("".join(json.dumps(one) + "\n" for one in cases), encoding="utf-8")
    return str(path)


def prepare(
    study: str, shard: Shard | None = None, *, limit: int = 5, seed: int = 0, out: str = "", **more: Any
) -> Job[Any]:
    """Prepare a run of a study, with a judge in words and every record that its runs can have."""
    data, name = write_data(), f"{study}-{limit}-{seed}"
    folder = Path(out) if out else Path("runs", name)
    folder = shard.locate(folder) if shard and not out else folder
    backend = more.pop("backend", None) or ScriptedBackend(say)
    drawn: Any = {"data": data, "limit": limit, "seed": seed}
    rated: Any = {"attacks": ["prolixity", "bold"], "targets": ["m1"], "generator": "rules", "draws": 20}
    options: Any = {
        "meta": MetaOptions(control=True),
        "consistency": ConsistencyOptions(sets=2, **drawn),
        "leaderboard": LeaderboardOptions(**drawn, **rated),
    }.get(study)
    more = {"keep_text": "all", "recorded": record(options), **more}
    setup = set_up("j", backend, folder, STUDIES[study], shard=shard, **more)
    if study == "attack":
        return attack.prepare(select(control=True, limit=limit, seed=seed), setup)
    if study == "meta":
        return meta.prepare(options, setup, meta.select(["tweakset", data], (), limit, seed))
    return consistency.prepare(options, setup) if study == "consistency" else leaderboard.prepare(options, setup)


def judge(job: Job[Any], tally: Tally | None = None) -> Path:
    return finish(job, execution.locate_store(job, Path("replies.sqlite")), tally).run.path


def judge_shards(study: str, of: int, **more: Any) -> list[Path]:
    return [judge(prepare(study, Shard(number, of), **more)) for number in range(1, of + 1)]


def join(paths: Sequence[Path], out: str = "merged") -> Path:
    return merge.merge(merge.read_shards(paths), Path(out)).run.path


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a run, without the manifest and the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
