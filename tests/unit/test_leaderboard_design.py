"""Test tournaments: pairings, matches judged again after an attack, and the resulting boards."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, verdict, write_rows
from command_result import Run, check_refusal, fits
from hypothesis import given, strategies as st
from loops import each

from distract.core import registry
from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.core.records import BASELINE, UNCHANGED, Case, Reply, Request, Response, Row, Side
from distract.core.runs import load
from distract.models.scripted import make_planted
from distract.rewriting.writers import WRITERS, Draft, Writer
from distract.studies.eligibility import pair_obstacle
from distract.studies.leaderboard.measures import find_targets, measure_boards
from distract.studies.leaderboard.session import (
    TournamentConfig,
    draw_balanced,
    judge_attacks,
    judge_baseline,
    round_robin,
)

Judging = Callable[[Request], Reply]

names = st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=7, unique=True)


@given(st.lists(names, min_size=1, max_size=8), st.integers(1, 120), st.integers())
def test_sampled_design_is_part_of_the_round_robin(models: list[list[str]], most: int, seed: int) -> None:
    every, drawn = round_robin(models), draw_balanced(models, most, seed)
    assert [set(some) <= set(all_) for some, all_ in zip(drawn, every, strict=True)] == [True] * len(models)
    assert all(len(set(some)) == len(some) for some in drawn)
    assert sum(map(len, drawn)) == min(most, sum(map(len, every)))
    assert draw_balanced([prompt[::-1] for prompt in models], most, seed) == drawn


@given(st.integers(2, 9), st.integers(1, 12), st.integers(1, 200), st.integers(0, 5))
def test_complete_answers_give_a_balanced_design(n: int, prompts: int, most: int, seed: int) -> None:
    drawn = draw_balanced([[f"m{i}" for i in range(n)]] * prompts, most, seed)
    met = Counter(dict.fromkeys(combinations([f"m{i}" for i in range(n)], 2), 0))
    met.update(pair for some in drawn for pair in some)
    played = Counter({f"m{i}": 0 for i in range(n)})
    played.update(name for some in drawn for pair in some for name in pair)
    assert max(met.values()) - min(met.values()) <= 1
    assert max(played.values()) - min(played.values()) <= 2
    assert max(map(len, drawn)) - min(map(len, drawn)) <= 1


@each("n, most", (4, 3), (6, 6), (9, 10), (30, 40))
def test_few_matches_connect_as_many_models_as_possible(n: int, most: int) -> None:
    drawn = draw_balanced([[f"m{i:02}" for i in range(n)]] * 5, most, seed=1)
    groups = [{f"m{i:02}"} for i in range(n)]
    for one, other in (pair for some in drawn for pair in some):
        together = [group for group in groups if one in group or other in group]
        groups = [group for group in groups if group not in together] + [set().union(*together)]
    assert len(groups) == 1


def test_seed_draws_other_matches() -> None:
    models = [["a", "b", "c", "d", "e"]] * 6
    assert len({str(draw_balanced(models, 10, seed)) for seed in range(5)}) > 1


def make_case(name: str = "c1", authors: str = "wxyz") -> Case:
    text = "I think the colour of {} might be red. It could be so in 3 of 4 cases."
    responses = [Response(author, (text.format(author),)) for author in authors]
    return case(name, prompt=f"Name a colour for {name}.", responses=responses)


def make_cases(number: int) -> list[Case]:
    return [make_case(f"c{i}") for i in range(number)]


def alphabetic(request: Any) -> Reply:
    """Prefers a rewritten response to any other, then the first author in the alphabet."""
    outcomes, responses = dict(request.slots.outcomes), request.slots.shown
    values = [(response.attack is not None, -ord(response.author[0])) for response in responses]
    if "first" in outcomes:
        outcome_text = outcomes["first" if values[0] > values[1] else "second"]
    else:
        outcome_text = str(7 - "wxyz".index(responses[0].author[0]) if responses[0].attack is None else 7)
    return Reply(probabilities=tuple(float(choice == outcome_text) for choice in request.choices), mass=1.0)


def tournament(
    cases: Sequence[Case], *, protocols: Sequence[str] = ("pairwise", "absolute"), **more: Any
) -> TournamentConfig:
    pairs = {one.id: tuple(combinations(sorted(r.author for r in one.originals), 2)) for one in cases}
    arguments = tuple(registry.get_protocol(name) for name in protocols)
    settings: dict[str, Any] = {"attacks": (registry.get_attack("assertiveness"),), "writer": WRITERS["rules"], **more}
    return TournamentConfig("j", arguments, pairs=pairs, **settings)


def parameters(t: TournamentConfig, **more: Any) -> dict[str, Any]:
    named = {"protocols": {p.name: list(p.rules) for p in t.protocols}, "attacks": [a.name for a in t.attacks]}
    systems = [{"name": "bradley-terry", "parameters": {}}]
    return {**named, "systems": systems, "targets": [], "lowest": 1, "seed": 0, "draws": 50, **more}


def play_baseline(t: TournamentConfig, cases: Sequence[Case], judge: Judging = alphabetic) -> list[Row]:
    return [row for one in cases for row in drive(judge_baseline(one, t), judge)[0].rows]


def play(
    t: TournamentConfig, cases: Sequence[Case], chosen: Any = None, judge: Judging = alphabetic, **more: Any
) -> list[Row]:
    rows = play_baseline(t, cases, judge)
    chosen = chosen or find_targets(parameters(t, **more), rows)
    return rows + [row for one in cases for row in drive(judge_attacks(one, t, chosen), judge)[0].rows]


def test_all_models_are_paired_and_only_changed_matches_rejudged() -> None:
    cases = make_cases(3)
    rows = play(tournament(cases), cases)
    before = [row for row in rows if row.attack == BASELINE]
    assert len(before) == 3 * 6 * 2
    after = [row for row in rows if row.attack == "assertiveness"]
    assert {(row.a.author, row.b.author) for row in after} == {("w", "z"), ("x", "z"), ("y", "z")}
    assert len(after) == 3 * 3 * 2
    assert all(row.b == Side("z", "assertiveness") and row.a.attack is None for row in after)
    assert all(row.design == "match" and len(row.extra["lengths"]) == 2 for row in rows)
    assert {str(row.extra) for row in after}.isdisjoint(str(row.extra) for row in before)


def test_each_protocol_attacks_the_lowest_of_its_own_board() -> None:
    def reversed_when_alone(request: Any) -> Reply:
        if len(request.slots.shown) == 1:
            message = str(1 + "wxyz".index(request.slots.shown[0].author))
            return Reply(probabilities=tuple(float(choice == message) for choice in request.choices), mass=1.0)
        return alphabetic(request)

    cases = make_cases(2)
    t = tournament(cases)
    rows = play_baseline(t, cases, reversed_when_alone)
    assert find_targets(parameters(t), rows) == {"pairwise": {"z"}, "absolute": {"w"}}
    assert find_targets(parameters(t, lowest=3), rows) == {"pairwise": {"x", "y", "z"}, "absolute": {"w", "x", "y"}}
    assert find_targets(parameters(t, targets=["x"], lowest=0), rows) == {"pairwise": {"x"}, "absolute": {"x"}}


def test_both_sides_of_a_match_may_be_rewritten() -> None:
    cases = [make_case("c1")]
    rows = play(tournament(cases, protocols=("pairwise",)), cases, {"pairwise": frozenset("yz")})
    both = [row for row in rows if row.a.attack and row.b.attack]
    assert [(row.a.author, row.b.author) for row in both] == [("y", "z")]
    assert both[0].judgments
    assert len([row for row in rows if row.attack != BASELINE]) == 5


def test_match_with_a_rejected_rewrite_keeps_its_verdict() -> None:
    def rejects(a: Attack, task: WritingTask) -> Plan[list[Draft]]:
        yield from ()
        return [Draft(Response(task.response.author, ("I cannot help with that.",), a.name), "none", ("refusal",))]

    cases = make_cases(4)
    t = tournament(cases, writer=Writer("w", "", rejects), protocols=("pairwise",))
    rows = play(t, cases)
    assert {row.excluded for row in rows if row.attack != BASELINE} == {"rewrite rejected"}
    boards = measure_boards(parameters(t), rows)
    assert (len(boards.boards), boards.shifts) == (1, ())
    assert boards.absent == ("pairwise: assertiveness rewrote no response, so that no match was judged again",)
    # Matches of rewritable responses are judged again; the others keep their verdicts.
    rows = [replace(row, excluded=None, b=Side("z", "assertiveness"), judgments=(verdict("b"),))
            if row.attack != BASELINE and row.case == "c0" else row for row in rows]  # fmt: skip
    (one,) = measure_boards(parameters(t), rows).shifts
    assert (one.rewritten, one.standing, one.again, one.lost) == (1, 3, 3, 0)
    assert (one.shift.before.matches, one.shift.after.matches) == (24, 24)


def test_control_without_changes_leaves_the_match_alone() -> None:
    cases = [make_case("c1")]
    rows = play(tournament(cases, attacks=(registry.get_attack("null"),), protocols=("pairwise",)), cases)
    assert {row.excluded for row in rows if row.attack == "null"} == {UNCHANGED}


def test_working_attack_lifts_the_lowest_for_a_biased_judge_only() -> None:
    cases = make_cases(6)
    t = tournament(cases)
    boards = measure_boards(parameters(t), play(t, cases))
    rules = {(one.protocol, one.rule) for one in boards.shifts}
    assert rules == {("pairwise", None), ("absolute", "score"), ("absolute", "rating")}
    (one,) = (s for s in boards.shifts if s.protocol == "pairwise")
    change = next(c for c in one.shift.changes if c.model == "z")
    assert (change.rank_before, change.rank_after, change.p_rose) == (4, 1, 1)
    assert one.targets == ("z",)
    assert [b.attack for b in boards.boards if b.protocol == "pairwise"] == [BASELINE, "assertiveness"]

    rows = play(t, cases, judge=make_planted("fair")._answer_one)
    assert all(c.change == 0 for s in measure_boards(parameters(t), rows).shifts for c in s.shift.changes)


def test_half_valid_match_is_on_neither_board_of_a_shift() -> None:
    def row(name: str, a: str, b: str, won: Any, attack: str = BASELINE) -> Row:
        sides = Side(a), Side(b, None if attack == BASELINE else attack)
        return Row(name, name, "match", "pairwise", "j", attack, *sides, judgments=(verdict(won),))

    rows = [
        row(f"c{i}", a, b, won) for i in range(3) for a, b, won in [("x", "y", "a"), ("x", "z", "b"), ("y", "z", "a")]
    ]
    rows[0] = replace(rows[0], judgments=(verdict(None),))
    rows += [row(f"c{i}", a, "z", "tie" if i else None, "bold") for i in range(3) for a in "xy"]
    p = {**parameters(tournament([])), "protocols": {"pairwise": []}, "attacks": ["bold"], "targets": ["z"]}
    boards = measure_boards(p, rows)
    (one,) = boards.shifts
    assert (one.again, one.lost, one.shift.before.matches, one.shift.after.matches) == (6, 3, 6, 6)
    before, after = (b.board for b in boards.boards)
    assert (before.matches, before.invalid, after.matches, after.invalid) == (8, 1, 6, 3)


def test_board_without_valid_matches_is_not_attacked() -> None:
    def mute(request: Request) -> Reply:
        return Reply(failure="refused")

    cases = [make_case("c1")]
    t = tournament(cases, protocols=("pairwise",))
    rows = play_baseline(t, cases, mute)
    chosen = find_targets(parameters(t), rows)
    assert chosen == {"pairwise": frozenset()}
    assert drive(judge_attacks(cases[0], t, chosen), mute)[0].rows == []
    boards = measure_boards(parameters(t), rows)
    assert (boards.boards, boards.shifts) == ((), ())
    assert boards.absent == ("pairwise: no verdict was valid, so that nothing is rated",)


def test_protocols_that_show_more_than_two_give_no_match() -> None:
    refused = {name for name, protocol in registry.protocols().items() if pair_obstacle(protocol)}
    assert {"triadic", "quadruple"} <= refused
    assert not refused & {"pairwise", "absolute", "prepair", "rank"}


def test_anchor_without_a_valid_match_is_reported() -> None:
    def muted(request: Any) -> Reply:
        is_refused = any(response.author == "w" for response in request.slots.shown)
        return Reply(failure="refused") if is_refused else alphabetic(request)

    cases = [make_case("c1"), make_case("c2")]
    t = tournament(cases, protocols=("pairwise",))
    systems = [{"name": "bradley-terry", "parameters": {"anchor": "w"}}]
    rows, p = play(t, cases, judge=muted, systems=systems), parameters(t, systems=systems)
    assert find_targets(p, rows) == {"pairwise": {"z"}}
    boards = measure_boards(p, rows)
    assert (boards.boards, boards.shifts) == ((), ())
    assert boards.absent == ("pairwise: the anchor of bradley-terry, anchor w has no valid match",)


VOTES = [("a", "b", "model_a"), ("b", "c", "model_a"), ("a", "c", "tie"), ("c", "a", "model_b"), ("b", "a", "model_b")]


def votes(path: str, rows: list[tuple[str, str, str]] | None = None, prompts: int = 5) -> str:
    played = enumerate(VOTES * 4 if rows is None else rows)
    fields = ("model_a", "model_b", "winner", "question_id")
    return write_rows(path, [dict(zip(fields, (*row, index % prompts), strict=True)) for index, row in played])


def data(path: str, cases: int = 6, models: str = "wxyz") -> str:
    """Answers of different lengths, so that the planted judge of length ranks them."""
    hedged = "I think it might be {} of the reasons, and perhaps it could be more. "
    lines = list[dict[str, Any]]()
    for i in range(cases):
        texts = {name: hedged.format(3 + i) * (len(models) - place) for place, name in enumerate(models)}
        responses = [{"author": name, "text": text} for name, text in texts.items()]
        lines.append({"id": f"c{i}", "prompt": f"Give reason number {i}.", "responses": responses})
    return write_rows(path, lines)


PLAY = ("leaderboard", "--judge", "planted:bold", "--generator", "rules", "--limit", "all")


def test_rated_votes_fit_eighty_columns(run: Run) -> None:
    result = run("leaderboard", "--matches", votes("votes.jsonl"), "--system", "bradley-terry", "--system", "win-rate")
    assert result.code == 0
    fits(result.out)
    assert "bradley-terry: 20 matches, 5 prompts" in result.words
    assert "win-rate" in result.words
    rows = run("leaderboard", "--matches", "votes.jsonl", "--json").document["boards"][0]["rows"]
    counts = [tuple(row[name] for name in ("model", "wins", "losses", "ties")) for row in rows]
    assert counts == [("a", 12, 0, 4), ("b", 4, 8, 0), ("c", 0, 8, 4)]


def test_anchor_keeps_its_rating(run: Run) -> None:
    votes("votes.jsonl")
    result = run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "bradley-terry", "--json")
    by = {row["model"]: row for row in result.document["boards"][0]["rows"]}
    assert (by["c"]["rating"], by["c"]["low"], by["c"]["high"]) == (1000.0, 1000.0, 1000.0)
    assert result.document["boards"][0]["parameters"]["anchor"] == "c"
    check_refusal(run("leaderboard", "--matches", "votes.jsonl", "--anchor", "c", "--system", "elo"), "bradley-terry")


def test_boards_of_two_files_are_compared(run: Run) -> None:
    votes("one.jsonl")
    votes("two.jsonl", [(a, b, {"model_a": "model_b", "model_b": "model_a"}.get(w, w)) for a, b, w in VOTES * 4])
    (one,) = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json").document["against"]
    by = {row["model"]: row for row in one["rows"]}
    assert (by["a"]["rank_before"], by["a"]["rank_after"]) == (3, 1)
    assert by["a"]["change"] > 0 > by["c"]["change"]
    assert one["tau"] == -1
    turned = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--verbose")
    assert "more:" not in turned.words
    assert "2 of 3 models changed rank: " in turned.words
    assert "a (3 → 1)" in turned.words[: turned.words.index("Kendall's tau")]
    same = run("leaderboard", "--matches", "one.jsonl", "--against", "one.jsonl")
    assert "0 of 3 models changed rank." in same.words
    assert same.code == 0
    assert "Kendall's tau between the two boards: 1.00" in same.words
    fits(same.out)


def test_failed_comparison_keeps_the_paid_results(run: Run) -> None:
    data("d.jsonl")
    votes("votes.jsonl", [("w", "x", "tie"), ("x", "y", "model_a")])
    result = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--against", "votes.jsonl", "--json")
    assert (result.code, result.document["boards"]) == (3, [])
    assert "not compared" in result.err


def test_boards_without_a_common_prompt_are_not_paired(run: Run) -> None:
    votes("one.jsonl")
    Path("two.jsonl").write_text(Path("one.jsonl").read_text().replace('"question_id": ', '"question_id": 1'))
    (result,) = run("leaderboard", "--matches", "one.jsonl", "--against", "two.jsonl", "--json").document["against"]
    assert (result["paired"], result["shared"], result["prompts"]) == (False, 0, 10)
    assert "no prompt is on both boards" in result["notes"][0]


def test_constant_prompts_give_no_interval(run: Run) -> None:
    votes("v.jsonl", [("a", "b", "model_a"), ("a", "c", "model_a"), ("b", "c", "model_a")] * 4, prompts=4)
    systems = [part for name in ("elo", "elo:order=file", "trueskill", "win-rate") for part in ("--system", name)]
    for board in run("leaderboard", "--matches", "v.jsonl", *systems, "--json").document["boards"]:
        assert all(row["low"] is None for row in board["rows"]), board["system"]
        assert any("no interval" in note for note in board["notes"])
        assert any("4 prompts only" in note for note in board["notes"])


def test_sampled_matches_are_balanced(run: Run) -> None:
    data("d.jsonl")
    result = run(*PLAY, "--data", "d.jsonl", "--pairs", 12, "--json", "--protocol", "pairwise", "--out", "run")
    (board,) = result.document["boards"]
    assert board["matches"] == 12
    assert {row["matches"] for row in board["rows"]} == {6}
    pairs = {f"{row.a.author}{row.b.author}" for row in load(Path("run")).rows}
    assert pairs == {"wx", "wy", "wz", "xy", "xz", "yz"}


def test_names_stay_text(run: Run) -> None:
    names = ['Ann, "the" judge', "[bold]red[/bold]", "🦙 llama", "=1+1"]
    votes("votes.jsonl", [(a, b, "model_a") for i, a in enumerate(names) for b in names[i + 1 :]] * 3)
    result = run("leaderboard", "--matches", "votes.jsonl", "--anchor", names[0])
    assert result.code == 0, result.err
    fits(result.out)
    for name in names:
        assert name in result.out
    report = run("leaderboard", "--matches", "votes.jsonl", "--json").document["boards"][0]
    assert {row["model"] for row in report["rows"]} == set(names)


def test_models_option_accepts_names_with_commas(run: Run) -> None:
    Path("d.jsonl").write_text(Path(data("d.jsonl")).read_text().replace('"w"', '"w, the first"'))
    result = run(*PLAY, "--data", "d.jsonl", "--models", "w, the first", "--models", "x,y", "--json")
    assert result.document["models"] == ["w, the first", "x", "y"]


WRONG: list[tuple[tuple[Any, ...], str]] = [
    (("--matches", "nowhere.jsonl"), "no such file"),
    (("--matches", "votes.jsonl", "--system", "glicko"), "unknown rating system 'glicko'"),
    (("--matches", "votes.jsonl", "--system", "elo:kk=3"), "no parameter 'kk'"),
    (("--matches", "votes.jsonl", "--system", "elo:k=much"), "expected a number"),
    (("--matches", "votes.jsonl", "--system", "style-control"), "length"),
    (("--matches", "votes.jsonl", "--anchor", "nobody"), "unknown model 'nobody'"),
    (("--matches", "votes.jsonl", "--system", "elo:k=1e308"), "in size"),
    (("--matches", "votes.jsonl", "--system", "bradley-terry:anchor=a", "--anchor", "b"), "anchor a already"),
    (("--matches", "votes.jsonl", "--against", ""), "no such file"),
    (("--data", "d.jsonl", "--anchor", "nobody"), "unknown model 'nobody'"),
    (("--data", "d.jsonl", "--system", "elo:k=-3"), "k: expected"),
    (("--data", "d.jsonl", "--against", "votes.jsonl"), "shares fewer than two models"),
    (("--data", "d.jsonl", "--pairs", "1"), "too few for matches of 4 models; expected at least 2"),
    (("--matches", "votes.jsonl", "--judge", "planted:fair"), "--judge applies only when a judge is asked"),
    (("--matches", "votes.jsonl", "--lowest", "1"), "--lowest applies only when a judge is asked"),
    (("--matches", "self.jsonl"), "self.jsonl:1"),
    (("--matches", "odd.jsonl"), "winner"),
    (("--matches", "votes.jsonl", "--against", "others.jsonl"), "shares fewer than two models"),
    (("--data", "d.jsonl", "--models", "w,nobody"), "unknown model 'nobody'"),
    (("--data", "d.jsonl", "--models", "w"), "w is the only model"),
    (("--data", "d.jsonl", "--attack", "boldly"), "unknown attack 'boldly'"),
    (("--data", "d.jsonl", "--attack", "severity-1"), "name an attack on style"),
    (("--data", "d.jsonl", "--attack", "none"), "rewrites nothing"),
    (("--data", "d.jsonl", "--lowest", "1"), "--attack"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--lowest", "4"), "expected 1 to 3"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "nobody"), "unknown target 'nobody'"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--target", "w", "--lowest", "1"), "omit --lowest"),
    (("--data", "d.jsonl", "--attack", "assertiveness", "--generator", "recorded"), "no recorded rewrites"),
    (("--data", "d.jsonl", "--protocol", "triadic"), "shows 3 responses"),
    (("--data", "d.jsonl", "--protocol", "strong-reference"), "reference"),
    (("--data", "one.jsonl"), "no case can be judged"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_input_is_one_line(run: Run, options: tuple[Any, ...], message: str) -> None:
    data("d.jsonl")
    votes("votes.jsonl")
    votes("others.jsonl", [("x", "y", "tie")])
    votes("self.jsonl", [("a", "a", "tie")])
    votes("odd.jsonl", [("a", "b", "both great")])
    singles = [{"id": f"c{name}", "prompt": name, "responses": [{"author": name, "text": "So."}]} for name in "wx"]
    write_rows("one.jsonl", singles)
    check_refusal(
        run("leaderboard", *(() if "--matches" in options else ("--judge", "planted:fair")), *options), message
    )


def test_judge_without_verdicts_is_inconclusive(run: Run) -> None:
    data("d.jsonl")
    result = run("leaderboard", "--judge", "planted:garbage", "--data", "d.jsonl", "--attack", "assertiveness")
    assert result.code == 3
    assert "no verdict was valid" in result.err
    assert "nothing is rated" in result.words
