"""Arguments of the Python face: options of the commands as keywords, checked as click would check them.

A value that is none is one line that names the argument, and never a traceback from deep inside.
"""

from __future__ import annotations

import difflib
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, get_type_hints

from distract.cli.bounds import BOUNDS
from distract.core.errors import UsageError
from distract.core.records import Case
from distract.data import datasets

AnyPath = str | os.PathLike[str]
Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Data = str | os.PathLike[str] | Sequence[Case]


class AuditOptions(TypedDict, total=False):
    """The options that ``attack`` and ``gate`` share.

    Attributes:
        responses: files of responses, for data that hold prompts only.
        reference_model: model that protocols with a reference ask for it, named like a judge.
        orders: in which responses are shown: ``both`` (default), ``given`` or ``swapped``.
        samples: passes of each order, 1 to 10,000; the majority wins. Default 1.
        answer_tokens: most tokens of a judge's answer in words, 1 to 10,000,000; None leaves it to the protocol.
        generator: who rewrites: ``recorded``, ``rules``, or a model; None takes recorded rewrites where there are any.
        retries: more attempts after a rejected text, 0 to 1,000. Default 1.
        temperature: of the generator, 0 (greedy) to 10. Default 0.7.
        top_p: of the generator, above 0 up to 1. Default 1.
        max_tokens: the most that a generated text takes, 1 to 10,000,000. Default 2,048.
        best_of: texts per attempt, of which the best is kept, 1 to 1,000. Default 1.
        verifier: model that is asked whether a rewrite says the same.
        control: whether the noise is measured too. Default False.
        seed: of the draw, the rewrites and sampling, a whole number of 64 bits. Default 0.
        out: the run folder; None names one under ``.distract/runs``.
        store: the reply store; None for ``.distract/replies.sqlite``.
        engine: ``vllm`` or ``transformers``, for a name that leaves it open.
        catalogue: TOML file of more judges; the variable ``DISTRACT_CATALOGUE`` where it is left out.
        dtype: of weights: ``auto`` (default), ``float32``, ``bfloat16`` or ``float16``.
        quantization: of weights: ``bnb-8bit``, ``bnb-4bit``; with vLLM any that it knows.
        trust_remote_code: whether code runs that comes with a model. Default False.
        device_map: as transformers takes it.
        batch_tokens: of a forward of transformers, from 64; None goes by free memory.
        tensor_parallel: GPUs for one model of vLLM, 1 to 1,024.
        max_length: most tokens of prompt and answer with vLLM, from 16.
        gpu_memory: share of a GPU's memory for vLLM, above 0 up to 1.
        base_url: of a server with OpenAI's interface; keys come from the environment only.
        concurrency: requests at a server at once, 1 to 1,000. Default 16.
        timeout: seconds for a reply of a server, 0.001 to 86,400. Default 120.
        attempts: tries of a request to a server, 1 to 1,000. Default 6.
        revision: of the judge: a commit, branch or tag of the hub.
        price_in: of the judge, US dollars per million prompt tokens.
        price_out: the same of output tokens.
        judge_version: tells the judge from another model that had its name.
        fresh: whether the judge is asked everything again. Default False.
    """

    responses: Names
    reference_model: str | None
    orders: str
    samples: int
    answer_tokens: int | None
    generator: str | None
    retries: int
    temperature: float
    top_p: float
    max_tokens: int
    best_of: int
    verifier: str | None
    control: bool
    seed: int
    out: AnyPath | None
    store: AnyPath | None
    engine: str | None
    catalogue: AnyPath | None
    dtype: str
    quantization: str | None
    trust_remote_code: bool
    device_map: str | None
    batch_tokens: int | None
    tensor_parallel: int | None
    max_length: int | None
    gpu_memory: float | None
    base_url: str | None
    concurrency: int
    timeout: float
    attempts: int
    revision: str | None
    price_in: float | None
    price_out: float | None
    judge_version: str | None
    fresh: bool


class ScopeOptions(TypedDict, total=False):
    """What is judged, and how; see ``api.attack``."""

    data: Data
    attacks: Names
    protocols: Names
    limit: int | str | None


