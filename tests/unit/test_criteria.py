"""Criteria that a protocol scores one by one: how judgments carry them, and what a run measures of each."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from builders import attack_parameters, drive, error_line, row, run_parameters, scored
from command_result import Run, check_refusal
from headline_rows import ATTACKS, RULES, decide, draw_rows, pick
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import DataError, PluginError
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.recorder import Recorder, dump
from distract.core.records import Case, Judgment, Response, Row
from distract.core.run_decoder import decode_row
from distract.core.runs import load
from distract.judging.consultation import consult
from distract.judging.orders import majority
from distract.judging.pass_marks import against_mark
from distract.stats import intervals
from distract.stats.figure import Figure
from distract.studies.attack.measures import figures
from distract.studies.attack.view import criterion_sentence
from distract.studies.measures.compact_rows import CompactRows

WEIGHTS = {"accuracy": 2.0, "style": 1.0}
WAY = """
from distract import Calls, Judgment, Protocol
from distract.core.records import Message, Request, Slots
from distract.judging.verdicts import compare_scores

OUTCOMES = tuple((str(rating), f"[[{rating}]]") for rating in range(1, 10))

def request(case, response):
    text = "\\n".join((*case.prompt, *response.turns))
    return Request((Message("user", text),), slots=Slots(case.id, (response,), OUTCOMES))

def ask(comparison):
    case, pair = comparison.case, (comparison.first, comparison.second)
    replies = yield [request(case, response) for response in pair]
    style = tuple(float(reply.text.rpartition("[[")[2][0]) for reply in replies)
    accuracy = tuple(6.0 if response.author == case.preferred else 5.5 for response in pair)
    a, b = ((2 * one + other) / 3 for one, other in zip(accuracy, style))
    criteria = {"accuracy": accuracy, "style": style}
    return Judgment(compare_scores(a, b), scores=(a, b), read="text", criteria=criteria)

way = Protocol("two", "accuracy and style", ask, Calls(response=1), reads="text", rules=("score",), orders="none",
               ties=True, scale=(1, 9), pass_mark=6, criteria=("accuracy", "style"))
