"""Test boards: intervals by plain loops, ranks, groups, missing intervals, every rating system on hard input."""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import near
from hypothesis import given, strategies as st
from loops import each
from numpy.typing import NDArray
from scipy import stats

from distract.core.errors import PluginError, UnknownName, UsageError
from distract.stats import ratings
from distract.stats.ratings.draws import Draws, draw
from distract.stats.ratings.matches import TIE, A, Matches, encode
from distract.stats.ratings.system import Ratings, RatingSystem
from distract.studies.leaderboard.boards import board as boards, groups
from distract.studies.leaderboard.boards.ranks import ranks
from distract.studies.leaderboard.boards.system_choice import parse_spec

Row = tuple[str, str, str, str]
"""First model, second model, outcome, prompt."""

# mypy lets any figure be used.
build_board: Any = boards.build_board
draw_prompts: Any = boards.draw_prompts


def matches(rows: Sequence[Row], known: bool = True) -> Any:
    a, b, outcomes, prompts = zip(*rows, strict=True)
    return encode(a, b, outcomes, prompts if known else None)


def sums(played: Matches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and matches by unit and model."""
    unit = np.arange(len(played)) if played.cluster is None else played.cluster
    points, counts = np.zeros((2, played.clusters, len(played.models)))
    first = np.where(played.outcome == TIE, 0.5, played.outcome == A)
    for models, worth in ((played.a, first), (played.b, 1 - first)):
        np.add.at(points, (unit, models), worth)
        np.add.at(counts, (unit, models), 1)
    return points, counts


def rate(played: Matches, *, bonus: float = 0.0, label: str = "", times: int = 1, cap: float | None = None) -> Ratings:
    points, counts = sums(played)
    rating = points.sum(axis=0) / counts.sum(axis=0) + bonus
    return Ratings("points", played.models, rating, {"bonus": bonus, "label": label, "times": times, "cap": cap})


def rate_closed(played: Matches, *, anchor: str | None = None) -> Ratings:
    points, counts = sums(played)
    total = counts.sum(axis=0)
    rating = points.sum(axis=0) / total
    score = (points - counts * rating) / total
    return Ratings("closed", played.models, rating, {"anchor": anchor}, score.T @ score)


def redraw(played: Matches, draws: Draws, **parameters: Any) -> NDArray[np.float64]:
    points, counts = sums(played)
    weights = draws.weights
    if weights is None:
        m = played.clusters
        weights = draws.generator("units").multinomial(m, np.full(m, 1 / m), draws.count).astype(np.uint8)
    with np.errstate(invalid="ignore"):
        drawn_rating: NDArray[np.float64] = weights @ points / (weights @ counts) + parameters.get("bonus", 0.0)
    return drawn_rating


POINTS = RatingSystem("points", "share of points, drawn", rate, redraw)
CLOSED = RatingSystem("closed", "share of points, closed form", rate_closed, redraw, unit="share")


def sample_rows(seed: int = 0, prompts: int = 12, models: str = "abcd") -> list[Row]:
    """A round robin on each prompt; earlier letters are better."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet([3.0, 2.0, 1.0], prompts)
    return [
        (x, y, str(rng.choice(["a", "b", "tie"], p=chance[prompt])), f"p{prompt}")
        for prompt in range(prompts)
        for i, x in enumerate(models)
        for y in models[i + 1 :]
    ]


def test_drawn_interval_follows_its_definition() -> None:
    rows = sample_rows()
    draws = draw_prompts(matches(rows), POINTS, 5, 300)
    board = build_board(matches(rows), POINTS, draws=draws)
    by = defaultdict(list)
    for row in rows:
        by[row[3]].append(row)
    names = list(dict.fromkeys(row[3] for row in rows))
    replicates = defaultdict(list)
    for weights in draws.weights.tolist():
        again = [row for name, times in zip(names, weights, strict=True) for row in by[name] * times]
        for model, value in shares(again).items():
            replicates[model].append(value)
    m = len(names)
    for standing in board.standings:
        assert standing.rating == pytest.approx(shares(rows)[standing.model])
        error = np.std(replicates[standing.model], ddof=1) * math.sqrt(m / (m - 1))
        assert standing.error == pytest.approx(error)
        assert standing.rating - standing.low == pytest.approx(stats.t.ppf(0.975, m - 1) * error)
        wider = stats.t.ppf(0.975, m - 1) / stats.norm.ppf(0.975) * math.sqrt(m / (m - 1))
        rating = shares(rows)
        wide = {name: [rating[name] + wider * (v - rating[name]) for v in own] for name, own in replicates.items()}
        own = wide[standing.model]
        positions = sorted(1 + sum(other[d] > own[d] + 1e-6 for other in wide.values()) for d in range(draws.count))
        assert standing.rank_low == min(standing.rank, positions[math.ceil(0.025 * 300) - 1])
        assert standing.rank_high == max(standing.rank, positions[math.ceil(0.975 * 300) - 1])
    assert (board.draws, board.interval, board.prompts, board.matches) == (300, "bootstrap", m, len(rows))


def shares(rows: Sequence[Row]) -> dict[str, float]:
    points: Counter[str] = Counter()
    played: Counter[str] = Counter()
    for a, b, outcome, _ in rows:
        won = {"a": 1.0, "b": 0.0, "tie": 0.5}[outcome]
        points.update({a: won, b: 1 - won})
        played.update((a, b))
    return {name: points[name] / played[name] for name in played}


def test_sandwich_needs_no_draws_and_agrees_with_them() -> None:
    played = matches(sample_rows(prompts=60))
    one, other = build_board(played, CLOSED), build_board(played, POINTS)
    assert (one.interval, one.unit, other.unit) == ("sandwich", "share", "points")
    for x, y in zip(one.standings, other.standings, strict=True):
        assert (x.rating, x.error) == (y.rating, near(y.error, rel=0.08))
    assert one.standings == build_board(played, CLOSED, draws=draw_prompts(played, CLOSED, 0, None)).standings
    for s in one.standings:
        assert s.rating - s.low == pytest.approx(s.high - s.rating)


def test_share_stays_between_0_and_1() -> None:
    rows: list[Row] = [("x", "y", "a", "1"), ("x", "y", "a", "2"), ("x", "y", "b", "3")]
    assert [(s.low, s.high) for s in build_board(matches(rows), CLOSED).standings] == [(0.0, 1.0)] * 2


def test_counts_match_the_matches() -> None:
    rows: list[Row] = [("x", "y", "a", "1"), ("y", "x", "a", "2"), ("x", "z", "tie", "2"), ("z", "y", "b", "3")]
    board = {s.model: (s.matches, s.wins, s.losses, s.ties) for s in build_board(matches(rows), POINTS).standings}
    assert board == {"x": (3, 1, 1, 1), "y": (3, 2, 1, 0), "z": (2, 0, 1, 1)}


@each(
    "ratings, unit, expected",
    ([1.0, 3.0, 2.0], "points", [3, 1, 2]),
    ([1000.0, 1000.0 + 9e-7, 999.0], "points", [1, 1, 3]),
    ([1000.0, 1000.0 + 2e-6, 999.0], "points", [2, 1, 3]),
    ([0.5, 0.5 + 9e-7], "share", [2, 1]),
    ([0.0, 0.0, 0.0], "share", [1, 1, 1]),
    ([5.0], "points", [1]),
    ([[1.0, 2.0], [2.0, 1.0]], "points", [[2, 1], [1, 2]]),
)
def test_ranks_follow_ratings(ratings: list[Any], unit: str, expected: list[Any]) -> None:
    assert ranks(np.array(ratings), unit).tolist() == expected


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_rank_counts_better_models(ratings: list[int]) -> None:
    assert ranks(np.array(ratings, float)).tolist() == [1 + sum(y > x for y in ratings) for x in ratings]


def test_equal_models_sort_by_name_and_share_a_rank() -> None:
    rows: list[Row] = [("b", "a", "tie", "1"), ("c", "a", "b", "1"), ("c", "b", "b", "2")]
    assert [(s.model, s.rank) for s in build_board(matches(rows), POINTS).standings] == [("a", 1), ("b", 1), ("c", 3)]


HARD: dict[str, tuple[list[Row], str]] = {
    "one match": ([("x", "y", "a", "1")], "one prompt only: no interval"),
    "one prompt": ([("x", "y", "a", "1"), ("x", "y", "b", "1")], "one prompt only: no interval"),
    "all ties": ([("x", "y", "tie", str(i)) for i in range(9)], "every match is a tie: no interval"),
    "always the same": ([("x", "y", "a", str(i)) for i in range(9)], "nothing varies from prompt to prompt"),
    "undefeated": (
        [*sample_rows(), *(("z", x, "a", p) for _, x, _, p in sample_rows())],
        "no model of a group ever lost to",
    ),
    "disconnected": (
        [*sample_rows(), *sample_rows(1, 12, "wxyz")],
        "ratings are comparable within a group only: {a, b, c, d}, {w, x, y, z}",
    ),
    "on one prompt": ([*sample_rows(), ("z", "a", "tie", "p0")], "no interval for z: in matches of one prompt only"),
    "hostile names": ([("\x1b[31m,", "[b]x[/b]" * 40, "a", "1"), ("🦙", "\x1b[31m,", "a", "2")], "🦙"),
    "two prompts": ([("x", "y", "a", "1"), ("x", "y", "b", "2")], ""),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("system", [POINTS, CLOSED, *ratings.systems().values()])
def test_hard_input_gives_a_board(name: str, known: bool, system: RatingSystem) -> None:
    rows, message = HARD[name]
    played = matches(rows, known)
    if system.lengths:
        lengths = np.random.default_rng(0).integers(1, 99, (len(played), 2)).astype(np.int32)
        played = replace(played, lengths=lengths)
    board = build_board(played, system, draws=draw_prompts(played, system, 0, 50))
    assert sorted(s.model for s in board.standings) == list(played.models)
    assert sum(s.matches for s in board.standings) == 2 * len(played)
    places = [s.rank for s in board.standings]
    assert places == sorted(places)
    for s in board.standings:
        assert math.isfinite(s.rating)
        assert len({one is None for one in (s.low, s.high, s.error, s.rank_low, s.rank_high)}) == 1
        if s.low is not None:
            assert s.low <= s.rating <= s.high
            assert 1 <= s.rank_low <= s.rank <= s.rank_high <= len(played.models)
    assert all("\x1b" not in note and len(note) < 800 for note in board.notes)
    # Systems with a prior rate even matches without variation.
    if known and (system in (POINTS, CLOSED) or "varies" not in message):
        assert any(message in note for note in board.notes) or not message, board.notes


def test_tie_only_table_is_flat() -> None:
    played = matches(HARD["all ties"][0])
    for system in ratings.systems().values():
        if not system.lengths and "order" not in system.parameters:
            one, other = build_board(played, system, draws=draw_prompts(played, system, 0, 20)).standings
            assert one.rating == pytest.approx(other.rating)
            assert (one.low, one.rank_low, one.rank, other.rank) == (None, None, 1, 1)


def test_anchor_is_fixed_and_not_estimated() -> None:
    assert all(s.low is not None for s in build_board(matches(sample_rows()), CLOSED, {"anchor": "b"}).standings)
    flat = matches([("x", "y", "a", str(i)) for i in range(9)])
    ends = {s.model: (s.low, s.high) for s in build_board(flat, CLOSED, {"anchor": "x"}).standings}
    assert ends == {"x": (1.0, 1.0), "y": (None, None)}


def test_model_missing_from_a_draw_keeps_its_rating() -> None:
    rows: list[Row] = [*sample_rows(prompts=5), ("z", "a", "a", "p0"), ("z", "a", "b", "p1"), ("z", "b", "b", "p1")]
    standing = next(s for s in build_board(matches(rows), POINTS).standings if s.model == "z")
    # Two prompts give one degree of freedom, though the board has five.
    assert standing.rating - standing.low == pytest.approx(stats.t.ppf(0.975, 1) * standing.error)


def repeat_matches(played: Matches, times: int) -> Matches:
    columns: Any = (np.tile(one, times) for one in (played.a, played.b, played.outcome))
    return Matches(played.models, *columns)


def test_draws_fit_the_rated_matches() -> None:
    played = matches(sample_rows())
    online = RatingSystem("online", "", lambda matches, *, order="file": rate(matches), redraw)
    assert draw_prompts(played, POINTS, 0).count == boards.DRAWS
    assert draw_prompts(matches(sample_rows(), False), POINTS, 0).weights is None
    many, half = repeat_matches(played, 8000), repeat_matches(played, 1000)
    assert (draw_prompts(many, POINTS, 0).count, draw_prompts(many, online, 0).count) == (1000, boards.FEWEST)
    assert draw_prompts(half, online, 0).count == boards.PLAYED // len(half)
    assert draw_prompts(half, online, 0, 700).count == 700
    with pytest.raises(UsageError, match="1 draws: expected at least 2"):
        draw_prompts(played, POINTS, 0, 1)


def test_prompts_always_have_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "MAX_WEIGHTS", 60)
    assert draw_prompts(matches(sample_rows()), POINTS, 0).weights.shape == (5, 12)


@each("rows, known", (sample_rows(prompts=5), True), (sample_rows(), False))
def test_draws_of_other_prompts_are_refused(rows: list[Row], known: bool) -> None:
    message = r"the draws are of 12 prompts, the matches have (5|none); draw again for them"
    with pytest.raises(UsageError, match=message):
        build_board(matches(rows, known), POINTS, draws=draw_prompts(matches(sample_rows()), POINTS, 0, 5))


def test_unknown_parameter_is_named() -> None:
    with pytest.raises(UsageError, match=r"points: no parameter 'k'; known: bonus=0.0, label=, times=1, cap=None"):
        build_board(matches(sample_rows()), POINTS, {"k": 1})


@pytest.fixture
def _points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratings, "systems", lambda: {"points": POINTS})


