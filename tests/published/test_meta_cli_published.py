"""Published runs: distract reproduces their verdicts and figures."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from command_result import fits
from test_meta_cli import LLMBAR, published

from distract.core.records import Outcome, Row
from distract.data import datasets
from distract.judging import published as replay
from distract.judging.published import PublishedRun

NATURAL = LLMBAR / "Natural" / "evaluators"


@published
def test_one_published_run_gives_the_published_counts(run: Any) -> None:
    ran = run("meta", "--judge", f"replay:{NATURAL}/GPT-4/CoT/result.json", "--json")
    assert (ran.code, ran.err) == (0, "")
    for rule in ("stored", "parsed"):
        counts = {
            "published_accuracy": (189, 200),
            "published_accuracy_both_orders": (90, 100),
            "published_equal": (91, 100),
            "accuracy": (189, 200),
            "accuracy_both_orders": (90, 100),
            "equal_verdicts": (91, 100),
            "invalid_rate": (0, 100),
        }
        for measure, (k, n) in counts.items():
            figure = ran.figure(measure, rule=rule, judge="GPT-4", protocol="CoT", data="Natural", subset=None)
            assert (figure["k"], figure["n"], figure["value"]) == (k, n, round(k / n, 4))
            assert figure["low"] <= figure["value"] <= figure["high"]
        kappas = {order: ran.figure("kappa", rule=rule, order=order) for order in ("given", "swapped", "both")}
        assert [round(kappas[order]["value"], 3) for order in ("given", "swapped", "both")] == [0.878, 0.897, 0.887]
    assert ran.figure("parser_agreement")["k"] == 200
    assert ran.figure("calls", rule="stored")["value"] == 2.0
    (judge,) = ran.document["judges"]
    (source,) = judge["replayed"]
    assert source["not_reproduced"] == {"stored": {}, "parsed": {}}
    assert source["published"]["correct_both"].startswith("90 / 100")
    assert ran.document["panel"] is None
    assert not Path(".distract").exists(), "no model, no run folder"


@published
def test_six_runs_of_one_set_print_every_table(run: Any) -> None:
    paths = [
        NATURAL / judge / protocol / "result.json"
        for judge in ("GPT-4", "ChatGPT", "LLaMA2")
        for protocol in ("CoT", "Vanilla")
    ]
    ran = run("meta", *(part for path in paths for part in ("--judge", f"replay:{path}")), "--verbose")
    assert (ran.code, ran.err) == (0, "")
    fits(ran.out)
    for said in (
        "judge ChatGPT",
        "judge GPT-4",
        "judge LLaMA2",
        "over both orders, in %",
        "CoT by stored 94.5 88.7–97.9 189/200 n.s.",
        "CoT by parsed 94.5",
        "right in both orders 90.0",
        "kappa, given 0.878",
        "kappa, swapped 0.897",
        "self-agreement (alpha) 0.817",
        "equal verdicts 91.0",
        "first slot preferred 51.5 48.0–55.0 103/200",
        "published: accuracy 94.5",
        "published: both orders 90.0",
        "published: equal 91.0",
        "calls 2.0",
        "p: exact test, after Holm",
        "CoT by stored – Vanilla by stored -7.0",
        "CoT on Natural, by stored: the counts are as published",
        "CoT on Natural: kappa was published as 0.264 and 0.263 (given, swapped), which is not Cohen's",
        "Protocols over 3 judges: accuracy in %, gains over Vanilla in points",
        "Vanilla 85.8 1.0 0.0 0.0 best: GPT-4, 95.5 CoT 81.5 2.0 -1.0 -5.0 best: GPT-4, 94.5",
        "Over 3 judges and the 100 comparisons that all of them have, Vanilla matches the label most often: 85.8%",
        "GPT-4 is the most accurate judge: 95.5% under Vanilla.",
        "strong: the better half of the judges; weak: the other half of the judges",
        "Judges, most accurate first",
        "GPT-4 95.5 95.0 strong",
        "Largest gain over Vanilla on the same verdicts",
        "ChatGPT: CoT -7.0 -12.4 to -1.5 worse 0.017",
        "Rank correlation (Spearman) of accuracies",
        "Vanilla and mean: 0.500 (n = 3)",
        "Difficulty: share of all verdicts that are right, over 100 comparisons",
        "never right 0, always right 33",
    ):
        assert said in ran.words, said
    folder = run("meta", "--judge", f"replay:{LLMBAR / 'Natural'}", "--verbose")
    assert folder.out == ran.out, "a folder holds the same runs"
    chosen = run("meta", "--judge", f"replay:{LLMBAR / 'Natural'}", "--base", "CoT")
    assert "Vanilla by stored 81.5 75.0–86.9 163/200 better" in chosen.words
    assert "ChatGPT: Vanilla 7.0 1.5–12.4 better 0.017" in chosen.words


@published
def test_thirty_runs_match_published_results_except_one_refusal(run: Any) -> None:
    ran = run("meta", "--judge", f"replay:{LLMBAR}", "--json")
    assert (ran.code, ran.err) == (0, "")
    document = ran.document
    sources = [(judge["judge"], one) for judge in document["judges"] for one in judge["replayed"]]
    assert len(sources) == 30
    assert all(one["not_reproduced"].keys() == {"stored", "parsed"} for _, one in sources)
    differ = {
        (judge, one["protocol"], one["data"], rule): names
        for judge, one in sources
        for rule, names in one["not_reproduced"].items()
        if names
    }
    assert differ.keys() == {("LLaMA2", "CoT", "GPTInst", "parsed")}
    (names,) = differ.values()
    assert names.keys() == {"correct_True", "correct_average"}
    assert names["correct_True"]["ours"].startswith("32 / 92 = ")
    assert names["correct_True"]["published"].startswith("33 / 92 = ")
    panel = document["panel"]
    assert [one["protocol"] for one in panel["protocols"]] in (["CoT", "Vanilla"], ["Vanilla", "CoT"])
    assert sum(one["between"] == "data sets" for one in panel["correlations"]) == 10
    assert {one["n"] for one in panel["correlations"] if one["between"] == "data sets"} == {6}
    assert panel["difficulty"]["n"] == sum(panel["difficulty"]["bins"]) == 419
    for judge in ("GPT-4", "ChatGPT", "LLaMA2"):
        whole = ran.figure("published_accuracy", judge=judge, protocol="CoT", rule="stored", data=None)
        sets = [
            ran.figure("published_accuracy", judge=judge, protocol="CoT", rule="stored", data=data)
            for data in ("Natural", "GPTInst", "GPTOut", "Manual", "Neighbor")
        ]
        assert (whole["k"], whole["n"]) == (sum(one["k"] for one in sets), 838)


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
    judges, sets = ("GPT-4", "ChatGPT", "LLaMA2"), ("Natural", "GPTInst", "GPTOut", "Manual", "Neighbor")
    assert {(one.judge, one.protocol, one.data) for one in llmbar} == {*product(judges, ("Vanilla", "CoT"), sets)}
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


def test_llmbar_runs_join_their_data_sets(llmbar: Sequence[PublishedRun]) -> None:
    paths = {path.parent.name: path for path in (SHARED / "llmbar").rglob("dataset.json")}
    sets = {name: datasets.load(str(path)).cases for name, path in paths.items()}
    for one in llmbar:
        assert replay.attach_labels(one, sets) == one


@pytest.mark.parametrize("rule", ["stored", "parsed"])
def test_inconsistency_counts_of_both_judges_match_the_paper(pairs: Sequence[PublishedRun], rule: str) -> None:
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
