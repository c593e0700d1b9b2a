"""JudgeBench's outputs: ``dataset=judgebench,response_model=…,judge_name=…,judge_model=….jsonl``, one run per file.

A row has ``pair_id, source, question, response_model, response_A, response_B, label, judge_name, judgments``: one or
two of ``{judgment: {judge_model, response}, decision}``, or null where the judge failed. Swap convention: **not mapped
back**. The second judgment was made with B shown first, and both its text and its decision call B ``A``. Any decision
other than A>B, B>A and A=B (two labels that differ, a meaningless label) counts as no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Outcome, Response
from distract.data.fields import Item
from distract.judging.parsers import BRACKETS, GRADED, OUTPUT, RANKING, Format
from distract.judging.published import published_runs
from distract.judging.published.published_runs import Names, OrderJudgments, PublishedComparison, PublishedRun, Slot

FIELDS = {"pair_id", "response_A", "response_B", "judgments"}
_AUTHORS = ("response_A", "response_B")
_DECISIONS: Mapping[str, Outcome] = {"A>B": "a", "B>A": "b", "A=B": "tie"}
_SLOTS: tuple[Slot, Slot] = ("a", "b")
_LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b"}

FORMATS: Mapping[str, tuple[Format, Mapping[str, Outcome]]] = {
    "arena_hard": (GRADED, _LETTERS),
    "compass_judger": (GRADED, _LETTERS),
    "skywork_critic": (BRACKETS, _LETTERS),
    "vanilla": (OUTPUT, {"a": "a", "b": "b"}),
}
"""The verdict format of each judge that asks for one of distract's."""

TIES = ("arena_hard", "compass_judger", "panda_lm", "judge_lm", "auto_j")
"""The judges that may call a tie."""


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    return value.keys() >= FIELDS


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the run of a file."""
    (path,) = paths
    source = published_runs.read_output(path)
    items = list(source.items())
    judgments = [judgment for item in items for judgment in _list_judgments(item) if judgment]
    inner = [_inner_judgment(judgment) for judgment in judgments]
    models = {item.name("judge_model") for item in inner if item and item.has("judge_model")} or {_parse_judge(path)}
    protocols = {item.name("judge_name") for item in items}
    authors = {item.name("response_model") for item in items}
    for values, field in ((models, "judge_model"), (protocols, "judge_name"), (authors, "response_model")):
        if len(values) > 1:
            problem = f"has two values, {' and '.join(sorted(values)[:2])}; split the file"
            raise DataError(problem, path=path, field=field)
    data = published_runs.check_name(f"judgebench {min(authors)}", path, "response_model")
    names = (min(models), min(protocols), data)
    decisions = [judgment.value.get("decision") for judgment in judgments]
    notes: tuple[str, ...] = ()
    if invalid := sum(decision is not None and decision not in _DECISIONS for decision in decisions):
        notes = (f"no verdict: {invalid} decisions that are none of {', '.join(_DECISIONS)}",)
    ties = names[1] in TIES or "A=B" in decisions
    comparisons = [_read_comparison(item, names) for item in items]
    return (published_runs.assemble_run(names, comparisons, [source], ties=ties, convention="judgebench", notes=notes),)


def _parse_judge(path: Path) -> str:
    """Read the judge from the file's name, if no judgment names it."""
    parts = dict(part.partition("=")[::2] for part in path.stem.split(","))
    return published_runs.check_name(parts.get("judge_model") or path.stem, path, "file name")


def _list_judgments(item: Item) -> list[Item | None]:
    value = item.value.get("judgments")
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        item.fail("expected a list of one judgment, or of two in both orders", "judgments")
    return [None if part is None else item.object(part, f"judgments[{index}]") for index, part in enumerate(value)]


def _inner_judgment(judgment: Item) -> Item | None:
    return judgment.object(judgment.value["judgment"], "judgment") if judgment.has("judgment") else None


def _read_comparison(item: Item, names: Names) -> PublishedComparison:
    label = published_runs.read_choice(item, "label", {"A>B": "response_A", "B>A": "response_B", "A=B": "tie"})
    responses = tuple(Response(name, (item.text(name, empty=True),)) for name in _AUTHORS)
    prompt, subset = (item.text("question"),), item.optional_name("source")
    case = Case(item.name("pair_id"), prompt, responses, preferred=label, source=subset)
    orders = [
        _read_order(judgment, first, case, FORMATS.get(names[1]))
        for judgment, first in zip(_list_judgments(item), _SLOTS, strict=False)
    ]
    return published_runs.build_comparison(names, case, _AUTHORS, orders)


def _read_order(
    judgment: Item | None, first: Slot, case: Case, form: tuple[Format, Mapping[str, Outcome]] | None
) -> OrderJudgments:
    none = published_runs.winner_judgment(None)
    if judgment is None:
        return OrderJudgments(first, none, none)
    inner, decision = _inner_judgment(judgment), published_runs.read_answer(judgment, "decision")
    winner = published_runs.map_outcomes(_DECISIONS, first).get(decision or "")
    text = published_runs.read_answer(inner, "response") if inner else None
    parsed = none if form and winner is None else None
    if form and text is not None:
        parsed = published_runs.parse_judgment(text, form[0], published_runs.map_outcomes(form[1], first), case)
        # The format has no tie, but these judges may call one: a final [[A=B]].
        if (
            parsed.failure
            and form[0] is GRADED
            and RANKING.read(text, "AB", published_runs.quotable_texts(case)) == "A=B"
        ):
            parsed = published_runs.winner_judgment("tie")
    return OrderJudgments(first, published_runs.winner_judgment(winner), parsed)
