"""LLMBar's published evaluators: ``evaluators/JUDGE/METHOD/result.json`` and ``statistics.json`` beside it.

A row of ``dataset.json`` with ``results``: a list of stages, the last of which holds ``{"swap = False": {completion:
[text, finish], winner}, "swap = True": {…}}``. Swap convention: **mapped back**. Under both orders the winner names an
output of the unswapped presentation, while the text of the swapped one calls the second output (a). A null winner is
no verdict. Methods that rate store no such text. An earlier stage that is a list was asked once, not once per order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Outcome
from distract.data.fields import Item
from distract.data.formats.labelled_pairs import LLMBAR
from distract.data.tables import open_table
from distract.judging.parsers import OUTPUT
from distract.judging.published import published_runs
from distract.judging.published.published_runs import Names, OrderJudgments, PublishedRun, Slot, read_output

_ORDERS: tuple[tuple[str, Slot], ...] = (("swap = False", "a"), ("swap = True", "b"))
_WINNERS: dict[str | None, Outcome | None] = {"1": "a", "2": "b", None: None}
_LABELS: dict[str, Outcome] = {"a": "a", "b": "b"}
_RATED = "each output was rated once: the two orders differ only in which of two equal ratings wins"


def can_read(path: Path) -> bool:
    """Whether a file begins like LLMBar's results."""
    head = published_runs.head(path)
    # The first row may be longer than the head.
    has_results = b'"results"' in head or b'"swap = False"' in head or len(head) > published_runs.HEAD // 2
    return head.startswith(b"[") and b'"output_1"' in head and has_results


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the run of a file."""
    (path,) = paths
    source, names = read_output(path), _parse_names(path)
    comparisons, calls, rated = [], set[int](), 0
    table = open_table(path)
    for case, item in zip(LLMBAR.read(table), table.items(), strict=True):
        stages = item.value.get("results")
        if not isinstance(stages, list) or not stages:
            item.fail("expected a list of stages", "results")
        last = item.object(stages[-1], f"results[{len(stages) - 1}]")
        orders = [_read_order(last.object(last.value.get(order), order), case, first) for order, first in _ORDERS]
        comparisons.append(published_runs.build_comparison(names, case, ("output_1", "output_2"), orders))
        rated += "score_1" in last.value
        calls.add(sum(1 if isinstance(stage, list) else 2 for stage in stages))
    run = published_runs.assemble_run(
        names,
        comparisons,
        [source],
        ties=False,
        convention="llmbar",
        statistics=_read_statistics(path.with_name("statistics.json")),
        calls=calls.pop() if len(calls) == 1 else None,
        notes=[_RATED] if rated else [],
    )
    return (run,)


def _read_order(item: Item, case: Case, first: Slot) -> OrderJudgments:
    verdict = published_runs.winner_judgment(published_runs.read_choice(item, "winner", _WINNERS))
    completion = item.value.get("completion")
    if completion is None:
        return OrderJudgments(first, verdict)
    if not isinstance(completion, list) or not completion or not isinstance(completion[0], str):
        item.fail("expected a list of the text and why it ended", "completion")
    outcomes, is_cut = published_runs.map_outcomes(_LABELS, first), completion[1:2] == ["length"]
    return OrderJudgments(first, verdict, published_runs.parse_judgment(completion[0], OUTPUT, outcomes, case, is_cut))


def _parse_names(path: Path) -> Names:
    """Read judge, method and data set from the folders: ``DATA/evaluators/JUDGE/METHOD``."""
    *_, outer, data, judge, method, file = ("", "", "", "", *path.resolve().parts)
    if data == "evaluators":
        data = outer
    if file != "result.json" or not all(part.strip("/\\") for part in (judge, method)):
        judge, method, data = method.strip("/\\") or path.stem, "replay", file
    return published_runs.check_names((judge, method, data.strip("/\\") or file), path, "folder name")


def _read_statistics(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(read_output(path).text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError) as error:
        raise DataError("not valid JSON; repair or remove the file", path=path) from error
    if not isinstance(value, dict):
        raise DataError("expected a JSON object; repair or remove the file", path=path)
    return value


def _parse_finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number
