"""Groups of options that studies share; the options of a study extend them."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from distract.core.records import KeepText
from distract.core.shard import Shard
from distract.models.options import OptionGroup, Options, seed_option, setting
from distract.models.ranges import LIMIT, PATH, TEXT, Choice, Parsed
from distract.rewriting.generator_options import GeneratorOptions

BASIC = "the basic ones"
"""The protocols of a command that names none."""

MOVED = {
    "minimal": "use `distract explain RUN --clearest N` after the run",
    "plan": "use --dry-run",
    "plan-gate": "use `distract gate --plan`",
}
"""What to write instead of an option or a command of an earlier version."""


def find_moved(name: str, flags: Collection[str]) -> str:
    """Say what to write instead of a former name; empty for any other, and where ``flags`` lacks what has replaced it.

    A hint that names a command applies everywhere.
    """
    moved = MOVED.get(name.replace("_", "-"), "")
    return moved if "`" in moved or {*re.findall(r"--[a-z-]+", moved)} <= {*flags} else ""


asking, output = partial(setting, panel="Asking"), partial(setting, panel="Output")
rewriting, cost = partial(setting, panel="Rewriting"), partial(setting, panel="Cost")


def _read_judge(value: object) -> str:
    """Check the name of a judge; a function gets one."""
    if isinstance(value, str):
        return value
    from distract.judging.functions.adaptation import is_function
    from distract.judging.functions.source import register

    if is_function(value):
        return register(value)  # type: ignore[arg-type]
    expected = "expected a name or a function"
    raise ValueError(f"{reprlib.repr(value)}: {expected}; `distract list judges` shows the forms")


class _Columns:
    """Columns of a table by role, as ``--map`` or a dict names them."""

    name, each, accepts = "ROLE=COLUMN", TEXT, "Mapping[str, str | float]"

    def read(self, value: object) -> dict[str, str]:
        """Parse all values."""
        if value == () or value == {}:
            return {}
        from distract.data.columns import parse_map

        kinds = str | int | float  # labels are often numbers
        if isinstance(value, Mapping) and all(isinstance(part, kinds) for pair in value.items() for part in pair):
            return parse_map(f"{role}={column}" for role, column in value.items())
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
            return parse_map(texts)
        raise ValueError(f"{reprlib.repr(value)}: expected a dict of columns by role")


JUDGE = Parsed("text", "str | Callable[..., object]", _read_judge)
DATA = Parsed(
    "text", "Any", lambda value: os.fspath(PATH.read(value)) if isinstance(value, str | os.PathLike) else value
)
"""A name, a path, cases, or a table: a frame of pandas or polars, a table of pyarrow or ``datasets``, dicts."""


def ways_of_asking(default: str = BASIC) -> Any:
    """Declare the protocols of a command; ``default`` describes those that it uses by itself."""
    return setting(
        (),
        "way of asking: a name, NAME@1 for its first wording, a file, or NAME=FOLDER of other prompts; repeatable. "
        f"Default: {default}",
        flag="--protocol",
    )


def one_judge(default: str | None = "smollm2-135m", help: str = "") -> Any:
    """Declare the judge of a command."""
    return setting(default, help or "judge; `distract list judges` shows the forms", JUDGE)


def named_attacks(help: str) -> Any:
    """Declare the attacks of a command."""
    return setting((), help, flag="--attack")


def columns_option() -> Any:
    """Declare ``--map``."""
    example = "prompt=question,response_a=answer_1,label=winner"
    return setting((), f"columns of a table, as in {example}", _Columns(), flag="--map", metavar="ROLE=COLUMN")


@dataclass(frozen=True, kw_only=True)
class DataOptions(OptionGroup):
    """The cases."""

    data: Any = setting("tweakset", "built-in name, path (CSV, Parquet, JSON …), or FORMAT:PATH", DATA)
    responses: tuple[str, ...] = setting((), "file of {prompt, response}, for data that hold only prompts; repeatable")
    columns: Mapping[str, str] = columns_option()


@dataclass(frozen=True, kw_only=True)
class DrawOptions(OptionGroup):
    """The draw of cases."""

    limit: int | None = setting(8, "number of cases, drawn by --seed", LIMIT)
    seed: int = seed_option()


@dataclass(frozen=True, kw_only=True)
class ReferenceOptions(OptionGroup):
    """Who answers for protocols that need an answer."""

    reference_model: str | None = asking(None, "model for protocols that need a reference, named like a judge")


@dataclass(frozen=True, kw_only=True)
class WriterOptions(GeneratorOptions):
    """Who rewrites, and how."""

    generator: str | None = rewriting(
        None, "who rewrites: recorded, rules, or a model, named like a judge. Default: recorded, if the data have any"
    )


@dataclass(frozen=True, kw_only=True)
class StoreOptions(OptionGroup):
    """Where replies are kept."""

    store: Path | None = cost(None, "reply store. Default: .distract/replies.sqlite", PATH, writes="own")


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(StoreOptions, Options):
    """How a judge is opened."""

    fresh: bool = cost(False, "ask the judge everything again, and use no older reply from now on")


@dataclass(frozen=True, kw_only=True)
class RunOptions(JudgeOptions):
    """A run that a judge is asked for."""

    out: Path | None = setting(None, "run folder. Default: a folder under .distract/runs", PATH, writes="own")
    keep_text: KeepText = output(
        "failures",
        "answers of the judge to keep in the run folder: those that could not be read, all or none",
        Choice(*get_args(KeepText)),
    )


@dataclass(frozen=True, kw_only=True)
class ShardOptions(OptionGroup):
    """The part of a run."""

    shard: Shard | None = setting(
        None,
        "part of the prompts to judge, such as 2/8; `distract merge` joins all parts",
        Parsed("I/N", "str", Shard.parse),
        metavar="I/N",
        typed="each machine has its own",
    )


@dataclass(frozen=True, kw_only=True)
class NoiseOptions(OptionGroup):
    """What tells noise from style."""

    control: bool = setting(False, "measure the noise too, by control rewrites and second samples")


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(OptionGroup):
    """What tells a judge that reads from one that does not."""

    probe: bool = setting(
        True, "where few prompts are labelled, exchange their responses to see whether the judge reads the question"
    )


@dataclass(frozen=True, kw_only=True)
class JsonOptions(OptionGroup):
    """A document for machines."""

    as_json: bool = output(False, "print one JSON document on stdout and nothing else", flag="--json")


@dataclass(frozen=True, kw_only=True)
class ViewOptions(JsonOptions):
    """A report for people, or a document for machines."""

    verbose: bool = output(False, "show all tables and notes")


@dataclass(frozen=True, kw_only=True)
class PageOptions(OptionGroup):
    """Files of a report beside the terminal."""

    html: Path | None = output(
        None, "HTML file to write: one page to open from disk, its verdicts included", PATH, writes="file"
    )
    markdown: Path | None = output(None, "Markdown file to write: the report with its details", PATH, writes="file")


@dataclass(frozen=True, kw_only=True)
class StudyOptions(PageOptions, ViewOptions):
    """The output of a study."""

    profile: bool = output(False, "report on stderr where the time went")
