"""Test shifts between two boards: against plain loops, under invariants, without paired prompts."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from builders import write_several
from command_result import Run, check_refusal
from hypothesis import given, strategies as st
from loops import each
from scipy import stats
from test_boards import CLOSED, HARD, POINTS, Row, matches, sample_rows

from distract.core import edits
from distract.core.errors import UsageError
from distract.core.printable import clean_text, percent
from distract.stats import ratings
from distract.stats.ratings.matches import Matches
from distract.stats.ratings.system import RatingSystem
from distract.studies.differences import mark_difference
from distract.studies.leaderboard.boards import shift as shifts
from distract.studies.leaderboard.boards.board import DRAWS, build_board, draw_prompts, kendall_tau
from distract.studies.leaderboard.boards.shift import measure_shift, merge_prompts

SYSTEMS = [POINTS, CLOSED, *ratings.systems().values()]


def improve(rows: Sequence[Row], better: str, seed: int = 0, share: float = 0.6) -> list[Row]:
    """The same matches, with a share of the better model's results changed to wins."""
    rng = np.random.default_rng(seed)
    up = {(a, b, p): "a" if a == better else "b" for a, b, _, p in rows if better in (a, b) and rng.random() < share}
    return [(a, b, up.get((a, b, p), o), p) for a, b, o, p in rows]


def compute_shift(
    before: Matches, after: Matches, system: RatingSystem = POINTS, count: int = 200, **parameters: Any
) -> Any:
    """Give both boards the same prompts and draw from these, like a command; mypy lets any figure be compared."""
    before, after = merge_prompts(before, after)
    return measure_shift(before, after, system, parameters, draw_prompts(before, system, 0, count))


def by_model(shift: Any) -> dict[str, Any]:
    return {change.model: change for change in shift.changes}


def test_leaving_a_tie_is_a_rise_or_a_fall() -> None:
    level = [(*pair, "tie", f"p{number}") for pair in ("ab", "bc", "ac") for number in range(3)]
    won = [(x, y, "a" if x == "b" else "b" if y == "b" else "tie", prompt) for x, y, _, prompt in level]
    shift = by_model(compute_shift(matches(level), matches(won), count=50))
    ranks = {name: (one.rank_before, one.rank_after) for name, one in shift.items()}
    assert ranks == {"a": (2, 2.5), "b": (2, 1), "c": (2, 2.5)}


def test_shift_follows_its_definition() -> None:
    rows, m, count = sample_rows(prompts=12), 12, 300
    before, after = matches(rows), matches(improve(rows, "d"))
    shift = compute_shift(before, after, count=count)
    draws = draw_prompts(before, POINTS, 0, count)
    one, two = POINTS.redraw(before, draws), POINTS.redraw(after, draws)
    was, now = POINTS.rate(before).rating, POINTS.rate(after).rating
    # Ranks come from draws that are scaled to the width of the interval.
    wider = stats.t.ppf(0.975, m - 1) / stats.norm.ppf(0.975) * math.sqrt(m / (m - 1))
    rank = {
        # The number of models above it, and half of the equal ones.
        name: [
            [1 + sum(y > x + 1e-6 for y in row) + (sum(abs(y - x) <= 1e-6 for y in row) - 1) / 2 for x in row]
            for row in (rating + wider * (table - rating)).tolist()
        ]
        for name, table, rating in (("before", one, was), ("after", two, now))
    }
    for i, model in enumerate(before.models):
        change = by_model(shift)[model]
        half = stats.t.ppf(0.975, m - 1) * np.std(two[:, i] - one[:, i], ddof=1) * math.sqrt(m / (m - 1))
        assert (change.before, change.after) == (was[i], now[i])
        assert (change.low, change.change, change.high) == pytest.approx(
            (now[i] - was[i] - half, now[i] - was[i], now[i] - was[i] + half)
        )
        pairs = list(zip(rank["before"], rank["after"], strict=True))
        assert change.p_rose == pytest.approx(sum(y[i] < x[i] for x, y in pairs) / count)
        assert change.p_fell == pytest.approx(sum(y[i] > x[i] for x, y in pairs) / count)
    taus = sorted(stats.kendalltau(x, y).statistic for x, y in zip(rank["before"], rank["after"], strict=True))
    assert shift.tau == pytest.approx(stats.kendalltau(was, now).statistic)
    assert (shift.tau_low, shift.tau_high) == pytest.approx((taus[7], taus[292]))
    assert (shift.models, shift.prompts, shift.draws, shift.paired, shift.notes) == (4, 12, 300, True, ())
    assert (shift.before, shift.after) == tuple(build_board(one, POINTS, draws=draws) for one in (before, after))


