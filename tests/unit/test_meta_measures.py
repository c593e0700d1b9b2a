"""Test the measures of meta-evaluation against a naive implementation by loops over rows."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import pytest
from builders import scored, verdict
from hypothesis import example, given, strategies as st
from loops import each

from distract.core.records import MIRROR, Judgment, Outcome, Row, Side
from distract.stats import intervals
from distract.studies.meta.measures import Agreement, JudgeRows, figures

CONTROLS = ("null", "resample")
Key = tuple[str | None, ...]
"""Judge, data, subset, measure, protocol, rule, attack, order, against."""


@dataclass
class Counted:
    """The expected values of one figure."""

    k: int | None
    n: int
    invalid: int
    excluded: int
    value: float | None
    interval: tuple[float, float] | None = None
    p: float | None = None


SAID = (
    verdict("a"), verdict("b"), verdict("tie"), verdict("a", (0.5, 0.4, 0.1)), verdict("b", (0.2, 0.7, 0.1)),
    verdict("a", (0.7, 0.2, 0.1)), verdict(None),
)  # fmt: skip
SCORED = (
    scored((4.0, 4.00005), (4, 4)), scored((4.2, 4.0), (4, 4)), scored((3.4, 3.6), (4, 3)), scored((5.0, 2.0), (5, 2)),
    verdict(None),
)  # fmt: skip
KINDS: dict[str, tuple[tuple[Any, ...], int, tuple[str, ...]]] = {
    "both": (("a", "b"), 2, ()), "given": (("a",), 1, ()), "swapped": (("b",), 1, ()),
    "scoring": ((), 1, ("score", "rating")), "rotating": ((), 3, ()),
}  # fmt: skip
"""For each kind of protocol: the leading side in each order, the number of judgments, the rules."""

PAIRS = st.tuples(
    st.sampled_from(["d1", "d2"]), st.sampled_from(["", "s1", "s2"]), st.sampled_from(["p1", "p2", "p3"]),
    st.sampled_from(["a", "b", "tie", None]),
)  # fmt: skip


@st.composite
def judge_rows(draw: st.DrawFn, kinds: Sequence[str] = tuple(KINDS), name: str = "j") -> list[JudgeRows]:
    """One judge under each kind of protocol on the same comparisons; the first protocol excludes none."""
    pairs = draw(st.lists(PAIRS, min_size=1, max_size=6))
    rng = random.Random(draw(st.integers(0, 2**32)))
    kinds = draw(st.permutations(kinds))
    return [judge_one_way(rng, kind, pairs, name, index == 0) for index, kind in enumerate(kinds)]


def judge_one_way(rng: random.Random, kind: str, pairs: Sequence[Any], judge: str, complete: bool) -> JudgeRows:
    shown, number, rules = KINDS[kind]
    row_list = []
    for index, (data, subset, cluster, label) in enumerate(pairs):
        for attack in ("none", *CONTROLS):
            keys = tuple(rng.sample(["k1", "k2", "k3", "k4", "k5"], rng.randrange(4)))
            judgments = tuple(rng.choice(SCORED if kind == "scoring" else SAID) for _ in range(number))
            sides = Side("x", None if attack == "none" else attack), Side("y", severity=index % 2 or None)
            row = Row(f"c{index // 2}", cluster, "people", kind, judge, attack, *sides, judgments=judgments, keys=keys)
            tokens = tuple((rng.randrange(3), rng.randrange(2)) for _ in keys)
            row = replace(row, tokens=tokens, label=label, data=data, subset=subset, shown=shown)
            if rng.random() < 0.2 and not (complete and attack == "none"):
                row = replace(row, judgments=(), keys=(), tokens=(), shown=(), excluded="why not")
            row_list.append(row)
    row_list.append(replace(row_list[0], design="flip"))
    return JudgeRows(judge, kind, rules, {"": tuple(row_list)}, calls=rng.choice([None, 2]))


def combine(judgments: Sequence[Judgment], rule: str | None) -> Outcome | None:
    """The outcome averaged over orders; a shared largest weight is a tie."""
    if any(one.failure is not None for one in judgments):
        return None
    if rule in ("score", "rating"):
        (one,) = judgments
        a, b = (one.scores if rule == "score" else one.ratings) or (0, 0)
        return "tie" if abs(a - b) <= (1e-4 if rule == "score" else 0) else "a" if a > b else "b"
    weights = {"a": 0.0, "b": 0.0, "tie": 0.0}
    for one in judgments:
        for name, share in zip(weights, one.probabilities or (), strict=True):
            weights[name] += share / len(judgments)
    best = [name for name in weights if weights[name] >= max(weights.values()) - 1e-6]
    return best[0] if len(best) == 1 else "tie"  # type: ignore[return-value]


def rows_under(one: JudgeRows, rule: str | None, attack: str = "none") -> list[Row]:
    rows = one.rows[rule or ""] if (rule or "") in one.rows else one.rows[""]
    return [row for row in rows if row.design == "people" and row.attack == attack]


Place = tuple[str | None, str | None]
"""A data set and its subset; None for all."""


def list_places(judged: Sequence[JudgeRows]) -> list[Place]:
    """The places of all judges, including those without rows."""
    rows = [row for one in judged for some in one.rows.values() for row in some if row.design == "people"]
    sets = sorted({row.data for row in rows})
    result: list[Place] = [] if len(sets) == 1 else [(None, None)]
    for data in sets:
        subsets = sorted({row.subset for row in rows if row.data == data})
        result += [(data, None), *((data, subset) for subset in subsets if len(subsets) > 1)]
    return result


def is_inside(row: Row, place: Place) -> bool:
    return place[0] in (None, row.data) and place[1] in (None, row.subset)


def share(values: Sequence[tuple[bool, str]], invalid: int, excluded: int, capped: bool = True) -> Counted:
    if not values:
        return Counted(0, 0, invalid, excluded, None)
    k = sum(value for value, _ in values)
    interval = intervals.rate_interval([float(one) for one, _ in values], [one for _, one in values], capped=capped)
    return Counted(k, len(values), invalid, excluded, k / len(values), interval)


def kappa(pairs: Sequence[tuple[object, object]]) -> float | None:
    n = len(pairs)
    if n == 0:
        return None
    observed = Fraction(sum(a == b for a, b in pairs), n)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum((Fraction(left[c] * right[c], n * n) for c in left), Fraction())
    return None if chance == 1 else float((observed - chance) / (1 - chance))


def alpha(units: Sequence[Sequence[object]]) -> float | None:
    """Krippendorff's alpha from the coincidence matrix."""
    matrix: Counter[tuple[object, object]] = Counter()
    for unit in units:
        for c, k in permutations(unit, 2):
            matrix[c, k] += Fraction(1, len(unit) - 1)  # type: ignore[assignment]
    marginal: Counter[object] = Counter()
    for (c, _), weight in matrix.items():
        marginal[c] += weight
    n = sum(marginal.values())
    observed = sum(weight for (c, k), weight in matrix.items() if c != k)
    expected = sum(marginal[c] * marginal[k] for c in marginal for k in marginal if c != k)
    return float(1 - (n - 1) * Fraction(observed) / Fraction(expected)) if expected else None


