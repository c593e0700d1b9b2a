"""Test the summary of a test session: sums over processes in any order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.judging.findings import Decision, InvariantFinding
from distract.judging.judge import Judge
from distract.testing.summary import FLIPS, document, summary


def make_finding(k: int = 0, n: int = 10, decision: Decision = "pass", **more: Any) -> InvariantFinding:
    place = {"invariant": "swap_consistent", "protocol": "pairwise", "attack": "", "invalid": 0, "excluded": 0}
    bounds = {"threshold": None, "lower": None, "upper": None}
    return InvariantFinding(k=k, n=n, decision=decision, **{**place, **bounds, **more})


def make_report(
    *findings: InvariantFinding, name: str = "j", counts: tuple[int, ...] = (4, 2, 0, 0, 0)
) -> dict[str, Any]:
    """The report of a process about a judge."""
    rows = [{key: getattr(one, key) for key in InvariantFinding.__dataclass_fields__} for one in findings]
    return {"judge": name, "counts": list(counts), "findings": [{**row, "words": list(row["words"])} for row in rows]}


def lines(*documents: dict[str, Any], lost: int = 0) -> list[str]:
    return [" ".join(text.split()) for text in summary(documents, lost)]


def test_unused_judge_is_not_listed() -> None:
    assert summary([]) == summary([make_report(counts=(0,) * 5)], 3) == []


@each(
    "counts, message",
    ((1, 0, 0, 0, 0), "judge j: 1 call made, 0 saved by the store"),
    ((1200, 34, 0, 5000, 7), "judge j: 1,200 calls made, 34 saved by the store; 5,000 tokens in, 7 out"),
    ((0, 0, 2, 0, 0), "judge j: 0 calls made, 0 saved by the store, 2 without an answer"),
)
def test_calls_are_summarised(counts: tuple[int, ...], message: str) -> None:
    assert lines(make_report(counts=counts)) == [message]


def test_worker_counts_are_summed_and_crashes_counted() -> None:
    assert lines(make_report(), make_report(name="other"), make_report(), lost=1) == [
        "judge j: 8 calls made, 4 saved by the store",
        "judge other: 4 calls made, 2 saved by the store",
        "1 process crashed; calls made there are not counted",
    ]


def test_examples_share_one_row_and_each_rate_has_its_own() -> None:
    rate: dict[str, Any] = {"threshold": 0.1, "lower": 0.004, "upper": 0.2}
    singles = [
        make_finding(0, 1),
        make_finding(1, 1, "fail"),
        make_finding(0, 0, excluded=1),
        make_finding(0, 0, "inconclusive", invalid=1),
    ]
    searched = [make_finding(number % 2, 1, "fail" if number % 2 else "pass", searching=True) for number in range(5)]
    none = [make_finding(0, 1, searching=True, attack="prolixity")] * 1000
    assert lines(make_report(*singles, make_finding(1, 20, **rate), *searched, *none, make_finding(0, 30, **rate)))[
        2:
    ] == [
        "fail swap_consistent pairwise 1 of 2 50.0 none 1 invalid, 1 excluded",
        "pass swap_consistent pairwise 1 of 20 5.0 0.4–20.0 10.0",
        "pass swap_consistent pairwise 0 of 30 0.0 0.4–20.0 10.0",
        "fail swap_consistent pairwise counterexample found in 5 examples",
        "pass swap_consistent pairwise/prolixity none found in 1,000 examples",
    ]


def test_unjudgeable_cases_have_no_rate() -> None:
    assert lines(make_report(make_finding(0, 0, "inconclusive", excluded=3)))[2] == (
        "inconclusive swap_consistent pairwise 0 of 0 – none 3 excluded"
    )


def test_search_shows_its_smallest_change() -> None:
    changes = [('"a" -> "b"', '+ "c"'), ('"might" -> "must"',), ('"may" -> "must"',), ()]
    searched = [make_finding(1, 1, "fail", searching=True, words=words) for words in changes]
    assert lines(make_report(*searched))[-2:] == [
        "smallest changes that flip a verdict:",
        'swap_consistent pairwise: "may" -> "must"',
    ]


def test_number_of_changes_shown_is_bounded() -> None:
    rate: dict[str, Any] = {"threshold": 0.1, "lower": 0.2, "upper": 0.3}
    many = [make_finding(1, 1, "fail", words=(f"word {number:02}",), **rate) for number in range(FLIPS + 3)]
    output = lines(make_report(*many, *many))
    assert output[-2:] == ["swap_consistent pairwise: word 09", "and 3 more"]


def test_worker_report_is_printable_and_serialisable(tmp_path: Path) -> None:
    with Judge.open("planted:fair", store=tmp_path / "s") as judge:
        judge.name = "\x1b[31mj\ud800"
        bound: Any = np.float64(0.25)
        count: Any = np.int64(3)
        judge.findings.append(
            make_finding(count, 12, "fail", threshold=0.1, lower=bound, upper=bound, words=("a\nb\u202e",))
        )
        sent = document(judge.name, judge.tally, judge.findings)
    assert json.loads(json.dumps(sent)) == sent
    assert {type(value) for value in sent["findings"][0].values()} == {str, int, float, list, bool}
    text = "\n".join(summary([sent]))
    assert r"\x1b[31mj\ud800" in text
    assert r"a b\u202e" in text
    assert "\x1b" not in text


FINDINGS = st.builds(
    make_finding,
    st.integers(0, 3),
    st.integers(3, 9),
    st.sampled_from(["pass", "fail", "inconclusive"]),
    attack=st.sampled_from(["", "prolixity"]),
    threshold=st.sampled_from([None, 0.1]),
    searching=st.booleans(),
    words=st.sampled_from([(), ("a",), ("b", "c")]),
)


@given(st.lists(st.tuples(st.sampled_from("xy"), st.lists(FINDINGS, max_size=4)), max_size=4), st.randoms())
def test_worker_order_does_not_matter(seen: list[tuple[str, list[InvariantFinding]]], random: Any) -> None:
    documents = [make_report(*findings, name=name) for name, findings in seen]
    expected = summary(documents)
    random.shuffle(documents)
    for one in documents:
        random.shuffle(one["findings"])
    assert summary(documents) == expected
