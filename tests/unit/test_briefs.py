"""Test compact rows against full rows, and records on disk against the written ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import row, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import DataError
from distract.core.recorder import dump
from distract.core.records import Judgment, Row
from distract.core.run_decoder import RecordFile
from distract.core.run_decoder import decode_row as read
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.outcomes import count_flips

ONE = st.sampled_from([verdict("a"), verdict("b"), verdict("tie"), verdict(None)])
SCORED = st.tuples(st.floats(1, 7), st.floats(1, 7)).map(lambda pair: scored(pair, (round(pair[0]), round(pair[1]))))


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    """A baseline of each case and, for some, the attacked pair, under a comparing and a scoring protocol."""
    results = []
    for number in range(draw(st.integers(0, 6))):
        for protocol in ("p", "absolute"):
            for attack, target in (("none", None), ("f", draw(st.sampled_from(["a", "b", None])))):
                if attack == "none" or target:
                    judgments: list[Judgment] = (
                        [draw(ONE), draw(ONE)] if protocol == "p" else [draw(st.one_of(SCORED, st.just(verdict(None))))]
                    )
                    results.append(row(f"c{number}", judgments, attack=attack, target=target, protocol=protocol))
    return results


@given(some_rows())
def test_compact_rows_give_the_same_counts_as_rows(rows: list[Row]) -> None:
    briefs = CompactRows(rows[:3], {"p": (), "absolute": ("score", "rating")})
    briefs.extend(rows[3:])
    for protocol, rules in (("p", (None,)), ("absolute", ("score", "rating"))):
        rows_of_protocol = [one for one in rows if one.protocol == protocol]
        for rule in rules:
            assert count_flips(briefs.of(protocol, "flip"), rule, "f") == count_flips(rows_of_protocol, rule, "f")
            assert count_flips(briefs.of(protocol, "flip", "f"), rule, "f") == count_flips(rows_of_protocol, rule, "f")
        masses = [j.mass for one in rows_of_protocol for j in one.judgments if j.mass is not None]
        assert [mass for brief in briefs.of(protocol, "flip") for mass in brief.masses] == masses
    assert briefs.clusters == {one.case: one.cluster for one in rows}


@given(st.lists(st.tuples(st.sampled_from("klmn"), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_request_shared_by_verdicts_is_spent_once(used: list[tuple[str, int, int]]) -> None:
    judged = row("c", [verdict("a")], protocol="p")
    rows = [replace(judged, keys=(key,), tokens=((prompt, answer),)) for key, prompt, answer in used]
    calls = {key: (prompt, answer) for key, prompt, answer in used}
    spent = CompactRows(rows, {"p": ()}).spent("p")
    assert (spent.comparisons, spent.calls) == (len(used), len(calls))
    assert (spent.prompts, spent.answers) == tuple(sum(one[at] for one in calls.values()) for at in (0, 1))


def test_records_are_read_while_the_file_grows(tmp_path: Path) -> None:
    rows = [row(f"c{number}", [verdict("a"), verdict(None)]) for number in range(4)]
    path = tmp_path / "rows.jsonl"
    records = RecordFile(path, read)
    assert (list(records), len(records), records.cut) == ([], 0, False)
    path.write_text("".join(f"{dump(one)}\n" for one in rows[:3]) + dump(rows[3])[:40], encoding="utf-8")
    assert (list(records), len(records), records.cut) == (rows[:3], 3, True)
    with path.open("a", encoding="utf-8") as file:
        file.write(dump(rows[3])[40:] + "\n")
    assert (records == rows, len(records), records.cut) == (True, 4, False)
    assert (records[-1], records[1:3], records[4:]) == (rows[3], rows[1:3], [])
    assert records != rows[:3]
    with pytest.raises(IndexError):
        records[4]


@each(
    "line, why",
    (b"\xff", "not UTF-8"),
    (b"{}", r":1: not a record"),
    (b"[" * 100_000, r":1: not a record"),
    (b"\xef", "UTF-8"),
)
def test_invalid_record_line_is_reported(tmp_path: Path, line: bytes, why: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DataError, match=why):
        list(RecordFile(tmp_path / "rows.jsonl", read))
