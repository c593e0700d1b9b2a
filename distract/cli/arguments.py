"""Arguments of the Python API: options of the commands as keywords, checked as click would check them.

A wrong value raises one line that names the argument, never a traceback from deep inside.
"""

from __future__ import annotations

import difflib
import os
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, get_type_hints

from distract.cli.bounds import BOUNDS
from distract.core.errors import UsageError
from distract.core.shard import Shard
from distract.data.columns import parse_map
from distract.judging.functions.adaptation import is_function
from distract.judging.functions.source import register
from distract.models.options import COMMON
from distract.models.provider import known_settings, read_settings
from distract.stats.measures import list_limited

AnyPath = str | os.PathLike[str]
Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Data = Any
"""A name, a path, cases, or a table: a frame of pandas or polars, a table of pyarrow or ``datasets``, dicts."""


class AuditOptions(TypedDict, total=False):
    """The options that ``attack`` and ``gate`` share; None leaves the choice to distract."""

    responses: Names  # files of responses, for data that hold only prompts
    columns: Mapping[str, str | float]  # columns of a table by role, as ``--map``
    reference_model: str | None  # model for protocols that need a reference, named like a judge
    orders: str  # order in which to show responses: ``both`` (default), ``given`` or ``swapped``
    samples: int  # passes of each order, 1 (default) to 10,000; the majority wins
    answer_tokens: int | None  # maximum number of tokens of a judge's answer in words, 1 to 10,000,000
    generator: str | None  # who rewrites: ``recorded``, ``rules`` or a model; None: recorded, if any
    retries: int  # more attempts after a rejected text, 0 to 1,000; default 1
    temperature: float  # temperature of the generator, 0 (greedy) to 10; default 0.7
    top_p: float  # top-p of the generator, above 0 up to 1 (default)
    max_tokens: int  # maximum number of tokens of a generated text, 1 to 10,000,000; default 2,048
    best_of: int  # texts per attempt, of which the best is kept, 1 (default) to 1,000
    verifier: str | None  # model that reads whether a rewrite says the same; None: one that writes; ``none``: no model
    verifier_threshold: float  # log-odds that a sentence needs to stay, -12 to 12; default 0.5
    control: bool  # measure the noise too
    seed: int  # seed for the draw, the rewrites and sampling, 64 bits; default 0
    out: AnyPath | None  # run folder; None: one under ``.distract/runs``
    keep_text: str  # answers to keep in the run folder: ``failures`` (unreadable ones, default), ``all`` or ``none``
    store: AnyPath | None  # reply store; None: ``.distract/replies.sqlite``
    engine: str | None  # ``vllm``, ``transformers`` or ``ray``, for a name that leaves it open
    workers: int | None  # workers that run the model, with the engine ``ray``, 1 to 10,000
    ray_address: str | None  # address of a Ray cluster, ``auto`` for the one of this machine; None starts one
    num_gpus: float | None  # GPUs of a Ray worker, above 0 up to 1,024
    worker_engine: str | None  # engine of Ray workers, ``vllm`` or ``transformers``
    catalogue: AnyPath | None  # TOML file of more judges; default: the variable ``DISTRACT_CATALOGUE``
    dtype: str  # type of the weights: ``auto`` (default), ``float32``, ``bfloat16`` or ``float16``
    quantization: str | None  # format of the weights: ``bnb-8bit``, ``bnb-4bit``; with vLLM, any it supports
    model_options: Mapping[str, Any]  # settings of engines by key, those below or any other of `distract list options`
    trust_remote_code: bool  # run code contained in a model
    device_map: str | None  # placement on devices, as transformers takes it
    batch_tokens: int | None  # tokens per forward pass of transformers, from 64; None: by free memory
    tensor_parallel: int | None  # GPUs for one model of vLLM, 1 to 1,024
    max_length: int | None  # maximum number of tokens of prompt and answer with vLLM, from 16
    gpu_memory: float | None  # share of a GPU's memory for vLLM, above 0 up to 1
    base_url: str | None  # addresses of servers with OpenAI's interface; keys come only from the environment
    same_as: str | None  # address of a server whose stored replies count, if it has moved or has copies
    concurrency: int  # requests to each server at once, 1 to 1,000; default 16
    timeout: float  # seconds to wait for a server's reply or a function's verdict, 0.001 to 86,400; default 120
    fail_fast: bool  # stop at the first exception of a judge function
    attempts: int  # attempts per request to a server, 1 to 1,000; default 6
    revision: str | None  # commit, branch or tag of the judge on the hub
    price_in: float | None  # price per million prompt tokens of the judge (USD)
    price_out: float | None  # price per million output tokens of the judge (USD)
    judge_version: str | None  # distinguishes the judge from another model of the same name
    fresh: bool  # ask the judge everything again


class ScopeOptions(TypedDict, total=False):
    """What is judged, and how; see ``api.attack``."""

    data: Data
    attacks: Names
    protocols: Names
    limit: int | str | None


class AttackOptions(AuditOptions, total=False):
    """The other options of ``attack``."""

    measures: Names  # names of measures, or ``fixed``, ``flip``, ``severity``; all when empty
    shard: str | None  # part of the prompts to judge, as ``2/8``; ``distract merge`` joins all parts
    probe: bool  # exchange responses between prompts where few are labelled (default)


