"""Real published outputs: stored winners and distract's parser reproduce every published count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from distract.core.records import Outcome, Row
from distract.data import datasets
from distract.judging import published as replay
from distract.judging.published import PublishedRun

SHARED = Path(__file__).parents[3] / "shared" / "data"
REFUSAL = ("LLaMA2", "CoT", "GPTInst", "item-0083")
"""An answer that declines to name the better output but is published as a win: the only difference."""


@pytest.fixture(scope="module")
def llmbar() -> Sequence[PublishedRun]:
    if not (SHARED / "llmbar").is_dir():
        pytest.skip(f"no published results of LLMBar in {SHARED}")
    return replay.load(str(SHARED / "llmbar"))


@pytest.fixture(scope="module")
def pairs() -> Sequence[PublishedRun]:
    if not (SHARED / "mtbench_judges6").is_dir():
        pytest.skip(f"no published judgments on MT-Bench in {SHARED}")
    return replay.load(str(SHARED / "mtbench_judges6"))


def verdicts(row: Row) -> tuple[Outcome | None, Outcome | None]:
    first, second = row.judgments
    assert row.shown == ("a", "b")
    return first.preferred, second.preferred


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """LLMBar's convention: a null counts as wrong, stays in n, and equals another null."""
    n = len(rows)
    right = [[verdict == row.label for verdict in verdicts(row)] for row in rows]
    first, second = (sum(column) for column in zip(*right, strict=True))
    both, equal = sum(all(pair) for pair in right), sum(len(set(verdicts(row))) == 1 for row in rows)

    def share(k: int) -> str:
        return f"{k} / {n} = {k / n * 100}%"

    return {
        "correct_False": share(first),
        "correct_True": share(second),
        "correct_average": f"{(first + second) / 2 / n * 100}%",
        "correct_both": share(both),
        "equal": share(equal),
    }


def test_discovery_lists_all_llmbar_runs(llmbar: Sequence[PublishedRun]) -> None:
    assert len(llmbar) == 30
    assert {(one.judge, one.protocol, one.data) for one in llmbar} == set(
        product(
            ("GPT-4", "ChatGPT", "LLaMA2"),
            ("Vanilla", "CoT"),
            ("Natural", "GPTInst", "GPTOut", "Manual", "Neighbor"),
        )
    )
    for one in llmbar:
        assert (one.rules, one.calls, one.ties, one.convention) == (("stored", "parsed"), 2, False, "llmbar")
        assert not one.notes


def test_llmbar_counts_match_the_published_counts(llmbar: Sequence[PublishedRun]) -> None:
    compared = 0
    for one in llmbar:
        for rule in one.rules:
            results = figures(one.rows[rule])
            published = {name: one.statistics[name] for name in results}
            if rule == "parsed" and (one.judge, one.protocol, one.data) == REFUSAL[:3]:
                assert {name for name in results if results[name] != published[name]} == {
                    "correct_True",
                    "correct_average",
                }
                assert (results["correct_True"][:7], str(published["correct_True"])[:7]) == ("32 / 92", "33 / 92")
            else:
                assert results == published, (one.source, rule)
            compared += 1
    assert compared == 60


def test_our_parser_differs_in_one_refusal_only(llmbar: Sequence[PublishedRun]) -> None:
    differ = [
        (one.judge, one.protocol, one.data, stored.case, order, was.preferred, result.failure)
        for one in llmbar
        for stored, parsed in zip(one.rows["stored"], one.rows["parsed"], strict=True)
        for order, was, result in zip(stored.shown, stored.judgments, parsed.judgments, strict=True)
        if was.preferred != result.preferred
    ]
    assert differ == [(*REFUSAL, "b", "a", "no verdict")]


def kappa(labels: Sequence[str | None], others: Sequence[str | None]) -> float:
    """Cohen's kappa by its definition."""
    n = len(labels)
    observed = sum(a == b for a, b in zip(labels, others, strict=True)) / n
    chance = sum(labels.count(one) * others.count(one) for one in set(labels) | set(others)) / n / n
    return (observed - chance) / (1 - chance)


@pytest.mark.parametrize("rule", ["stored", "parsed"])
def test_llmbar_kappa_is_correct(llmbar: Sequence[PublishedRun], rule: str) -> None:
    (one,) = (one for one in llmbar if (one.judge, one.protocol, one.data) == ("GPT-4", "CoT", "Natural"))
    labels = [row.label for row in one.rows[rule]]
    orders = list(zip(*map(verdicts, one.rows[rule]), strict=True))
    assert [round(kappa(labels, order), 3) for order in orders] == [0.878, 0.897]
    assert round(float(str(one.statistics["kappa_False"])), 3) == 0.264, "as published, which is wrong"


def test_llmbar_runs_join_their_data_sets(llmbar: Sequence[PublishedRun]) -> None:
    paths = {path.parent.name: path for path in (SHARED / "llmbar").rglob("dataset.json")}
    sets = {name: datasets.load(str(path)).cases for name, path in paths.items()}
    for one in llmbar:
        assert replay.attach_labels(one, sets) == one


@pytest.mark.parametrize("rule", ["stored", "parsed"])
def test_mtbench_inconsistency_counts_match_the_paper(pairs: Sequence[PublishedRun], rule: str) -> None:
    counts = {}
    for one in pairs:
        valid = [verdicts(row) for row in one.rows[rule] if None not in verdicts(row)]
        counts[one.judge] = (sum(first != second for first, second in valid), len(valid))
    assert counts == {"qwen-judge_14B": (541, 1200), "exaone-judge_32B": (506, 1200)}


def test_mtbench_pairs_cover_both_turns_and_cluster_by_question(pairs: Sequence[PublishedRun]) -> None:
    for one in pairs:
        rows = one.rows["stored"]
        assert (one.data, one.protocol, one.ties, len(one.cases)) == ("mtbench_judges6", "pairwise", True, 1200)
        assert Counter(Counter(row.cluster for row in rows).values()) == {15: 80}
        assert set(Counter(row.subset for row in rows).values()) == {150}
        assert all(row.a.author < row.b.author for row in rows)
        assert all(len(one.cases[row.case].prompt) == 2 for row in rows)
    assert [row.case for row in pairs[0].rows["stored"]] == [row.case for row in pairs[1].rows["parsed"]]
