"""Test published data sets: they load as published, and their constraints, rewrites and verdicts are read."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_attacks import by_distractor
from test_attacks_slow import find_rejections

from distract.core.attack import Attack
from distract.data.constraints import check, describe, list_kinds, parse
from distract.data.datasets import load
from distract.data.good_responses import compliant_response
from distract.judging.parsers import BRACKETS, OUTPUT

SHARED = Path(__file__).parents[3] / "shared" / "data"
IFEVAL = SHARED / "ifeval"
needs_ifeval = pytest.mark.skipif(not IFEVAL.is_dir(), reason=f"IFEval's data are not in {IFEVAL}")


def needs(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}")
    return SHARED / name


@pytest.mark.parametrize(
    ("folder", "rows"),
    [("Natural", 100), ("Adversarial/GPTInst", 92), ("Adversarial/GPTOut", 47), ("Adversarial/Manual", 46),
     ("Adversarial/Neighbor", 134), ("MT-Bench", 200)],
)  # fmt: skip
def test_llmbar_loads_as_published(folder: str, rows: int) -> None:
    path = needs("llmbar") / folder / "dataset.json"
    cases = load(str(path)).cases
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (len(cases), [c.preferred for c in cases]) == (rows, [f"output_{r['label']}" for r in raw])
    assert [c.responses[1].turns for c in cases] == [(r["output_2"],) for r in raw]
    if folder == "MT-Bench":
        assert len({c.cluster for c in cases}) == 75


@needs_ifeval
def test_real_ifeval_data_load_completely() -> None:
    loaded = load(f"ifeval:{IFEVAL / 'input_data.jsonl'}", [str(IFEVAL / "responses_gpt4.jsonl")])
    assert loaded.size == 541
    assert loaded.left_out == {"the prompt has no response": 2, "a response matches no prompt": 1}
    assert sum(compliant_response(case) is not None for case in loaded.cases) == 422
    rows = [json.loads(line) for line in (IFEVAL / "input_data.jsonl").read_text(encoding="utf-8").splitlines()]
    prompts = {f"ifeval-{row['key']}": row["prompt"] for row in rows}
    shorter = [case for case in loaded.cases if case.prompt[0] != prompts[case.id]]
    assert 300 < len(shorter) < 380
    for case in shorter:
        assert set(case.prompt[0].split()) <= set(prompts[case.id].split())


BY_LANGUAGE = [
    (202, "change_case:english_lowercase", "ours True, theirs False"),
    (1843, "change_case:english_lowercase", "ours True, theirs False"),
    (2341, "change_case:english_capital", "ours True, theirs False"),
    (2571, "change_case:english_capital", "ours True, theirs False"),
    (3456, "change_case:english_capital", "ours True, theirs False"),
]
"""Texts of a few words or names whose language the original guesses wrong; we do not guess it."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (IFEVAL / name).read_text(encoding="utf-8").splitlines()]


@needs_ifeval
def test_every_ifeval_constraint_parses_and_has_a_description() -> None:
    for row in rows("input_data.jsonl"):
        for kind, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            assert describe(parse({"kind": kind, **arguments}))


@needs_ifeval
def test_constraints_agree_with_the_original_checkers() -> None:
    prompts = {row["prompt"]: row for row in rows("input_data.jsonl")}
    reworded = next(row for row in prompts.values() if row["key"] == 1174)
    labels, disagreements = Counter[str](), list[tuple[int, str, str]]()
    for result in rows("eval_results_strict_gpt4.jsonl"):
        prompt = prompts.get(result["prompt"], reworded)
        assert prompt["instruction_id_list"] == result["instruction_id_list"]
        results = zip(prompt["instruction_id_list"], prompt["kwargs"], result["follow_instruction_list"], strict=True)
        for kind, arguments, follows in results:
            labels[kind] += 1
            ours = check(parse({"kind": kind, **arguments}), result["response"])
            if ours is not follows:
                disagreements.append((prompt["key"], kind, f"ours {ours}, theirs {follows}"))
    assert (labels.total(), set(labels)) == (832, set(list_kinds()))
    assert len(disagreements) <= 0.01 * labels.total()
    assert sorted(disagreements) == BY_LANGUAGE