@pytest.mark.usefixtures("_points")
@each(
    "spec, expected",
    ("points", {}),
    ("points:", {}),
    ("points:bonus=2", {"bonus": 2.0}),
    (" points : bonus = 2 , times=3", {"bonus": 2.0, "times": 3}),
    ("points:cap=1e3", {"cap": 1000.0}),
    ("points:label=a, b,times=3", {"label": "a, b", "times": 3}),
    ("points:label=", {"label": ""}),
    ("points:label=a:b=c", {"label": "a:b=c"}),
)
def test_system_choice_parses_parameters(spec: str, expected: Mapping[str, Any]) -> None:
    system, parameters = parse_spec(spec)
    assert (system.name, parameters) == ("points", expected)
    assert [type(value) for value in parameters.values()] == [type(value) for value in expected.values()]


@pytest.mark.usefixtures("_points")
@each(
    "spec, message",
    ("point", "unknown rating system 'point'; did you mean 'points'? (known: points)"),
    ("points:3", "points: expected name=value, got '3'; known: bonus=0.0, label=, times=1, cap=None"),
    ("points:k=3", "points: no parameter 'k'; known: bonus=0.0, label=, times=1, cap=None"),
    ("points:bonus=high", "points: parameter 'bonus': expected a number like 0.0, got 'high'"),
    ("points:bonus=nan", "points: parameter 'bonus': expected a number like 0.0, got 'nan'"),
    ("points:times=1.5", "points: parameter 'times': expected a whole number like 1, got '1.5'"),
    ("points:cap=x", "points: parameter 'cap': expected a number, got 'x'"),
    ("points:times=1,times=2", "points: parameter 'times' is given twice"),
)
def test_wrong_system_choice_is_explained(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_spec(spec)
    assert str(raised.value) == message
    assert isinstance(raised.value, UnknownName) == (spec == "point")


@each("name", *ratings.systems())
def test_every_default_parses_on_the_command_line(name: str) -> None:
    system = ratings.get_system(name)
    parameters = {key: value for key, value in system.parameters.items() if value is not None}
    spec = f"{name}:" + ",".join(f"{key}={value}" for key, value in parameters.items())
    assert parse_spec(spec) == (system, parameters)


@each(
    "name, parameter, value, message",
    ("elo", "k", 0.0, "expected a number above 0, found 0.0"),
    ("elo", "k", math.nan, "expected a number above 0, found nan"),
    ("elo", "base", 1.0, "expected a number above 1, found 1.0"),
    ("elo", "scale", -1.0, "expected a number above 0, found -1.0"),
    ("elo", "initial", math.inf, "expected a number, found inf"),
    ("elo", "shuffles", 0, "expected a whole number, 1 to 10,000, found 0"),
    ("elo", "order", "random", "expected shuffled or file, found 'random'"),
    ("elo", "seed", -1, "expected a whole number, 0 or more, found -1"),
    ("trueskill", "mu", math.nan, "expected a number, found nan"),
    ("trueskill", "sigma", 0.0, "expected a number above 0, found 0.0"),
    ("trueskill", "beta", -1.0, "expected a number above 0, found -1.0"),
    ("trueskill", "tau", -0.1, "expected a number, 0 or more, found -0.1"),
    ("trueskill", "draw_probability", 1.0, "expected a number from 0 to below 1, found 1.0"),
    ("trueskill", "draw_probability", -0.1, "expected a number from 0 to below 1, found -0.1"),
    ("trueskill", "shuffles", 0, "expected a whole number, 1 to 10,000, found 0"),
    ("trueskill", "order", "best", "expected shuffled or file, found 'best'"),
    ("bradley-terry", "prior", 0.0, "expected a standard deviation of 0.0174 to 3.47e+04 points"),
    ("bradley-terry", "prior", math.nan, "expected a standard deviation of 0.0174 to 3.47e+04 points"),
    ("bradley-terry", "prior", "wide", "expected a standard deviation of 0.0174 to 3.47e+04 points"),
    ("bradley-terry", "scale", 0.0, "expected points above 0, such as 400"),
    ("bradley-terry", "scale", math.inf, "expected points above 0, such as 400"),
    ("bradley-terry", "base", 1.0, "expected a number above 1, such as 10"),
    ("bradley-terry", "anchor_rating", math.inf, "expected points, such as 1000"),
    ("bradley-terry", "interval", "wald", "expected sandwich or bootstrap"),
)
def test_bad_parameter_of_a_system_is_one_line(name: str, parameter: str, value: object, message: str) -> None:
    system, played = ratings.get_system(name), matches([("x", "y", "a", "p")])
    with pytest.raises(UsageError) as error:
        system.rate(played, **{parameter: value})
    found = f" is {value!r};" if name == "bradley-terry" else ":"
    assert str(error.value) == f"{parameter}{found} {message}"
    with pytest.raises(UsageError):
        system.redraw(played, draw(0, 2, 1), **{parameter: value})


@each(
    "rows, expected",
    ("x>y y>x", ""),
    ("x=y y=z", ""),
    ("x>y y>z z>x", ""),
    ("x>y", "{x}, {y}"),
    ("x>y y>z", "{x}, {y}, {z}"),
    ("b>a c>b a=c d>a", "{d}, {a, b, c}"),
    ("a>z a=b b>y y>z z>y", "{a, b}, {y, z}"),
    ("w>x w>y x>z y>z", "{w}, {x}, {y}, {z}"),
)
def test_groups_run_from_top_to_bottom(rows: str, expected: str) -> None:
    played = graph(rows)
    assert groups.find_groups(played) == [played.models]
    notes = groups.notes(played)
    assert len(notes) == bool(expected)
    assert all(f"later group: {expected}; " in note for note in notes)


def graph(text: str) -> Any:
    return matches([(pair[0], pair[2], {">": "a", "=": "tie"}[pair[1]], pair) for pair in text.split()])


def test_notes_shorten_long_lists_and_names() -> None:
    rows: list[Row] = [(f"m{i:03}", f"m{i + 1:03}" + "x" * 99, "a", "p") for i in range(0, 200, 2)]
    (note,) = groups.notes(matches(rows))
    assert len(note) < 900
    assert "and 94 more" in note
    assert groups.format_names([f"m{i}" for i in range(18)]) == "m0, m1, m2, m3, m4, m5 and 12 more"
    assert len(groups.format_names(["x" * 500])) == groups.WIDTH


pairs = st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.sampled_from(["a", "b", "tie"]))