def test_pairing_removes_shared_prompt_noise() -> None:
    rows = sample_rows(prompts=60)
    shift = compute_shift(matches(rows), matches(improve(rows, "d", share=0.2)))
    for change, standing in zip(shift.changes, shift.before.standings, strict=True):
        assert change.model == standing.model
        assert change.change - change.low < 2 * math.sqrt(2) * standing.error * 0.8


@each("system", *SYSTEMS)
@each("known", True, False)
def test_board_has_no_shift_against_itself(system: RatingSystem, known: bool) -> None:
    played = add_lengths(matches(sample_rows(), known))
    shift = compute_shift(played, played, system, 30)
    # No variation on these prompts does not rule out variation on others.
    assert (shift.tau, shift.tau_low, shift.tau_high) == (1, None, None)
    for change in shift.changes:
        assert (change.change, change.low, change.high, change.p_rose, change.p_fell) == (0, None, None, None, None)
        assert change.rank_before == change.rank_after
    assert len(shift.notes) == 1
    assert "nothing varies from prompt to prompt" in shift.notes[0]


def add_lengths(played: Matches) -> Matches:
    return replace(played, lengths=np.random.default_rng(0).integers(1, 99, (len(played), 2)).astype(np.int32))


@each("system", *SYSTEMS)
def test_reverse_shift_is_the_opposite(system: RatingSystem) -> None:
    rows = sample_rows()
    before, after = add_lengths(matches(rows)), add_lengths(matches(improve(rows, "d")))
    there, back = compute_shift(before, after, system, 60), compute_shift(after, before, system, 60)
    assert there.tau == pytest.approx(back.tau)
    assert (there.tau_low, there.tau_high) == pytest.approx((back.tau_low, back.tau_high))
    for model, change in by_model(there).items():
        other = by_model(back)[model]
        assert other.change == pytest.approx(-change.change)
        assert (change.p_rose, change.p_fell) == (other.p_fell, other.p_rose)
        assert (change.rank_before, change.rank_after) == (other.rank_after, other.rank_before)
        assert (change.low, change.high) == pytest.approx((-(other.high or 0), -(other.low or 0)))
    risen = by_model(there)["d"]
    assert risen.change > 0
    assert risen.p_rose > 0.5


@given(st.integers(0, 10**6), st.permutations("abcd"))
def test_names_do_not_matter(seed: int, names: Sequence[str]) -> None:
    rows = sample_rows(seed, 6)
    new = dict(zip("abcd", names, strict=True))
    later = improve(rows, "c", seed)
    again, again_later = ([(new[a], new[b], o, p) for a, b, o, p in part] for part in (rows, later))
    one, other = compute_shift(matches(rows), matches(later)), compute_shift(matches(again), matches(again_later))
    assert one.tau == pytest.approx(other.tau)
    for model, change in by_model(one).items():
        twin = by_model(other)[new[model]]
        assert (change.change, change.p_rose, change.p_fell) == pytest.approx((twin.change, twin.p_rose, twin.p_fell))
        assert (change.low, change.high) == pytest.approx((twin.low, twin.high))


def test_prompt_order_in_the_second_board_does_not_matter() -> None:
    rows = sample_rows()
    later = improve(rows, "d")
    assert compute_shift(matches(rows), matches(later)) == compute_shift(matches(rows), matches(later[::-1]))


def test_union_keeps_old_numbers_and_adds_new_ones() -> None:
    one, other = matches([("x", "y", "a", "p"), ("x", "y", "b", "q")]), matches([("x", "y", "a", t) for t in "rqs"])
    before, after = cast(tuple[Any, Any], merge_prompts(one, other))
    assert before.prompts == after.prompts == ("p", "q", "r", "s")
    assert (before.cluster.tolist(), after.cluster.tolist()) == ([0, 1], [2, 1, 3])
    again = merge_prompts(before, after)
    assert [played.prompts for played in again] == [before.prompts] * 2
    assert np.array_equal(again[1].cluster, after.cluster)  # type: ignore[arg-type]


