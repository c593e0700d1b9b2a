"""inspect_ai's logs, ``.eval`` and ``.json``: the stored scores of each sample, one run per scorer.

A sample has ``scores``: ``{scorer: {value, reason?, metadata?}}``. Swap convention: none, a scorer sees one response.
Values are read as inspect_ai's metrics do: C, yes, true and 1 pass, I, N, no, false and 0 fail, P is 0.5. A score of at
least 0.5 passes, so P passes; the notes count the scores between 0 and 1. A missing score, one that is no number (NaN,
``Score.unscored``) and an unreadable one are no verdicts. A value with several keys becomes a protocol for each,
``scorer/key``. Lists and scores outside of 0 and 1 say nothing about passing, so their scorer is left out.

The judge is the model that the scorer's parameters or the stored grading name, else inspect_ai; the data set is the
task. A folder of logs is read as a whole.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.printable import count, line, shorten
from distract.core.records import Case, Judgment
from distract.data.fields import Item
from distract.data.formats.logs import FAILED, has_samples, name_sample, read_author, read_sample
from distract.data.formats.table import AUTHOR
from distract.data.tables import Table, open_table
from distract.judging.published import published_runs
from distract.judging.published.graded_responses import GradedResponse, assemble_runs, grade
from distract.judging.published.published_runs import Names, PublishedRun

MARK = 0.5
JUDGE = "inspect_ai"
_LETTERS: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS: Mapping[str, float] = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_JSON = re.compile(rb'\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":')


@dataclass(frozen=True, slots=True)
class _Score:
    """The value of a score, the reason for an unusual one, and the models that gave it and their words."""

    value: object
    reason: str
    graders: tuple[str, ...]
    words: object


@dataclass(frozen=True, slots=True)
class _Sample:
    name: str
    author: str
    case: Case | None  # None if its texts are no turns
    failure: str  # why a missing score is missing
    is_answered: bool
    scores: Mapping[str, _Score]  # by protocol

    def score(self, protocol: str) -> _Score | None:
        """The score under a protocol; a scorer with several keys may have none of them for this sample."""
        return self.scores.get(protocol) or self.scores.get(protocol.partition("/")[0])


def can_read(path: Path) -> bool:
    """Whether a file begins like a log of inspect_ai."""
    head = published_runs.head(path)
    return path.suffix == ".eval" or head.startswith(b"PK\x03\x04") or _JSON.match(head) is not None


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the runs of logs."""
    tables, left_out = [open_table(path) for path in paths], Counter[str]()
    responses = [response for table in tables for response in _read_log(table, left_out)]
    if not responses:
        raise DataError(f"holds no verdicts: {next(iter(left_out))}", path=paths[0])
    several = len(paths) > 1
    notes = [f"left out: {why}" + f" (in {count(n, 'log')})" * several for why, n in left_out.items()]
    return assemble_runs(responses, tables, notes)


def _read_log(table: Table, left_out: Counter[str]) -> Iterator[GradedResponse]:
    header = Item(table.header, table.where, 1)
    spec = header.object(header.value.get("eval", {}), "eval")
    samples = [_read_sample(item) for item in table.items()] if has_samples(table) else []
    protocols = _list_protocols(samples, [*(scorers := _name_scorers(spec))])
    if not protocols:
        left_out["no scores; run `inspect score`" if samples else "no samples; evaluate with --log-samples"] += 1
    task = spec.name("task") if spec.has("task") else Path(table.where).name
    taken = set[Names]()
    for protocol in protocols:
        scores = [sample.score(protocol) for sample in samples]
        values = [score.value for score in scores if score and score.value is not None]
        if flaw := _find_flaw(values):
            left_out[f"the scores of {line(protocol)} are {flaw}"] += 1
            continue
        scorer, dot, key = protocol.partition("/")
        kind, models = scorers.get(scorer, (scorer, ()))
        judge = header.check_name(
            " + ".join(models or dict.fromkeys(one for score in scores if score for one in score.graders)) or JUDGE,
            "model",
        )
        # inspect_ai numbers scorers of one kind; under one name, their graders can be compared.
        names = (judge, header.check_name(f"{kind}{dot}{key}", "scores"), task)
        names = (judge, header.check_name(protocol, "scores"), task) if names in taken else names
        taken.add(names)
        for sample, score in zip(samples, scores, strict=True):
            yield GradedResponse(names, sample.name, sample.author, sample.case, _judge(sample, score))


