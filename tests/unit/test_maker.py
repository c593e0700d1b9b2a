"""Test making data like the command: draw, generate, store with lineage, and use the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import finish, set_up

from distract.core.errors import UsageError
from distract.core.job import open_stores
from distract.core.records import Request
from distract.core.usage import Tally
from distract.data import datasets
from distract.models.scripted import ScriptedBackend, make_planted
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.attack import session
from distract.studies.make import maker
from distract.studies.make.rewrites import save

NO_COMMA = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}


def prompts(path: Path, *texts: str) -> str:
    lines = [{"key": number, "prompt": text, **NO_COMMA} for number, text in enumerate(texts)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"ifeval:{path}"


def compliant(request: Request) -> str:
    """A writer that meets most requirements: one text for each set of requirements."""
    prompt = request.messages[1].content.partition("# Format requirements\n")[2].partition("\n\n# Task")[0]
    text = "Bees make honey out of the nectar of flowers. They do it in summer and keep it for the winter."
    if "highlight" in prompt.lower():
        text = text.replace("honey", "*honey*").replace("summer", "*summer*")
    if "capital letters" in prompt and "at least 3" in prompt:
        text = text.replace("Bees make", "BEES MAKE SWEET")
    if "bullet" in prompt:
        text = "* Bees make honey\n* They do it in summer\n* They keep it for the winter"
    if "paragraph" in prompt:
        text = text.replace(". They", ".\n\n***\n\nThey")
    if "title" in prompt:
        text = f"<<Bees>>\n\n{text}"
    if "P.S." in prompt:
        text += "\n\nP.S. Wasps do not."
    if "anything else" in prompt:
        text += " Is there anything else I can help with?"
    if "quotation marks" in prompt:
        text = f'"{text}"'
    if "lowercase" in prompt:
        text = text.lower()
    return text.upper() if "only capital" in prompt or "all capital" in prompt.lower() else text


def test_tweakset_is_made_saved_and_attacked(tmp_path: Path) -> None:
    texts = [f"What do bees of kind {n} make and when do they make it? Do not use any commas." for n in range(12)]
    data = prompts(tmp_path / "p.jsonl", *texts, "Write a comma-free haiku")
    job = maker.tweakset_job(data, "w", GeneratorOptions(), None, 0)
    assert (len(job.plans), job.left_out) == (12, {"question and format cannot be told apart": 1})
    with open_stores({"generator": ScriptedBackend(compliant, name="w")}, tmp_path / "s") as models:
        cases, counts = maker.make_cases(job, models, Tally())
    assert counts["made"] == len(cases) > 5
    assert (counts["asked"], counts["severities"]["1"]) == (12, counts["made"])
    for case in cases:
        good, *worse = (case.lineage(response) for response in case.responses)
        assert good is not None
        assert (good.generator, dict(good.model)["model"], len(good.prompt)) == ("w", "w", 64)
        assert dict(good.parameters)["seed"] == 0
        assert {lineage.generator for lineage in worse if lineage} == {"rules"}
    save(cases, tmp_path / "t.jsonl")
    assert datasets.load(str(tmp_path / "t.jsonl")).cases == tuple(cases)
    selected = session.select(data=str(tmp_path / "t.jsonl"), attacks=("severity-1",))
    setup = set_up("planted:fair", make_planted("fair"), tmp_path / "run")
    done = finish(session.prepare(selected, setup), tmp_path / "s")
    summary = json.loads(done.run.summary or "")
    accuracy = [r for r in summary["results"] if r["measure"] == "severity_accuracy" and r["protocol"] == "pairwise"]
    assert [(r["k"], r["n"]) for r in accuracy] == [(len(cases), len(cases))]
    assert summary["data"]["cases"] == len(cases)


def test_pairs_are_made_from_references_alone(tmp_path: Path) -> None:
    answers = "Honey, which bees make from nectar.\n|||\nWhat bees make, from nectar that is, well, honey."
    raw = [
        {"id": "a", "prompt": "What do bees make?", "responses": [{"author": "x", "text": "Bees make honey."}]},
        {"id": "b", "prompt": ["Hi", "Bye"], "responses": [{"author": "x", "text": ["Hi.", "Bye."]}]},
        {"id": "c", "prompt": "Hi", "responses": [{"author": n, "text": f"Hi {n}."} for n in "xy"]},
    ]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in raw), encoding="utf-8")
    job = maker.pair_job(str(path), (), "w", GeneratorOptions(), None, None, 0)
    assert job.left_out == {"no response is known to be good": 1, "more than one turn": 1}
    with open_stores({"generator": ScriptedBackend(lambda request: answers, name="w")}, tmp_path / "s") as models:
        (case,), counts = maker.make_cases(job, models, Tally())
    assert (case.preferred, [r.author for r in case.responses]) == ("better", ["better", "worse"])
    assert (counts["made"], counts["mean_attempts"]) == (1, 1.0)
    assert all(lineage.generator == "w" for lineage in case.lineages)
    assert len(case.lineages) == 2


def test_unusable_data_for_making_cases_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    two = [{"author": n, "text": f"Hi {n}."} for n in "xy"]
    path.write_text(json.dumps({"id": "c", "prompt": "Hi", "responses": two}) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no case of one turn has a reference"):
        maker.pair_job(str(path), (), "w", GeneratorOptions(), None, None, 0)
    with pytest.raises(UsageError, match="cannot be told apart in any prompt"):
        maker.tweakset_job(prompts(tmp_path / "p.jsonl", "Write a comma-free haiku"), "w", GeneratorOptions(), None, 0)
