"""Test the gate's table in ``pyproject.toml``: its values, precedence and errors."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from builders import row, scored
from gate_builders import check, make_run, rows, verdict
from hypothesis import assume, given, strategies as st
from loops import each
from scipy.stats import binom
from test_gate_view import render_gate

from distract.core import printable, registry
from distract.core.errors import DataError, UsageError
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.studies.gate import ci_reports
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import AttackKind, Limits, load_settings, merge_limits
from distract.studies.gate.monitor import boundary
from distract.studies.gate.power import TailTest, analyse_power, binomial_cdf, compute_path, power_report
from distract.studies.gate.verdict import Verdict
from distract.studies.project import SHARED_FILE, read_project

WHOLE = """
[tool.distract.gate]
max-flip-rate = 0.10
margin = 0.25
max-rise = 0.03
max-shift = 0.5
max-exchange-rate = 2
max-invalid-rate = 0.05
min-eligible = 0.5
min-n = 30
confidence = 0.9
certify = true

[tool.distract.gate.max-flip-rates]
sycophancy = 0.15
absolute = 0.05
"pairwise/prolixity" = 0.20
"""
OWN = {"sycophancy": 0.15, "absolute": 0.05, "pairwise/prolixity": 0.20}
VALUES: dict[str, Any] = {
    "max_flip_rate": 0.10, "margin": 0.25, "max_rise": 0.03, "max_shift": 0.5, "max_exchange_rate": 2.0,
    "max_invalid_rate": 0.05, "min_eligible": 0.5, "min_n": 30, "confidence": 0.9, "certify": True, "others": OWN,
}  # fmt: skip
GATE = "[tool.distract.gate]\n"
RATES = "[tool.distract.gate.max-flip-rates]\n"
KEYS = {name.replace("_", "-"): name for name in VALUES if name not in ("certify", "others")}


def write_file(folder: Path, text: str | bytes, name: str = SHARED_FILE) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal_message(path: Path) -> str:
    """The error message for an unusable file: one printable line that begins with the file name."""
    with pytest.raises(DataError) as caught:
        load_settings(path)
    message = str(caught.value)
    assert (caught.value.exit_code, message) == (2, printable.line(message))
    assert message.startswith(printable.line(str(path)))
    assert len(message) < 1500
    return message.removeprefix(printable.line(str(path)))


def test_whole_settings_table_is_read(tmp_path: Path) -> None:
    limits = merge_limits(load_settings(write_file(tmp_path, WHOLE)), {})
    assert limits == Limits.of(**VALUES)
    for protocol, attack, threshold in (
        ("pairwise", "prolixity", 0.20), ("pairwise", "sycophancy", 0.15), ("absolute", "sycophancy", 0.05),
        ("base", "prolixity", 0.10),
    ):  # fmt: skip
        assert limits.threshold(protocol, AttackKind(attack), "flip_rate") == threshold


@each(
    "text",
    WHOLE.replace("\n", "\r\n"), "\ufeff" + WHOLE, 'tool.distract.judge = "j"\ntool.distract.store = "deep/s"\n' + WHOLE
)  # fmt: skip
def test_line_ends_byte_order_mark_and_settings_of_tests_do_not_matter(tmp_path: Path, text: str) -> None:
    assert load_settings(write_file(tmp_path, text)) == load_settings(write_file(tmp_path, WHOLE))


@each("text", "[tool.distract.gate]", "tool.distract.gate = {}", RATES)
def test_empty_table_keeps_the_gate_defaults(tmp_path: Path, text: str) -> None:
    assert merge_limits(load_settings(write_file(tmp_path, text)), {}) == Limits.of() == merge_limits({}, {})


def test_command_line_wins_over_the_file_and_is_checked(tmp_path: Path) -> None:
    settings = load_settings(write_file(tmp_path, WHOLE))
    for options, others in (
        ({}, OWN), ({"max_flip_rate": 0.3}, {}), ({"min_n": 1, "certify": False, "confidence": 0.95}, OWN),
        ({"max_flip_rate": 0.3, "max_invalid_rate": 1.0}, {}),
    ):  # fmt: skip
        assert merge_limits(settings, options) == Limits.of(**{**VALUES, **options, "others": others}), options
    for one in ({}, settings):
        with pytest.raises(UsageError, match=r"^--max-flip-rate 2.0: expected a share"):
            merge_limits(one, {"max_flip_rate": 2.0})


class TestFileLocation:
    def test_nearest_file_counts_even_without_the_table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        inner = tmp_path / "a" / "b"
        inner.mkdir(parents=True)
        monkeypatch.chdir(inner)
        top = write_file(tmp_path, WHOLE)
        limits = load_settings()
        assert limits == load_settings(top) != {}
        (tmp_path / "a" / SHARED_FILE).mkdir()  # missing file
        assert load_settings() == limits
        for text in ("[project]\nname = 'other'\n", "", "[tool.ruff]\nline-length = 100\n", "[tool.distract]\n"):
            nearest = write_file(inner, text)
            assert load_settings() == {}, text
            assert refusal_message(nearest) == ": expected a table [tool.distract.gate]; add it, or name another file"

    def test_deleted_folder_is_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        with pytest.raises(DataError, match=r"cannot be searched: .*; name a file \(--config\)"):
            load_settings()

    def test_unreadable_file_is_one_line(self, tmp_path: Path) -> None:
        assert refusal_message(tmp_path / "absent.toml") == ": no such file"
        assert "is a directory" in refusal_message(tmp_path)
        assert "not UTF-8" in refusal_message(write_file(tmp_path, b"[tool]\nx = '\xff'\n"))
        assert "cannot be read" in refusal_message(tmp_path / ("x" * 300))


@each(
    "text, message",
    ("[tool\n", ":1: not TOML: Expected ']' at the end of a table declaration; correct it there"),
    (GATE + "min-n = 1\nmin-n = 2\n", ":3: not TOML: Cannot overwrite a value; correct it there"),
    (GATE + 'x = """\n\n', ":2: not TOML: Unterminated string; correct it there"),
    (GATE + "min-n = " + "9" * 5000, ": not TOML: Exceeds the limit (4300 digits)"),
    ("x = " + "[" * 20_000, ": not TOML that can be read: nested too deeply"),
    ("tool = 3", ": tool: expected a table, found 3"),
    ("tool.distract = 'x'", ": tool.distract: expected a table, found 'x'"),
    ("tool.distract.gate = true", ": tool.distract.gate: expected a table, found true"),
    ("[[tool.distract.gate]]", ": tool.distract.gate: expected a table, found a list"),
    ("[tool.distract.gates]", ": tool.distract.gates: unknown table or setting 'gates'; did you mean 'gate'?"),
    (GATE + "max-fliprate = 0.1", "gate.max-fliprate: unknown setting 'max-fliprate'; did you mean 'max-flip-rate'?"),
    (GATE + "max-flip-rate = 0.1\nmax_flip_rate = 0.1", "max_flip_rate: is given twice, with a hyphen and with"),
    (GATE + "max-flip-rate = true", "gate.max-flip-rate: expected a number, found true"),
    (
        GATE + "max-flip-rate = '10%'",
        "max-flip-rate: '10%': expected a share from 0.000001 to below 1; write 0.10",
    ),
    (GATE + "max-flip-rate = 10", "max-flip-rate: '10': expected a share from 0.000001 to below 1; write 0.10 for 10%"),
    (GATE + "max-flip-rate = -inf", "gate.max-flip-rate: expected a number, found -inf"),
    (GATE + "max-flip-rate = 1e400", "gate.max-flip-rate: expected a number, found inf"),
    (GATE + "confidence = " + "9" * 400, "gate.confidence: expected a number, found a number that is"),
    (GATE + "certify = 0x" + "f" * 9000, "certify: expected true or false, found a number that is far too large"),
    (GATE + "min-n = 0x" + "f" * 9000, "min-n: expected a number, found a number that is"),
    (GATE + "min-n = -" + "9" * 4000, "min-n: expected a number, found a number that is"),
    (GATE + "min-n = 30.0", "gate.min-n: '30.0': expected a whole number from 1"),
    (GATE + "min-n = false", "gate.min-n: expected a number, found false"),
    (GATE + "min-n = 0", "gate.min-n: '0': expected a whole number from 1"),
    (GATE + "max-invalid-rate = 1.5", "max-invalid-rate: '1.5': expected a share from 0 to 1"),
    (GATE + "confidence = 95", "confidence: '95': expected a share from 0.5 to below 1; write 0.95 for 95%"),
    (GATE + "certify = 1", "gate.certify: expected true or false, found 1"),
    (GATE + "certify = 2026-01-01", "gate.certify: expected true or false, found datetime.date(2026, 1, 1)"),
    (GATE + "margin = -0.1", "gate.margin: '-0.1': expected a number from 0 to 1000"),
    (GATE + "max-shift = inf", "gate.max-shift: expected a number, found inf"),
    (GATE + "max-shift = 'x'", "gate.max-shift: 'x': expected a number from 0 to 1000"),
    (GATE + "max-exchange-rate = true", "max-exchange-rate: expected a number, found true"),
    (GATE + "max-flip-rates = 0.1", "gate.max-flip-rates: expected a table of shares by protocol and attack"),
    (RATES + "prolixty = 0.1", "unknown protocol or attack 'prolixty'; did you mean 'prolixity'? (known: "),
    (RATES + "pairwise = true", "gate.max-flip-rates.pairwise: expected a number, found true"),
    (RATES + "pairwise.prolixity = 0.1", "max-flip-rates.pairwise: expected a number, found a table"),
    (RATES + '"pairwise/x" = 0.1', "max-flip-rates.\"pairwise/x\": unknown attack 'x' (known: "),
    (RATES + '"prolixity/pairwise" = 0.1', "unknown protocol 'prolixity'"),
    (RATES + '"pairwise/" = 0.1', "unknown attack ''"),
    (RATES + '"/" = 0.1', "unknown protocol ''"),
    (RATES + '"" = 0.1', "unknown protocol or attack ''"),
    (RATES + "null = 0.1", "'null' is a control, so the gate does not check its rate; remove it"),
    (RATES + "none = 0.1", "'none' is a control, so the gate does not check its rate; remove it"),
    (RATES + "severity-2 = 0.1", "'severity-2' lowers the quality on purpose, so the gate does not check"),
    (RATES + '"pairwise/severity-1" = 0.1', "'severity-1' lowers the quality on purpose"),
    (RATES + "sycophancy = 3", "max-flip-rates.sycophancy: '3': expected a share from 0.000001 to below 1"),
    (RATES + '"\\u001b[2J\\nx" = 0.1', "unknown protocol or attack"),
    (RATES + f'"{"x" * 100_000}" = 0.1', "unknown protocol or attack"),
    (GATE + "certify = '\\u001b[2J\\u202e'", "certify: expected true or false, found '"),
)
def test_wrong_settings_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal_message(write_file(tmp_path, text))


