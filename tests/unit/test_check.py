"""Test ``distract check``: labelled sets, both error rates, two files, and errors in a file."""

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loops import each

from distract.core.errors import DataError, PluginError, UnknownName, UsageError
from distract.core.registry import attacks
from distract.rewriting.fidelity.facts import new_content_share
from distract.studies.check.audit import (
    RewritePair,
    check_files,
    check_labelled,
    check_pair,
    error_rates,
    labelled_document,
    pair_document,
)
from distract.studies.differences import mark_difference

DATA = Path(__file__).parents[1] / "data"
DEVELOPED = DATA / "labelled.jsonl"
"""240 rewrites; the rules were developed on them."""

HELD_OUT = DATA / "held_out.jsonl"
"""96 rewrites written afterwards, on which no rule was developed: their error rates are the ones to quote."""


KINDS = {"number", "name", "negation", "dropped-condition", "added-claim", "corrected-error", "order", "comparison"}

ROW: dict[str, Any] = {
    "prompt": "How long does it take?",
    "original": "I think the trip usually takes 3 hours.",
    "rewrite": "The trip always takes 3 hours, without any doubt.",
    "style": "assertiveness",
    "label": "faithful",
    "kind": "faithful",
}


def rates(path: Path) -> dict[tuple[str, str | None, str | None], tuple[int, int]]:
    return {(r.measure, r.style, r.kind): (r.k, r.n) for r in error_rates(check_labelled(path))}


@each("path, size", (DEVELOPED, 240), (HELD_OUT, 96))
def test_labelled_sets_are_half_faithful_in_three_styles(path: Path, size: int) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    labels = Counter((row["label"], row["style"]) for row in rows)
    assert len(rows) == size
    assert set(labels.values()) == {size // 6}
    kinds = Counter(row["kind"] for row in rows if row["label"] == "changed")
    assert kinds.keys() == KINDS
    assert len({row["original"] for row in rows}) == size
    assert not {row["original"] for row in rows if row["original"] == row["rewrite"]}


def test_new_content_limits_admit_faithful_paraphrases() -> None:
    rows = [json.loads(line) for path in (DEVELOPED, HELD_OUT) for line in path.read_text("utf-8").splitlines()]
    for name, attack in attacks().items():
        shares = [
            new_content_share(row["original"], row["rewrite"])
            for row in rows
            if row["style"] == name and row["label"] == "faithful"
        ]
        if shares:
            assert attack.max_new_content is not None
            assert sum(share > attack.max_new_content for share in shares) <= 0.05 * len(shares)


def test_rates_are_given_by_style_by_kind_and_by_both(tmp_path: Path) -> None:
    changed = {**ROW, "label": "changed", "kind": "number", "rewrite": "The trip always takes 4 hours, no doubt."}
    missed = {**ROW, "label": "changed", "kind": "added-claim", "style": "sycophancy"}
    missed["rewrite"] = "What a lovely question! I think the trip usually takes 3 hours, and it is scenic. Thank you!"
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ROW, changed, missed)), encoding="utf-8")
    rates_by_style = rates(path)
    assert rates_by_style["false_rejection_rate", None, None] == (0, 1)
    assert rates_by_style["missed_change_rate", None, None] == (1, 2)
    assert rates_by_style["missed_change_rate", "sycophancy", "added-claim"] == (1, 1)
    assert rates_by_style["missed_change_rate", "assertiveness", None] == (0, 1)
    document = labelled_document(check_labelled(path))
    assert [(one["line"], one["label"], one["kind"]) for one in document["mistakes"]] == [(3, "changed", "added-claim")]
    assert {"measure", "style", "kind", "value", "low", "high", "k", "n", "unit"} == document["results"][0].keys()


@each(
    "style, name",
    ("assertive", "assertiveness"),
    ("Prolix", "prolixity"),
    ("sycophantic", "sycophancy"),
    ("null", "null"),
)
def test_style_may_be_an_adjective(style: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({**ROW, "style": style}), encoding="utf-8")
    (one,) = check_labelled(path)
    assert one.checked.pair.attack is not None
    assert (one.checked.pair.attack.name, one.style) == (name, style)


