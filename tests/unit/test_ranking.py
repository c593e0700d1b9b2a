"""Test the ranking of protocols on hand-counted rows, and its output."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from builders import near, row, scored, verdict
from command_result import print_parts
from hypothesis import given, strategies as st
from loops import each
from rich.cells import cell_len

from distract.core.records import Outcome, Row
from distract.judging import BASE
from distract.stats import intervals
from distract.stats.figure import flatten_ranked
from distract.studies.attack import ranks as report
from distract.studies.measures.compact_rows import CompactRows

A, B, NONE = verdict("a"), verdict("b"), verdict(None)


@pytest.fixture(autouse=True)
def _two_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FEWEST", 2)


def flip_rows(
    protocol: str, flips: str, attack: str = "f", tokens: int = 0, clusters: str = "", label: Outcome | None = None
) -> list[Row]:
    """One pair for each character: ``x`` flips, ``.`` holds, ``?`` is invalid, ``=`` ties before, ``-`` prefers b."""
    rows = []
    for i, flip in enumerate(flips):
        pair = {"protocol": protocol, "cluster": clusters[i] if clusters else None, "label": label}
        before = {"?": [NONE, A], "=": [A, B], "-": [B, B]}.get(flip, [A, A])
        after = [B, B] if flip in "x-" else [A, A]
        target = "a" if flip == "-" else "b"
        rows += [row(f"c{i}", before, **pair), row(f"c{i}", after, attack=attack, target=target, **pair)]  # type: ignore[arg-type]
    key = f"{protocol} {attack}"
    return [replace(one, keys=(f"{key} {i}",), tokens=((tokens, 0),)) for i, one in enumerate(rows)]


def right_rows(protocol: str, verdicts: str, **more: Any) -> list[Row]:
    """Pairs whose first response is labelled better: ``x`` falls to the attack, ``-`` is wrong before."""
    return flip_rows(protocol, verdicts, label="a", **more)


def rank_rows(
    rows: Sequence[Row], rules: Any, attacks: Sequence[str], controls: Any, *usable: Any
) -> list[report.ProtocolRank]:
    return report.rank_protocols(CompactRows(rows, rules), {"protocols": rules, "controls": controls}, attacks, *usable)


def rank(
    *parts: list[Row], attacks: Sequence[str] = ("f",), rules: Sequence[str] = (), **usable: report.Usable
) -> dict[str, report.ProtocolRank]:
    rows = [one for part in parts for one in part]
    names = dict.fromkeys(one.protocol for one in rows)
    states = [report.Usability(name, None, usable.get(name, "yes"), "") for name in names]
    ranking = rank_rows(rows, dict.fromkeys(names, rules), attacks, {"none", "null"}, states)
    return {standing.protocol: standing for standing in ranking}


def test_flips_are_pooled_over_attacks_without_controls() -> None:
    rows = [
        *flip_rows("p", "x.?=", "f", clusters="1223"),
        *(one for one in flip_rows("p", "xx??", "g", clusters="1223") if one.target),
        *(one for one in flip_rows("p", "xxxx", "null") if one.target),
        row("gone", [], protocol="p", excluded="no two responses by different authors"),
        row("c0", [A, A], protocol="p", design="severity", severity=1),  # another design: no pair
    ]
    (ranking,) = rank_rows(rows, {"p": ()}, ["none", "f", "g", "null", "f"], frozenset({"none", "null"}))
    # Under f and g each: c0 and c1 count, c2 is invalid, c3 a tie before, "gone" excluded.
    assert (ranking.k, ranking.n, ranking.invalid, ranking.excluded) == (3, 4, 2, 4)
    assert (ranking.value, ranking.rule, ranking.against_base) == (0.75, None, None)
    assert (ranking.low, ranking.high) == intervals.rate_interval([1, 0, 1, 1], ["1", "2", "1", "2"])
    assert ranking.comparisons == 4 + 4 + 4 + 4 + 1


@each("attacks", [], ["none"], ["null", "none"])
def test_controls_alone_give_no_ranking(attacks: list[str]) -> None:
    assert rank_rows(flip_rows("p", "x", "null"), {"p": ()}, attacks, {"none", "null"}) == []


def test_scoring_protocol_is_ranked_by_its_score() -> None:
    rows = [
        row("c", [scored((5.2, 5.1), (5, 6))], protocol="s"),  # by score b lost, by rating a lost
        row("c", [scored((5.2, 5.6), (5, 6))], protocol="s", attack="f", target="b"),
        row("c", [scored((5.4, 5.1), (6, 6))], protocol="s", attack="f", target="a"),
    ]
    ranks = rank(rows, rules=("score", "rating"))["s"]
    assert (ranks.rule, ranks.k, ranks.n) == ("score", 1, 1)


@each(
    "rows, invalid, excluded",
    ([], 0, 0),
    (flip_rows("p", "??"), 2, 0),
    (flip_rows("p", "=="), 0, 2),
    ([row("c", [], protocol="p", excluded="e")], 0, 1),
)
def test_protocol_without_valid_units_has_no_rate_and_no_front(rows: list[Row], invalid: int, excluded: int) -> None:
    (ranking,) = rank_rows(rows, {"p": ()}, ["f"], ())
    assert (ranking.k, ranking.n, ranking.value, ranking.low, ranking.high) == (0, 0, None, None, None)
    assert (ranking.invalid, ranking.excluded, ranking.pareto) == (invalid, excluded, False)
    assert ranking.calls == ranking.comparisons / max(ranking.comparisons, 1)


def test_shared_call_counts_once() -> None:
    rows = [
        replace(one, keys=("shared", f"own {i}"), tokens=((100, 20), (30, 1)))
        for i, one in enumerate([*flip_rows("p", "x."), row("c", [A, A], protocol="p", design="fixed", attack="f")])
    ]
    ranks = rank(rows, flip_rows("q", "."))["p"]
    assert (ranks.comparisons, ranks.calls) == (5, near(6 / 5))
    assert ranks.tokens == pytest.approx((120 + 5 * 31) / 5)
    assert ranks.answer_tokens == pytest.approx((20 + 5 * 1) / 5)
    assert (ranks.cost, ranks.cost_unit) == (ranks.tokens, "tokens")


def test_protocols_are_compared_with_mcnemar_and_holm() -> None:
    ranks = rank(
        flip_rows(BASE, "x" * 12 + "." * 8),
        flip_rows("robust", "." * 20),
        flip_rows("same", "x" * 11 + "." * 7 + "x?"),
        flip_rows("fragile", "x" * 20),
        flip_rows("elsewhere", "?" * 20),
    )
    mcnemar = {"robust": (0, 12, 20), "same": (1, 1, 19), "fragile": (8, 0, 20)}
    p_values = [intervals.mcnemar(up, down) for up, down, _ in mcnemar.values()]
    assert p_values == pytest.approx([2 * 0.5**12, 1.0, 2 * 0.5**8])
    # The other pairs: robust and same, robust and fragile, same and fragile.
    others = [intervals.mcnemar(*counts) for counts in ((0, 12), (0, 20), (0, 7))]
    adjusted = intervals.holm([*p_values, *others])
    for (name, (up, down, n)), p, holm in zip(mcnemar.items(), p_values, adjusted, strict=False):
        standing = ranks[name]
        assert (standing.shared, standing.difference) == (n, near((up - down) / n))
        assert (standing.p_value, standing.p_adjusted) == (near(p), near(holm))
    # Only robust and fragile differ more.
    assert ranks["robust"].p_adjusted == pytest.approx(5 * 2 * 0.5**12)
    against = {"robust": "better", "same": "not distinguishable", "fragile": "worse", BASE: None, "elsewhere": None}
    assert {name: standing.against_base for name, standing in ranks.items()} == against
    # All are measured on the 19 pairs that are valid for each.
    assert {standing.n for standing in ranks.values()} == {19, 0}
    assert (ranks[BASE].own, ranks["elsewhere"].own) == (20, 0)


def test_units_of_one_prompt_count_as_one_prompt() -> None:
    base, other = flip_rows(BASE, "x" * 12, clusters="112233445566"), flip_rows("p", "." * 12, clusters="112233445566")
    # Twelve equal pairs of six prompts count as six.
    assert rank(base, other)["p"].p_value == pytest.approx(intervals.mcnemar(0, 6))
    twice = [*flip_rows(BASE, "xxxxxx"), *flip_rows("p", "......")]
    twice += [replace(one, attack="g") for one in twice if one.target]
    ranks = rank(twice, attacks=("f", "g"))["p"]
    assert (ranks.shared, ranks.p_value) == (12, near(intervals.mcnemar(0, 6)))


def test_nothing_is_compared_without_the_base() -> None:
    for ranks in (rank(flip_rows("p", "x"), flip_rows("q", ".")), rank(flip_rows("p", "x"), flip_rows(BASE, "?"))):
        assert {(s.against_base, s.difference, s.p_value, s.p_adjusted) for s in ranks.values()} == {(None,) * 4}


def test_usable_protocols_come_first_then_robustness_then_cost_then_name() -> None:
    tokens = {"blind": 1, "worst": 1, "z": 5, "dear": 9, "y": 5, "best": 99}
    pairs = {"blind": "..", "worst": "xx", "best": ".."}
    rows = [right_rows(name, pairs.get(name, "x."), tokens=number) for name, number in tokens.items()]
    ranks = rank(*rows, blind="no")
    places = {"best": 1, "y": 2, "z": 3, "dear": 4, "worst": 5, "blind": None}
    assert {name: s.rank for name, s in ranks.items()} == places
    assert {s.measure for s in ranks.values()} == {"robust_accuracy"}
    # Two pairs show no difference.
    assert {s.pareto for s in ranks.values()} == {False}


@each(
    "usable, ranks, front",
    ({}, [("good", 1), ("fine", 2), ("bad", 3)], ["good", "fine"]),
    ({"good": "not shown"}, [("fine", 1), ("bad", 2), ("good", None)], ["fine"]),
    ({"bad": "no", "fine": "no", "good": "no"}, [("good", None), ("fine", None), ("bad", None)], []),
)
def test_front_holds_who_is_not_shown_to_be_worse_at_no_higher_cost(
    usable: dict[str, report.Usable], ranks: list[tuple[str, int | None]], front: list[str]
) -> None:
    pairs = {"good": "." * 20, "fine": "." * 19 + "x", "bad": "x" * 20}
    standings = rank(*(right_rows(name, own, tokens=9) for name, own in pairs.items()), **usable)
    assert [(name, s.rank) for name, s in standings.items()] == ranks
    assert [name for name, s in standings.items() if s.pareto] == front


VALUES: dict[str | None, dict[str, float]] = {
    "a": {"x": 0, ".": 1, "?": 0, "=": 0.5, "-": 0},
    None: {"x": 1, ".": 0, "-": 0},
}
"""What a pair counts, with and without a label."""


SIGNS, STATES = st.sampled_from("x.=?-"), st.sampled_from(["yes", "yes", "no", "not shown"])
PROTOCOLS = st.tuples(SIGNS, st.integers(0, 14), st.text(SIGNS, min_size=1, max_size=3), st.integers(0, 2), STATES)


@given(st.sampled_from(["a", None]), st.lists(PROTOCOLS, min_size=1, max_size=4))
def test_places_match_a_naive_count(label: Outcome | None, protocols: list[tuple[str, int, str, int, Any]]) -> None:
    pairs = {f"p{i}": char * most + rest for i, (char, most, rest, *_) in enumerate(protocols)}
    cost = {f"p{i}": float(tokens) for i, (*_, tokens, _) in enumerate(protocols)}
    usable = {f"p{i}": state for i, (*_, state) in enumerate(protocols)}
    ranks = rank(*(flip_rows(name, pairs[name], tokens=int(cost[name]), label=label) for name in pairs), **usable)
    # A run with any right or wrong pair is measured by accuracy, all others by flips.
    values = VALUES[label]
    own = {name: {i: values[c] for i, c in enumerate(text) if c in values} for name, text in pairs.items()}
    measured = [name for name in own if own[name]]
    shared = {i for i in range(20) if measured and all(i in own[name] for name in measured)}
    mean = {name: sum(own[name][i] for i in shared) / len(shared) for name in measured if shared}
    loss = {name: 1 - value if label else value for name, value in mean.items()}
    if not any(cost.values()):
        cost = {name: ranks[name].calls for name in cost}
    order = sorted(pairs, key=lambda name: (usable[name] != "yes", loss.get(name, math.inf), cost[name], name))
    assert list(ranks) == order
    ranked = [name for name in order if usable[name] == "yes" and name in mean]
    assert {name: s.rank for name, s in ranks.items() if s.rank} == {name: i for i, name in enumerate(ranked, 1)}
    assert {name: s.value for name, s in ranks.items() if s.n} == pytest.approx(mean)
    p_values, gains = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    for pair in combinations(measured, 2):
        units = [i for i in own[pair[0]] if i in own[pair[1]]]
        one, other = ([own[name][i] for i in units] for name in pair)
        p_values[pair] = intervals.paired_p(one, other, [str(i) for i in units]) if units else 1.0
        gains[pair] = (sum(one) - sum(other)) * (1 if label else -1)
    beats, last = set[tuple[str, str]](), 0.0
    for place, pair in enumerate(sorted(p_values, key=lambda pair: p_values[pair])):
        last = max(last, p_values[pair] * (len(p_values) - place))
        if last <= 0.05:
            beats.add(pair if gains[pair] > 0 else pair[::-1])
    beaten = {worse for better, worse in beats if cost[better] <= cost[worse]}
    assert {name for name, s in ranks.items() if s.pareto} == ({*ranked} - beaten if beats else set())


def test_document_is_json_rounded_to_four_decimals() -> None:
    ranks = rank(flip_rows(BASE, "x..", tokens=7), flip_rows("p", "...", tokens=9))
    result = json.loads(json.dumps([flatten_ranked(one, "attack") for one in ranks.values()], allow_nan=False))
    assert [(one["protocol"], one["rank"]) for one in result] == [("p", 1), (BASE, 2)]
    assert {one["measure"] for one in result} == {"flip_rate"}
    assert "reasons" not in result[0]
    assert (result[1]["value"], result[0]["difference"], result[1]["k"]) == (0.3333, -0.3333, 1)
    numbers = [value for one in result for value in one.values() if isinstance(value, float)]
    assert numbers == [round(value, 4) for value in numbers]


def make_standing(protocol: str, k: int, tokens: float, **changes: Any) -> report.ProtocolRank:
    measured = {"k": k, "n": 12000, "value": k / 12000, "low": 0.9, "high": 1.0, "own": 12000}
    counted = {"invalid": 0, "excluded": 0, "comparisons": 10, "calls": 123.4, "answer_tokens": 0.0}
    named = {"rule": None, "attack": "", "measure": "robust_accuracy", "usable": "yes", "rank": 1}
    spent = {"tokens": tokens, "cost": tokens}
    return report.ProtocolRank(protocol=protocol, **{**named, **measured, **counted, **spent, **changes})


def render(standings: Sequence[report.ProtocolRank]) -> str:
    return print_parts(report.ranking_parts(standings))


def plot_lines(text: str) -> list[str]:
    """The part of each line inside the axes."""
    return [one.split("│", 1)[1] for one in text.splitlines() if "│" in one]


NO_BASE = "base was not run: add --protocol base to compare with it"


def test_fewer_than_two_protocols_give_no_table() -> None:
    assert render([]) == render([make_standing("p", 1, 1.0)]) == ""


def test_table_reads_as_expected() -> None:
    ranks = rank(
        right_rows(BASE, "x" * 12 + "." * 8, tokens=1200),
        right_rows("p", "." * 20, tokens=12000),
        right_rows("q", "." * 20, tokens=9),
        q="no",
    )
    text = render([replace(ranks["p"], rule="score"), ranks[BASE], ranks["q"]])
    lines = [one.rstrip() for one in text.splitlines()]
    assert "Protocols, most often right before and after an attack first" in lines
    assert "A◆ p by score                1   100.0  83.9–100.0    1.0  12,000   better 0.001" in lines
    assert "b  base                      2    40.0   21.9–61.3    1.0   1,200" in lines
    assert "   q                – unusable   100.0  83.9–100.0    1.0       9  differs 0.001" in lines
    assert "n = 20: the comparisons that all protocols share" in lines
    assert "unusable: cannot tell good from bad;" in " ".join(lines)
    inside = plot_lines(text)
    assert (inside[0], inside[-1], len(inside)) == (" " * (report.WIDTH - 1) + "A", "b", report.HEIGHT)
    assert "100.0% │" in text
    assert " 40.0% │b" in text
    assert "not drawn: 1 protocol, not ranked" in text
    assert "was not run" not in text


UNRANKED = [
    *("Protocols side by side, not ranked: none is shown to tell good from bad", "flips %"),
    *("– unclear     25.0", "– unusable      0.0"),
]


def test_texts_below_a_table_follow_from_its_rows() -> None:
    unclear = rank(flip_rows("p", "x..."), flip_rows("q", "....", tokens=3), p="not shown", q="no")
    apart = rank(flip_rows("p", "x..."), flip_rows("q", "????...."))
    free = rank(flip_rows("p", "..x"), flip_rows("q", "xxx"))
    empty = {name: make_standing(name, 0, 5.0, n=0, own=0, value=None, low=None, high=None, rank=None) for name in "pq"}
    evil = make_standing("[red]a[/red] \x1b[31mb\nc", 1, 1.0, pareto=True), make_standing("[/]:smile:", 2, 2.0)
    for ranks, has_plot, present, absent in (
        (unclear, False, UNRANKED, ["first", "Pareto"]),
        (apart, False, ["shares no comparison with the", "others; 1.0 calls, 0 tokens"], []),
        (free, True, ["calls for a comparison (log scale)", "        1.0\n"], []),  # one end where there is no range
        (dict(enumerate(evil)), True, [r"[red]a[/red] \x1b[31mb c", "[/]:smile:"], ["\x1b"]),
        (empty, False, ["not measured; 123.4 calls, 5 tokens", NO_BASE], ["vs base", "Pareto"]),
    ):
        text = render([*ranks.values()])
        assert bool(plot_lines(text)) == has_plot
        assert [one for one in present if one not in text and one not in " ".join(text.split())] == []
        assert [one for one in absent if one in text] == []


@each("many", 2, 28, 40)
@each("name", "name-{}", "protocol-consistency with 小型 models of many kinds and more {}", "x{}" * 60)
def test_plot_fits_eighty_columns_and_draws_every_mark_once(many: int, name: str) -> None:
    draw, standings = random.Random(0), list[report.ProtocolRank]()
    for i in range(many - 1):
        k, tokens, p = draw.choice([7000, 12000]), draw.choice([900.0, 950.0, 123456.0]), draw.choice([0.0, 0.4])
        rule, against = draw.choice([None, "score"]), draw.choice(["better", "worse", "not distinguishable"])
        more = {"rule": rule, "against_base": against, "p_adjusted": p, "pareto": i % 5 == 0}
        standings.append(make_standing(name.replace("{}", str(i)), k, tokens, **more))
    text = render([*standings, make_standing(BASE, 6000, 0.0)])
    assert all(cell_len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "…" not in text
    inside = "".join(plot_lines(text))
    assert sorted(mark.upper() for mark in inside if mark not in " ·") == sorted(report.MARKS[:many])
    assert sum(mark.isupper() for mark in inside) == sum(i % 5 == 0 for i in range(min(many - 1, 26)))
    assert ("side by side" in text) == (many > 2)
    assert ("not drawn: 4 protocols, not ranked or after the first 36" in text) == (many == 40)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1e9)), min_size=2, max_size=30))
def test_no_mark_vanishes_at_any_position(places: list[tuple[int, float]]) -> None:
    standings = [make_standing(f"p{i}", k, cost, pareto=i % 3 == 0) for i, (k, cost) in enumerate(places)]
    inside = plot_lines(render(standings))
    assert len(inside) == report.HEIGHT
    assert max(map(len, inside)) <= report.WIDTH
    assert sorted("".join(inside).replace("·", "").replace(" ", "").upper()) == sorted(report.MARKS[: len(standings)])


@each("measure, counts", ("robust_accuracy", (9000, 8000, 4000, 1000)), ("flip_rate", (1000, 4000, 7000, 8000)))
def test_staircase_joins_the_front_towards_the_better(measure: str, counts: tuple[int, ...]) -> None:
    # The two cheapest protocols share a column.
    places = zip(counts, (9e3, 99, 9, 8.9), strict=True)
    front = [make_standing(f"p{i}", k, cost, pareto=True, measure=measure) for i, (k, cost) in enumerate(places)]
    # Not shown to be worse, yet no step: dearer than a better one.
    front.append(make_standing("q", 5000, 5e3, pareto=True, measure=measure))
    inside = [one.ljust(report.WIDTH) for one in plot_lines(render(front))]
    columns = [[y for y in range(report.HEIGHT) if inside[y][x] in "·ABCD"] for x in range(report.WIDTH)]
    assert all(columns)
    sign = 1 if measure == "flip_rate" else -1  # rows count from the top
    for one, other in pairwise(columns):
        assert max(sign * y for y in one) == min(sign * y for y in other)


def test_front_mark_keeps_its_place_when_marks_overlap() -> None:
    inside = plot_lines(render([make_standing("p", 6000, 5.0), make_standing("q", 6000, 5.0, pareto=True)]))
    assert inside == [""] * (report.HEIGHT - 1) + ["Ba"]


def test_two_protocols_are_a_table_without_a_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FEWEST", 3)
    two = [make_standing("p", 100, 0.1, pareto=True), make_standing("q", 200, 0.2)]
    text = render(two)
    assert "Pareto front" in " ".join(text.split())
    assert not plot_lines(text)
    assert "base was not run" not in text
    assert plot_lines(render([*two, make_standing("r", 300, 0.3)]))
