"""Test the controls and the estimate of ``distract meta``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_meta import PLANTED, add_spaces, fair, find, long, measure, ready, run

from distract.core.records import RESAMPLED, UNCHANGED, Row
from distract.core.usage import Tally
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend
from distract.studies.estimate import estimate

# Controls.


def by_attack(rows: Sequence[Row], protocol: str) -> dict[str, list[Row]]:
    return {
        attack: [row for row in rows if (row.protocol, row.attack) == (protocol, attack)]
        for attack in ("none", "null", RESAMPLED)
    }


@pytest.mark.parametrize("samples", [1, 3])
def test_controls_repeat_the_same_pairs(tmp_path: Path, samples: int) -> None:
    names, manner = ["base", "cot", "cot-consistency"], Manner(samples=samples)
    job = ready(tmp_path, "random", [*map(add_spaces, PLANTED[:4])], names, control=True, manner=manner)
    loaded = run(job)
    for name in names:
        sampled = name == "cot-consistency" or (name, samples) == ("cot", 3)
        rows = by_attack(loaded.rows, name)
        for before, null, again in zip(*rows.values(), strict=True):
            assert (before.a.attack, before.b.attack, null.a.attack, null.b.attack) == (None, None, "null", "null")
            assert null.target is again.target is None
            assert null.excluded is None
            assert not {*null.keys} & {*before.keys}
            assert (null.label, null.shown, null.cluster) == (before.label, before.shown, before.cluster)
            assert again.excluded == (None if sampled else "nothing is sampled")
            assert not sampled or not {*again.keys} & {*before.keys}
        figure = find(measure(loaded), "verdict_change_rate", name, attack=RESAMPLED, data="d.jsonl")
        assert (figure.n, figure.excluded) == ((4, 0) if sampled else (0, 4))
    assert loaded.parameters["controls"] == ["null", RESAMPLED]
    assert [one.response.author for one in loaded.rewrites] == ["x", "y"] * 4
    assert {f.attack for f in measure(loaded)} == {"none", "null", RESAMPLED}
    assert find(measure(loaded), "accuracy", "base").n == 8, "controls are in no other figure"


@pytest.mark.parametrize("reads_slots", [True, False])
@pytest.mark.parametrize("samples", [1, 3])
def test_control_without_changes_does_not_prove_consistency(tmp_path: Path, samples: int, reads_slots: bool) -> None:
    """A control needs one changed response; a pair without any change would be answered from the store."""
    cases = [PLANTED[0], add_spaces(PLANTED[1], "x"), add_spaces(PLANTED[2], "y"), add_spaces(PLANTED[3]), PLANTED[4]]
    names, tally = ["base", "cot", "cot-consistency", "absolute"], Tally()
    judge = ScriptedBackend(fair, reads_slots=reads_slots)
    job = ready(tmp_path, judge, cases, names, control=True, manner=Manner(samples=samples))
    loaded = run(job, tally=tally)
    for name in names:
        rows = by_attack(loaded.rows, name)
        assert [row.excluded for row in rows["none"]] == [None] * 5
        assert [row.excluded for row in rows["null"]] == [UNCHANGED, None, None, None, UNCHANGED]
        for before, null in zip(rows["none"], rows["null"], strict=True):
            assert null.keys != before.keys
            if null.excluded is None:
                assert len(null.judgments) == len(before.judgments)
            else:  # equal to the pair before any control, and not judged
                same = replace(null, attack="none", excluded=None)
                assert same == replace(before, judgments=(), keys=(), tokens=(), shown=())
        for rule in ("score", "rating") if name == "absolute" else (None,):
            figure = find(measure(loaded), "verdict_change_rate", name, attack="null", rule=rule)
            assert (figure.k, figure.n, figure.excluded) == (0, 3, 2)
    assert UNCHANGED == "the control changes nothing in it"
    # The slots that a scripted judge reads are part of its request.
    assert reads_slots or tally.made == len({key for row in loaded.rows for key in row.keys}), "nothing is asked twice"
    assert find(measure(loaded), "accuracy", "base").n == 10, "the pair itself is measured"


# Resuming, reading back, estimating.


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["base", "pairwise", "pointwise"], {}),
        (["pairwise", "absolute"], {"control": True}),
        (["cot", "prepair", "metric"], {"manner": Manner("given", samples=2), "control": True}),
    ],
)
@pytest.mark.parametrize("number", [3, 10, 40])
def test_estimate_equals_requests_sent(tmp_path: Path, names: list[str], more: dict[str, Any], number: int) -> None:
    cases = [long(i, "xy"[i % 2]) for i in range(number)]
    # This judge reads texts: a text that a control leaves unchanged is not judged again.
    job = ready(tmp_path, ScriptedBackend(fair, reads_slots=False), cases, names, **more)
    expected, tally = estimate(job), Tally()
    loaded = run(job, tally=tally)
    assert sum(expected.requests.values()) == pytest.approx(tally.made, rel=0.05)
    assert [*expected.requests] == sorted(names)
    assert expected.comparisons == sum(bool(row.judgments) for row in loaded.rows)
    assert expected.rewrites == len(loaded.rewrites)
    keys = {name: {key for row in loaded.rows if row.protocol == name for key in row.keys} for name in names}
    assert expected.requests == pytest.approx(
        {name: len(request_keys) for name, request_keys in keys.items()}, rel=0.05
    )