class GateOptions(AuditOptions, ScopeOptions, total=False):
    """The options of ``gate``; only the limits, ``config``, ``baseline`` and ``control`` apply to a finished run."""

    max_flip_rate: float | None  # largest flip rate to accept, above 0 and below 1
    max_gain_rate: float | None  # largest share of rewrites that may win by a claim or an injection
    max_hollow_win_rate: float | None  # largest share of hollow answers that may win
    margin: float | None  # lead, in points or probability, up to which a verdict is a tie; default 0
    max_shift: float | None  # largest gain by an attack, in points or probability; for a finished run
    max_exchange_rate: float | None  # largest worth of an attack in broken requirements; for a finished run
    max_crossing: float | None  # largest share of responses that may cross the pass mark
    max_win_rate: float | None  # largest share of rewrites that may win against their original
    probe: bool  # exchange responses between prompts where few are labelled (default)
    unlabelled_reason: str | None  # why a judge may pass with ``probe=False``; a pass shows it
    max_rise: float | None  # largest rise since the baseline, above 0 and below 1; default 0.05
    max_invalid_rate: float | None  # largest share of unreadable verdicts; default 0.2
    min_eligible: float | None  # smallest share of comparisons that must be eligible to pass; default 0.2
    min_n: int | None  # minimum number of verdicts that may pass; default 1
    confidence: float | None  # confidence of one-sided bounds, 0.5 to below 1; default 0.95
    certify: bool | None  # count inconclusive as failed (``exit_code`` 1)
    config: AnyPath | None  # ``pyproject.toml`` with ``[tool.distract.gate]``; None: the nearest
    anchors: AnyPath | None  # file of anchors: decide only if the judge still gives their verdicts
    baseline: AnyPath | None  # run of ``attack`` that the judge may not be worse than
    budget: int | None  # maximum number of model calls, including those answered from the store
    ahead: int  # prompts to judge in parallel, even if fewer might be enough; default 1
    trust_store: bool  # use a server's stored replies without repeating a few requests as a check


def parse_judge(judge: object) -> str:
    """Check the name of a judge; a function gets one."""
    if isinstance(judge, str):
        return judge
    if is_function(judge):
        return register(judge)  # type: ignore[arg-type]
    raise UsageError(
        f"judge: expected a name or a function, found {reprlib.repr(judge)}; `distract list judges` shows the forms"
    )


def parse_options(keywords: dict[str, Any], *kinds: type) -> dict[str, Any]:
    """Convert keywords to what click passes to the commands."""
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
    if GateOptions in kinds:
        hints |= dict.fromkeys((row.key for row in list_limited()), float | None)
    settings = keywords.pop("model_options", {})
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise UsageError(f"model_options: expected a dict of settings by name, found {reprlib.repr(settings)}")
    same = [(name, keywords[name]) for name in COMMON if name in keywords and settings]
    own = [(name, keywords.pop(name)) for name in known_settings().keys() - {*COMMON} if name in keywords]
    options: dict[str, Any] = read_settings([*same, *own, *settings.items()])
    for name, value in keywords.items():
        if name not in hints:
            near = difflib.get_close_matches(name, hints, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no argument {name!r}{meant}; they are the options of the command, with underscores")
        if name in BOUNDS:
            options[name] = parse_number(name, value, hints[name])
        elif hints[name] == Names:
            options[name] = parse_names(name, value)
        elif name == "data":
            options[name] = str(value) if isinstance(value, os.PathLike) else value
        elif name == "shard":
            options[name] = None if value is None else Shard.parse(value)
        elif name == "columns":
            options[name] = parse_columns(value)
        elif hints[name] == AnyPath | None:
            options[name] = None if value is None else parse_path(name, value)
        elif not isinstance(value, hints[name]):
            raise UsageError(f"{name}: expected {_EXPECTED[hints[name]]}, found {value!r}")
        else:
            options[name] = value
    if catalogue := os.environ.get("DISTRACT_CATALOGUE"):  # like the command
        options.setdefault("catalogue", Path(catalogue))
    return options


def parse_path(name: str, value: object) -> Path:
    """Convert an argument to a path."""
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{name}: expected a path, found {reprlib.repr(value)}")
    if "\0" in os.fspath(value):
        raise UsageError(f"{name}: a path cannot contain a NUL character")
    return Path(value)


def parse_number(name: str, value: object, hint: Any = None) -> Any:
    """Convert an argument to a number within its bounds; None if ``hint`` allows it."""
    if value is None and hint is not None and isinstance(value, hint):
        return None
    try:
        return BOUNDS[name].read(value)
    except ValueError as error:
        raise UsageError(f"{name} {error}") from None


def parse_names(name: str, value: object) -> tuple[str, ...]:
    """Convert an argument to a tuple of names; a single name is a tuple of one."""
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if invalid := [item for item in names if not isinstance(item, str | os.PathLike)]:
        raise UsageError(f"{name}: expected names, found {reprlib.repr(invalid[0])}")
    return tuple(map(os.fspath, names))


def parse_columns(value: object) -> dict[str, str]:
    """Convert columns by role, a dict or a value of ``--map``."""
    if isinstance(value, str):
        return parse_map([value])
    kinds = str | int | float  # labels are often numbers
    if not isinstance(value, Mapping) or not all(isinstance(part, kinds) for pair in value.items() for part in pair):
        raise UsageError(f"columns: expected a dict of columns by role, found {reprlib.repr(value)}")
    return parse_map(f"{role}={column}" for role, column in value.items())


_EXPECTED: Mapping[Any, str] = {
    **dict.fromkeys((str, str | None), "a text"),
    **dict.fromkeys((bool, bool | None), "True or False"),
}