def count_naively(judged: Sequence[JudgeRows], controls: Sequence[str] = ()) -> dict[Key, Counted]:
    """Every figure by its key."""
    counts: dict[Key, Counted] = {}
    everywhere = list_places(judged)
    for one, place in product(judged, everywhere):
        for rule in one.rules or (None,):
            for (measure, attack, order), counted in count_at(one, rule, rows_under(one, rule), place, controls):
                counts[one.judge, *place, measure, one.protocol, rule, attack, order, None] = counted
        if {"stored", "parsed"} <= set(one.rules):
            same = [
                (combine((x,), None) == combine((y,), None), row.cluster)
                for row, other in zip(rows_under(one, "stored"), rows_under(one, "parsed"), strict=True)
                if is_inside(row, place) and row.excluded is None
                for x, y in zip(row.judgments, other.judgments, strict=True)
            ]
            key = (one.judge, *place, "parser_agreement", one.protocol, None, "none", None, None)
            counts[key] = share(same, 0, 0)
    for judge in {one.judge for one in judged}:
        counts |= compare_ways([one for one in judged if one.judge == judge], everywhere)
    return counts


CountedFigure = tuple[tuple[str, str, str | None], Counted]
"""Measure, attack and order of a figure, and its values."""


def count_at(
    one: JudgeRows, rule: str | None, everything: Sequence[Row], place: Place, controls: Sequence[str]
) -> Iterator[CountedFigure]:
    rows = [row for row in everything if is_inside(row, place)]
    judged_rows = [row for row in rows if row.excluded is None]
    out = len(rows) - len(judged_rows)
    known = [row for row in judged_rows if row.label is not None]
    unknown = out + len(judged_rows) - len(known)

    def verdicts(row: Row) -> list[Outcome | None]:
        return [combine((judgment,), rule) for judgment in row.judgments]

    published = [(v == row.label, row.cluster) for row in known for v in verdicts(row)]
    right = [(v == row.label, row.cluster) for row in known for v in verdicts(row) if v is not None]
    yield ("accuracy", "none", None), share(right, len(published) - len(right), unknown)
    whole = [row for row in known if None not in verdicts(row)]
    both = [(all(v == row.label for v in verdicts(row)), row.cluster) for row in whole]
    yield ("accuracy_both_orders", "none", None), share(both, len(known) - len(whole), unknown)
    # A figure that a protocol has for one data set or subset is reported for all of them, even where n is 0.
    eligible = [row for row in everything if row.excluded is None]
    first = {slot for row in eligible for slot in row.shown}
    repeated = any(len(row.judgments) > 1 for row in eligible)
    names = {"both": repeated, "given": "a" in first, "swapped": "b" in first}
    orders: dict[str | None, list[tuple[object, object]]] = {name: [] for name, is_there in names.items() if is_there}
    orders = orders or {None: []}
    for row in known:
        for index, v in enumerate(verdicts(row)):
            for name in ("both", None):
                if name in orders:
                    orders[name].append((v, row.label))
            if row.shown:
                orders["given" if row.shown[index] == "a" else "swapped"].append((v, row.label))
    for order, pairs in orders.items():
        missing = sum(v is None for v, _ in pairs)
        yield ("kappa", "none", order), Counted(None, len(pairs), missing, unknown, kappa(pairs))
    yield ("invalid_rate", "none", None), share([(None in verdicts(row), row.cluster) for row in judged_rows], 0, out)
    if repeated:
        several = [row for row in judged_rows if len(row.judgments) > 1]
        whole = [row for row in several if None not in verdicts(row)]
        broken = len(several) - len(whole)
        equal = [(len(set(verdicts(row))) == 1, row.cluster) for row in whole]
        yield ("equal_verdicts", "none", None), share(equal, broken, out)
        differ = [(not value, cluster) for value, cluster in equal]
        yield ("order_inconsistency", "none", None), share(differ, broken, out)
        value = alpha([verdicts(row) for row in whole])
        yield ("self_agreement", "none", None), Counted(None, len(whole), broken, out, value)
    if first:
        slots = [(row, v, slot) for row in judged_rows for v, slot in zip(verdicts(row), row.shown, strict=False)]
        sided = [(v == slot, row.cluster) for row, v, slot in slots if v in ("a", "b")]
        missing, ties = (sum(v == other for _, v, _ in slots) for other in (None, "tie"))
        yield ("first_slot_rate", "none", None), share(sided, missing, out + ties, capped=False)
    for name in ("calls", "tokens"):
        whole_cost = [cost(name, one, row, everything) for row in eligible]
        if any(spent is not None for spent in whole_cost):
            costs = [spent for row in judged_rows if (spent := cost(name, one, row, everything)) is not None]
            mean = float(sum(costs, Fraction()) / len(costs)) if costs else None
            yield (name, "none", None), Counted(None, len(costs), 0, 0, mean)
    if one.convention == "llmbar":
        yield ("published_accuracy", "none", None), share(published, 0, 0)
        if all(len(row.judgments) > 1 for row in known):
            both = [(all(v == row.label for v in verdicts(row)), row.cluster) for row in known]
            yield ("published_accuracy_both_orders", "none", None), share(both, 0, 0)
            equal = [(len(set(verdicts(row))) == 1, row.cluster) for row in known]
            yield ("published_equal", "none", None), share(equal, 0, 0)
    if one.convention == "judgebench":
        games = [[(v == row.label) - (v not in (row.label, "tie", None)) for v in verdicts(row)] for row in known]
        right = [(sum(game) > 0, row.cluster) for game, row in zip(games, known, strict=True)]
        yield ("published_accuracy", "none", None), share(right, 0, 0)
    for control in controls:
        after = [row for row in rows_under(one, rule, control) if is_inside(row, place)]
        changed, missing = [], 0
        for row in after:
            for old in judged_rows:
                if row.excluded is None and same_pair(row, old):
                    outcomes = combine(old.judgments, rule), combine(row.judgments, rule)
                    missing += None in outcomes
                    changed += [] if None in outcomes else [(outcomes[0] != outcomes[1], row.cluster)]
        left = sum(row.excluded is not None for row in after)
        yield ("verdict_change_rate", control, None), share(changed, missing, out + left)


