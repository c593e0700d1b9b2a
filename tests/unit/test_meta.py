"""Test ``distract meta`` as plans and as a run: judged pairs, planted accuracies, controls, data sets, resuming."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, finish, set_up
from fakes import Counted
from hypothesis import example, given, strategies as st
from loops import each

from distract.core.attack import Attack
from distract.core.backend import Backend
from distract.core.errors import BackendError, UsageError
from distract.core.job import Job
from distract.core.records import RESAMPLED, Case, Reply, Request, Response, Row, Side
from distract.core.registry import protocols
from distract.core.runs import LoadedRun, load
from distract.core.usage import Tally
from distract.data import datasets
from distract.data.formats.native import format_line as native
from distract.judging.orders import Manner
from distract.judging.published import PublishedRun
from distract.models.options import record
from distract.models.scripted import ScriptedBackend, make_planted
from distract.studies.estimate import estimate
from distract.studies.meta import session
from distract.studies.meta.measures import Agreement
from distract.studies.meta.options import MetaOptions
from distract.studies.meta.panel import MetaResult, measure_judges
from distract.studies.meta.session import MetaConfig, from_run, is_one_sided, judge_labelled, prepare, select
from distract.studies.meta.study import document


def answer(author: str, severity: int | None = None, attack: str | None = None) -> Response:
    return Response(author, (f"By {author}.",), attack, severity)


X, Y, Z, LOW = answer("x"), answer("y"), answer("z"), answer("y", 1)
first = make_planted("first")._answer_one


@each(
    "responses, preferred, pairs",
    ((X, Y), "x", ["xy"]), ((X, Y), "y", ["xy"]), ((Y, X), "x", ["yx"]), ((X, Y), "tie", ["xy"]), ((X, Y), None, []),
    ((X, Y), "nobody", []), ((X,), "x", []), ((X,), "tie", []), ((), "tie", []), ((X, Y, Z), "x", ["xy", "xz"]),
    ((X, Y, Z), "y", ["xy", "yz"]), ((X, Y, Z), "tie", ["xy", "xz", "yz"]), ((X, Y, Z), None, []),
    # A response made worse on purpose is worse, but forms no pair with a tie or with its own author.
    ((X, LOW), "x", ["xy1"]), ((X, LOW), "tie", []), ((Y, LOW), "y", []), ((X, LOW), "y", []),
    ((X, Y, LOW), "x", ["xy", "xy1"]), ((X, Y, LOW), "tie", ["xy"]),
    # People did not see the rewrites.
    ((X, answer("y", attack="null")), "x", []), ((X, Y, answer("y", attack="null")), "x", ["xy"]),
)  # fmt: skip
def test_each_labelled_pair_is_judged(responses: tuple[Response, ...], preferred: str | None, pairs: list[str]) -> None:
    labelled = session.labelled_pairs(case(responses=responses, preferred=preferred))
    assert ["".join(f"{one.author}{one.severity or ''}" for one in pair) for pair in labelled] == pairs


@given(
    st.lists(st.sampled_from([X, Y, Z, LOW]), min_size=2, max_size=4, unique=True),
    st.sampled_from(["x", "y", "tie"]),
    st.lists(st.sampled_from(["pairwise", "absolute", "base"]), min_size=1, unique=True),
)
def test_case_gives_a_row_for_each_pair_and_protocol(responses: Any, preferred: str, names: list[str]) -> None:
    one = case(responses=responses, preferred=preferred)
    result, _ = drive(judge_labelled("d", one, MetaConfig("j", tuple(protocols()[name] for name in names))), first)
    places = [(name, a.author, b.author) for name in names for a, b in session.labelled_pairs(one)]
    assert [(row.protocol, row.a.author, row.b.author) for row in result.rows] == places
    for row in result.rows:
        assert (row.design, row.attack, row.data, row.subset, row.target) == ("people", "none", "d", "", None)
        assert row.label in (("tie",) if preferred == "tie" else ("a", "b"))
        assert (row.cluster, row.excluded, bool(row.keys)) == (one.cluster, None, True)
    assert result.rewrites == []


def test_exclusion_extends_to_controls(tmp_path: Path) -> None:
    cases = [*map(add_spaces, PLANTED[:3]), add_spaces(case("three", responses=(X, Y, Z), preferred="x"))]
    result = measure(run(ready(tmp_path, "fair", cases, ["triadic", "base"], control=True)))
    places = (("triadic", "null", 2, 3), ("triadic", RESAMPLED, 0, 5), ("base", "null", 5, 0))
    for protocol, attack, n, excluded in places:
        figure = find(result, "verdict_change_rate", protocol, attack=attack, data="d.jsonl")
        assert (figure.n, figure.excluded) == (n, excluded), (protocol, attack)


def long(index: int, preferred: str, source: str | None = None) -> Case:
    """A case whose x is the longer response."""
    text = f"The colour that I would name is number {index}, which I like, and which many others have liked too."
    responses = (Response("x", (text,)), Response("y", (f"Colour {index}.",)))
    return Case(f"c{index}", (f"Name colour {index}.",), responses, preferred, source=source)


def add_spaces(one: Case, *authors: str) -> Case:
    """Add a double space, which the control changes, to the responses of these authors (default: all)."""
    wide = [replace(r, turns=tuple(turn.replace(" ", "  ", 1) for turn in r.turns)) for r in one.responses]
    pairs = zip(one.responses, wide, strict=True)
    return replace(one, responses=tuple(new if r.author in (authors or r.author) else r for r, new in pairs))


def write(path: Path, cases: Sequence[Case]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(native(one) + "\n" for one in cases), encoding="utf-8")
    return str(path)


def ready(
    folder: Path,
    judge: str | Backend,
    cases: Sequence[Case],
    names: Sequence[str],
    *,
    limit: int | None = None,
    seed: int = 0,
    out: str = "run",
    control: bool = False,
    **more: Any,
) -> Job[MetaResult]:
    selected = select([write(folder / "d.jsonl", cases)], (), limit, seed)
    backend = make_planted(judge) if isinstance(judge, str) else judge
    options = MetaOptions(control=control, protocols=names)  # type: ignore[arg-type]
    return prepare(options, set_up("j", backend, folder / out, names, recorded=record(options), **more), selected)


def run(job: Job[MetaResult], store: Path | None = None, tally: Tally | None = None) -> LoadedRun:
    return finish(job, store or job.out.parent / "s", tally).run


def measure(loaded: LoadedRun) -> Sequence[Agreement]:
    return measure_judges([from_run(loaded.parameters, loaded.rows)]).figures


def find(figures: Sequence[Agreement], measure: str, protocol: str, **place: Any) -> Agreement:
    criteria: dict[str, Any] = {"measure": measure, "protocol": protocol, "subset": None, "against": None, **place}
    (one,) = [f for f in figures if all(getattr(f, name) == value for name, value in criteria.items())]
    return one


# The longer response is better in 7 of 10 cases: 3 of 4 in one half and 4 of 6 in the other.
PLANTED = [long(i, "y" if i in (0, 5, 9) else "x", "s" if i < 4 else "t") for i in range(10)]
WAYS = ("base", "pairwise", "cot", "rank", "prepair", "swap-synthesize", "cot-consistency", "absolute", "pointwise")


def test_planted_judge_has_its_planted_accuracy(tmp_path: Path) -> None:
    result = measure(run(ready(tmp_path, "longer", PLANTED, WAYS)))
    for name in WAYS:
        rule, orders = ("score", 1) if name in ("absolute", "pointwise") else (None, 2)
        for subset, k, n in ((None, 7, 10), ("s", 3, 4), ("t", 4, 6)):
            accuracy = find(result, "accuracy", name, rule=rule, subset=subset)
            both = find(result, "accuracy_both_orders", name, rule=rule, subset=subset)
            assert (accuracy.k, accuracy.n, accuracy.invalid, accuracy.excluded) == (k * orders, n * orders, 0, 0)
            assert (both.k, both.n) == (k, n)
        if not rule:
            assert (find(result, "equal_verdicts", name).k, find(result, "first_slot_rate", name).value) == (10, 0.5)
    for one, other in (("base", "pairwise"), ("absolute", "base")):
        rule = "score" if one == "absolute" else None
        difference = find(result, "accuracy", one, against=other, rule=rule, data="d.jsonl")
        assert (difference.value, difference.n, difference.compared) == (0.0, 20, "not distinguishable")


@each(
    "preferred, expected",
    ("xx", True), ("yy", True), ("xy", False), ("x", False), ("", False), (["tie", "tie"], False),
    (["x", "tie"], False), (["x", "tie", "x"], True), (["x", None, "x"], True), ([None, None], False),
)  # fmt: skip
def test_data_are_one_sided_if_all_labels_name_one_place(preferred: Sequence[str | None], expected: bool) -> None:
    assert is_one_sided([case(f"c{i}", responses=(X, Y), preferred=one) for i, one in enumerate(preferred)]) == expected
    # A case with several pairs is one-sided only if all are.
    assert [is_one_sided([case(responses=(X, Y, Z), preferred=one)]) for one in "xy"] == [True, False]


def test_one_sided_data_are_shuffled_by_seed(tmp_path: Path) -> None:
    cases = [long(i, "x") for i in range(40)]

    def drawn(cases: Sequence[Case], seed: int, name: str) -> dict[str, tuple[str, str | None]]:
        loaded = run(ready(tmp_path, "longer", cases, ["base", "absolute"], seed=seed, out=name))
        assert loaded.parameters["data"][0]["shuffled"] is True
        places = {(row.case, (row.a.author, row.label)) for row in loaded.rows}
        values: dict[str, tuple[str, str | None]] = dict(places)
        assert len(values) == len(places), "the same by all protocols"
        assert {find(measure(loaded), "accuracy", "base").value} == {1.0}
        return values

    whole = drawn(cases, 0, "a")
    assert {*whole.values()} == {("x", "a"), ("y", "b")}
    assert 10 <= sum(author == "x" for author, _ in whole.values()) <= 30
    part = drawn(cases[::-2], 0, "b")
    assert part.items() <= whole.items(), "whatever the other cases are"
    assert drawn(cases, 1, "c") != whole
    first_slot = measure(run(ready(tmp_path, "first", cases, ["base"], manner=Manner("given"), out="d")))
    assert 0.2 < (find(first_slot, "accuracy", "base").value or 0) < 0.8
    assert find(first_slot, "kappa", "base", order="given").value == 0.0


def test_other_data_keep_their_order(tmp_path: Path) -> None:
    loaded = run(ready(tmp_path, "fair", PLANTED, ["base"]))
    assert loaded.parameters["data"][0]["shuffled"] is False
    assert {row.a.author for row in loaded.rows} == {"x"}


def test_judge_swayed_by_white_space_is_detected(tmp_path: Path) -> None:
    """A judge whose verdict depends on which response has two spaces in a row."""
    spaced = Response("x", ("A  colour.",))
    cases = [Case(f"c{i}", (f"{i}",), (spaced, Y), "x") for i in range(3)]

    def swayed(request: Request) -> Reply:
        assert request.slots is not None
        outcomes = dict(request.slots.outcomes)
        firsts = [name for name, one in zip(("first", "second"), request.slots.shown, strict=True) if "  " in one.text]
        return Reply(probabilities=tuple(float(c == outcomes[(*firsts, "tie")[0]]) for c in request.choices), mass=1.0)

    loaded = run(ready(tmp_path, ScriptedBackend(swayed), cases, ["pairwise"], control=True))
    figure = find(measure(loaded), "verdict_change_rate", "pairwise", attack="null")
    assert (figure.k, figure.n, figure.excluded) == (3, 3, 0)
    assert find(measure(loaded), "accuracy", "pairwise").value == 1.0


def test_control_that_spoils_a_response_is_excluded_but_recorded() -> None:
    spoiling = Attack("spoil", "loses the number", lambda turn, constraints, seed: turn.replace("7", "8"))
    parameters = MetaConfig("j", (protocols()["base"], protocols()["pairwise"]), controls=(spoiling,))
    result, _ = drive(judge_labelled("d", long(7, "x"), parameters), first)
    excluded = [("none", None), ("spoil", "rewrite rejected")]
    places = [(name, *one) for name in ("base", "pairwise") for one in excluded]
    assert [(row.protocol, row.attack, row.excluded) for row in result.rows] == places
    assert [one.is_accepted for one in result.rewrites] == [False], "written once for all protocols"


def test_reference_model_receives_only_its_requests(tmp_path: Path) -> None:
    helper = ScriptedBackend(lambda request: Reply("Red, I should say."), name="helper")
    job = ready(tmp_path, "longer", PLANTED[:3], ["strong-reference", "base"], reference=("helper", helper))
    tally = Tally()
    loaded = run(job, tally=tally)
    assert "helper" in json.dumps(loaded.parameters["reference"])
    assert {*job.models} == {"judge", "reference"}
    assert find(measure(loaded), "accuracy", "strong-reference").k == 4
    # One answer per prompt, shared by both orders.
    assert find(measure(loaded), "calls", "strong-reference").value == 3.0
    assert sum(estimate(job).requests.values()) == tally.made == 15


@contextmanager
def refuses(message: str) -> Iterator[None]:
    """Check for this error message."""
    with pytest.raises(UsageError) as raised:
        yield
    assert str(raised.value) == message


def make_replayed_run(protocol: str, data: str, *rules: str) -> PublishedRun:
    rows = dict.fromkeys(rules or ("",), ())
    return PublishedRun("j", protocol, data, rules, rows, False, f"{protocol}/{data}", "0", {}, "", {}, None)


def run_of_units(source: str, *units: str, data: str = "d", protocol: str = "p") -> PublishedRun:
    """A run with rows about these units: data set, case, authors of a and b, and the name of a control."""
    rows = []
    for unit in units:
        where, name, pair, attack = [*unit.split("/"), "none"][:4]
        a, b = (Side(author[0], severity=int(author[1:] or 0) or None) for author in pair.split("-"))
        rows.append(Row(name, name, "people", protocol, "j", attack, a, b, data=where, label="a"))
    both = dict.fromkeys(("stored", "parsed"), tuple(rows))
    return PublishedRun("j", protocol, data, ("stored", "parsed"), both, False, source, "0", {}, "", {}, None)


def name_data(runs: list[list[str]], names: str) -> list[PublishedRun]:
    return [run_of_units(str(i), *units, data=name) for i, (units, name) in enumerate(zip(runs, names, strict=False))]


@each(
    "runs, source, other",
    ([["d/c/x-y"], ["d/c/x-y"]], "1", "0"), ([["d/c/x-y"], ["d/c/y-x"]], "1", "0"),
    ([["d/c1/x-y", "d/c2/x-y"], ["d/c3/x-y", "d/c2/x-y"]], "1", "0"),
    ([["d/c1/x-y"], ["d/c2/x-y"], ["d/c3/x-y", "d/c2/y-x"]], "2", "1"),
    ([["d/c1/x-y"], ["d/c1/x-y1"], ["d/c1/y1-x"]], "2", "1"),
    ([["d/c1/x-y"], ["d/c2/x-y"], ["d/c1/x-y", "d/c2/x-y"]], "2", "0"),
)  # fmt: skip
@each("names", "ddd", "def")
def test_pair_judged_by_two_runs_is_refused_under_any_data_name(runs: Any, source: str, other: str, names: str) -> None:
    with refuses(f"{source}: j under p judges a pair that {other} judges too; name one"):
        session.group_runs(name_data(runs, names))


@each(
    "runs",
    [["d/c1/x-y"], ["d/c2/x-y"], ["d/c3/x-y"]], [["d/c/x-y"], ["e/c/x-y"]],
    [["d/c/x-y"], ["d/c/x-z", "d/c/y-z"], ["d/c/x-y1"]], [["d/c/x-y", "d/c/x-y/null"], ["d/c2/x-y", "d/c2/x-y/null"]],
    # The pair of a control alone does not count.
    [["d/c/x-y"], ["d/c2/x-y", "d/c/x-y/null"]], [["d/c/x-y"], []],
)  # fmt: skip
@each("names", "ddd", "def")
def test_disjoint_runs_are_merged_under_any_data_name(runs: list[list[str]], names: str) -> None:
    published_runs = name_data(runs, names)
    (groups,) = session.group_runs(published_runs)
    for rule in ("stored", "parsed"):
        assert groups.rows[rule] == tuple(row for run in published_runs for row in run.rows[rule])
    further = [run_of_units("q", *units, protocol=f"q{i}") for i, units in enumerate(runs)]
    assert len(session.group_runs([*published_runs, *further])) > len(runs)


@each("first, second", (("stored",), ()), ((), ("score",)))
def test_incompatible_runs_are_refused(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    with refuses("p/e: j under p has other rules in p/d"):
        session.group_runs([make_replayed_run("p", "d", *first), make_replayed_run("p", "e", *second)])


def test_runs_of_one_protocol_are_merged() -> None:
    runs = [make_replayed_run(protocol, "d", "stored") for protocol in "qp"]
    runs.append(make_replayed_run("p", "e", "stored", "parsed"))
    runs[1] = replace(runs[1], calls=2, convention="llmbar")
    groups = session.group_runs([*runs, replace(runs[1], data="f", calls=2, ties=True)])
    assert [(one.protocol, one.rules) for one in groups] == [("p", ("stored", "parsed")), ("q", ("stored",))]
    assert (groups[0].calls, groups[0].convention, groups[0].ties, groups[0].headline) == (None, "", True, "stored")
    (alike,) = session.group_runs([runs[1], replace(runs[1], data="f")])
    assert (alike.calls, alike.convention) == (2, "llmbar")


FILES = ("run.json", "rows.jsonl", "rewrites.jsonl", "summary.json")


@each("after", 1, 40, 100)
def test_killed_run_resumes_to_the_same_bytes(tmp_path: Path, after: int) -> None:
    names, tally = ["pairwise", "absolute", "prepair"], Tally()
    run(ready(tmp_path, "random", PLANTED, names, control=True, out="whole"), tmp_path / "s1")
    with pytest.raises(BackendError):
        run(ready(tmp_path, Counted(make_planted("random"), after), PLANTED, names, control=True), tmp_path / "s2")
    assert load(tmp_path / "run").flaw is not None
    run(ready(tmp_path, "random", PLANTED, names, control=True), tmp_path / "s2", tally)
    assert tally.stored == after
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_run_is_reproducible_and_reads_back_unchanged(tmp_path: Path) -> None:
    for out, store in (("a", "s1"), ("b", "s2"), ("c", "s2")):
        run(ready(tmp_path, "random", PLANTED, ["pairwise", "absolute"], limit=5, seed=3, out=out), tmp_path / store)
    for name in FILES:
        assert len({(tmp_path / out / name).read_bytes() for out in "abc"}) == 1, name
    loaded = load(tmp_path / "a")
    assert (loaded.flaw, loaded.command) == (None, "meta")
    whole = document(measure_judges([from_run(loaded.parameters, loaded.rows)]))
    assert whole == {**json.loads(loaded.summary or ""), "panel": None}
    fields = {"measure", "protocol", "rule", "attack", "value", "low", "high", "k", "n", "invalid", "excluded", "unit"}
    assert all(fields <= one.keys() for one in whole["results"])
    assert len({json.dumps(one) for one in whole["results"]}) == len(whole["results"])


def test_cases_are_drawn_per_data_set_and_the_rest_counted(tmp_path: Path) -> None:
    unlabelled = [Case(f"u{i}", (f"{i}",), (X, Y)) for i in range(3)]
    one = write(tmp_path / "one.jsonl", [*PLANTED, *unlabelled])
    other = write(tmp_path / "other.jsonl", [long(i, "tie") for i in range(4)])
    selected = select([one, other], (), 5, 0)
    assert Counter(name for name, _ in selected.cases) == {"one.jsonl": 5, "other.jsonl": 4}
    assert selected.left_out == {"nobody says which response is better": 3}
    assert [one.record["cases"] for one in selected.sets.values()] == [13, 4]
    assert selected == select([one, other], (), 5, 0)
    assert selected.cases != select([one, other], (), 5, 1).cases
    names = [case.id for _, case in selected.cases[:5]]
    assert names == sorted(names)
    assert select((), (), None, 0).cases == ()


@each(
    "specs, names",
    (["a/d.jsonl"], ["d.jsonl"]), (["a/d.jsonl", "b/e.jsonl"], ["d.jsonl", "e.jsonl"]),
    (["a/d.jsonl", "b/d.jsonl"], ["a", "b"]), (["a/d.jsonl", "native:b/d.jsonl"], ["a", "b"]),
    (["native:a/d.jsonl", "native:b/d.jsonl"], ["a", "b"]), (["a/x/d.jsonl", "b/x/d.jsonl"], ["a/x", "b/x"]),
    (["a/x/d.jsonl", "b/x/d.jsonl", "b/y/d.jsonl"], ["a/x", "b/x", "y"]), (["d.jsonl", "a/d.jsonl"], ["d.jsonl", "a"]),
    (["a/d.jsonl", "b/d.jsonl", "e.jsonl"], ["a", "b", "e.jsonl"]),
    (["hub:org/name", "hub:other/name:config"], ["org/name", "other/name:config"]),
)  # fmt: skip
def test_data_sets_of_one_name_are_separated_by_folder(specs: list[str], names: list[str]) -> None:
    own = [spec.removeprefix("hub:") if spec.startswith("hub:") else Path(spec).name for spec in specs]
    assert session.distinct_names(own, specs) == names


@example(["a/d.jsonl", "b/d.jsonl", "c/a"])
@example(["a/x", "p/x/d.jsonl", "q/y/d.jsonl", "/o/a/x/e.jsonl", "/o/b/x/e.jsonl"])
@given(st.lists(st.sampled_from(["d", "a/d", "b/d", "a/b/d", "b/a/d", "c/a", "c/b", "/r/a/d"]), unique=True))
def test_data_set_names_are_unique(specs: list[str]) -> None:
    names = [Path(spec).name for spec in specs]
    distinct = session.distinct_names(names, specs)
    assert len(set(distinct)) == len(specs)
    for name, own, spec in zip(distinct, names, specs, strict=True):
        # The name is its own, that of its folder, or its path if the folder's name is taken.
        assert name in (own, spec) or f"/{name}/" in f"/{Path(spec).parent}/"
        assert name == own or names.count(own) > 1 or own in Path(spec).parts


@each("specs", ["hub:org/name", "hub:org/name"], ["hub:org/name", "hub:org/name:main"])
@each("names", ("name", "name"), ("org/name", "org/name:main"))
def test_repeated_hub_data_set_is_refused(tmp_path: Path, monkeypatch: Any, specs: list[str], names: Any) -> None:
    there = datasets.load(write(tmp_path / "d.jsonl", PLANTED), (), 0)
    own = iter(names)
    monkeypatch.setattr(datasets, "load", lambda spec, *more: replace(there, name=next(own)))
    with refuses(f"--data {specs[1]}: is given twice"):
        select(specs, (), None, 0)


@each(
    "specs",
    ["a/d.jsonl", "a/d.jsonl"], ["d.jsonl", "d.jsonl"], ["tweakset", "tweakset"],
    ["a/d.jsonl", "b/d.jsonl", "a/d.jsonl"], ["a/d.jsonl", "native:a/d.jsonl"], ["native:d.jsonl", "d.jsonl"],
    ["a/d.jsonl", "./a/../a/d.jsonl"],
    # A copy is the same data, whatever its path and name.
    ["d.jsonl", "b/d.jsonl"], ["d.jsonl", "copy.jsonl"],
)  # fmt: skip
def test_repeated_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, specs: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for path, start in (("d.jsonl", 0), ("a/d.jsonl", 1), ("b/d.jsonl", 0), ("copy.jsonl", 0)):
        write(Path(path), PLANTED[start:])
    with refuses(f"--data {specs[-1]}: is given twice"):
        select(specs, (), None, 0)


def test_judging_its_own_family_is_noted(tmp_path: Path) -> None:
    responses = (Response("gpt-4", ("Red.",)), Response("claude-v1", ("Blue.",)))
    selected = select([write(tmp_path / "d.jsonl", [case(responses=responses, preferred="gpt-4")])], (), None, 0)
    for judge, notes in (("gpt-4o", 1), ("planted:fair", 0)):
        job = prepare(MetaOptions(), set_up(judge, make_planted("fair"), tmp_path / "r", ["base"]), selected)
        assert len(job.parameters["self_judging"]) == notes
