"""Judge files: a model with the user's own prompt and verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distract.core.backend import Backend
from distract.judging.judge_file import bring, read_judge
from distract.models.opener import open_judge, resolve
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    file = read_judge(Path(name))
    return replace(resolve(file.model, file.under(options), entries), engine="file", model=name, revision=None, keys=())


def _open(target: Target, options: Options) -> Backend:
    file = read_judge(Path(target.model))
    # A revision and a version of the judge are those of its model; the version is set on what is opened here.
    return bring(open_judge(file.model, replace(file.under(options), judge_version=None)), file.protocol)


file = Provider(
    "file",
    {"FILE.toml": "a model with a prompt and a verdict format of your own"},
    _open,
    prefix=(),
    suffix=".toml",
    options=Options,
    resolve=_resolve,
    roles=frozenset({"judge"}),
    title="a judge file",
    place="is a judge file",
)