class AttackOptions(AuditOptions, total=False):
    """The other options of ``attack``.

    Attributes:
        measures: names of measures, or ``fixed``, ``flip``, ``severity``; all when empty.
        minimal: of how many flips, the clearest, the smallest part of the rewrite is looked for that still flips, from
            0. Default 0.
    """

    measures: Names
    minimal: int


class GateOptions(AuditOptions, ScopeOptions, total=False):
    """The options of ``gate``. All but the limits, ``config``, ``baseline`` and ``control`` go with a judge to ask.

    Attributes:
        max_flip_rate: the largest to accept, a share above 0 and below 1.
        max_rise: the largest since the baseline, a share above 0 and below 1. Default 0.05.
        max_invalid_rate: largest share of unreadable verdicts, 0 to 1. Default 0.2.
        min_eligible: smallest share of comparisons that must be eligible to pass, 0 to 1. Default 0.2.
        min_n: fewest verdicts that may pass, from 1. Default 1.
        confidence: of one-sided bounds, 0.5 to below 1. Default 0.95.
        certify: whether inconclusive counts as failed (``exit_code`` 1). Default False.
        config: ``pyproject.toml`` with ``[tool.distract.gate]``; None for the nearest.
        baseline: run of ``attack`` that the judge may not be worse than.
        budget: most calls of models, from 1, those answered from the store included; None for any number.
        ahead: prompts to judge at once though fewer might do, from 1. Default 1.
        trust_store: whether stored replies of a server are taken without asking it a few again. Default False.
    """

    max_flip_rate: float | None
    max_rise: float | None
    max_invalid_rate: float | None
    min_eligible: float | None
    min_n: int | None
    confidence: float | None
    certify: bool | None
    config: AnyPath | None
    baseline: AnyPath | None
    budget: int | None
    ahead: int
    trust_store: bool


def parse_judge(judge: object) -> str:
    """The name of a judge."""
    if isinstance(judge, str):
        return judge
    raise UsageError(f"judge: expected a name, found {reprlib.repr(judge)}; `distract list judges` shows the forms")


def parse_options(given: dict[str, Any], *kinds: type) -> dict[str, Any]:
    """Options as the commands have them after click has read them."""
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name not in hints:
            near = difflib.get_close_matches(name, hints, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no argument {name!r}{meant}; they are the options of the command, with underscores")
        if name in BOUNDS:
            options[name] = parse_number(name, value, hints[name])
        elif hints[name] == Names:
            options[name] = parse_names(name, value)
        elif name == "data":
            options[name] = _parse_data(value)
        elif hints[name] == AnyPath | None:
            options[name] = None if value is None else parse_path(name, value)
        elif not isinstance(value, hints[name]):
            raise UsageError(f"{name}: expected {_EXPECTED[hints[name]]}, found {value!r}")
        else:
            options[name] = value
    if catalogue := os.environ.get("DISTRACT_CATALOGUE"):  # as the command has it
        options.setdefault("catalogue", Path(catalogue))
    return options


def parse_path(name: str, value: object) -> Path:
    """The path that an argument of that name is."""
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{name}: expected a path, found {reprlib.repr(value)}")
    if "\0" in os.fspath(value):
        raise UsageError(f"{name}: no path holds a NUL character")
    return Path(value)


def parse_number(name: str, value: object, hint: Any = None) -> Any:
    """A number in its bounds; None where ``hint`` allows it."""
    if value is None and hint is not None and isinstance(value, hint):
        return None
    try:
        return BOUNDS[name].read(value)
    except ValueError as error:
        raise UsageError(f"{name} {error}") from None


def parse_names(name: str, value: object) -> tuple[str, ...]:
    """Names as a tuple; a single one stands for itself."""
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if wrong := [one for one in names if not isinstance(one, str | os.PathLike)]:
        raise UsageError(f"{name}: expected names, found {reprlib.repr(wrong[0])}")
    return tuple(os.fspath(one) for one in names)


def _parse_data(value: Any) -> str | datasets.DataSet:
    if isinstance(value, str | os.PathLike):
        return str(value)
    if not isinstance(value, Iterable):
        raise UsageError(f"data: expected a name, a path or a list of cases, found one {type(value).__name__}")
    return datasets.collect_cases(value)


_EXPECTED: Mapping[Any, str] = {
    **dict.fromkeys((str, str | None), "a text"),
    **dict.fromkeys((bool, bool | None), "True or False"),
}
