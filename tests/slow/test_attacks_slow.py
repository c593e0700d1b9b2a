"""The rule attacks on long texts and real data, their checksum, the placebo, and the checks of rewrites."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean, median

import pytest
from builders import finish, select, set_up
from loops import each
from test_attacks import DISTRACTORS, PLACEBO, by_distractor, tweakset
from test_generator import DEVELOPED, HELD_OUT, rates
from test_make_pairs import ATTACKS, WRITING, models, record

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.core.registry import attacks
from distract.data.constraints import check, parse
from distract.models.scripted import make_planted
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.writers import _edit_one_turn, checksum
from distract.studies.attack import session


@by_distractor
@pytest.mark.parametrize(
    "piece", ["a ", ". ", "it may be. ", '"', "```\n", "[", "I think the ", "5.", "'a ", "\\(", "<a"]
)
def test_long_hostile_text_can_be_rewritten(attack: Attack, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert len(attack.rewrite(text, (), 0)) > 0.5 * len(text)


def find_rejections(
    attack: Attack, answers: Iterator[tuple[str, str, tuple[Constraint, ...]]]
) -> tuple[int, list[str]]:
    total, failures = 0, []
    for seed, (prompt, text, constraints) in enumerate(answers):
        total += 1
        texts = (prompt,), (text,), (attack.rewrite(text, constraints, seed),), constraints
        reasons = inspect_rewrite(attack, *texts, "c", is_ruled=True).reasons
        failures += [f"{seed}: {'; '.join(reasons)}"] if reasons else []
    return total, failures


def answers(attacked: str | None) -> Iterator[tuple[str, str, str, tuple[Constraint, ...]]]:
    """Prompt, original, recorded rewrite (or the original if there is none) and constraints, from the embedded set."""
    for case in tweakset():
        constraints = tuple(parse(c) for c in case["constraints"])  # type: ignore[attr-defined]
        responses: list[dict[str, str]] = case["responses"]  # type: ignore[assignment]
        originals = {(r["author"], r.get("severity")): r["text"] for r in responses if not r.get("attack")}
        for r in responses:
            if r.get("attack") == attacked:
                yield str(case["prompt"]), originals[r["author"], r.get("severity")], r["text"], constraints


@by_distractor
def test_most_rewrites_of_embedded_answers_pass(attack: Attack) -> None:
    total, failures = find_rejections(
        attack, ((prompt, text, constraints) for prompt, text, _, constraints in answers(None))
    )
    assert len(failures) <= 0.1 * total, failures


@by_distractor
def test_recorded_rewrites_pass(attack: Attack) -> None:
    problems = [
        (old, reasons)
        for prompt, old, new, constraints in answers(attack.name)
        if (reasons := inspect_rewrite(attack, (prompt,), (old,), (new,), constraints, "c", is_ruled=False).reasons)
    ]
    assert not problems


@cache
def rewrites() -> list[tuple[str, str, str, tuple[Constraint, ...]]]:
    """Prompt, text, its placebo and constraints; each case has a good text and three low ones."""
    return [(prompt, text, PLACEBO.rewrite(text, given, 0), given) for prompt, text, _, given in answers(None)]


def test_rewrites_are_faithful_and_keep_constraints() -> None:
    rejected = list[str]()
    for prompt, text, new, constraints in rewrites():
        assert [check(c, new) for c in constraints] == [check(c, text) for c in constraints]
        rejected += inspect_rewrite(PLACEBO, (prompt,), (text,), (new,), constraints, "c", is_ruled=True).reasons
    assert len(rejected) <= 2, rejected


def test_length_stays() -> None:
    growth = [len(new) / len(text) - 1 for _, text, new, _ in rewrites()]
    assert max(map(abs, growth)) < 0.05
    assert abs(fmean(growth)) < 0.01


@pytest.mark.parametrize(("attack", "mean", "most"), list(zip(DISTRACTORS, (0, 2, 0), (0, 9, 0), strict=True)))
def test_no_feature_of_a_distractor_moves(attack: Attack, mean: float, most: float) -> None:
    """Recorded distractors move theirs by 7.9, 39 and 4.7 on average."""
    assert attack.marker
    moves = [attack.marker(new) - attack.marker(text) for _, text, new, _ in rewrites()]
    assert max(map(abs, moves)) <= most
    assert abs(fmean(moves)) <= mean


def test_most_texts_change() -> None:
    changed = [new != text for _, text, new, _ in rewrites()]
    assert fmean(changed[::4]) >= 0.95
    assert fmean(changed) >= 0.95


NATURAL = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "Natural" / "dataset.json"


@pytest.mark.skipif(not NATURAL.is_file(), reason=f"LLMBar is not in {NATURAL}")
def test_answers_of_others_change_into_many_texts_of_one_length() -> None:
    changed, distinct = list[bool](), list[int]()
    for pair in json.loads(NATURAL.read_text(encoding="utf-8")):
        for text in (pair["output_1"], pair["output_2"]):
            texts = [PLACEBO.rewrite(text, (), seed) for seed in range(25)]
            assert not inspect_rewrite(PLACEBO, (pair["input"],), (text,), texts[:1], (), "c", is_ruled=True).reasons
            # A short text may lose or gain its full stop; words and typography may each change the length.
            assert all(abs(len(new) - len(text)) <= max(1, 0.1 * len(text)) for new in texts)
            if len(text.split()) >= 12:
                changed.append(texts[0] != text)
            if len(text.split()) >= 40:
                distinct.append(len({*texts} - {text}))
    assert fmean(changed) >= 0.92  # some are bare code
    assert median(distinct) >= 8


CODE = (
    "from distract.core import registry; from distract.rewriting import writers; "
    "print(writers.checksum(list(registry.attacks().values())))"
)


def test_checksum_is_stable_across_processes_and_covers_attacks() -> None:
    checksums = set()
    for seed in ("0", "1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        checksums.add(done.stdout.strip())
    assert checksums == {checksum(list(attacks().values()))}
    assert checksum([]) not in checksums


@each(
    "turns, new, expected",
    (("a",), "b", ("b",)),
    (("a", "b"), "a\n\nc", ("a", "c")),
    (("a", "b"), "c\n\nb", ("c", "b")),
    (("a", "b", "c"), "a\n\nx\n\ny\n\nc", ("a", "x\n\ny", "c")),
    (("a", "b"), "x\n\ny", ("a", "b")),
    (("a", "a"), "a\n\na", ("a", "a")),
    (("a", "b"), "a", ("a", "b")),
)
def test_change_is_located_in_its_turn(turns: tuple[str, ...], new: str, expected: tuple[str, ...]) -> None:
    assert _edit_one_turn(turns, new) == expected


HARD = ("number",)
"""Kinds of change that a rule of the first layer must always detect."""


@pytest.mark.parametrize("path", [DEVELOPED, HELD_OUT])
def test_rule_violations_are_never_missed(path: Path) -> None:
    rates_by_style = rates(path)
    for kind in HARD:
        assert rates_by_style["missed_change_rate", None, kind][0] == 0


@pytest.mark.parametrize(("path", "rejected", "missed"), [(DEVELOPED, 0.31, 0.12), (HELD_OUT, 0.26, 0.1)])
def test_error_rates_do_not_regress(path: Path, rejected: float, missed: float) -> None:
    rates_by_style = rates(path)
    for measure, limit in (("false_rejection_rate", rejected), ("missed_change_rate", missed)):
        k, n = rates_by_style[measure, None, None]
        assert k / n <= limit


def judge(folder: Path, data: str, generator: str, with_models: bool) -> None:
    opened = models() if with_models else {}
    selected = select(
        data=data,
        attacks=ATTACKS,
        generator=generator,
        asking=WRITING,
        verifier="v" if with_models else None,
        models=opened,
        limit=6,
    )
    setup = set_up("planted:longer", make_planted("longer"), folder, helpers=opened)
    finish(session.prepare(selected, setup), folder.with_suffix(".sqlite"))


def test_recording_first_changes_neither_rewrites_nor_rows(tmp_path: Path) -> None:
    rewrites = record(tmp_path / "f.jsonl")
    assert {rewrite.is_accepted for rewrite in rewrites} == {True, False}
    reasons = {reason.partition(":")[0] for rewrite in rewrites for reason in rewrite.reasons}
    assert {"too weak", "not a rewrite", "comment about the task"} <= reasons
    judge(tmp_path / "one", "tweakset", "w", with_models=True)
    judge(tmp_path / "two", str(tmp_path / "f.jsonl"), "recorded", with_models=False)
    for name in ("rewrites.jsonl", "rows.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert len((tmp_path / "one" / "rewrites.jsonl").read_text().splitlines()) > 12