@given(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=12))
def test_groups_follow_reachability(played: list[tuple[str, str, str]]) -> None:
    rows: list[Row] = [(*pair, "p") for pair in played]
    table = matches(rows)
    beats = {(x, y) for a, b, o in played for x, y in [(a, b), (b, a)] if o == "tie" or (o == "a") == (x == a)}
    reach, meet = set(beats), {pair for x, y in beats for pair in ((x, y), (y, x))}
    for _ in table.models:
        reach |= {(x, z) for x, y in reach for w, z in reach if y == w}
        meet |= {(x, z) for x, y in meet for w, z in meet if y == w}
    result = groups.find_groups(table)
    assert sorted(name for group in result for name in group) == list(table.models)
    assert all(((x, y) in meet) == (g is h) for g in result for h in result for x in g for y in h if x != y)
    strong = all((x, y) in reach for x in table.models for y in table.models if x != y)
    assert (groups.notes(table) == ()) == strong


WRONG_RATES: list[Any] = [
    lambda played: 1 / 0,
    lambda played: sys.exit(0),
    lambda played: None,
    lambda played: replace(rate(played), rating=np.full(len(played.models), np.nan)),
    lambda played: replace(rate(played), rating=np.zeros(len(played.models) + 1)),
    lambda played: replace(rate(played), covariance=np.full((2, 2), np.nan)),
    lambda played: replace(rate(played), covariance=np.zeros(2)),
    lambda played: replace(rate(played), sigma=np.array([np.inf, 0.0])),
    lambda played: replace(rate(played), extra={"length": np.nan}),
    lambda played: replace(rate(played), notes=(3,)),  # type: ignore[arg-type]
]
WRONG_REDRAWS: list[Any] = [
    *(lambda *_: 1 / 0, lambda *_: sys.exit(0), lambda *_: None, lambda *_: np.ones(7)),
    *(lambda *_: np.ones(2), lambda *_: 1.0, lambda matches, draws: np.full((draws.count, 2), np.inf)),
]


@each("rated, redrawn", *((one, redraw) for one in WRONG_RATES), *((rate, one) for one in WRONG_REDRAWS))
def test_errors_of_a_foreign_rating_system_are_reported(rated: Any, redrawn: Any) -> None:
    with pytest.raises(PluginError, match="rating system 'theirs' failed: "):
        build_board(matches([("x", "y", "a", "p"), ("y", "x", "a", "q")]), RatingSystem("theirs", "", rated, redrawn))
