"""JudgeBench's outputs: ``dataset=judgebench,response_model=…,judge_name=…,judge_model=….jsonl``, one run a file.

A row has ``pair_id, source, question, response_model, response_A, response_B, label, judge_name, judgments``: one or
two of ``{judgment: {judge_model, response}, decision}``, or null where the judge failed. Swap convention: **not mapped
back**. The second judgment was made with B shown first, and both its text and its decision call B then ``A``. A
decision other than A>B, B>A and A=B (two labels that differ, a label of no sense) is no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Judgment, Outcome, Response
from distract.data.fields import Item
from distract.judging.parsers import BRACKETS, GRADED, OUTPUT, RANKING, Format
from distract.judging.published.output_files import check_name, read_answer, read_choice, read_output
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
"""What a judge was asked for, by its name there; the answers of the others are in no format of ours."""

TIES = ("arena_hard", "compass_judger", "panda_lm", "judge_lm", "auto_j")
"""The judges that may find a tie."""


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    return value.keys() >= FIELDS


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """The run of a file."""
    (path,) = paths
    source = read_output(path)
    items = list(source.items())
    inside = [_inner_judgment(said) for item in items for said in _list_judgments(item) if said]
    models = {one.name("judge_model") for one in inside if one and one.has("judge_model")} or {_parse_judge(path)}
    asked = {item.name("judge_name") for item in items}
    answered = {item.name("response_model") for item in items}
    for several, field in ((models, "judge_model"), (asked, "judge_name"), (answered, "response_model")):
        if len(several) > 1:
            problem = f"holds two, {' and '.join(sorted(several)[:2])}; split the file"
            raise DataError(problem, path=path, field=field)
    names = (min(models), min(asked), check_name(f"judgebench {min(answered)}", path, "response_model"))
    found, notes = drop_repeats(_read_comparison(item, names) for item in items)
    decisions = [said.value.get("decision") for item in items for said in _list_judgments(item) if said]
    if odd := sum(one is not None and one not in _DECISIONS for one in decisions):
        notes += (f"no verdict: {odd} decisions that are none of {', '.join(_DECISIONS)}",)
    ties = names[1] in TIES or "A=B" in decisions
    return (
        assemble_run(names, found, ties=ties, source=path, sha256=source.sha256, convention="judgebench", notes=notes),
    )


def _parse_judge(path: Path) -> str:
    """The judge as the file's name has it, where no judgment says it."""
    parts = dict(part.partition("=")[::2] for part in path.stem.split(","))
    return check_name(parts.get("judge_model") or path.stem, path, "file name")


def _list_judgments(item: Item) -> list[Item | None]:
    value = item.value.get("judgments")
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        item.fail("expected a list of one judgment, or of two in both orders", "judgments")
    return [None if one is None else item.object(one, f"judgments[{index}]") for index, one in enumerate(value)]


def _inner_judgment(said: Item) -> Item | None:
    return said.object(said.value["judgment"], "judgment") if said.has("judgment") else None


def _read_comparison(item: Item, names: Names) -> PublishedComparison:
    label = read_choice(item, "label", {"A>B": "response_A", "B>A": "response_B", "A=B": "tie"})
    responses = tuple(Response(name, (item.text(name, empty=True),)) for name in _AUTHORS)
    prompt, part = (item.text("question"),), item.optional_name("source")
    case = Case(item.name("pair_id"), prompt, responses, preferred=label, source=part)
    orders = zip(_list_judgments(item), _SLOTS, strict=False)
    return build_comparison(names, case, _AUTHORS, [_read_order(said, shown, case, names[1]) for said, shown in orders])


def _read_order(said: Item | None, shown: Slot, case: Case, asked: str) -> OrderJudgments:
    if said is None:
        return OrderJudgments(shown, winner_judgment(None), winner_judgment(None))
    inside, decision = _inner_judgment(said), read_answer(said, "decision")
    found = map_outcomes(_DECISIONS, shown).get(decision or "")
    text = read_answer(inside, "response") if inside else None
    form = FORMATS.get(asked)
    if text is None or form is None:
        return OrderJudgments(shown, winner_judgment(found), winner_judgment(None) if form and found is None else None)
    material = (*case.prompt, *(response.text for response in case.responses))
    return OrderJudgments(
        shown, winner_judgment(found), _parse_answer(text, form[0], map_outcomes(form[1], shown), material)
    )


def _parse_answer(text: str, form: Format, outcomes: Mapping[str, Outcome], material: Sequence[str]) -> Judgment:
    verdict = parse_judgment(text, form, outcomes, material)
    # Grades know no tie, which these judges were offered; an order of both with nothing else final is one.
    if verdict.failure and form is GRADED and RANKING.read(text, ("A", "B"), material) == "A=B":
        return winner_judgment("tie")
    return verdict