def cost(name: str, one: JudgeRows, row: Row, everything: Sequence[Row]) -> Fraction | None:
    """Calls or tokens of one comparison, None if unknown."""
    part = [Fraction(1, sum(key in other.keys for other in everything)) for key in row.keys]
    if name == "calls":
        return sum(part, Fraction()) if part else None if one.calls is None else Fraction(one.calls)
    return sum((p * sum(t) for p, t in zip(part, row.tokens, strict=True)), Fraction()) or None


def side_key(one: Side) -> tuple[str, int]:
    return one.author, one.severity or 0


def same_pair(one: Row, other: Row) -> bool:
    """Whether both rows compare the same responses to the same prompt, in either order."""
    there = [side_key(one.a), side_key(one.b)]
    return (one.data, one.case) == (other.data, other.case) and (
        there == [side_key(other.a), side_key(other.b)] or there == [side_key(other.b), side_key(other.a)]
    )


def compare_ways(judged: Sequence[JudgeRows], everywhere: Sequence[Place]) -> dict[Key, Counted]:
    """Differences of every two protocols over all pairs of matching verdicts."""
    counts: dict[Key, Counted] = {}
    headline = {one.protocol: "score" if "score" in one.rules else (one.rules or (None,))[0] for one in judged}
    for place in everywhere:
        right: dict[str, list[Right]] = {}
        for one in judged:
            rule = headline[one.protocol]
            right[one.protocol] = []
            for row in rows_under(one, rule):
                if not is_inside(row, place) or row.excluded is not None or row.label is None:
                    continue
                for index, judgment in enumerate(row.judgments):
                    if (v := combine((judgment,), rule)) is not None:
                        right[one.protocol].append((row, index, v == row.label))
        for first, second in combinations(sorted(right), 2):
            key = (judged[0].judge, *place, "accuracy", first, headline[first], "none", None, second)
            counts[key] = count_paired(right[first], right[second])
    return counts