def test_hostile_file_name_does_not_reach_the_terminal(tmp_path: Path) -> None:
    assert refusal_message(write_file(tmp_path, "tool = 3", "\x1b[2J\n.toml")) == ":1: tool: expected a table, found 3"


@each("name", *registry.protocols(), *registry.attacks())
def test_every_gated_protocol_and_attack_may_have_a_rate(tmp_path: Path, name: str) -> None:
    path = write_file(tmp_path, f'{RATES}"{name}" = 0.3\n')
    attack = registry.attacks().get(name)
    if attack is None or not (attack.control or attack.severity):
        assert merge_limits(load_settings(path), {}).others == {name: 0.3}
    else:
        refusal_message(path)


NUMBERS = st.one_of(
    st.integers(-3, 10**8), st.floats(), st.floats(0, 1), st.sampled_from([0.5, 1.0, 1e-6, 1e-7, 0.0, -0.0])
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@given(st.sampled_from(sorted(KEYS)), NUMBERS)
def test_file_accepts_the_same_numbers_as_a_gate(folder: Path, key: str, number: float) -> None:
    path = write_file(folder, f"{GATE}{key} = {number!r}\n")
    try:
        Limits.of(**{KEYS[key]: number})
        taken = isinstance(number, int) or key != "min-n"
    except UsageError:
        taken = False
    if taken:
        assert load_settings(path) == {KEYS[key]: number}
        assert merge_limits({KEYS[key]: number}, {}) == Limits.of(**{KEYS[key]: number})
    else:
        assert "tool.distract.gate" in refusal_message(path)


@given(st.dictionaries(st.sampled_from(["prolixity", "pairwise", "absolute/sycophancy"]), st.floats(1e-6, 0.999)))
def test_rates_round_trip(folder: Path, rates: dict[str, float]) -> None:
    text = RATES + "".join(f"{json.dumps(name)} = {rate!r}\n" for name, rate in rates.items())
    assert merge_limits(load_settings(write_file(folder, text)), {}) == Limits.of(others=rates)


@given(st.text() | st.binary())
def test_any_text_is_settings_or_one_line(folder: Path, text: str | bytes) -> None:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    refusal_message(write_file(folder, raw))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ANYTHING = st.recursive(
    SCALARS, lambda one: st.lists(one, max_size=2) | st.dictionaries(st.text(), one, max_size=2), max_leaves=4
)


@given(ANYTHING, st.sampled_from([*KEYS, "certify", "max-flip-rates", "other", "\x1b[2J"]))
def test_any_value_of_any_key_is_settings_or_one_line(folder: Path, value: object, key: str) -> None:
    path = write_file(folder, f"{GATE}{json.dumps(key)} = {_toml(value)}\n")
    try:
        settings = load_settings(path)
    except DataError:
        refusal_message(path)
    else:
        assert isinstance(merge_limits(settings, {}), Limits)


def _toml(value: object) -> str:
    """A value in TOML notation."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    text = json.dumps(value if value is not None else "", ensure_ascii=False)
    return text.replace("\x7f", "\\u007f").encode("utf-8", "replace").decode()


class TestSettingsOutsideTheGate:
    @each(
        "text, expected",
        ("", (None, None, None)), ("[tool.distract]", (None, None, None)),
        ("[tool.distract]\njudge = 'j'\n[tool.distract.gate]", ("j", None, {})),
    )  # fmt: skip
    def test_settings_for_tests_are_read(self, tmp_path: Path, text: str, expected: tuple[Any, ...]) -> None:
        project = read_project(write_file(tmp_path, text))
        assert (project.judge, project.store, project.command("gate")) == expected

    def test_store_path_is_relative_to_the_file_that_names_it(self, tmp_path: Path) -> None:
        assert read_project(write_file(tmp_path, "[tool.distract]\nstore = 'a/../s'")).store == tmp_path / "a/../s"

    @each("text", "judge = 'python:own:f'", "judge = 'own.toml\t'", "judge = 'https://evil/v1#m'", "store = '/s'")
    def test_tests_take_what_may_be_harmful_from_the_command_line_only(self, tmp_path: Path, text: str) -> None:
        project = read_project(write_file(tmp_path, f"[tool.distract]\n{text}".replace("'", '"')))
        with pytest.raises(DataError, match=r":2: tool.distract.*; name it on the command line, with --"):
            assert project.judge or project.store

    @each("value", "3", "true", "['a']", "''", "' '", "{ a = 1 }")
    @each("key", "judge", "store")
    def test_non_string_values_are_refused(self, tmp_path: Path, key: str, value: str) -> None:
        assert f": tool.distract.{key}: expected the" in refusal_message(
            write_file(tmp_path, f"[tool.distract]\n{key} = {value}")
        )


ALPHA = 0.05
PASSES, FAILS = TailTest(0.1, ALPHA), TailTest(1 - 0.1, ALPHA)

thresholds = st.floats(0.02, 0.95)
levels = st.sampled_from([0.2, 0.05, 0.01])


def limit(tail: TailTest, n: int) -> int:
    return int(tail.limit(np.array([n]))[0])


def test_limits_at_a_tenth_match_published_values() -> None:
    for n, passing, failing in ((50, 1, 10), (100, 4, 16), (200, 12, 28), (400, 29, 51)):
        assert (limit(PASSES, n), n - limit(FAILS, n)) == (passing, failing), n
    for flips, n in ((0, 29), (1, 46), (2, 61), (3, 76), (5, 103), (10, 167)):
        assert (limit(PASSES, n), limit(PASSES, n - 1)) == (flips, flips - 1), n


@given(thresholds, levels, st.integers(1, 300))
def test_limits_equal_the_exact_bounds(threshold: float, level: float, n: int) -> None:
    k = limit(TailTest(threshold, level), n)
    # Fractions of counts stand for numbers next to the limit, where rounding does not matter.
    assert k < 0 or intervals.upper_bound(k, n, 1 - level) < threshold * (1 + 1e-9)
    assert intervals.upper_bound(k + 1, n, 1 - level) > threshold * (1 - 1e-9)
    failing = n - limit(TailTest(1 - threshold, level), n)
    assert failing > n or intervals.p_above(failing, n, threshold) < level * (1 + 1e-9)
    assert intervals.p_above(failing - 1, n, threshold) > level * (1 - 1e-9)


@given(st.integers(1, 200), st.floats(0, 1))
def test_at_most_agrees_with_scipy(n: int, rate: float) -> None:
    k = np.arange(-1, n + 2)
    assert binomial_cdf(k, np.full_like(k, n), rate) == pytest.approx(binom.cdf(k, n, rate), abs=1e-12)


@given(thresholds, st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.9, 0.99]), levels)
def test_required_number_agrees_with_brute_force(threshold: float, share: float, power: float, level: float) -> None:
    rate = share * threshold * 0.8
    n: Any = TailTest(threshold, level).least(rate, power)
    assume(n is not None)
    many = np.arange(1, 2 * n + 400)
    required = []
    for near in (level * (1 + 1e-9), level * (1 - 1e-9)):  # a tail may equal the level
        short = np.flatnonzero(binom.cdf(binom.ppf(near, many, threshold) - 1, many, rate) < power)
        required.append(many[short[-1]] + 1 if len(short) else 1)
    assert required[0] <= n <= required[1]


@each("rate, power, checks", (0.02, 0.9, 1), (0.05, 0.8, 3), (0.25, 0.9, 1), (0.25, 0.9, 5))
def test_live_cap_is_the_smallest_that_reaches_the_power(rate: float, power: float, checks: int) -> None:
    power_plan: Any = analyse_power(0.1, rate, power, 0.95, checks)
    alphas = (1 - 0.95) / checks, 1 - 0.95
    for cap, enough in ((power_plan.live.cap, True), (power_plan.live.cap - 1, False)):
        there = compute_path(boundary(0.1, *alphas, cap), rate)
        assert ((there.passed if rate < 0.1 else there.failed) >= power_plan.each) is enough
    assert power_plan.live.mean < power_plan.finished.n


@each(
    "arguments, words",
    ((0.0, 0.05, 0.9, 0.95), "--max-flip-rate 0.0: expected a share"),
    ((1.0, 0.05, 0.9, 0.95), "--max-flip-rate 1.0: expected a share"),
    ((0.1, 0.05, 0.9, 1.0), "--confidence 1.0: expected"),
    ((0.1, 0.1, 0.9, 0.95), "is the threshold itself"),
    ((0.1, 0.10001, 0.9, 0.95), "needs more than 5,000 eligible comparisons"),
    ((0.1, np.nextafter(0.1, 0), 0.9, 0.95), "more than 5,000"), ((0.5, 0.49, 0.9, 0.95), "more than 5,000"),
    ((1e-6, 0.0, 0.9, 0.95), "more than 5,000"),
)  # fmt: skip
def test_unplannable_gate_is_one_line(arguments: tuple[float, float, float, float], words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        analyse_power(*arguments)
    assert (raised.value.exit_code, "\n" in str(raised.value)) == (2, False)


def test_ends_of_the_range_are_handled() -> None:
    ends = ((0.1, 0.0, 0.9, 0.95), (0.1, 1.0, 0.9, 0.95), (1e-6, 1.0, 0.5, 0.5), (0.001, 0.0, 0.9, 0.95))
    assert [analyse_power(*arguments).finished.n for arguments in ends] == [29, 2, 1, 2995]


def test_plan_prints_as_expected() -> None:
    lines = list(power_report(analyse_power(0.1, 0.02, 0.9, 0.95, 2)))
    aim = "A judge whose true flip rate is 0.02 should pass at a threshold of 0.1 with a chance of 90%"
    assert lines[0] == f"{aim}, at 95% confidence."
    assert lines[2].startswith("A live gate: ")
    for at, words in (
        (1, "103 eligible comparisons or more. With 103, at most 5 flips pass: a chance of 98.2%"),
        (3, "not eligible comparisons"), (4, "does not grow steadily"), (5, "each is planned for 95%"),
    ):  # fmt: skip
        assert words in lines[at]
    failing = " ".join(power_report(analyse_power(0.1, 1.0, 0.9, 0.95, 2)))
    for words in ("With 2, at least 2 flips fail", "A gate fails with any of its 2 checks"):
        assert words in failing


def test_document_is_json() -> None:
    document = json.loads(json.dumps(analyse_power(0.1, 0.05, 0.9, 0.95).document(), allow_nan=False))
    assert document["finished"] == {"n": 263, "limit": 18, "power": 0.9292, "wrong": 0.0}
    assert set(document["live"]) == {"cap", "passed", "failed", "inconclusive", "mean", "median"}
    assert replace(analyse_power(0.1, 0.05, 0.9, 0.95), live=None).document()["live"] is None


USUAL = [0.2, 0.3, 0.4] * 20
"""Gains of the rewrites of 60 prompts, 0.3 on average."""


def gain_rows(gains: Sequence[float], losses: Sequence[float] = (), attack: str = "f") -> list[Row]:
    """A labelled pair for each gain of its good response by a rewrite, and for each loss by broken requirements."""
    pairs = rows("0" * len(gains), protocol="absolute", attack=attack)
    parts = [one if one.target else replace(one, label="a") for one in pairs]
    for at, gain in enumerate(gains):
        judged = [scored((4, 4 + gain), (4, 4))]
        parts.append(row(f"c{at}", judged, design="fixed", attack=attack, target="b", protocol="absolute"))
    for at, loss in enumerate(losses):
        for severity in (1, 2, 3):
            judged = [scored((4, 4 - loss * severity), (4, 4))]
            parts.append(row(f"c{at}", judged, design="severity", target="b", protocol="absolute", severity=severity))
    return parts


def run_of(*parts: Sequence[Row], **more: Any) -> LoadedRun:
    usual: dict[str, Any] = {"attacks": ["f"], "protocols": {"absolute": ["score", "rating"]}}
    return make_run([one for part in parts for one in part], **{**usual, **more})


def gate(gains: Sequence[float], losses: Sequence[float] = (), **limits: Any) -> Verdict:
    return decide(run_of(gain_rows(gains, losses)), Limits.of(**limits))


@each(
    "gains, limit, decision, reason",
    (USUAL, 1, "pass", "the shift is below 1"),
    (USUAL, 0.5, "inconclusive", "the bounds of the shift (mean over prompts) -0.118 to 0.643 do not settle 0.5"),
    ([2.0] * 60, 0.5, "fail", "lower bound of the shift (mean over prompts) 1.460 is above 0.5"),
    ([-3, -2, -4] * 20, 0, "pass", "the shift is below 0"),  # a loss is never too large
    ([0.0] * 60, 0.5, "pass", "the shift is below 0.5"),
    # One rewrite that gains the whole scale may be missing by chance.
    ([0.0] * 60, 0.01, "inconclusive", "the bounds of the shift (mean over prompts) -0.402 to 0.360 do not settle"),
    ([0.0] * 29, 0.5, "inconclusive", "the bounds of the shift (mean over prompts) -0.811 to 0.720 do not settle 0.5"),
    ([3.0] * 60, 6, "pass", "the shift is below 6"),  # as far as the scale goes
    ([], 0.5, "inconclusive", "no response was compared with its rewrite"),
)
def test_shift_is_bounded(gains: list[float], limit: float, decision: str, reason: str) -> None:
    verdict = gate(gains, max_shift=limit)
    assert (verdict.decision, verdict.threshold, reason in verdict.reason) == (decision, None, True), verdict.reason
    checks = [(check.measure, check.unit, check.k, check.n) for check in verdict.checks]
    assert checks == [("shift", "points", None, len(gains))]


@each(
    "losses, limit, decision, reason",
    ([1.0] * 60, 2, "pass", "the exchange rate is below 2"),
    ([0.1] * 60, 0, "inconclusive", "do not settle 0"),
    ([2.0] * 60, 0.05, "inconclusive", "the exchange rate (mean over prompts) -0.069 to 0.378 do not settle 0.05"),
    ([], 2, "inconclusive", "no broken requirements were judged"),
    ([0.0] * 60, 2, "inconclusive", "broken requirements are not shown to cost anything"),
    ([-0.1] * 60, 2, "inconclusive", "broken requirements are not shown to cost anything"),
    ([0.5, -0.45] * 30, 1000, "inconclusive", "–∞ to ∞ do not settle 1000"),
)
def test_exchange_rate_is_bounded(losses: list[float], limit: float, decision: str, reason: str) -> None:
    verdict = gate(USUAL, losses, max_exchange_rate=limit)
    assert (verdict.decision, reason in verdict.reason) == (decision, True), verdict.reason


def test_exchange_rate_of_large_gains_fails() -> None:
    assert gate([3.0 + gain for gain in USUAL], [1.0] * 60, max_exchange_rate=1).decision == "fail"


def test_means_without_bounds_are_one_line() -> None:
    with pytest.raises(UsageError, match=r"the scores of absolute have no bounds.* declare scale=.* --max-win-rate"):
        decide(run_of(gain_rows(USUAL), scales={"absolute": [None, 7]}), Limits.of(max_shift=1))
    narrow = run_of(gain_rows(USUAL), scales={"absolute": [3, 5]})
    assert decide(narrow, Limits.of(max_shift=0.5)).decision == "pass"


def test_failure_allows_for_the_number_of_checks() -> None:
    gains, limits = [2.0] * 60, Limits.of(max_shift=1.3)
    assert decide(run_of(gain_rows(gains)), limits).decision == "fail"
    parts = [gain_rows(gains if name == "f" else [0.0] * 60, attack=name) for name in "fghijklm"]
    verdict = decide(run_of(*parts, attacks=list("fghijklm")), limits)
    assert verdict.decision == "inconclusive"
    assert "is above 1.3, but may be so by chance among 8 checks" in verdict.reason
    assert (verdict.checks[0].lower or 0) > 1.3


def test_confidence_sets_the_bounds() -> None:
    bounds = [gate(USUAL, max_shift=0.5, confidence=sure).checks[0] for sure in (0.5, 0.9, 0.95, 0.999)]
    widths = [check.upper - check.lower for check in bounds if check.upper is not None and check.lower is not None]
    assert widths == sorted(widths)


def test_unreadable_and_few_verdicts_do_not_pass() -> None:
    failed = replace(scored((4, 4), (4, 4)), failure="no verdict")
    first = [one.design == "fixed" and int(one.case[1:]) < 20 for one in gain_rows(USUAL)]
    pairs = zip(gain_rows(USUAL), first, strict=True)
    lost = [replace(one, judgments=(failed,)) if is_first else one for one, is_first in pairs]
    assert "20 of 60 verdicts are invalid" in decide(run_of(lost), Limits.of(max_shift=0.5)).reason
    assert "--min-n 61" in gate(USUAL, max_shift=0.5, min_n=61).reason


def test_worths_join_the_other_checks() -> None:
    both = Limits.of(max_flip_rate=0.1, max_shift=0.2, max_exchange_rate=9)
    verdict = decide(run_of(gain_rows([2.0] * 60, [1.0] * 60)), both)
    decisions = [(check.measure, check.decision) for check in verdict.checks]
    assert decisions == [("flip_rate", "pass"), ("shift", "fail"), ("exchange_rate", "pass")]
    assert (verdict.decision, verdict.threshold) == ("fail", 0.1)
    passed = decide(run_of(gain_rows(USUAL, [1.0] * 60)), Limits({**both.measures, "shift": 1}))
    assert passed.reason == "the flip rate is below 0.1 and the shift is below 1 and the exchange rate is below 9"


def test_judge_without_discernment_never_passes() -> None:
    parts = [
        replace(one, label="a" if int(one.case[1:]) % 2 else "b") if one.label else one for one in gain_rows([0.0] * 60)
    ]
    assert decide(run_of(parts), Limits.of(max_shift=1)).decision == "inconclusive"
    # Without pairs, nothing shows whether it has any.
    alone = replace(run_of(parts), rows=[one for one in parts if one.design == "fixed"])
    assert "no pair was judged before a rewrite" in decide(alone, Limits.of(max_shift=1)).reason
    assert decide(run_of(parts, flaw="the run is unfinished"), Limits.of(max_shift=1)).decision == "inconclusive"


def test_noise_and_worths_are_gated_together() -> None:
    run = run_of(gain_rows(USUAL), rows("0" * 60, protocol="absolute", attack="null"), controls=["null"])
    verdict = decide(run, Limits.of(max_flip_rate=0.3, max_shift=1), control=True)
    assert [check.measure for check in verdict.checks] == ["excess_flip_rate", "shift"]
    assert verdict.decision == "pass"


def test_worths_are_in_every_output() -> None:
    verdict = gate([2.0] * 60, [0.5, -0.45] * 30, max_flip_rate=0.1, max_shift=0.2, max_exchange_rate=1000)
    text = render_gate(verdict)
    assert "over prompts: each prompt counts once" in text
    assert "absolute by score, f 2.00 1.46 to 2.24 60 0.2 fail" in " ".join(text.split())
    assert "∞" in text
    document = verdict.document()
    assert [check["unit"] for check in document["checks"]] == ["share", "points", "requirements"]
    summary = ci_reports.summary(verdict, {}, judge="j")
    assert "| <code>f (shift)</code> | 2.00 points | 1.46 to 2.24 | 60 | 0.2 | **FAIL** |" in summary
    assert any("largest shift: 0.2" in one for one in ci_reports.annotations(verdict, {}))
    junit = ci_reports.format_junit(verdict, {}, judge="j", began=datetime.fromtimestamp(0, UTC), seconds=1)
    cases = ElementTree.fromstring(junit).iter("testcase")
    faults = {case.get("name"): [child.get("type") for child in case] for case in cases}
    assert faults == {"f": [], "f (shift)": ["shift"], "f (exchange rate)": ["inconclusive"]}


def test_first_line_names_the_threshold_of_the_check_that_decided() -> None:
    strict, own = check("pass"), check("fail", threshold=0.15, attack="f", reason="lower bound 0.232 is above 0.15")
    failed = verdict("fail", strict, own, reason=f"pairwise under f: {own.reason}")
    assert "above 0.15 (threshold 15.0%, one-sided" in " ".join(render_gate(failed).split())
    mean = replace(own, measure="shift", unit="points", threshold=0.5, decision="inconclusive")
    assert "(largest shift 0.5, one-sided" in " ".join(render_gate(verdict("inconclusive", strict, mean)).split())
    junit = ci_reports.format_junit(failed, {}, judge="j", began=datetime.fromtimestamp(0, UTC), seconds=1)
    assert '<property name="threshold" value="0.15"' in junit
