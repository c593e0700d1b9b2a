"""Protocols ranked on hand-counted rows, and what is printed of it."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from builders import row, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from distract.core.records import Row
from distract.judging import BASE
from distract.report.tables import show
from distract.stats import intervals
from distract.studies.attack import ranking_view as report
from distract.studies.attack.ranking import ProtocolRank, document, rank_protocols
from distract.studies.attack.ranking_view import HEIGHT, MARKS, WIDTH, ranking_parts

A, B, NONE = verdict("a"), verdict("b"), verdict(None)


@pytest.fixture(autouse=True)
def _two_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FEWEST", 2)


def asked(protocol: str, flips: str, attack: str = "f", tokens: int = 0, clusters: str = "") -> list[Row]:
    """One pair for each character: ``x`` flips, ``.`` holds, ``?`` is invalid, ``=`` has no loser before."""
    rows = []
    for i, flip in enumerate(flips):
        cluster = clusters[i] if clusters else None
        before = {"?": [NONE, A], "=": [A, B]}.get(flip, [A, A])
        after = [B, B] if flip == "x" else [A, A]
        rows += [
            row(f"c{i}", before, protocol=protocol, cluster=cluster),
            row(f"c{i}", after, protocol=protocol, cluster=cluster, attack=attack, target="b"),
        ]
    key = f"{protocol} {attack}"
    return [replace(one, keys=(f"{key} {i}",), tokens=((tokens, 0),)) for i, one in enumerate(rows)]


def ranked(*parts: list[Row], attacks: Sequence[str] = ("f",), rules: Sequence[str] = ()) -> dict[str, ProtocolRank]:
    rows = [one for part in parts for one in part]
    names = dict.fromkeys(one.protocol for one in rows)
    found = rank_protocols(rows, dict.fromkeys(names, rules), attacks, {"none", "null"})
    return {standing.protocol: standing for standing in found}


def test_flips_are_pooled_over_attacks_and_controls_left_out() -> None:
    rows = [
        *asked("p", "x.?=", "f", clusters="1223"),
        *(one for one in asked("p", "xx??", "g", clusters="1223") if one.target),
        *(one for one in asked("p", "xxxx", "null") if one.target),
        row("gone", [], protocol="p", excluded="no two responses by different authors"),
        row("c0", [A, A], protocol="p", design="severity", severity=1),  # of another design: a comparison, no pair
    ]
    (found,) = rank_protocols(rows, {"p": ()}, ["none", "f", "g", "null", "f"], frozenset({"none", "null"}))
    # Under f and g each: c0 and c1 count, c2 is invalid, c3 a tie before, "gone" excluded.
    assert (found.k, found.n, found.invalid, found.excluded) == (3, 4, 2, 4)
    assert (found.value, found.rule, found.against_base) == (0.75, None, None)
    assert (found.low, found.high) == intervals.rate_interval([1, 0, 1, 1], ["1", "2", "1", "2"])
    assert found.comparisons == 4 + 4 + 4 + 4 + 1


@pytest.mark.parametrize("attacks", [[], ["none"], ["null", "none"]])
def test_with_controls_alone_there_is_no_ranking(attacks: list[str]) -> None:
    assert rank_protocols(asked("p", "x", "null"), {"p": ()}, attacks, {"none", "null"}) == []


def test_a_scoring_protocol_stands_by_its_score() -> None:
    rows = [
        row("c", [scored((5.2, 5.1), (5, 6))], protocol="s"),  # by score b lost, by rating a lost
        row("c", [scored((5.2, 5.6), (5, 6))], protocol="s", attack="f", target="b"),
        row("c", [scored((5.4, 5.1), (6, 6))], protocol="s", attack="f", target="a"),
    ]
    found = ranked(rows, rules=("score", "rating"))["s"]
    assert (found.rule, found.k, found.n) == ("score", 1, 1)


@pytest.mark.parametrize(
    ("rows", "invalid", "excluded"),
    [
        ([], 0, 0),
        (asked("p", "??"), 2, 0),
        (asked("p", "=="), 0, 2),
        ([row("c", [], protocol="p", excluded="e")], 0, 1),
    ],
)
def test_without_a_valid_unit_a_protocol_has_no_rate_and_is_never_on_the_front(
    rows: list[Row], invalid: int, excluded: int
) -> None:
    (found,) = rank_protocols(rows, {"p": ()}, ["f"], ())
    assert (found.k, found.n, found.value, found.low, found.high) == (0, 0, None, None, None)
    assert (found.invalid, found.excluded, found.pareto) == (invalid, excluded, False)
    assert found.calls == found.comparisons / max(found.comparisons, 1)


def test_a_call_that_serves_several_comparisons_counts_once() -> None:
    rows = [
        replace(one, keys=("shared", f"own {i}"), tokens=((100, 20), (30, 1)))
        for i, one in enumerate([*asked("p", "x."), row("c", [A, A], protocol="p", design="fixed", attack="f")])
    ]
    found = ranked(rows, asked("q", "."))["p"]
    assert found.comparisons == 5
    assert found.calls == pytest.approx(6 / 5)
    assert found.tokens == pytest.approx((120 + 5 * 31) / 5)
    assert found.answer_tokens == pytest.approx((20 + 5 * 1) / 5)
    assert (found.cost, found.cost_unit) == (found.tokens, "tokens")


def test_protocols_are_compared_with_the_base_by_mcnemar_and_holm() -> None:
    found = ranked(
        asked(BASE, "x" * 12 + "." * 8),
        asked("robust", "." * 20),
        asked("same", "x" * 11 + "." * 7 + "x?"),
        asked("fragile", "x" * 20),
        asked("elsewhere", "?" * 20),
    )
    mcnemar = {"robust": (0, 12, 20), "same": (1, 1, 19), "fragile": (8, 0, 20)}
    p_values = [intervals.mcnemar(up, down) for up, down, _ in mcnemar.values()]
    adjusted = intervals.holm(p_values)
    assert p_values == pytest.approx([2 * 0.5**12, 1.0, 2 * 0.5**8])
    for (name, (up, down, n)), p, holm in zip(mcnemar.items(), p_values, adjusted, strict=True):
        standing = found[name]
        assert standing.shared == n
        assert standing.difference == pytest.approx((up - down) / n)
        assert standing.p_value == pytest.approx(p)
        assert standing.p_adjusted == pytest.approx(holm)
    assert found["robust"].p_adjusted == pytest.approx(3 * 2 * 0.5**12)
    assert {name: standing.against_base for name, standing in found.items()} == {
        "robust": "better",
        "same": "not distinguishable",
        BASE: None,
        "fragile": "worse",
        "elsewhere": None,
    }


def test_units_of_one_prompt_are_not_taken_for_so_many_prompts() -> None:
    base, other = asked(BASE, "x" * 12, clusters="112233445566"), asked("p", "." * 12, clusters="112233445566")
    # Twelve pairs of six prompts that all say the same are worth six.
    assert ranked(base, other)["p"].p_value == pytest.approx(intervals.mcnemar(0, 6))
    twice = [*asked(BASE, "xxxxxx"), *asked("p", "......")]
    twice += [replace(one, attack="g") for one in twice if one.target]
    found = ranked(twice, attacks=("f", "g"))["p"]
    assert found.shared == 12
    assert found.p_value == pytest.approx(intervals.mcnemar(0, 6))


def test_without_the_base_nothing_is_compared() -> None:
    for found in (ranked(asked("p", "x"), asked("q", ".")), ranked(asked("p", "x"), asked(BASE, "?"))):
        assert {(s.against_base, s.difference, s.p_value, s.p_adjusted) for s in found.values()} == {(None,) * 4}


def test_the_most_robust_comes_first_then_the_cheapest_then_by_name() -> None:
    found = ranked(
        asked("none", "??", tokens=1),
        asked("worst", "xx", tokens=1),
        asked("z", "x.", tokens=5),
        asked("dear", "x.", tokens=9),
        asked("y", "x.", tokens=5),
        asked("best", "..", tokens=99),
    )
    assert list(found) == ["best", "y", "z", "dear", "worst", "none"]
    assert [name for name, s in found.items() if s.pareto] == ["best", "y", "z", "worst"]


@given(st.lists(st.tuples(st.text("x.?", min_size=1, max_size=4), st.integers(0, 3)), min_size=1, max_size=7))
def test_the_front_is_what_a_double_loop_finds(protocols: list[tuple[str, int]]) -> None:
    found = list(ranked(*(asked(f"p{i}", flips, tokens=n) for i, (flips, n) in enumerate(protocols))).values())
    assert {s.cost_unit for s in found} == {"tokens" if any(n for _, n in protocols) else "calls"}
    for one in found:
        on = one.n > 0
        for other in found:
            if other.n > 0 and one.n > 0:
                robust, cheap = other.k * one.n <= one.k * other.n, other.cost <= one.cost
                strictly = other.k * one.n < one.k * other.n or other.cost < one.cost
                on = on and not (robust and cheap and strictly)
        assert one.pareto == on
        assert one.cost == (one.tokens if one.cost_unit == "tokens" else one.calls)


def test_the_document_is_json_rounded_to_four_decimals() -> None:
    found = ranked(asked(BASE, "x..", tokens=7), asked("p", "...", tokens=9))
    made = json.loads(json.dumps(document(found.values()), allow_nan=False))
    assert [one["protocol"] for one in made] == ["p", BASE]
    assert (made[1]["value"], made[0]["difference"], made[1]["k"]) == (0.3333, -0.3333, 1)
    numbers = [value for one in made for value in one.values() if isinstance(value, float)]
    assert numbers == [round(value, 4) for value in numbers]


def standing(protocol: str, k: int, tokens: float, **changes: Any) -> ProtocolRank:
    made = ProtocolRank(
        protocol=protocol,
        rule=None,
        k=k,
        n=12000,
        value=k / 12000,
        low=0.9,
        high=1.0,
        invalid=0,
        excluded=0,
        comparisons=10,
        calls=123.4,
        tokens=tokens,
        answer_tokens=0.0,
        cost=tokens,
    )
    return replace(made, **changes)


def printed(standings: Sequence[ProtocolRank]) -> str:
    file = io.StringIO()
    show(ranking_parts(standings), Console(file=file, width=80, highlight=False, force_terminal=False))
    return file.getvalue()


def plotted(text: str) -> list[str]:
    """What stands inside the axes."""
    return [one.split("│", 1)[1] for one in text.splitlines() if "│" in one]


def test_fewer_than_two_protocols_give_no_table() -> None:
    assert printed([]) == printed([standing("p", 1, 1.0)]) == ""


def test_a_table_reads_as_expected() -> None:
    found = ranked(asked(BASE, "x" * 12 + "." * 8, tokens=1200), asked("p", "." * 20, tokens=12000))
    text = printed([replace(found["p"], rule="score"), found[BASE]])
    lines = text.splitlines()
    assert "A◆ p by score        0.0   0.0–16.1   0/20    1.0  12,000  better <0.001" in lines
    assert "B◆ base             60.0  38.7–78.1  12/20    1.0   1,200" in [one.rstrip() for one in lines]
    inside = plotted(text)
    assert (inside[0][0], inside[-1][-1], len(inside), len(inside[-1])) == ("B", "A", HEIGHT, WIDTH)
    assert inside[0] == "B" + "·" * (WIDTH - 1)
    assert [one[-1] for one in inside[1:-1]] == ["·"] * (HEIGHT - 2)
    assert " 60.0% │B" in text
    assert "  0.0% │ " in text
    assert "was not run" not in text


@pytest.mark.parametrize("many", [2, 28, 40])
@pytest.mark.parametrize(
    "name", ["name-{}", "protocol-consistency with 小型 models of many kinds and more {}", "x{}" * 60]
)
def test_everything_fits_eighty_columns_and_every_mark_is_drawn_once(many: int, name: str) -> None:
    draw = random.Random(0)
    found = [
        standing(
            name.replace("{}", str(i)),
            draw.choice([7000, 12000]),
            draw.choice([900.0, 950.0, 123456.0]),
            rule=draw.choice([None, "score"]),
            against_base=draw.choice(["better", "worse", "not distinguishable"]),
            p_adjusted=draw.choice([0.0, 0.4]),
            pareto=i % 5 == 0,
        )
        for i in range(many - 1)
    ]
    text = printed([*found, standing(BASE, 6000, 0.0)])
    assert all(cell_len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "…" not in text
    inside = "".join(plotted(text))
    drawn = sorted(mark.upper() for mark in inside if mark not in " ·")
    assert drawn == sorted(MARKS[:many])
    assert sum(mark.isupper() for mark in inside) == sum(i % 5 == 0 for i in range(min(many - 1, 26)))
    assert ("side by side" in text) == (many > 2)
    assert ("not drawn: 4 protocols below the first 36" in text) == (many == 40)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1e9)), min_size=2, max_size=30))
def test_no_mark_vanishes_wherever_protocols_stand(places: list[tuple[int, float]]) -> None:
    found = [standing(f"p{i}", k, cost, pareto=i % 3 == 0) for i, (k, cost) in enumerate(places)]
    inside = plotted(printed(found))
    assert len(inside) == HEIGHT
    assert max(map(len, inside)) <= WIDTH
    assert sorted("".join(inside).replace("·", "").replace(" ", "").upper()) == sorted(MARKS[: len(found)])


def test_the_staircase_never_climbs_and_joins_the_whole_front() -> None:
    # Both of the cheapest fall into one column.
    places = [(1000, 9e3), (4000, 99), (7000, 9), (8000, 8.9)]
    front = [standing(f"p{i}", k, cost, pareto=True) for i, (k, cost) in enumerate(places)]
    inside = [one.ljust(WIDTH) for one in plotted(printed([*front, standing("q", 9000, 5e3)]))]
    columns = [[y for y in range(HEIGHT) if inside[y][x] in "·ABCD"] for x in range(WIDTH)]
    assert all(columns)
    for one, other in pairwise(columns):
        assert max(one) == min(other)  # rows from the top: each column begins where the one before it ended


def test_where_marks_meet_the_front_keeps_its_place() -> None:
    inside = plotted(printed([standing("p", 6000, 5.0), standing("q", 6000, 5.0, pareto=True)]))
    assert inside == [""] * (HEIGHT - 1) + ["Ba"]


def test_without_tokens_calls_are_the_cost() -> None:
    found = ranked(asked("p", "..x"), asked("q", "xxx"))
    text = printed(list(found.values()))
    assert "calls for a comparison (log scale)" in text
    assert "        1.0\n" in text  # one end where there is no range


def test_hostile_names_stay_text() -> None:
    text = printed([standing("[red]a[/red] \x1b[31mb\nc", 1, 1.0, pareto=True), standing("[/]:smile:", 2, 2.0)])
    assert r"[red]a[/red] \x1b[31mb c" in text
    assert "[/]:smile:" in text
    assert "\x1b" not in text


def test_without_any_rate_there_is_a_table_and_no_plot() -> None:
    empty = [standing(name, 0, 5.0, n=0, value=None, low=None, high=None) for name in "pq"]
    text = printed(empty)
    assert not plotted(text)
    assert "not measured; 123.4 calls, 5 tokens" in " ".join(text.split())
    assert "base was not run: add --protocol base to compare with it" in text
    assert "vs base" not in text
    assert "Pareto" not in text


def test_two_protocols_are_a_table_without_a_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FEWEST", 3)
    two = [standing("p", 100, 0.1, pareto=True), standing("q", 200, 0.2)]
    text = printed(two)
    assert "Pareto front" in text
    assert not plotted(text)
    assert "base was not run" not in text
    assert plotted(printed([*two, standing("r", 300, 0.3)]))