def test_boards_of_other_prompts_are_nearly_independent() -> None:
    rows, later = sample_rows(0, 40), [(a, b, o, f"new {p}") for a, b, o, p in sample_rows(1, 40)]
    shift = compute_shift(matches(rows), matches(later), count=1000)
    assert shift.prompts == 80
    assert (shift.before.prompts, shift.after.prompts) == (40, 40)
    errors, others = (
        {s.model: s.error or 0 for s in build_board(matches(part), POINTS).standings} for part in (rows, later)
    )
    for change in shift.changes:
        half = stats.t.ppf(0.975, 39) * math.hypot(errors[change.model], others[change.model])
        assert change.change - change.low == pytest.approx(half, rel=0.15)


def test_slots_are_paired_without_prompts() -> None:
    rows = sample_rows()
    before, after = matches(rows, False), matches(improve(rows, "d"), False)
    shift = compute_shift(before, after)
    assert (shift.paired, shift.prompts, shift.notes) == (True, len(rows), ())
    apart = compute_shift(before, matches(improve(rows, "d")[::-1], False))
    assert (apart.paired, apart.prompts) == (False, 2 * len(rows))
    assert apart.notes == ("prompts cannot be paired: they were drawn for each board apart, so intervals are wide",)
    for near, far in zip(shift.changes, apart.changes, strict=True):
        assert near.change == pytest.approx(far.change)
        assert near.low > far.low


def test_oversized_table_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sample_rows()
    monkeypatch.setattr(shifts, "MAX_WEIGHTS", DRAWS * (len(rows) - 1))
    assert not compute_shift(matches(rows, False), matches(improve(rows, "d"), False)).paired


@each("first, second", (True, False), (False, True))
def test_one_side_may_lack_prompts(first: bool, second: bool) -> None:
    rows = sample_rows()
    shift = compute_shift(matches(rows, first), matches(improve(rows, "d"), second))
    assert not shift.paired
    assert (shift.before.prompts, shift.after.prompts) == tuple(12 if known else 72 for known in (first, second))
    assert all(change.low is not None for change in shift.changes)


def test_models_on_one_board_only_have_no_change() -> None:
    shift = compute_shift(matches(sample_rows()), matches(sample_rows(models="bcdx")))
    only = {c.model: (c.before is None, c.after is None, c.change, c.low, c.p_rose) for c in shift.changes}
    assert only["a"] == (False, True, None, None, None)
    assert only["x"] == (True, False, None, None, None)
    assert shift.models == 3
    assert shift.changes[-1].model == "x"
    assert shift.notes == ("on one board only: a, x; ratings are relative to the models of their board",)


def test_boards_without_a_common_model_show_no_change() -> None:
    shift = compute_shift(matches(sample_rows()), matches(sample_rows(models="wxyz")))
    assert (shift.models, shift.tau, shift.tau_low, shift.tau_high) == (0, None, None, None)
    assert all(change.change is None for change in shift.changes)


@each("system", *SYSTEMS)
@each("name, other", *((name, name) for name in HARD), ("all ties", "always the same"))
def test_hard_input_gives_a_shift(name: str, other: str, system: RatingSystem) -> None:
    rows = [(a, b, {"a": "b", "b": "a", "tie": "tie"}[o], p) for a, b, o, p in HARD[other][0]]
    shift = compute_shift(add_lengths(matches(HARD[name][0])), add_lengths(matches(rows)), system, 20)
    assert len(shift.changes) == len(shift.before.standings)
    for change in shift.changes:
        assert math.isfinite(change.change)
        assert (change.low is None) == (change.high is None)
        assert change.low is None or change.low <= change.change
    if shift.tau is not None and shift.tau_low is not None and shift.tau_high is not None:
        assert -1 <= shift.tau_low <= shift.tau <= shift.tau_high <= 1


def test_missing_interval_has_a_reason() -> None:
    one: list[Row] = [("x", "y", "a", "1"), ("x", "y", "a", "1")]
    shift = compute_shift(matches(one), matches(improve(one, "y")))
    assert shift.notes == ("fewer than two prompts on a board: no change has an interval",)
    assert all(change.p_rose is None for change in shift.changes)
    assert shift.draws == 0
    sure = [("x", "y", "a", str(i)) for i in range(9)]
    turned = compute_shift(matches(sure), matches([("x", "y", "b", p) for *_, p in sure]))
    assert turned.notes == ("no interval for x, y: nothing varies from prompt to prompt (change)",)
    figures = [(c.change, c.low, c.p_rose, c.p_fell) for c in turned.changes]
    assert figures == [(-1, None, None, None), (1, None, None, None)]
    rows = [*sample_rows(), ("z", "a", "tie", "p0")]
    alone = compute_shift(matches(rows), matches(improve(rows, "d")))
    assert alone.notes == ("no interval for z: on one prompt of a board only (change)",)
    assert by_model(alone)["z"].p_rose is None