Right = tuple[Row, int, bool]
"""A row, which of its judgments, and whether its verdict is right."""


def meet(x: Right, y: Right) -> bool:
    """Whether two verdicts are about the same pair, and in the same order if both have orders."""
    (one, i, _), (other, j, _) = x, y
    if not same_pair(one, other):
        return False
    if one.shown and other.shown:
        front = (row.a if row.shown[place] == "a" else row.b for row, place in ((one, i), (other, j)))
        return len({*map(side_key, front)}) == 1
    if not one.shown and not other.shown and len(one.judgments) == len(other.judgments):
        return i == j
    return True


def count_paired(first: list[Right], second: list[Right]) -> Counted:
    pairs = [(x, y) for x in first for y in second if meet(x, y)]
    alone = sum(not any(meet(x, y) for y in second) for x in first)
    alone += sum(not any(meet(x, y) for x in first) for y in second)
    if not pairs:
        return Counted(None, 0, 0, alone, None)
    a, b = [float(x[2]) for x, _ in pairs], [float(y[2]) for _, y in pairs]
    clusters = [x[0].cluster for x, _ in pairs]
    interval, p = intervals.difference_interval(a, b, clusters), intervals.paired_p(a, b, clusters)
    return Counted(None, len(pairs), 0, alone, (sum(a) - sum(b)) / len(pairs), interval, p)


def key(f: Agreement) -> Key:
    return f.judge, f.data, f.subset, f.measure, f.protocol, f.rule, f.attack, f.order, f.against


def check(judged: Sequence[JudgeRows], controls: Sequence[str] = ()) -> list[Agreement]:
    """Check that both implementations give the same figures."""
    results, expected = figures(judged, controls), count_naively(judged, controls)
    assert [f.place for f in results] == sorted(f.place for f in results)
    assert len(results) == len({key(f) for f in results})
    assert {key(f) for f in results} == expected.keys()
    for f in results:
        target = expected[key(f)]
        assert (f.k, f.n, f.invalid, f.excluded) == (target.k, target.n, target.invalid, target.excluded), f
        assert f.value == pytest.approx(target.value), f
        assert f.p_value == pytest.approx(target.p), f
        if target.interval is not None:
            assert (f.low, f.high) == pytest.approx(target.interval), f
        if f.unit in ("calls", "tokens"):
            assert f.low is None or f.low >= 0
        if f.low is not None and f.high is not None and f.value is not None and f.against is None:
            assert f.low - 1e-12 <= f.value <= f.high + 1e-12
    return results


