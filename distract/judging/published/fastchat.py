"""FastChat's own pairwise judgments on MT-Bench: ``model_judgment/JUDGE_pair.jsonl``, one run for each judge.

A row has ``question_id, model_1, model_2, g1_winner, g2_winner, judge: [model, template], g1_judgment, g2_judgment,
turn``. Swap convention: **mapped back** for the winners, which name a model in both games; game 2 shows ``model_2``
first, so that the letters in ``g2_judgment`` are those of the swapped presentation. A judge has a template for each
turn and kind of question (``pair-v2``, ``pair-v2-multi-turn``, ``pair-math-v1`` …), which together are one way of
asking: the word that they begin with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.records import Outcome
from distract.data.fields import Item
from distract.judging.published.mt_bench import read_order
from distract.judging.published.mt_bench_texts import (
    BenchmarkTexts,
    case_id,
    category,
    load_texts,
    material,
    model_pair,
    question_id,
    turn,
)
from distract.judging.published.output_files import check_name, checksum, read_output
from distract.judging.published.published_runs import (
    Names,
    PublishedComparison,
    PublishedRun,
    Slot,
    assemble_run,
    build_comparison,
    drop_repeats,
    map_outcomes,
)

FIELDS = {"question_id", "model_1", "model_2", "g1_winner", "g2_winner"}
_WINNERS: Mapping[str, Outcome] = {"model_1": "a", "model_2": "b", "tie": "tie"}


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    return value.keys() >= FIELDS


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """The runs of a file, in the order in which they begin there."""
    (path,) = paths
    source, folder = read_output(path), path.resolve().parent
    data = folder.parent.name if folder.name == "model_judgment" else path.name
    data = check_name(data, path, "folder name")
    items = list(source.items())
    texts = load_texts(folder.parent, {model for item in items for model in model_pair(item, "model_1", "model_2")})
    by_judge: dict[tuple[str, str], list[PublishedComparison]] = {}
    for item in items:
        judge = _read_judge(item)
        by_judge.setdefault(judge, []).append(_read_comparison(item, (*judge, data), texts))
    sha256 = checksum([source, *texts.sources])
    runs = []
    for judge, rows in by_judge.items():
        found, notes = drop_repeats(rows)
        runs.append(assemble_run((*judge, data), found, ties=True, source=path, sha256=sha256, notes=notes))
    return tuple(runs)


def _read_judge(item: Item) -> tuple[str, str]:
    value = item.value.get("judge")
    if not isinstance(value, list) or len(value) != 2:
        item.fail("expected a list of the judge's model and the prompt template", "judge")
    model, template = (item.check_name(item.checked(part, "judge"), "judge") for part in value)
    return model, template.partition("-")[0] or template


def _read_comparison(item: Item, names: Names, texts: BenchmarkTexts) -> PublishedComparison:
    models = model_pair(item, "model_1", "model_2")
    sides = (min(models), max(models))
    question, upto = question_id(item), turn(item)
    case = texts.case(question, upto, sides)
    quotable = material(case)
    # The winners name the same model in both games; only the letters of the answers go with what was shown.
    first: Slot = "a" if models == sides else "b"
    second: Slot = "b" if models == sides else "a"
    winners = map_outcomes(_WINNERS, first)
    orders = [
        read_order(item, "g1_winner", winners, "g1_judgment", first, quotable),
        read_order(item, "g2_winner", winners, "g2_judgment", second, quotable),
    ]
    known = case or case_id(question, upto, sides)
    cluster = texts.cluster(question, upto)
    return build_comparison(names, known, sides, orders, cluster=cluster, subset=category(item))
