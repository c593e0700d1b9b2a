"""Test ``distract rewrite``: its records, and that a run with them equals a run that writes by itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, finish, set_up
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import DataError
from distract.core.records import Case, Lineage, Reply, Request, Response, Rewrite, Role
from distract.core.usage import Tally
from distract.data import datasets
from distract.data.formats import native
from distract.data.good_responses import pairs
from distract.data.tables import read_table
from distract.models.scripted import ScriptedBackend, make_planted, share
from distract.rewriting import verifier as verifier_module
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import WRITERS, rewrite
from distract.studies.attack import session
from distract.studies.make import rewrites as rewrites_module

ATTACKS = ("assertiveness", "sycophancy", "severity-1", "severity-2+assertiveness")
ASKING = GeneratorOptions(retries=1, best_of=2)


def write(request: Request) -> Reply:
    """A writer that is sometimes faithful: it adds a booster, drops a number, comments or is truncated."""
    user = request.messages[1].content
    text = user.partition("# Response to rewrite\n")[2].partition("\n\n# Format")[0]
    draw = share("writer", request.key)
    if "break each" in user:
        return Reply(text.replace("<<", "").replace("*", "") if draw < 0.7 else text)
    message = (
        text.replace("probably", "certainly").replace("I think ", "Clearly ") + " Thank you so much, please enjoy!"
    )
    if draw > 0.6:
        return Reply(message[:-30], finish="length")
    return Reply(message if draw < 0.3 else f"Here is the rewritten text: {message}")


def doubt(request: Request) -> Reply:
    yes = 0.35 + share("verifier", request.key)
    return Reply(probabilities=(min(yes, 1.0), max(0.0, 1.0 - yes)), mass=1.0, finish="choices")


def models() -> dict[Role, Backend]:
    return {"generator": ScriptedBackend(write, name="w"), "verifier": ScriptedBackend(doubt, name="v")}


def record(path: Path, tally: Tally | None = None) -> Sequence[Rewrite]:
    """Write six cases with their rewrites to a file."""
    selected = session.select(
        data="tweakset", attacks=ATTACKS, generator="w", asking=ASKING, verifier="v", models=models(), limit=6
    )
    return finish(rewrites_module.prepare(selected, path), path.with_suffix(".sqlite"), tally).result.rewrites


def test_every_rewrite_has_its_lineage(tmp_path: Path) -> None:
    rewrites = record(tmp_path / "f.jsonl")
    cases = datasets.load(str(tmp_path / "f.jsonl")).cases
    assert "".join(f"{native.format_line(one)}\n" for one in cases) == (tmp_path / "f.jsonl").read_text(
        encoding="utf-8"
    )
    lineages = [(one.id, lineage) for one in cases for lineage in one.lineages]
    assert Counter((name, one.response) for name, one in lineages) == Counter((r.case, r.response) for r in rewrites)
    for _, lineage in lineages:
        assert (lineage.generator, dict(lineage.model)["model"], len(lineage.prompt)) == ("w", "w", 64)
        verified = {"verifier": "v", "verifier_prompt": verifier_module.PROMPT.checksum}
        assert dict(lineage.parameters) == {**ASKING.parameters, "seed": 0, **verified}
        assert "attempts" in dict(lineage.evidence)
    by_attack = {(lineage.response.attack, lineage.prompt) for _, lineage in lineages}
    assert len({prompt for _, prompt in by_attack}) == 3


def test_both_sides_are_rewritten_and_severities_are_not_pairs(tmp_path: Path) -> None:
    record(tmp_path / "f.jsonl")
    for one in datasets.load(str(tmp_path / "f.jsonl")).cases:
        before = next(c for c in datasets.load("tweakset").cases if c.id == one.id)
        assert pairs(one) == pairs(before)
        new = {(r.author, r.severity, r.attack) for r in one.responses}
        assert {("good", None, "assertiveness"), ("low-1", 1, "assertiveness"), ("good", 1, None)} <= new


def test_second_call_with_the_same_store_asks_nothing(tmp_path: Path) -> None:
    first, second = Tally(), Tally()
    record(tmp_path / "f.jsonl", first)
    content = (tmp_path / "f.jsonl").read_bytes()
    record(tmp_path / "f.jsonl", second)
    assert (first.made > 0, second.made, content) == (True, 0, (tmp_path / "f.jsonl").read_bytes())
    assert not list(tmp_path.glob("*.part"))


def test_old_rewrites_of_the_same_attack_are_replaced() -> None:
    x, old, new = Response("x", ("a",)), Response("x", ("b",), "f"), Response("x", ("c",), "f")
    other = Response("x", ("d",), "g")
    one = replace(case(responses=[x, old, other]), lineages=(Lineage(old, "w"), Lineage(other, "w")))
    changed = rewrites_module.add_rewrites(one, [Lineage(new, "v")])
    assert (changed.responses, changed.lineages) == ((x, other, new), (Lineage(other, "w"), Lineage(new, "v")))


VALUES = st.one_of(st.integers(-9, 9), st.floats(-1, 1), st.text("ab[] é", max_size=6))
PAIRS = st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=3).map(lambda d: tuple(d.items()))
NAMES = st.text("xyz", min_size=1, max_size=4)


@given(NAMES, PAIRS, PAIRS, st.lists(st.text("ab:[", min_size=1, max_size=5), max_size=3))
def test_lineage_round_trips(generator: str, parameters: tuple, evidence: tuple, reasons: list[str]) -> None:  # type: ignore[type-arg]
    response = Response("x", ("text",), "prolixity")
    model = (("engine", "e"),)
    lineage = Lineage(response, generator, model, "0" * 64, parameters, tuple(reasons), evidence)
    one = Case("c", ("p",), (Response("x", ("t",)), response), lineages=(lineage,))
    (back,) = native.read(read_table(native.format_line(one).encode(), "f"))
    assert back == one


@each(
    "lineage, says",
    ([], r"f:1: field 'responses\[0\]\.lineage': expected an object"),
    ({}, r"'responses\[0\]\.lineage\.generator': missing"),
    ({"generator": "w", "modle": {}}, r"lineage\.modle': unknown field"),
    ({"generator": "w", "reasons": "cut"}, r"lineage\.reasons': expected a list"),
    ({"generator": "w", "reasons": [1]}, r"lineage\.reasons\[0\]': expected text"),
    ({"generator": "w", "evidence": {"a": None}}, r"lineage\.evidence\.a': expected a number or text"),
    ({"generator": "w", "evidence": {"a": True}}, r"expected a number or text, found true or false"),
    ({"generator": "w", "model": {"a": 1}}, r"expected text"),
    ({"generator": "w\u001b[31m"}, r"control characters"),
    ({"generator": "w", "evidence": {"\ud800": 1}}, r"surrogate"),
)
def test_wrong_lineage_is_one_clear_line(lineage: object, says: str) -> None:
    raw = {"id": "c", "prompt": "p", "responses": [{"author": "x", "text": "t", "lineage": lineage}]}
    with pytest.raises(DataError, match=says):
        list(native.read(read_table(json.dumps(raw).encode(), "f")))


def test_oversized_number_is_refused() -> None:
    raw = '{"id": "c", "prompt": "p", "responses": [{"author": "x", "text": "t", "lineage": %s}]}'
    with pytest.raises(DataError, match=r"evidence\.a': expected a finite number"):
        list(native.read(read_table((raw % '{"generator": "w", "evidence": {"a": 1e999}}').encode(), "f")))


@each("name", "transformers:../../models/qwen", "transformers:/" + "x" * 300)
def test_generator_may_be_a_path(name: str) -> None:
    response = Response("x", ("text",), "prolixity")
    one = Case("c", ("p",), (Response("x", ("t",)), response), lineages=(Lineage(response, name),))
    assert list(native.read(read_table(native.format_line(one).encode(), "f"))) == [one]


def test_rejected_rewrites_are_recorded(tmp_path: Path) -> None:
    """No severity text is accepted, so no pair can be attacked; both ways to run record the same rewrites."""
    opened: dict[Role, Backend] = {"generator": ScriptedBackend(lambda request: "No.", name="w")}
    options: dict[str, Any] = {"attacks": ("severity-2+sycophancy",), "limit": 3, "seed": 0}
    writing = session.select(
        data="tweakset", generator="w", models=opened, asking=GeneratorOptions(retries=0), **options
    )
    finish(rewrites_module.prepare(writing, tmp_path / "f.jsonl"), tmp_path / "s")
    again = session.select(data=str(tmp_path / "f.jsonl"), generator="recorded", **options)
    for selected, out in ((writing, "one"), (again, "two")):
        setup = set_up("planted:fair", make_planted("fair"), tmp_path / out, helpers=selected.models)
        done = finish(session.prepare(selected, setup), tmp_path / "s")
        assert not any(row.judgments for row in done.run.rows)
    assert (tmp_path / "one" / "rewrites.jsonl").read_bytes() == (tmp_path / "two" / "rewrites.jsonl").read_bytes()


def test_severity_of_any_name_has_its_lineage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = registry.attacks()
    worse = replace(known["severity-1"], name="worse")
    monkeypatch.setattr(registry, "attacks", lambda: {"worse": worse, **known})
    opened: dict[Role, Backend] = {"generator": ScriptedBackend(write, name="w")}
    selected = session.select(data="tweakset", attacks=("worse",), generator="w", models=opened, limit=2)
    finish(rewrites_module.prepare(selected, tmp_path / "f.jsonl"), tmp_path / "s")
    cases = datasets.load(str(tmp_path / "f.jsonl")).cases
    assert worse.prompt is not None
    assert {lineage.prompt for one in cases for lineage in one.lineages} == {worse.prompt.checksum}


def test_derivatives_of_a_replaced_text_are_removed() -> None:
    x, low, louder = Response("x", ("a",)), Response("x", ("b",), None, 1), Response("x", ("b!",), "f", 1)
    new = Response("x", ("c",), None, 1)
    changed = rewrites_module.add_rewrites(case(responses=[x, low, louder]), [Lineage(new, "v")])
    assert changed.responses == (x, new)


def test_controls_are_not_verified() -> None:
    one = case(responses=[Response("x", ("Two  spaces are here.",))])
    null = registry.attacks()["null"]
    result, rounds = drive(
        rewrite(WRITERS["rules"], one, one.originals[0], null, 0, verifier_module.make_verifier("v")), doubt
    )
    assert result is not None
    assert (result.is_accepted, rounds) == (True, [])
