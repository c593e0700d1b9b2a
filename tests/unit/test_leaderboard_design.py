"""Test tournaments: pairings, matches judged again after an attack, and the resulting boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from builders import case, drive, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import registry
from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.core.records import BASELINE, UNCHANGED, Case, Reply, Request, Response, Row, Side
from distract.models.scripted import make_planted
from distract.rewriting.writers import WRITERS, Draft, Writer
from distract.studies.eligibility import pair_obstacle
from distract.studies.leaderboard.design import TournamentConfig, judge_attacks, judge_baseline
from distract.studies.leaderboard.measures import find_targets, measure_boards
from distract.studies.leaderboard.pairings import draw_balanced, round_robin

names = st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=7, unique=True)


# Match design.


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


# Judged matches.


def make_case(name: str = "c1", authors: str = "wxyz") -> Case:
    texts = {
        author: f"I think the colour of {author} might be red. It could be so in 3 of 4 cases." for author in authors
    }
    return case(name, prompt=f"Name a colour for {name}.", responses=[Response(a, (texts[a],)) for a in authors])


def alphabetic(request: Request) -> Reply:
    """Prefers a rewritten response to any other, then the first author in the alphabet."""
    assert request.slots is not None
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
    return {
        "protocols": {p.name: list(p.rules) for p in t.protocols},
        "attacks": [a.name for a in t.attacks],
        "systems": [{"name": "bradley-terry", "parameters": {}}],
        "targets": [],
        "lowest": 1,
        "seed": 0,
        "draws": 50,
        **more,
    }


def play(t: TournamentConfig, cases: Sequence[Case], chosen: Mapping[str, frozenset[str]] | None = None) -> list[Row]:
    rows = [row for one in cases for row in drive(judge_baseline(one, t), alphabetic)[0].rows]
    chosen = chosen or find_targets(parameters(t), rows)
    return rows + [row for one in cases for row in drive(judge_attacks(one, t, chosen), alphabetic)[0].rows]


def test_all_models_are_paired_and_only_changed_matches_rejudged() -> None:
    cases = [make_case(f"c{i}") for i in range(3)]
    rows = play(tournament(cases), cases)
    before = [row for row in rows if row.attack == BASELINE]
    assert len(before) == 3 * 6 * 2
    after = [row for row in rows if row.attack == "assertiveness"]
    assert {(row.a.author, row.b.author) for row in after} == {("w", "z"), ("x", "z"), ("y", "z")}
    assert len(after) == 3 * 3 * 2
    assert all(row.b == Side("z", "assertiveness") and row.a.attack is None for row in after)
    assert all(row.design == "match" and len(row.lengths) == 2 for row in rows)
    assert {row.lengths for row in after}.isdisjoint(row.lengths for row in before)


def test_each_protocol_attacks_the_lowest_of_its_own_board() -> None:
    def reversed_when_alone(request: Request) -> Reply:
        assert request.slots is not None
        if len(request.slots.shown) == 1:
            message = str(1 + "wxyz".index(request.slots.shown[0].author))
            return Reply(probabilities=tuple(float(choice == message) for choice in request.choices), mass=1.0)
        return alphabetic(request)

    cases = [make_case(f"c{i}") for i in range(2)]
    t = tournament(cases)
    rows = [row for one in cases for row in drive(judge_baseline(one, t), reversed_when_alone)[0].rows]
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

    cases = [make_case(f"c{i}") for i in range(4)]
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
    cases = [make_case(f"c{i}") for i in range(6)]
    t = tournament(cases)
    boards = measure_boards(parameters(t), play(t, cases))
    assert {(one.protocol, one.rule) for one in boards.shifts} == {
        ("pairwise", None),
        ("absolute", "score"),
        ("absolute", "rating"),
    }
    (one,) = (s for s in boards.shifts if s.protocol == "pairwise")
    change = next(c for c in one.shift.changes if c.model == "z")
    assert (change.rank_before, change.rank_after, change.p_rose) == (4, 1, 1)
    assert one.targets == ("z",)
    assert [b.attack for b in boards.boards if b.protocol == "pairwise"] == [BASELINE, "assertiveness"]

    def fair(request: Request) -> Reply:
        ((_, reply),) = next(iter(make_planted("fair").reply([request], frozenset({0}))))
        return reply

    rows = [row for c in cases for row in drive(judge_baseline(c, t), fair)[0].rows]
    rows += [row for c in cases for row in drive(judge_attacks(c, t, find_targets(parameters(t), rows)), fair)[0].rows]
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
    rows = list(drive(judge_baseline(cases[0], t), mute)[0].rows)
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
    def muted(request: Request) -> Reply:
        assert request.slots is not None
        if any(response.author == "w" for response in request.slots.shown):
            return Reply(failure="refused")
        return alphabetic(request)

    cases = [make_case("c1"), make_case("c2")]
    t = tournament(cases, protocols=("pairwise",))
    p = parameters(t, systems=[{"name": "bradley-terry", "parameters": {"anchor": "w"}}])
    rows = [row for one in cases for row in drive(judge_baseline(one, t), muted)[0].rows]
    assert find_targets(p, rows) == {"pairwise": {"z"}}
    rows += [row for one in cases for row in drive(judge_attacks(one, t, find_targets(p, rows)), muted)[0].rows]
    boards = measure_boards(p, rows)
    assert (boards.boards, boards.shifts) == ((), ())
    assert boards.absent == ("pairwise: the anchor of bradley-terry, anchor w has no valid match",)