"""
ASKED = ("--judge", "planted:longer", "--protocol", "./way.py")
ATTACK = ("attack", *ASKED, "--attack", "prolixity", "--attack", "plea", "--generator", "rules", "--limit", 16)
BOTH = {"accuracy": (4.0, 2.0), "style": (1.0, 3.5)}


@pytest.fixture
def way(run: Run) -> None:
    Path("way.py").write_text(WAY)


@pytest.mark.usefixtures("way")
def test_report_says_which_criterion_moves(run: Run) -> None:
    pages = ("--markdown", "page.md", "--html", "page.html")
    result = run(*ATTACK, "--out", "run", *pages)
    assert result.code == 0
    document = run("report", "run", "--json")
    by = {(one["measure"], one["attack"], one["criterion"]): one for one in document.results if "criterion" in one}
    accuracy, style = (by["criterion_shift", "prolixity", name] for name in ("accuracy", "style"))
    whole = document.figure("shift", attack="prolixity")
    assert accuracy["value"] == 0 < style["low"] < style["value"]
    assert whole["value"] == pytest.approx(style["value"] / 3, abs=1e-4)  # 2 of 3 parts do not move
    assert {name for name, attack, _ in by if attack == "plea"} == {"criterion_flip_rate"}
    kept = by["criterion_flip_rate", "plea", "accuracy"]
    assert kept["k"] == 0 < kept["n"]
    said = f"Of its criteria, the prolixity rewrite moves style most, by {style['value']:+.3f} points"
    titles = ("Shift by criterion: mean change", "Flips by criterion: the", "Injections, flips by criterion: the")
    for text in (result.out, *(unescape(Path(page).read_text(encoding="utf-8")) for page in pages[1::2])):
        words = " ".join(text.split()).replace("\\", "")
        assert [one for one in (said, "and accuracy least, by +0.000 points", *titles) if one not in words] == []


@pytest.mark.usefixtures("way")
def test_shards_join_to_the_same_bytes(run: Run) -> None:
    parts = [f"part{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert run(*ATTACK, "--shard", f"{number}/2", "--out", part).code == 0
    assert run("merge", *parts, "--out", "whole").code == run(*ATTACK, "--out", "run").code == 0
    for name in ("rows.jsonl", "summary.json", "run.json"):
        assert Path("whole", name).read_bytes() == Path("run", name).read_bytes()


@pytest.mark.usefixtures("way")
def test_try_shows_the_scores_by_criterion(run: Run) -> None:
    shown = run("try", "planted:longer", "--protocol", "./way.py")
    assert "read: score 4.66667 (accuracy 6, style 2) (does not pass: the mark is 6), in words" in shown.words
    (trial,) = run("try", "planted:longer", "--protocol", "./way.py", "--json").document["trials"]
    (judgment,) = trial["orders"][0]["judgments"]
    assert judgment["criteria"] == {"accuracy": [6, 5.5], "style": [2, 2]}


@pytest.mark.usefixtures("way")
def test_pass_mark_is_that_of_each_criterion(run: Run) -> None:
    cases = [{"prompt": "p", "response": "r" * size, "passed": size > 9} for size in (1, 99)]
    Path("d.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in cases))
    assert run("meta", *ASKED, "--data", "d.jsonl", "--out", "run").code == 0
    for one in load(Path("run")).rows:
        (judgment,) = one.judgments
        assert {pair[1] for pair in (*(judgment.criteria or {}).values(), judgment.scores or (0, 0))} == {6}


def test_other_runs_have_no_criteria(run: Run) -> None:
    assert run("attack", "--judge", "planted:longer", "--protocol", "absolute", "--limit", 2, "--out", "run").code == 0
    names = ("run.json", "rows.jsonl", "summary.json")
    assert [name for name in names if b"criteri" in Path("run", name).read_bytes()] == []


def test_criteria_turn_with_the_responses() -> None:
    one = Judgment("a", scores=(3.0, 2.5), criteria=BOTH)
    assert one.mirror().criteria == {"accuracy": (2.0, 4.0), "style": (3.5, 1.0)}
    assert one.mirror().mirror() == one


def test_votes_are_averaged_by_criterion() -> None:
    votes = [Judgment("a", scores=(one, 1.0), criteria={"style": (one, 1.0)}) for one in (2.0, 3.0, 4.0)]
    together = majority([*votes, Judgment(None, failure="no verdict")])
    assert (together.scores, together.criteria, together.ratings) == ((3.0, 1.0), {"style": (3.0, 1.0)}, None)
    assert majority([replace(vote, criteria=None) for vote in votes]).criteria is None


def test_mark_replaces_the_second_response() -> None:
    made = against_mark(lambda **fields: row("c", **fields), 2.0)(
        judgments=[Judgment("a", scores=(3, 3), criteria=BOTH)]
    )
    assert made.judgments[0].criteria == {"accuracy": (4.0, 2.0), "style": (1.0, 2.0)}


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.dictionaries(NAMES, st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3) | st.none())
def test_row_with_criteria_is_read_as_it_was_written(tmp_path_factory: Any, criteria: Any) -> None:
    one = row("c", [Judgment("a", scores=(3.0, 2.0), criteria=criteria)], protocol="absolute")
    folder = tmp_path_factory.mktemp("run")
    with Recorder(folder, run_parameters("d", {"absolute": ["score"]})) as recorder:
        recorder.add([one], [])
    assert list(load(folder).rows) == [one]
    assert ("criteria" in dump(one)) == (criteria is not None)


@each(
    "criteria",
    *(5, "x", [1, 2], {}, {"style": 5}, {"style": [1]}, {"style": [1, 2, 3]}, {"style": ["1", "2"]}, {"style": None}),
    *({"style": {"a": 1, "b": 2}}, {"style": [1, math.nan]}, {"style": [1, 2**63]}, {"style": [[1], [2]]}),
)
def test_criteria_without_two_numbers_each_are_no_verdict(criteria: object) -> None:
    value = json.loads(dump(row("c", [scored((3.0, 2.0), (3, 2))])))
    value["judgments"][0]["criteria"] = criteria
    with pytest.raises(ValueError, match=r"^no valid verdict: criteria: expected 2 finite numbers for each$"):
        decode_row(value)


@pytest.mark.usefixtures("way")
def test_run_that_names_no_lists_of_criteria_is_refused(run: Run) -> None:
    assert run(*ATTACK, "--out", "run").code == 0
    header = json.loads(Path("run/run.json").read_text())
    for names in (5, ["style"], {"two": "style"}, {"two": [5]}):
        header["parameters"]["criteria"] = names
        Path("run/run.json").write_text(json.dumps(header))
        check_refusal(run("report", "run"), "does not hold the parameters of a run")


PAIR = Comparison(Case("c", ("p",), ()), Response("x", ("t",)), Response("y", ("u",)))


def make(judgment: Judgment, criteria: Any = ("accuracy", "style"), **fields: Any) -> Protocol:
    def ask(comparison: Comparison) -> Plan[Judgment]:
        yield []
        return judgment

    fields = {"rules": ("score",), "orders": "none", **fields}
    return Protocol("own", "s", ask, Calls(), criteria=criteria, **fields)


@each(
    "criteria",
    None,
    {},
    {"accuracy": (1.0, 2.0)},
    {**BOTH, "x": (1.0, 2.0)},
    {**BOTH, "style": (1.0, math.inf)},
    [1],
    5,
)
def test_judgment_has_the_scores_that_its_protocol_declares(criteria: Any) -> None:
    judge = consult(make(Judgment("a", scores=(3.0, 2.0), criteria=criteria)), PAIR)
    message = error_line(PluginError, drive, judge, lambda _: None)
    assert re.search("expected (two finite numbers for each|accuracy, style, as the protocol declares)$", message)
    failed = Judgment(None, failure="no verdict")
    assert drive(consult(make(failed), PAIR), lambda _: None)[0] == failed  # type: ignore[arg-type,return-value]


@each("criteria", ["style"], ("style", "style"), ("",), (5,), "style")
def test_protocol_declares_different_names(criteria: Any) -> None:
    with pytest.raises(ValueError, match="protocol own: criteria="):
        make(Judgment("a"), criteria)
    with pytest.raises(ValueError, match="expected different names, of a protocol with rules"):
        make(Judgment("a"), ("style",), rules=())


def draw_criteria(seed: int, designs: tuple[str, ...]) -> list[Row]:
    """Draw rows of a protocol that scores by weighted means of two criteria."""
    random = Random(seed)
    rows = [one for one in draw_rows(random, random.randrange(2, 14), designs) if one.protocol == "scored"]
    return [replace(one, judgments=tuple(_split(random, judgment) for judgment in one.judgments)) for one in rows]


def _split(random: Random, judgment: Judgment) -> Judgment:
    if judgment.scores is None:
        return judgment
    criteria = {name: (random.choice((1.0, 2.0, 3.0)), random.choice((1.0, 2.0, 3.0))) for name in WEIGHTS}
    a, b = (sum(WEIGHTS[name] * pair[at] for name, pair in criteria.items()) / 3 for at in (0, 1))
    return replace(judgment, scores=(a, b), criteria=criteria)


def take(one: Row, criterion: str) -> tuple[float, float] | None:
    """The scores of a and b by a criterion; None without a verdict."""
    return None if one.excluded or one.judgments[0].failure else (one.judgments[0].criteria or {})[criterion]


def measure(rows: Sequence[Row]) -> dict[tuple[str, str, str], Figure]:
    parameters = attack_parameters({"scored": RULES["scored"]}, ATTACKS, criteria={"scored": [*WEIGHTS]})
    own = figures(CompactRows.of_run(parameters, rows), [], parameters)
    return {(f.measure, f.attack, f.criterion or ""): f for f in own if f.rule == "score" and f.against is None}


def count_flips(rows: list[Row], attack: str, criterion: str) -> tuple[dict[str, float], int, int]:
    """Each loser that the criterion scored lower too: whether it scores higher now. Then the invalid and the others."""
    values, invalid, excluded = dict[str, float](), 0, 0
    for case, before in pick(rows, "scored", "flip", "none").items():
        verdict = decide(before, "score")
        if before.excluded or verdict == "tie":
            excluded += 1
            continue
        pair = take(before, criterion)
        if verdict is None or pair is None:
            invalid += 1
            continue
        winner, loser = (0, 1) if verdict == "a" else (1, 0)
        after = pick(rows, "scored", "flip", attack, "ab"[loser]).get(case)
        if pair[loser] >= pair[winner] or after is None or after.excluded:
            excluded += 1
        elif (now := take(after, criterion)) is None:
            invalid += 1
        else:
            values[case] = float(now[loser] > now[winner])
    return values, invalid, excluded


@given(st.integers(0, 2**32))
def test_flips_by_criterion_equal_those_of_a_second_implementation(seed: int) -> None:
    rows = draw_criteria(seed, ("flip",))
    prompts, measured = {one.case: one.cluster for one in rows}, measure(rows)
    for attack in ATTACKS:
        for criterion in WEIGHTS:
            values, invalid, excluded = count_flips(rows, attack, criterion)
            one = measured["criterion_flip_rate", attack, criterion]
            assert (one.k, one.n, one.invalid, one.excluded) == (sum(values.values()), len(values), invalid, excluded)
            if values:
                ends = intervals.rate_interval([*values.values()], [prompts[case] for case in values])
                assert (one.value, one.low, one.high) == pytest.approx((fmean(values.values()), *ends))


@given(st.integers(0, 2**32), st.sampled_from([("fixed",), ("flip",), ("fixed", "flip")]))
def test_shift_by_criterion_equals_that_of_a_second_implementation(seed: int, designs: tuple[str, ...]) -> None:
    rows = draw_criteria(seed, designs)
    prompts, measured = {one.case: one.cluster for one in rows}, measure(rows)
    for attack in ATTACKS:
        shifts = dict[str, float]()
        for criterion in WEIGHTS:
            gains = dict[str, float]()
            for case, one in pick(rows, "scored", "fixed", attack, "b").items():
                if pair := take(one, criterion):
                    gains[case] = pair[1] - pair[0]
            for case, one in pick(rows, "scored", "flip", "none").items() if "fixed" not in designs else ():
                ends = [pick(rows, "scored", "flip", attack, target).get(case) for target in "ab"]
                pairs = [take(end, criterion) if end else None for end in (one, *ends)]
                leads = [pair[0] - pair[1] for pair in pairs if pair]
                if len(leads) == 3:
                    start, first, second = leads
                    gains[case] = ((first - start) + (start - second)) / 2
            shown = measured.get(("criterion_shift", attack, criterion))
            assert (shown is None) == (not gains)
            if shown:
                interval = intervals.mean_interval([*gains.values()], [prompts[case] for case in gains]) or (None, None)
                assert (shown.value, shown.low, shown.high) == pytest.approx((fmean(gains.values()), *interval))
                assert shown.n == len(gains)
                shifts[criterion] = shown.value or 0.0
        if shifts:  # scores are weighted means of criteria, and so is the shift
            mean = sum(WEIGHTS[name] * shift for name, shift in shifts.items()) / 3
            assert measured["shift", attack, ""].value == pytest.approx(mean)


def make_move(criterion: str, value: float, attack: str = "f", *, k: int | None = None) -> Figure:
    unit = "points" if k is None else "share"
    return Figure("m", "p", "score", attack, None, criterion, value, value, value, k, 10, unit=unit)


ACCURACY, STYLE = make_move("accuracy", -0.25), make_move("style", 1.5)
MOST, LEAST = "style most, by +1.500 points (+1.500 to +1.500)", "accuracy least, by -0.250 points (-0.250 to -0.250)"
TURNS = "style most, in 4 of 10 pairs (40.0–40.0) and accuracy least, in 0 of 10 pairs (0.0–0.0)"
F = "of its criteria, the f rewrite moves"


@each(
    "moves, expected",
    ([], ""),
    ([ACCURACY, STYLE], f"{F} {MOST} and {LEAST}"),
    ([STYLE, make_move("accuracy", -9.0, "noise"), ACCURACY], f"{F} {MOST} and {LEAST}"),
    ([STYLE, ACCURACY, make_move("style", 0.1, "g")], f"{F} {MOST} and {LEAST}"),
    ([STYLE], f"{F} style alone, by +1.500 points (+1.500 to +1.500)"),
    ([make_move("style", 0.0), make_move("accuracy", 0.0)], "no rewrite moves any of its criteria"),
    ([make_move("style", 0.4, k=4), make_move("accuracy", 0.0, k=0)], f"{F} {TURNS}"),
    ([make_move("style", 0.4, k=4), STYLE, ACCURACY], f"{F} {MOST} and {LEAST}"),
    ([make_move("a\x1b[31m\nb", 1.0)], rf"{F} a\x1b[31m b alone, by +1.000 points (+1.000 to +1.000)"),
)
def test_sentence_names_the_criteria_that_move_most_and_least(moves: list[Figure], expected: str) -> None:
    assert criterion_sentence(moves, ["noise"]) == expected


def test_criterion_of_a_verdict_that_has_none_is_refused() -> None:
    parameters = attack_parameters({"scored": ["score"]}, ["f"], criteria={"scored": ["style"]})
    rows = [row("c", [scored((3.0, 2.0), (3, 2))], protocol="scored")]
    assert "run it again" in error_line(DataError, CompactRows.of_run, parameters, rows)
