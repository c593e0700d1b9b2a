"""Test the clearest flips: selection, margins, and excerpts around the first difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import row, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Judgment, Response, Rewrite, Row
from distract.studies.attack.flips import Flip, excerpt_difference, find_flips
from distract.studies.attack.outcomes import CRITERIA, count_flips

Triple = tuple[float, float, float]


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
        case="c2",
        protocol="pairwise",
        rule=None,
        attack="f",
        rewritten="y",
        other="x",
        before=(0.25, 0.625),
        after=(0.5, 0.25),
        margin=0.625,
        original="one\n\ntwo",
        rewrite="one!\n\ntwo!",
    )


def test_largest_margin_comes_first() -> None:
    flips = find_flips(ROWS, (), "pairwise", None, "f")
    assert [(flip.case, flip.rewritten, flip.margin) for flip in flips] == [
        ("c4", "x", 2.0),
        ("c1", "y", 1.375),
        ("c2", "y", 0.625),
    ]
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
    assert find_flips([*more, *rows[::-1]], (), "pairwise", None, "f", 9) == find_flips(
        [*rows, *more], (), "pairwise", None, "f", 9
    )


@each("rule, before, after, margin", ("score", (2.0, 5.0), (5.5, 4.5), 4.0), ("rating", (2.0, 5.0), (6.0, 4.0), 5.0))
def test_scoring_protocol_shows_the_compared_scores(
    rule: str, before: tuple[float, float], after: tuple[float, float], margin: float
) -> None:
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


@given(run_rows())
def test_flips_listed_equal_flips_counted(rows: list[Row]) -> None:
    flips = find_flips(rows, (), "pairwise", None, "f", most=99)
    counted = count_flips(rows, None, "f").outcomes.values()
    assert len(flips) == sum(CRITERIA["flip_rate"](after, before) for _, after, before in counted)
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
    rows = [
        row("c1", BEFORE),
        row("c1", make_judgments((0.1, 0.9, 0.0)), attack="f", target="a"),
        row("c2", BEFORE),
        row("c2", make_judgments((0.9, 0.1, 0.0)), attack="f", target="a"),
    ]
    (counter,) = find_flips(rows, (), "pairwise", None, "f", outcome="counter-flip")
    assert (counter.case, counter.rewritten, counter.other) == ("c1", "x", "y")
    assert (counter.before, counter.after) == ((0.625, 0.25), (0.1, 0.9))
    assert counter.margin == pytest.approx(-1.175)
    assert find_flips(rows, (), "pairwise", None, "f") == ()