def _read_sample(item: Item) -> _Sample:
    case = read_sample(item)
    output = item.object(item.value["output"], "output") if item.has("output") else item
    scores: dict[str, _Score] = {}
    holder = item.object(item.value.get("scores") or {}, "scores")
    for scorer in holder.value:
        score = _read_score(holder.object(holder.value[scorer], scorer).value)
        if isinstance(score.value, dict):
            scores.update((f"{scorer}/{key}", replace(score, value=part)) for key, part in score.value.items())
        else:
            scores[scorer] = score
    return _Sample(
        name_sample(item),
        read_author(output, "model") if output.has("model") else AUTHOR,
        case if isinstance(case, Case) else None,
        f"no score: {FAILED}" if item.has("error") else "no score",
        isinstance(case, Case) or case.reason != FAILED,
        scores,
    )


def _read_score(value: Mapping[str, Any]) -> _Score:
    details = value.get("metadata")
    details = details if isinstance(details, dict) else {}
    reason, grading = value.get("reason") or details.get("unscored_reason"), details.get("grading")
    reason = line(shorten(reason, 60)) if isinstance(reason, str) else ""
    models = tuple(_list_models(grading) if isinstance(grading, list) else ())
    return _Score(value.get("value"), reason, models, value.get("explanation"))


def _name_scorers(spec: Item) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The kind of each scorer and the models that its parameters name, by the name that inspect_ai gives it."""
    scorers: dict[str, tuple[str, tuple[str, ...]]] = {}
    for scorer in spec.items("scorers") if spec.value.get("scorers") else ():
        kind = name = scorer.text("name").rpartition("/")[2]
        number = 0
        while name in scorers:
            name = f"{kind}{(number := number + 1)}"
        options = scorer.value.get("options")
        scorers[name] = (kind, tuple(_list_models(options.get("model") if isinstance(options, dict) else None)))
    return scorers


def _list_models(value: object) -> dict[str, None]:
    parts = value if isinstance(value, list) else [value]
    names = [part.get("model") if isinstance(part, dict) else part for part in parts]
    return dict.fromkeys(name for name in names if isinstance(name, str))


def _list_protocols(samples: Sequence[_Sample], scorers: Sequence[str]) -> list[str]:
    """The protocols of a log: its scorers, or the keys of their scores; none if nothing was scored."""
    stored = dict.fromkeys(protocol for sample in samples for protocol in sample.scores)
    keyed = {protocol.partition("/")[0] for protocol in stored if "/" in protocol}
    return [name for name in dict.fromkeys([*scorers, *stored]) if name not in keyed] if stored else []


def _find_flaw(values: Sequence[object]) -> str:
    """Why the scores of a protocol cannot pass or fail; empty if they can."""
    numbers = [number for value in values if (number := _read_value(value)) is not None]
    if any(isinstance(value, list) for value in values):
        return "lists"
    if numbers and not 0 <= min(numbers) <= max(numbers) <= 1:
        return f"{min(numbers):g} to {max(numbers):g} and not 0 to 1"
    return "" if numbers or not values else f"texts as {line(shorten(repr(values[0]), 20))}"


def _read_value(value: object) -> float | None:
    """Read a value as inspect_ai's ``value_to_float`` does; None for one that it cannot read."""
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    number = _LETTERS.get(value, _WORDS.get(value.casefold()))
    if number is None:
        try:
            number = float(value)
        except ValueError:
            return None
    return number if math.isfinite(number) else None


def _judge(sample: _Sample, score: _Score | None) -> Judgment | str:
    if score is None:
        return grade(None, failure=sample.failure) if sample.is_answered else FAILED
    number = _read_value(score.value)
    if number is not None:
        return grade(number >= MARK, score.words, scores=(number, MARK))
    failure = "no score" if score.value is None else "unreadable score"
    return grade(None, score.words, failure=f"{failure}: {score.reason}" if score.reason else failure)
