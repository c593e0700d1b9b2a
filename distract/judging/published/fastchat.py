"""FastChat's own pairwise judgments on MT-Bench: ``model_judgment/JUDGE_pair.jsonl``, one run for each judge.

A row has ``question_id, model_1, model_2, g1_winner, g2_winner, judge: [model, template], g1_judgment, g2_judgment,
turn``. Swap convention: **mapped back** for the winners, which name a model in both games; game 2 shows ``model_2``
first, so that the letters in ``g2_judgment`` are those of the swapped presentation. A judge has a template for each
turn and kind of question (``pair-v2``, ``pair-v2-multi-turn``, ``pair-math-v1`` …); templates that begin with the same
word count as one protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from distract.data.fields import Item
from distract.judging.published import mt_bench_texts, output_files, published_runs
from distract.judging.published.mt_bench import Columns
from distract.judging.published.published_runs import PublishedComparison, PublishedRun

COLUMNS = Columns(
    ("model_1", "model_2"),
    ("g1_winner", "g2_winner"),
    ("g1_judgment", "g2_judgment"),
    {"model_1": "a", "model_2": "b", "tie": "tie"},
    mapped_back=True,
)
can_read = COLUMNS.can_read


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the runs of a file, in the order in which they begin there."""
    (path,) = paths
    source, folder = output_files.read_output(path), path.resolve().parent
    data = folder.parent.name if folder.name == "model_judgment" else path.name
    data = output_files.check_name(data, path, "folder name")
    items = list(source.items())
    texts = mt_bench_texts.load_texts(folder.parent, {model for item in items for model in COLUMNS.read_models(item)})
    by_judge: dict[tuple[str, str], list[PublishedComparison]] = {}
    for item in items:
        judge = read_judge(item)
        by_judge.setdefault(judge, []).append(COLUMNS.read_comparison(item, (*judge, data), texts))
    sha256 = output_files.checksum([source, *texts.sources])
    runs = []
    for judge, rows in by_judge.items():
        comparisons, notes = published_runs.drop_repeats(rows)
        names = (*judge, data)
        runs.append(published_runs.assemble_run(names, comparisons, ties=True, source=path, sha256=sha256, notes=notes))
    return tuple(runs)


def read_judge(item: Item) -> tuple[str, str]:
    """Read the judge of a row, and its protocol: the first word of the template's name."""
    value = item.value.get("judge")
    if not isinstance(value, list) or len(value) != 2:
        item.fail("expected a list of the judge's model and the prompt template", "judge")
    model, template = (item.check_name(item.checked(part, "judge"), "judge") for part in value)
    return model, template.partition("-")[0] or template
