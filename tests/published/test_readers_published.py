"""Test readers of published sets: golden files in the true schemas, errors in rows, whole real sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distract.data.datasets import load

SHARED = Path(__file__).parents[3] / "shared" / "data"


def needs(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip(f"needs {SHARED / name}")
    return SHARED / name


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