def test_draws_of_other_prompts_are_refused() -> None:
    one, other = matches(sample_rows(prompts=5)), matches(sample_rows(prompts=6))
    with pytest.raises(UsageError, match="the draws are of 5 prompts, the matches have 6; draw again for them"):
        measure_shift(one, other, POINTS, {}, draw_prompts(one, POINTS, 0, 9))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=8))
def test_kendall_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    assert kendall_tau(x[None], y[None])[0] == pytest.approx(stats.kendalltau(x, y).statistic, nan_ok=True)


FLIP = ("--protocol", "pairwise", "--measure", "flip")


@pytest.mark.parametrize(("judge", "options", "present", "absent"), [  # one by one, since each makes a run
    ("bold", FLIP, ["under assertiveness, pairwise flips 39 of 40", "distract gate --max-flip-rate", "(`--control`)"],
     ["Do not", "Do not rely", "No losing response"]),
    ("first", FLIP, ["Do not rely on this judge: by no way of asking can it tell good from bad here. Use another one."],
     ["pairwise flips", "distract gate"]),
    ("coin", (*FLIP, "--limit", "8"),
     ["Do not rely on pairwise yet: nothing shows that it can tell good from bad there. Judge more cases."],
     ["Do not use", "distract gate", "Use another"]),
    ("gullible", FLIP, ["No losing response won after its rewrite: try other attacks"],
     ["pairwise flips", "distract gate"]),
    ("bold", (*FLIP, "--control"), ["pairwise flips"], ["(`--control`)"]),
    ("first", (*FLIP, "--protocol", "pointwise"),
     ["Do not use pairwise with this judge: it cannot tell good from bad there."], ["Do not rely"]),
    ("longer=0.3", (*FLIP, "--limit", "9"),
     ["Judge more cases (`--limit`)", "comparisons for each attack; this run has 9."], ["Do not use"]),
])  # fmt: skip
def test_advice_follows_from_the_figures(
    run: Run, judge: str, options: tuple[str, ...], present: list[str], absent: list[str]
) -> None:
    limit = () if "--limit" in options else ("--limit", "40")
    assert run("attack", "--judge", f"planted:{judge}", *options, *limit, "--out", "r").code in (0, 3)
    report = run("report", "r", "--verbose").words
    advice = report.partition("What to do next")[2].partition("Skill under attack:")[0]
    for text in present:
        assert text in advice
    for text in absent:
        assert text not in advice


def test_advice_is_on_pages_and_not_among_the_findings(run: Run) -> None:
    options = (*FLIP, "--limit", "40", "--out", "r", "--html", "p.html", "--markdown", "p.md")
    assert "What to do next" not in run("attack", "--judge", "planted:bold", *options).out
    for name in ("p.html", "p.md"):
        assert Path(name).read_text(encoding="utf-8").count("What to do next") == 1


@pytest.fixture
def runs(run: Run) -> Run:
    """An attack and a live gate of one judge."""
    judge = ("--judge", "planted:bold=0.7")
    assert run("attack", *judge, "--limit", "14", "--protocol", "pairwise", "--out", "attacked").code == 0
    assert run("gate", *judge, "--max-flip-rate", "0.2", "--out", "gated").code == 1
    return run


def test_card_states_what_the_runs_hold(runs: Run) -> None:
    result = runs("card", "attacked", "gated", "--max-flip-rate", "0.2")
    assert result.code == 0, result.err
    card = unescape(result.out)
    for text in (
        *("## Judge card: planted:bold=0.7", "### Run 1: attack", "### Run 2: gate", "### Gate"),
        *("| 1 | attack | tweakset | 14 of 200 | 0 |", "| 2 | gate | tweakset | 200 of 200 | 0 |"),
        *("### Fidelity of the rewrites", "Run 1 has 14 cases: too few to be sure of a rate."),
        *("Run 1 measured no noise", "Rewrites were checked by rules alone"),
    ):
        assert text in card
    assert card.count("<strong>FAIL</strong>") == 2
    assert "<svg" not in card
    for one in json.loads(Path("attacked/summary.json").read_text())["results"]:
        if one["measure"] in ("flip_rate", "skill_under_attack", "severity_accuracy") and one["n"]:
            assert f"| {percent(one['value'])} |" in card


