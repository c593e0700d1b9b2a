"""MT-Bench-style judgments of model pairs in both orders: ``judgments/JUDGE/pairwise/*.jsonl``, one run a folder.

A row has ``question_id, model_a, model_b, turn?, category?, judgment_ab, judgment_ba, winner_ab, winner_ba``. Swap
convention: **not mapped back**. ``winner_ba`` is the slot letter of the swapped presentation, where A is ``model_b``,
and so are the letters in ``judgment_ba``. The row's own ``winner`` follows from the two and is passed over. A row of
turn 2 judges the conversation up to that turn; one without ``turn`` is taken for turn 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.records import Outcome
from distract.data.fields import Item
from distract.judging.parsers import BRACKETS
from distract.judging.published.mt_bench_texts import (
    NO_TEXTS,
    BenchmarkTexts,
    case_id,
    category,
    load_texts,
    material,
    model_pair,
    question_id,
    turn,
)
from distract.judging.published.output_files import check_name, checksum, read_answer, read_choice, read_output
from distract.judging.published.published_runs import (
    Names,
    OrderJudgments,
    PublishedComparison,
    PublishedRun,
    Slot,
    assemble_run,
    build_comparison,
    drop_repeats,
    map_outcomes,
    parse_judgment,
    winner_judgment,
)

FIELDS = {"question_id", "model_a", "model_b", "winner_ab", "winner_ba"}
LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}
_WINNERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "tie": "tie"}


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    return value.keys() >= FIELDS


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """The run of the files of one folder."""
    names, root = _parse_names(paths)
    sources = [read_output(path) for path in paths]
    items = [item for source in sources for item in source.items()]
    models = {model for item in items for model in model_pair(item, "model_a", "model_b")}
    texts = load_texts(root, models) if root else NO_TEXTS
    found, notes = drop_repeats(_read_comparison(item, names, texts) for item in items)
    source = paths[0] if len(paths) == 1 else paths[0].parent
    sha256 = checksum([*sources, *texts.sources])
    return (assemble_run(names, found, ties=True, source=source, sha256=sha256, notes=notes),)


def _parse_names(paths: Sequence[Path]) -> tuple[Names, Path | None]:
    """Judge, way of asking and data set from the folders, and the folder of the benchmark where they show it."""
    path = paths[0].resolve()
    *_, data, folder, judge, asked, _ = ("", "", "", "", *path.parts)
    root = path.parents[3] if folder == "judgments" and asked == "pairwise" else None
    found = (judge, asked, data) if root else (asked, "replay", path.name if len(paths) == 1 else asked)
    judge, protocol, data = (check_name(part, paths[0], "folder name") for part in found)
    return (judge, protocol, data), root


def _read_comparison(item: Item, names: Names, texts: BenchmarkTexts) -> PublishedComparison:
    shown = model_pair(item, "model_a", "model_b")
    sides = (min(shown), max(shown))
    question, upto = question_id(item), turn(item)
    case = texts.case(question, upto, sides)
    # In terms of a and b, the models in the order of their names, and not of the file's own order.
    first: Slot = "a" if shown == sides else "b"
    second: Slot = "b" if shown == sides else "a"
    quotable = material(case)
    orders = [_read_named_order(item, "ab", first, quotable), _read_named_order(item, "ba", second, quotable)]
    known = case or case_id(question, upto, sides)
    cluster = texts.cluster(question, upto)
    return build_comparison(names, known, sides, orders, cluster=cluster, subset=category(item))


def _read_named_order(item: Item, order: str, shown: Slot, quotable: Sequence[str]) -> OrderJudgments:
    return read_order(item, f"winner_{order}", map_outcomes(_WINNERS, shown), f"judgment_{order}", shown, quotable)


def read_order(
    item: Item, winner: str, winners: Mapping[str, Outcome], text: str, shown: Slot, quotable: Sequence[str]
) -> OrderJudgments:
    """What was said in one order."""
    found = read_choice(item, winner, {**winners, "error": None, None: None})
    verdict = winner_judgment(found, "error" if item.value[winner] == "error" else "no verdict")
    said = read_answer(item, text)
    if said is None:
        # Where nothing came back there is nothing to read either; a winner without its text only lacks the text.
        return OrderJudgments(shown, verdict, verdict if found is None else None)
    return OrderJudgments(shown, verdict, parse_judgment(said, BRACKETS, map_outcomes(LETTERS, shown), quotable))
