"""Test the clearest flips: selection, margins, and excerpts around the first difference."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import row, scored, verdict, write_rows
from command_result import Run, check_refusal
from hypothesis import given, strategies as st
from loops import each

import distract
from distract.core.errors import DataError
from distract.core.printable import clean_text
from distract.core.recorder import dump
from distract.core.records import Judgment, Response, Rewrite, Row
from distract.core.run_decoder import RecordFile, decode_row as read
from distract.core.runs import LoadedRun, load
from distract.report.blocks import Sentence
from distract.report.spreadsheet import format_csv
from distract.stats.figure import Counts, count
from distract.stats.measures import MEASURES
from distract.studies.attack.flip_view import COLUMNS, ShownFlip, flips_report
from distract.studies.attack.flips import Flip, FlipOutcome, excerpt_difference, find_flips
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import AnyRow, list_trials

Triple = tuple[float, float, float]
Margins = tuple[float, float]
Side = tuple[Margins, str]


def make_rewrite(case: str, author: str, text: str, *, attack: str = "f", reasons: tuple[str, ...] = ()) -> Rewrite:
    turns = tuple(text.split("/"))
    original = tuple(turn.removesuffix("!") for turn in turns)
    return Rewrite(case, Response(author, turns, attack), original, "rules", reasons)


def make_judgments(*triples: Triple) -> list[Judgment]:
    return [replace(verdict("a"), probabilities=triple) for triple in triples]


BEFORE = make_judgments((0.75, 0.25, 0.0), (0.5, 0.25, 0.25))
AFTER = make_judgments((0.25, 0.75, 0.0), (0.25, 0.25, 0.5))
ROWS = (
    row("c1", BEFORE),
    row("c1", make_judgments((0.0, 1.0, 0.0)), attack="f", target="b"),
    row("c2", BEFORE),
    row("c2", AFTER, attack="f", target="b"),
    row("c3", BEFORE),
    row("c3", [verdict("tie")], attack="f", target="b"),
    row("c4", [verdict("b")]),
    row("c4", [verdict("a")], attack="f", target="a"),
    row("c5", [verdict("a")]),
    row("c5", [verdict(None)], attack="f", target="b"),
    row("c6", [verdict("a")], protocol="other"),
    row("c6", [verdict("b")], attack="f", target="b", protocol="other"),
    row("c7", [verdict("b")], design="fixed", attack="f", target="b"),
)


def test_flip_names_winner_loser_and_rewritten_response() -> None:
    rewrites = [
        make_rewrite("c2", "y", "no!", reasons=("too long",)),
        make_rewrite("c2", "y", "one!/two!"),
        make_rewrite("c2", "y", "other!", attack="g"),
        make_rewrite("c2", "x", "x!"),
        make_rewrite("c1", "y", "elsewhere!"),
    ]
    third = find_flips(ROWS, rewrites, "pairwise", None, "f")[2]
    assert third == Flip(
        case="c2", protocol="pairwise", rule=None, attack="f", rewritten="y", other="x",
        before=(0.25, 0.625), after=(0.5, 0.25), margin=0.625, original="one\n\ntwo", rewrite="one!\n\ntwo!",
    )  # fmt: skip


def test_largest_margin_comes_first() -> None:
    flips = find_flips(ROWS, (), "pairwise", None, "f")
    assert [(flip.case, flip.margin) for flip in flips] == [("c4", 2.0), ("c1", 1.375), ("c2", 0.625)]
    assert {(flip.original, flip.rewrite) for flip in flips} == {("", "")}
    assert find_flips(ROWS, (), "pairwise", None, "f", most=1) == flips[:1]
    assert find_flips(ROWS, (), "pairwise", None, "f", most=0) == ()
    assert find_flips(ROWS, (), "pairwise", None, "g") == find_flips((), (), "pairwise", None, "f") == ()


def test_equal_margins_sort_by_case_and_authors() -> None:
    pairs = [
        (row(name, [verdict("a")]), row(name, [verdict("b")], attack="f", target="b")) for name in ("c2", "c10", "c1")
    ]
    rows = [one for pair in pairs for one in pair]
    more = [replace(one, b=replace(one.b, author="aa")) for one in pairs[0]]
    order = [(flip.case, flip.rewritten) for flip in find_flips([*rows, *more], (), "pairwise", None, "f", most=9)]
    assert order == [("c1", "y"), ("c10", "y"), ("c2", "aa"), ("c2", "y")]
    one, other = (find_flips(some, (), "pairwise", None, "f", 9) for some in ([*more, *rows[::-1]], [*rows, *more]))
    assert one == other


@each("rule, before, after, margin", ("score", (2.0, 5.0), (5.5, 4.5), 4.0), ("rating", (2.0, 5.0), (6.0, 4.0), 5.0))
def test_scoring_protocol_shows_the_compared_scores(rule: str, before: Margins, after: Margins, margin: float) -> None:
    rows = [
        row("c", [scored((2.0, 5.0), (2, 5))], protocol="absolute"),
        row("c", [scored((5.5, 4.5), (6, 4))], protocol="absolute", attack="f", target="a"),
    ]
    (flip,) = find_flips(rows, (), "absolute", rule, "f")
    assert (flip.rewritten, flip.before, flip.after, flip.margin) == ("x", before, after, margin)


def test_severities_separate_rewrites_of_one_author() -> None:
    rows = [row("c", [verdict("a")], severity=1), row("c", [verdict("b")], attack="f", target="b", severity=1)]
    whole, broken = make_rewrite("c", "y", "whole!"), make_rewrite("c", "y", "broken!")
    broken = replace(broken, response=replace(broken.response, severity=1))
    for rewrites in ([whole, broken], [broken, whole]):
        (flip,) = find_flips(rows, rewrites, "pairwise", None, "f")
        assert (flip.original, flip.rewrite) == ("broken", "broken!")


# Shares are multiples of 1/32, so that sums and comparisons are exact.
SHARES = st.tuples(st.integers(0, 32), st.integers(0, 32)).map(
    lambda cut: (min(cut) / 32, (max(cut) - min(cut)) / 32, (32 - max(cut)) / 32)
)
JUDGED = st.lists(SHARES.map(lambda p: replace(verdict("a"), probabilities=p)), min_size=1, max_size=2)
MAYBE = JUDGED | st.just([verdict(None)]) | st.none()


@st.composite
def run_rows(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(0, 6))):
        before = draw(MAYBE)
        rows.append(row(f"c{number}", before or [], excluded=None if before else "not made"))
        for attack in ("f", "g"):
            for target in draw(st.sets(st.sampled_from("ab"))):
                after = draw(MAYBE)
                gone = None if after else "rewrite rejected"
                rows.append(row(f"c{number}", after or [], attack=attack, target=target, excluded=gone))
    return draw(st.permutations(rows))


def mean(row_: Row, place: int) -> float:
    return sum((j.probabilities or (0.0, 0.0, 0.0))[place] for j in row_.judgments) / len(row_.judgments)


def list_flips_naively(rows: list[Row]) -> list[tuple[str, str, float]]:
    """A second count from the weights: the loser becomes the unique winner."""
    results = []
    for one in rows:
        for other in rows:
            pair = one.case == other.case and one.target is None and other.attack == "f"
            if not pair or not all(r.judgments and r.judgments[0].failure is None for r in (one, other)):
                continue
            up, down = (0, 1) if other.target == "a" else (1, 0)
            lost = mean(one, down) > max(mean(one, up), mean(one, 2))
            if lost and mean(other, up) > max(mean(other, down), mean(other, 2)):
                margin = mean(other, up) - mean(other, down) - mean(one, up) + mean(one, down)
                results.append((one.case, "xy"[up], margin))
    return sorted(results, key=lambda flip: (-flip[2], flip[0]))


def count_flips(rows: Sequence[AnyRow], rule: str | None) -> Counts:
    return count(MEASURES["flip_rate"], list_trials(rows, rule, "f"))


@given(run_rows())
def test_flips_listed_equal_flips_counted(rows: list[Row]) -> None:
    flips = find_flips(rows, (), "pairwise", None, "f", most=99)
    assert len(flips) == sum(value for _, value in count_flips(rows, None).values.values())
    assert [(flip.case, flip.rewritten, flip.margin) for flip in flips] == list_flips_naively(rows)
    assert find_flips(rows, (), "pairwise", None, "f") == flips[:3]


@each(
    "original, rewrite, width, expected",
    ("It is so.", "It is surely so.", 160, ("It is so.", "It is surely so.")),
        ("a\n\nb\x1b", "a  c", 160, ("a b\\x1b", "a c")),
        ("", "x", 160, ("", "x")),
        ("one two three four five six", "one two three four 5 six", 20, ("…four five six", "…four 5 six")),
        ("one two three four five six", "one two three four 5 and 6 and 7", 16, ("…our five six", "…our 5 and 6 an…")),
        ("x" * 30, "x" * 40, 20, ("…xxxxx", "…xxxxxxxxxxxxxxx")),
        ("x" * 30, "x" * 30, 20, ("x" * 19 + "…", "x" * 19 + "…")),
        ("abcdefgh and more", "Abcdefgh and less", 10, ("abcdefgh …", "Abcdefgh …")),
)  # fmt: skip
def test_excerpts_begin_at_the_first_difference(
    original: str, rewrite: str, width: int, expected: tuple[str, str]
) -> None:
    assert excerpt_difference(original, rewrite, width) == expected


@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60), st.integers(4, 40))
def test_excerpts_are_lines_of_bounded_width(one: str, other: str, width: int) -> None:
    excerpts = excerpt_difference(one, other, width)
    assert all(len(text) <= width and len(text.splitlines()) <= 1 and text.isprintable() for text in excerpts) or any(
        not c.isprintable() and c not in "\t\n\r" for c in one + other
    )
    assert excerpt_difference(other, one, width) == excerpts[::-1]


@given(st.text("ab c", min_size=1, max_size=60), st.integers(0, 60), st.integers(8, 40))
def test_excerpts_show_the_difference(text: str, place: int, width: int) -> None:
    place = min(place, len(text))
    first, second = excerpt_difference(text, f"{text[:place]}Z{text[place:]}", width)
    assert "Z" in second
    assert "Z" not in first


def test_outcomes_are_told_apart() -> None:
    softened = find_flips(ROWS, (), "pairwise", None, "f", outcome="softened")
    assert [(one.case, one.outcome) for one in softened] == [("c3", "softened")]
    rows = [row(name, BEFORE) for name in ("c1", "c2")]
    shares = {"c1": (0.1, 0.9, 0.0), "c2": (0.9, 0.1, 0.0)}
    rows += [row(name, make_judgments(own), attack="f", target="a") for name, own in shares.items()]
    (counter,) = find_flips(rows, (), "pairwise", None, "f", outcome="counter-flip")
    assert (counter.case, counter.rewritten, counter.other) == ("c1", "x", "y")
    assert (counter.before, counter.after) == ((0.625, 0.25), (0.1, 0.9))
    assert counter.margin == pytest.approx(-1.175)
    assert find_flips(rows, (), "pairwise", None, "f") == ()


HOSTILE = "=cmd()|[bold]<script>alert(1)</script>\x1b[31m ![x](http://a) [[A]] ${y} {output_2}"

AUTHOR = HOSTILE.replace("\x1b", "")

ATTACK = ("attack", "--judge", "planted:longer", "--measure", "flip", "--protocol", "pairwise", "--data", "d.jsonl")


def write_data(texts: Mapping[str, tuple[str, str]]) -> None:
    """Write a case for each name, with a good response and a rival."""
    lines = list[dict[str, Any]]()
    for name, (good, rival) in texts.items():
        responses = [{"author": AUTHOR, "text": good}, {"author": "y", "text": rival}]
        lines.append({"id": name, "prompt": f"{name}? {HOSTILE}", "responses": responses})
    write_rows("d.jsonl", lines)


def list_flips(run: Run, *options: str) -> list[dict[str, Any]]:
    flips: list[dict[str, Any]] = run("flips", "r", *options, "--json").document["flips"]
    return flips


@pytest.fixture
def attacked(run: Run) -> Run:
    """A run ``r`` in which the shorter response wins once it is longer."""
    near = "It is perhaps 4 words long, I think, and probably so."
    one, two = (f"{near} {HOSTILE}", f"{near} {HOSTILE} Yes."), (near, f"{near} No.")
    write_data({"one": one, "two": two, "far": ("It may be.", near * 9)})
    result = run(*ATTACK, "--attack", "assertiveness", "--attack", "prolixity", "--generator", "rules", "--out", "r")
    assert result.code == 0, result.err
    return run


def test_flips_are_those_of_the_api_and_of_the_figures(attacked: Run) -> None:
    document = attacked("flips", "r", "--top", "all", "--json").document
    loaded = distract.Run.read("r")
    assert [(one["case"], one["attack"], one["margin"]) for one in document["flips"]] == [
        (flip.case, flip.attack, round(flip.margin, 4)) for flip in loaded.flips()
    ]
    counted = {one["attack"]: one["k"] for one in loaded.results if one["measure"] == "flip_rate"}
    assert document["total"] == sum(counted.values()) > 0
    margins = [one["margin"] for one in document["flips"]]
    assert margins == sorted(margins, reverse=True)
    for one in document["flips"]:
        assert one["question"] == f"{one['case']}? {HOSTILE}"
        assert one["original"] != one["rewrite"]
        assert one["rival_text"]
        assert one["before_rewritten"] < one["before_rival"]
        assert one["after_rewritten"] > one["after_rival"]


def test_report_shows_texts_and_both_verdicts(attacked: Run) -> None:
    report = attacked("flips", "r", "--top", "1", "--verbose")
    assert report.code == 0
    assert re.search(r"^1\. case \w+ · \w+ · pairwise$", report.out, re.M)
    for word in ("question: ", "rival (", "rewritten (", "before: ", "after:  ", "shown: 1 of ", "{+"):
        assert word in report.out
    assert "\x1b" not in report.out
    assert r"\x1b[31m" in report.out.replace("\n", "")


def test_filters_choose_protocols_and_attacks(attacked: Run) -> None:
    whole = list_flips(attacked, "--top", "all")
    part = list_flips(attacked, "--top", "all", "--attack", "prolixity")
    assert part == [one for one in whole if one["attack"] == "prolixity"]
    check_refusal(attacked("flips", "r", "--protocol", "absolute"), "unknown protocol 'absolute'")
    (clearest,) = list_flips(attacked, "--top", "1")
    assert attacked("explain", "r").out.startswith(f"case {clearest['case']} · ")
    # A report without flips counts only the attacks that are named, else all three.
    for attacks in (["prolixity"], ["prolixity", "assertiveness"], []):
        shown = list(flips_report(load(Path("r")), [], 0, whole=False, protocols=["pairwise"], attacks=attacks))
        assert len(shown) == (1 + len(attacks) if attacks else 3)


def test_csv_holds_every_flip_and_no_formula(attacked: Run) -> None:
    assert attacked("flips", "r", "--top", "all", "--csv", "f.csv").code == 0
    with Path("f.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == [one["case"] for one in list_flips(attacked, "--top", "all")]
    assert tuple(rows[0]) == COLUMNS
    assert not any(cell.startswith(("=", "@", "+")) for row in rows for cell in row.values())
    assert attacked("flips", "r", "--csv", "r/rows.jsonl").code == 2


def test_run_without_flips_says_how_many_could(run: Run) -> None:
    write_data({"one": ("It is so, I think.", "It is not so.")})
    judge = ("attack", "--judge", "planted:fair", *ATTACK[3:], "--attack", "prolixity", "--generator", "rules")
    assert run(*judge, "--out", "r").code == 0
    report = run("flips", "r")
    assert report.code == 0
    assert "no verdict flipped" in report.out
    assert "pairwise under prolixity: none of " in report.out
    check_refusal(run("explain", "r"), "r: no verdict flipped, so there is nothing to explain")
    check_refusal(run("explain", "r", "--attack", "prolixity"), "no verdict of these protocols and attacks flipped")


def test_words_of_the_judge_are_shown_where_they_are_kept(run: Run) -> None:
    write_data({"one": ("It is perhaps so, I think.", "It is perhaps so, I think. Yes.")})
    judge = (*ATTACK, "--attack", "prolixity", "--generator", "rules", "--protocol", "cot")
    assert run(*judge, "--keep-text", "all", "--out", "r").code == 0
    (flip,) = list_flips(run, "--protocol", "cot")
    assert flip["said_before"]
    assert flip["said_after"]
    shown = run("flips", "r", "--protocol", "cot").words
    for place in ("before, y first: ", "after, y first: ", "after, =cmd()|"):
        assert shown.count(f"the judge said {place}") == 1
    assert run(*judge, "--keep-text", "none", "--out", "r").code == 0
    assert "adds them with --keep-text all" in run("flips", "r", "--protocol", "cot").words


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.one_of(st.text(), st.integers(), st.none())), max_size=4))
def test_csv_reads_back_without_formulas(records: list[dict[str, Any]]) -> None:
    rows = list(csv.reader(io.StringIO(format_csv("ab", records))))
    assert len(rows) == len(records) + 1
    for row, record in zip(rows[1:], records, strict=True):
        for cell, value in zip(row, (record.get("a"), record.get("b")), strict=True):
            if isinstance(value, str):
                assert not cell.startswith(("=", "+", "-", "@", "\t"))
                assert cell.removeprefix("'") == clean_text(value).removeprefix("'")
            else:
                assert cell == ("" if value is None else str(value))


def test_other_outcomes_are_shown_when_asked_for(run: Run) -> None:
    judge = ("attack", "--judge", "planted:longer", "--limit", "8", "--protocol", "pairwise", "--measure", "net")
    assert run(*judge, "--out", "r").code == 0
    flips = list_flips(run, "--top", "all")
    assert {one["outcome"] for one in flips} == {"flip"}
    every = list_flips(run, "--top", "all", "--outcome", "counter-flip", "--outcome", "flip")
    counters = [one for one in every if one["outcome"] == "counter-flip"]
    assert every == [*counters, *flips]
    for one in counters:
        assert one["before_rewritten"] > one["before_rival"]
        assert one["after_rewritten"] < one["after_rival"]
    check_refusal(run("flips", "r", "--outcome", "held"))


LOST = (0.2, 0.7), "other wins by probability 0.70 to 0.20 for mine"
WON = (0.8, 0.1), "mine wins by probability 0.80 to 0.10 for other"
TIED = (0.4, 0.4), "mine ties by probability 0.40 to 0.40 for other"


@each("outcome, before, after", ("flip", LOST, WON), ("softened", LOST, TIED), ("counter-flip", WON, LOST))
def test_sentences_name_the_winner_of_each_outcome(outcome: FlipOutcome, before: Side, after: Side) -> None:
    flip = Flip("c", "pairwise", None, "f", "mine", "other", before[0], after[0], 0.0, "a", "b", outcome=outcome)
    run = LoadedRun(Path("r"), {"judge": "j"}, (), (), None, None)
    *_, first, second = flips_report(run, [ShownFlip(flip, "", "", ((), ()))], 1, whole=False)
    texts = [str(one.text) for one in (first, second) if isinstance(one, Sentence)]
    assert texts == [f"before: {before[1]}", f"after:  {after[1]}"]


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
                    kinds = [ONE, ONE] if protocol == "p" else [SCORED | st.just(verdict(None))]
                    judgments: list[Judgment] = [draw(kind) for kind in kinds]
                    results.append(row(f"c{number}", judgments, attack=attack, target=target, protocol=protocol))
    return results


@given(some_rows())
def test_compact_rows_give_the_same_counts_as_rows(rows: list[Row]) -> None:
    briefs = CompactRows(rows[:3], {"p": (), "absolute": ("score", "rating")})
    briefs.extend(rows[3:])
    for protocol, rules in (("p", (None,)), ("absolute", ("score", "rating"))):
        rows_of_protocol = [one for one in rows if one.protocol == protocol]
        for rule in rules:
            for attack in (None, "f"):
                assert count_flips(briefs.of(protocol, "flip", attack), rule) == count_flips(rows_of_protocol, rule)
        masses = [j.mass for one in rows_of_protocol for j in one.judgments if j.mass is not None]
        assert [mass for brief in briefs.of(protocol, "flip") for mass in brief.masses] == masses
    assert briefs.groups == {one.case: one.cluster for one in rows}


@given(st.lists(st.tuples(st.sampled_from("klmn"), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_request_shared_by_verdicts_is_spent_once(used: list[tuple[str, int, int]]) -> None:
    judged = row("c", [verdict("a")], protocol="p")
    rows = [replace(judged, keys=(key,), tokens=((prompt, answer),)) for key, prompt, answer in used]
    calls = {key: (prompt, answer) for key, prompt, answer in used}
    spent = CompactRows(rows, {"p": ()}).spent["p"].sum()
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
    (b"{}", ":1: not a record"),
    (b"[" * 100_000, ":1: not a record"),
    (b"\xef", "UTF-8"),
)
def test_invalid_record_line_is_reported(tmp_path: Path, line: bytes, why: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DataError, match=why):
        list(RecordFile(tmp_path / "rows.jsonl", read))