def test_real_pandalm_set_loads() -> None:
    path = needs("pandalm") / "testset-v1.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    dataset = load(str(path))
    assert (dataset.format, dataset.size, len(dataset.cases)) == ("pandalm", 999, 993)
    assert dataset.left_out == {"a response is true or false and no text": 6}
    by_id = {case.id: case for case in dataset.cases}
    for row in rows:
        case = by_id.get(f"item-{row['idx']}")
        texts = [row["response1"], row["response2"]]
        if case is None:
            assert not all(isinstance(text, str) for text in texts)
            continue
        assert [response.text for response in case.responses] == texts
        # An equivalent definition: the majority of three votes is the middle one after sorting.
        votes = sorted(row[f"annotator{number}"] for number in (1, 2, 3))
        assert case.preferred == ("tie", "response1", "response2")[votes[1]]
        assert case.prompt[0] in (row["input"], row["instruction"], f"{row['instruction']}\n\n{row['input']}")


def test_real_mt_bench_loads() -> None:
    folder = needs("mt_bench")
    dataset = load(str(folder))
    assert (dataset.name, dataset.size, len(dataset.cases), dataset.left_out) == ("mt_bench", 80, 80, {})
    assert {len(case.responses) for case in dataset.cases} == {10}
    assert len({case.source for case in dataset.cases}) == 8
    assert sum(bool(case.reference) for case in dataset.cases) == 30
    # llama-13b has one answer with an empty turn.
    blank = [r.author for case in dataset.cases for r in case.responses if not all(r.turns)]
    assert blank == ["llama-13b"]
    for name in ("gpt-4", "llama-13b"):
        lines = (folder / "model_answer" / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        raw = {row["question_id"]: row["choices"][0]["turns"] for row in map(json.loads, filter(None, lines))}
        for case in dataset.cases:
            (answer,) = (r for r in case.responses if r.author == name)
            assert list(answer.turns) == raw[int(case.id.removeprefix("question-"))]


def test_real_answers_of_six_models_load() -> None:
    dataset = load(str(needs("mtbench_judges6")))
    assert (len(dataset.cases), {len(case.responses) for case in dataset.cases}) == (80, {6})
    assert {case.cluster for case in dataset.cases} <= {case.cluster for case in load(str(needs("mt_bench"))).cases}


@by_distractor
def test_most_rewrites_of_natural_answers_pass(attack: Attack) -> None:
    rows = json.loads((needs("llmbar") / "Natural" / "dataset.json").read_text(encoding="utf-8"))
    total, failures = find_rejections(attack, ((r["input"], r[f"output_{r['label']}"], ()) for r in rows))
    assert total == 100
    assert len(failures) <= 15, failures


def test_published_winners_of_llmbar_are_parsed() -> None:
    files = sorted(needs("llmbar").rglob("evaluators/*/*/result.json"))
    missed, n = [], 0
    for item in (item for file in files for item in json.loads(file.read_text(encoding="utf-8"))):
        material = (item["output_1"], item["output_2"], item["input"])
        for order, winners in (("swap = False", "ab"), ("swap = True", "ba")):
            stored_result = item["results"][-1][order]
            text, end = stored_result["completion"][:2]
            verdict = OUTPUT.read(text, ("a", "b"), material, cut=end == "length")
            winner = str(winners.index(verdict) + 1) if verdict else None
            n += 1
            if winner != stored_result["winner"]:
                missed.append((text, winner))
    assert n > 5000
    # The row whose published winner its judge did not give.
    ((text, winner),) = missed
    assert winner is None
    assert "I cannot claim that either Output (a) or Output (b) is better" in text


def test_published_winners_of_mtbench_are_parsed() -> None:
    files = sorted((needs("mtbench_judges6") / "judgments").glob("*/pairwise/*"))
    n = 0
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        item = json.loads(line)
        for order in ("ab", "ba"):
            n += 1
            verdict = BRACKETS.read(item[f"judgment_{order}"], ("A", "B", "C"))
            assert {"C": "tie"}.get(verdict or "", verdict) == item[f"winner_{order}"], item[f"judgment_{order}"]
    assert n > 4000