@given(judge_rows(["both"]), st.randoms(use_true_random=False))
def test_stored_and_parsed_verdicts_follow_published_conventions(judged: list[JudgeRows], rng: random.Random) -> None:
    (one,) = judged
    stored = tuple(row for row in one.rows[""] if row.attack == "none" and row.design == "people")
    parsed = tuple(replace(row, judgments=tuple(rng.choice([j, *SAID]) for j in row.judgments)) for row in stored)
    replayed = JudgeRows("j", "CoT", ("stored", "parsed"), {"stored": stored, "parsed": parsed}, False, "llmbar", 2)
    results = check([replayed])
    measures = {f.measure for f in results if f.protocol == "CoT"}
    assert {"published_accuracy", "published_accuracy_both_orders", "published_equal", "parser_agreement"} <= measures


@given(judge_rows(["both", "given"]))
def test_judgebench_counts_right_pairs_by_its_own_rule(judged: list[JudgeRows]) -> None:
    results = check([replace(one, convention="judgebench") for one in judged])
    assert {f.measure for f in results if f.measure.startswith("published")} == {"published_accuracy"}


def test_one_published_order_gives_no_figure_for_both() -> None:
    one = replace(judge_one_way(random.Random(0), "given", [("d1", "", "p1", "a")], "j", True), convention="llmbar")
    other = judge_one_way(random.Random(0), "both", [("d2", "", "p1", "a")], "j", True)
    for results in (check([one]), figures([one, other])):
        assert {f.measure for f in results if f.measure.startswith("published")} == {"published_accuracy"}


@given(judge_rows())
def test_holm_covers_all_pairs_at_the_same_place(judged: list[JudgeRows]) -> None:
    differences = [f for f in figures(judged) if f.against is not None]
    for place in {(f.data, f.subset) for f in differences}:
        family = [f for f in differences if (f.data, f.subset) == place and f.p_value is not None]
        p_values = [f.p_value or 0.0 for f in family]
        for f, own in zip(family, p_values, strict=True):
            steps = [min(1.0, sum(other >= p for other in p_values) * p) for p in p_values if p <= own]
            assert f.p_adjusted is not None
            assert f.p_adjusted == pytest.approx(max(steps))
            side = "better" if (f.value or 0) > 0 else "worse"
            assert f.compared == (side if f.p_adjusted <= 0.05 + 1e-12 else "not distinguishable")
    for f in differences:
        assert (f.n == 0) == (f.value is None) == (f.p_value is None) == (f.p_adjusted is None) == (f.compared is None)


def make_row(name: str, sides: Sequence[Any], judgments: Sequence[Judgment], label: Any = "a", **more: Any) -> Row:
    row = Row(name, name, "people", more.pop("protocol", "p"), "j", "none", Side("x"), Side("y"))
    return replace(row, judgments=tuple(judgments), shown=tuple(sides), label=label, data="d", **more)


A, B, NONE = verdict("a"), verdict("b"), verdict(None)


@each(
    "first, second, n, alone, value",
    (("ab", [A, A]), ("ab", [A, B]), 2, 0, 0.5), (("ab", [A, A]), ("a", [B]), 1, 1, 1.0),
    (("b", [A]), ("a", [B]), 0, 2, None), (("ab", [A, NONE]), ("ab", [B, B]), 1, 1, 1.0),
    (("ab", [A, B]), ("", [A]), 2, 0, -0.5), (("ab", [A, NONE]), ("", [B]), 1, 0, 1.0),
    (("ab", [A, B]), ("", [NONE]), 0, 2, None), (("", [A]), ("", [B]), 1, 0, 1.0), (("a", [A]), ("", [B]), 1, 0, 1.0),
    # Rotations have other orders, so each verdict is compared with each.
    (("", [A, A, B]), ("ab", [A, B]), 6, 0, 1 / 6), (("", [A, NONE, A]), ("ab", [A, B]), 4, 0, 0.5),
    (("", [A, A, B]), ("b", [B]), 3, 0, 2 / 3), (("", [A, NONE, B]), ("ab", [NONE, A]), 2, 0, -0.5),
    (("", [NONE, NONE, NONE]), ("ab", [A, B]), 0, 2, None), (("", [A, A, B]), ("", [A]), 3, 0, -1 / 3),
    (("", [A, B, B]), ("", [B, B, A]), 3, 0, 0.0), (("", [A, B, NONE]), ("", [B, B, A]), 2, 1, 0.5),
    (("", [A, NONE, NONE]), ("", [NONE, A, B]), 0, 3, None),
)  # fmt: skip
def test_verdicts_are_paired_by_order_and_missing_ones_with_each(
    first: Any, second: Any, n: int, alone: int, value: float | None
) -> None:
    rows = {name: (make_row("c", *one, protocol=name),) for name, one in (("one", first), ("two", second))}
    judged = [JudgeRows("j", name, (), {"": own}) for name, own in rows.items()]
    (f,) = [f for f in check(judged) if f.against is not None]
    assert (f.protocol, f.against, f.n, f.excluded, f.value) == ("one", "two", n, alone, value)