def test_card_goes_to_files(runs: Run) -> None:
    printed = runs("card", "attacked").out
    assert runs("card", "attacked", "--markdown", "card.md", "--html", "card.html").out == ""
    assert Path("card.md").read_text(encoding="utf-8") == printed
    assert "Judge card" in Path("card.html").read_text(encoding="utf-8")


def test_card_is_of_one_judge_and_of_whole_runs(runs: Run) -> None:
    assert runs("attack", "--judge", "planted:fair", "--limit", "2", "--out", "other").code == 0
    message = "the runs are of different judges (planted:bold=0.7, planted:fair): make a card for each"
    check_refusal(runs("card", "attacked", "other"), message)
    shutil.copytree("attacked", "cut")
    Path("cut/manifest.json").unlink()
    damaged = runs("card", "cut")
    assert "warning: " in damaged.err
    assert unescape(damaged.out).count("the run is unfinished") == 2
    assert runs("card", "missing").code == 2


@each(
    "command, words",
    (("leaderboard", "--attack", "assertiveness", "--generator", "rules"), "Kendall's tau"),
    (("consistency",), "chains"),
    (("meta",), "match the label"),
)
def test_every_study_has_a_place_on_a_card(run: Run, command: tuple[str, ...], words: str) -> None:
    data = () if command == ("meta",) else ("--data", write_several())
    result = run(*command, "--judge", "planted:longer", "--limit", "4", *data, "--out", "r")
    assert result.code in (0, 3), result.err
    card = run("card", "r")
    assert card.code == 0, card.err
    assert f"### Run 1: {command[0]}" in unescape(card.out)
    assert words in unescape(card.out)
    assert ("No run attacks" in card.out) == (command[0] != "leaderboard")


WORDS = [f"w{number}" for number in range(8000)]
TEXT = " ".join(WORDS)


def rebuild(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Put both sequences together again from their edits."""
    first, second = list[str](), list[str]()
    for what, a, b, c, d in edits.opcodes(old, new):
        assert (what == "equal") == (old[a:b] == new[c:d])
        first += old[a:b]
        second += new[c:d]
    return first, second


@each("most, is_searched", (16, True), (15, False))
def test_words_are_searched_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, most: int, is_searched: bool) -> None:
    monkeypatch.setattr(edits, "MOST_CELLS", most)
    assert any(what == "equal" for what, *_ in edits.opcodes("aabb", "bbaa")) == is_searched


@given(st.text("ab c\n.\x1bé", max_size=60), st.text("ab c\n.\x1bé", max_size=60))
def test_difference_holds_both_texts(before: str, after: str) -> None:
    spans = mark_difference(before, after).spans
    for text, gone in ((before, "added"), (after, "removed")):
        left = "".join(one.text for one in spans if one.tone != gone)
        assert left.split() == clean_text(text).split()


def test_long_difference_shows_what_is_near_changes() -> None:
    middle = " ".join(WORDS[:300])
    shown = str(mark_difference(f"a {middle} b {middle}", f"c {middle} d {middle}", near=20))
    assert shown.count("[…]") == 2
    assert len(shown) < 200
    assert "[-a-]{+c+}" in shown


def test_long_change_is_cut() -> None:
    shown = str(mark_difference("a" * 100_000, "b " * 50_000, near=20))
    assert shown.startswith("[-aaa")
    assert (shown.count(" […] "), len(shown) < 300) == (2, True)


@each(
    "before, after",
    (TEXT, " ".join(f"{word}," for word in WORDS)),
    (TEXT, " ".join(f"{word} y{word}" for word in WORDS)),
    (TEXT, " ".join(WORDS[::-1])),
    (TEXT, "".join(WORDS)),
)
def test_difference_of_long_texts_is_bounded(before: str, after: str) -> None:
    # No timing is needed: an unbounded search takes a quarter of a minute for each.
    spans = mark_difference(before, after).spans
    assert "".join(one.text for one in spans if one.tone != "added") == before
    assert "".join(one.text for one in spans if one.tone != "removed") == after


@given(st.lists(st.sampled_from("abcdefgh"), max_size=24), st.lists(st.sampled_from("abcdefgh"), max_size=24))
def test_edits_lead_from_one_sequence_to_the_other(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for most in (0, 20, 10**6):
            patch.setattr(edits, "MOST_CELLS", most)
            assert rebuild(old, new) == (old, new)