@each(
    "change, problem",
    ({"label": "maybe"}, "field 'label': expected faithful or changed, found 'maybe'"),
    ({"style": "shouty"}, "field 'style': unknown attack 'shouty'"),
    ({"original": 3}, "field 'original': expected text"),
    ({"rewrite": None}, "field 'rewrite': expected text"),
    ({"prompt": []}, "field 'prompt': is an empty list"),
    ({"label": "changed", "kind": " "}, "field 'kind': is blank"),
    ({"constraints": [{"kind": "x"}]}, "field 'constraints[0].kind': unknown kind 'x'"),
    ({"constraints": ["x"]}, "field 'constraints[0]': expected an object"),
)
def test_labelling_errors_are_named(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, **change}) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        check_labelled(path)
    assert f"{path}:2" in str(caught.value)
    assert problem in str(caught.value)


def test_two_files_are_checked_with_all_known_facts(tmp_path: Path) -> None:
    original, rewrite, prompt = tmp_path / "a", tmp_path / "b", tmp_path / "p"
    original.write_text("Ewa thinks that the trip takes 3 hours.\n", encoding="utf-8")
    rewrite.write_text("Certainly, the trip takes 4 hours, Tom.\n", encoding="utf-8")
    prompt.write_text("How long, Tom?", encoding="utf-8")
    document = pair_document(check_files(original, rewrite))
    assert document["facts"]["number"] == {"kept": (), "lost": ("3",), "invented": ("4",)}
    assert document["facts"]["name"]["invented"] == ("tom",)
    assert not document["accepted"]
    arguments = pair_document(
        check_files(original, rewrite, prompt, "assertiveness", ['{"kind": "punctuation:no_comma"}'])
    )
    assert arguments["facts"]["name"]["invented"] == ()
    assert arguments["facts"]["format"] == {"kept": (), "lost": ("punctuation:no_comma",), "invented": ()}
    assert "constraint broken: punctuation:no_comma" in arguments["reasons"]
    assert arguments["evidence"]["marker_after"] > arguments["evidence"]["marker_before"]


def test_severity_check_counts_broken_constraints(tmp_path: Path) -> None:
    original, worse = tmp_path / "a", tmp_path / "b"
    original.write_text("red is a colour", encoding="utf-8")
    worse.write_text("red, is a colour", encoding="utf-8")
    no_comma = ['{"kind": "punctuation:no_comma"}']
    assert check_files(original, worse, None, "severity-1", no_comma).reasons == ()
    assert check_files(original, worse, None, "severity-2", no_comma).reasons != ()
    worse.write_text("", encoding="utf-8")
    assert check_files(original, worse).reasons == ("empty",)


@each("line", "a\nb\n", "the a the b\n", "x y x\n")
def test_difference_of_long_repetitive_texts_is_bounded(line: str) -> None:
    text = line * (100_000 // len(line))
    # No timing is needed: an unbounded search would not end within any acceptable wait.
    assert str(mark_difference(text, f"{text}c")).endswith(("c+}", "{+c+}"))


@each(
    "attack, constraint, error",
    ("shouty", None, UnknownName),
    (None, "{", UsageError),
    (None, "[]", UsageError),
    (None, "{}", UsageError),
    (None, "[" * 9999, UsageError),
)
def test_wrong_option_is_one_line(attack: str | None, constraint: str | None, error: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a b", encoding="utf-8")
    with pytest.raises(error):
        check_files(tmp_path / "a", tmp_path / "a", None, attack, [constraint] if constraint else [])


@each("marker", lambda text: float("nan"), lambda text: sys.exit(0), lambda text: 1 / 0)
def test_errors_of_a_foreign_marker_are_reported(marker: Any) -> None:
    attack = replace(attacks()["prolixity"], name="theirs", marker=marker)
    with pytest.raises(PluginError, match="attack 'theirs' failed on the rewrite: "):
        check_pair(RewritePair(("Why?",), ("So.",), ("So it is.",), attack))