VALID = tuple(one for one in SAID if one.failure is None), tuple(one for one in SCORED if one.failure is None)


@given(st.sampled_from(["both", "given", "swapped"]), st.lists(PAIRS, min_size=1, max_size=6), st.integers(0, 2**32))
def test_valid_verdicts_differ_by_the_difference_in_accuracy(side_by_side: str, pairs: list[Any], seed: int) -> None:
    rng, sources = random.Random(seed), list[JudgeRows]()
    for kind, protocol in ((side_by_side, "p1"), (side_by_side, "p2"), ("scoring", "p3"), ("rotating", "p4")):
        sides, number, rules = KINDS[kind]
        rows = list[Row]()
        for index, (data, subset, cluster, label) in enumerate(pairs):
            judgments = [rng.choice(VALID[kind == "scoring"]) for _ in range(number)]
            row = make_row(f"c{index}", sides, judgments, label, protocol=protocol, subset=subset)
            row = replace(row, data=data, cluster=cluster)
            # The names a and b in the rows of a judge do not define an order.
            rows.append(rng.choice([row, exchange(row)]))
        sources.append(JudgeRows("j", protocol, rules, {"": tuple(rows)}))
    results = check(sources)
    accuracy = {(f.data, f.subset, f.protocol, f.rule): f for f in results if f.measure == "accuracy" and not f.against}
    differences = [f for f in results if f.against is not None]
    assert {(f.protocol, f.against) for f in differences} == {*combinations([one.protocol for one in sources], 2)}
    for f in differences:
        one = accuracy[f.data, f.subset, f.protocol, f.rule].value
        other = accuracy[f.data, f.subset, f.against, f.against_rule].value
        assert f.excluded == 0
        assert f.value == (None if one is None or other is None else pytest.approx(one - other, abs=1e-12))


def exchange(row: Row) -> Row:
    judgments, shown = (one.mirror() for one in row.judgments), ("ba"["ab".index(one)] for one in row.shown)
    mirrored: dict[str, Any] = {"judgments": tuple(judgments), "shown": tuple(shown)}
    return replace(row, a=row.b, b=row.a, label=row.label and MIRROR[row.label], **mirrored)


@given(judge_rows())
@example([JudgeRows(judge, "p", (), {"": ()}) for judge in "jk"])
def test_place_counts_add_up(judged: list[JudgeRows]) -> None:
    by: dict[Key, dict[tuple[str | None, str | None], Agreement]] = {}
    for f in check(judged, CONTROLS):
        by.setdefault(key(f)[3:], {})[f.data, f.subset] = f
    for figure_group in by.values():
        assert figure_group.keys() == {*list_places(judged)}, "what there is anywhere is everywhere"
        sets = [f for f in figure_group.values() if f.data is not None and f.subset is None]
        whole = [(f, [g for g in figure_group.values() if g.data == f.data and g.subset is not None]) for f in sets]
        whole += [(figure_group[None, None], sets)] if (None, None) in figure_group else []
        for f, parts in whole:
            for name in ("n", "invalid", "excluded", *(["k"] if f.k is not None else [])) if parts else ():
                assert getattr(f, name) == sum(getattr(part, name) for part in parts), (f, name)
            if parts and (f.measure in ("calls", "tokens") or f.against is not None):
                assert (f.value or 0) * f.n == pytest.approx(sum((part.value or 0) * part.n for part in parts))
