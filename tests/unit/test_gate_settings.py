"""Test the gate's table in ``pyproject.toml``: its values, precedence and errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from loops import each

from distract.core import printable, registry
from distract.core.errors import DataError, UsageError
from distract.studies.gate.limits import Limits
from distract.studies.gate.measures import AttackKind
from distract.studies.gate.settings import load_settings, merge_limits
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
REST = (0.03, 0.5, 0.25, 0.5, 2.0)
GATE = "[tool.distract.gate]\n"
RATES = "[tool.distract.gate.max-flip-rates]\n"
KEYS = {
    "margin": "margin",
    "max-exchange-rate": "max_exchange_rate",
    "max-flip-rate": "max_flip_rate",
    "max-shift": "max_shift",
    "max-rise": "max_rise",
    "max-invalid-rate": "max_invalid_rate",
    "min-eligible": "min_eligible",
    "min-n": "min_n",
    "confidence": "confidence",
}


def write_file(folder: Path, text: str | bytes, name: str = SHARED_FILE) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal_message(path: Path) -> str:
    """The error message for an unusable file: one printable line that begins with the file name."""
    with pytest.raises(DataError) as caught:
        load_settings(path)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert message.startswith(printable.line(str(path)))
    assert message == printable.line(message)
    assert len(message) < 1500
    return message.removeprefix(printable.line(str(path)))


def test_whole_settings_table_is_read(tmp_path: Path) -> None:
    limits = merge_limits(load_settings(write_file(tmp_path, WHOLE)), {})
    assert limits == Limits(0.10, OWN, 0.05, 30, 0.9, True, *REST)
    cases = {
        ("pairwise", "prolixity"): 0.20,
        ("pairwise", "sycophancy"): 0.15,
        ("absolute", "sycophancy"): 0.05,
        ("base", "prolixity"): 0.10,
    }
    assert {names: limits.threshold(names[0], AttackKind(names[1])) for names in cases} == cases


@each("text", WHOLE.replace("\n", "\r\n"), "\ufeff" + WHOLE)
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path: Path, text: str) -> None:
    assert load_settings(write_file(tmp_path, text)) == load_settings(write_file(tmp_path, WHOLE))


@each("text", "[tool.distract.gate]", "tool.distract.gate = {}", RATES)
def test_empty_table_keeps_the_gate_defaults(tmp_path: Path, text: str) -> None:
    assert merge_limits(load_settings(write_file(tmp_path, text)), {}) == Limits() == merge_limits({}, {})


@each(
    "options, expected",
    ({}, Limits(0.10, OWN, 0.05, 30, 0.9, True, *REST)),
    ({"max_flip_rate": 0.3}, Limits(0.3, {}, 0.05, 30, 0.9, True, *REST)),
    ({"min_n": 1, "certify": False, "confidence": 0.95}, Limits(0.10, OWN, 0.05, 1, 0.95, False, *REST)),
    ({"max_flip_rate": 0.3, "max_invalid_rate": 1.0}, Limits(0.3, {}, 1.0, 30, 0.9, True, *REST)),
)
def test_command_line_wins_over_the_file(tmp_path: Path, options: dict[str, Any], expected: Limits) -> None:
    assert merge_limits(load_settings(write_file(tmp_path, WHOLE)), options) == expected


def test_out_of_range_option_is_refused_with_and_without_a_file() -> None:
    for settings in ({}, {"max_flip_rate": 0.1}):
        with pytest.raises(UsageError, match=r"^--max-flip-rate 2: expected a share"):
            merge_limits(settings, {"max_flip_rate": 2.0})


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
        middle = write_file(inner, "[project]\nname = 'other'\n")
        assert load_settings() == {}
        with pytest.raises(DataError, match=r"expected a table \[tool\.distract\.gate\]; add it"):
            load_settings(middle)

    @each("text", "", "[tool.ruff]\nline-length = 100\n", "[tool.distract]\n")
    def test_no_table_means_no_settings_unless_the_file_was_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        path = write_file(tmp_path, text)
        assert load_settings() == {}
        assert refusal_message(path) == ": expected a table [tool.distract.gate]; add it, or name another file"

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
    (GATE + "max-flip-rate = true", "gate.max-flip-rate: expected a share, such as 0.10, found true"),
    (GATE + "max-flip-rate = '10%'", "gate.max-flip-rate: expected a share, such as 0.10, found '10%'"),
    (GATE + "max-flip-rate = 10", "expected a share between 0.000001 and 1, such as 0.10, found 10"),
    (GATE + "max-flip-rate = nan", "expected a share between 0.000001 and 1, such as 0.10, found nan"),
    (GATE + "max-flip-rate = -inf", "gate.max-flip-rate: expected a share, such as 0.10, found -inf"),
    (GATE + "max-flip-rate = 0", "expected a share between 0.000001 and 1, such as 0.10, found 0"),
    (GATE + "max-flip-rate = 1.0", "expected a share between 0.000001 and 1, such as 0.10, found 1.0"),
    (GATE + "max-flip-rate = 1e400", "gate.max-flip-rate: expected a share, such as 0.10, found inf"),
    (GATE + "confidence = " + "9" * 400, "gate.confidence: expected a share, such as 0.10, found a number that is"),
    (GATE + "certify = 0x" + "f" * 9000, "certify: expected true or false, found a number that is far too large"),
    (GATE + "min-n = 0x" + "f" * 9000, "min-n: expected a whole number from 1, such as 30, found a number that is"),
    (GATE + "min-n = -" + "9" * 4000, "min-n: expected a whole number from 1, such as 30, found a number that is"),
    (GATE + "min-n = 30.0", "gate.min-n: expected a whole number from 1, such as 30, found 30.0"),
    (GATE + "min-n = false", "gate.min-n: expected a whole number from 1, such as 30, found false"),
    (GATE + "min-n = 0", "gate.min-n: expected a number of comparisons from 1, found 0"),
    (GATE + "max-invalid-rate = 1.5", "expected a share from 0 to 1, such as 0.2, found 1.5"),
    (GATE + "confidence = 95", "expected a share from 0.5 to below 1, such as 0.95, found 95"),
    (GATE + "certify = 1", "gate.certify: expected true or false, found 1"),
    (GATE + "certify = 2026-01-01", "gate.certify: expected true or false, found datetime.date(2026, 1, 1)"),
    (GATE + "margin = -0.1", "gate.margin: expected a number from 0 to 1000, such as 0.5, found -0.1"),
    (GATE + "margin = nan", "gate.margin: expected a number from 0 to 1000, such as 0.5, found nan"),
    (GATE + "max-shift = inf", "gate.max-shift: expected a number from 0, such as 0.5, found inf"),
    (GATE + "max-shift = '1'", "gate.max-shift: expected a number from 0, such as 0.5, found '1'"),
    (GATE + "max-exchange-rate = true", "max-exchange-rate: expected a number from 0, such as 0.5, found true"),
    (GATE + "max-flip-rates = 0.1", "gate.max-flip-rates: expected a table of shares by protocol and attack"),
    (RATES + "prolixty = 0.1", "unknown protocol or attack 'prolixty'; did you mean 'prolixity'? (known: "),
    (RATES + "pairwise = true", "gate.max-flip-rates.pairwise: expected a share, such as 0.10, found true"),
    (RATES + "pairwise.prolixity = 0.1", "max-flip-rates.pairwise: expected a share, such as 0.10, found a table"),
    (RATES + '"pairwise/x" = 0.1', "max-flip-rates.\"pairwise/x\": unknown attack 'x' (known: "),
    (RATES + '"prolixity/pairwise" = 0.1', "unknown protocol 'prolixity'"),
    (RATES + '"pairwise/" = 0.1', "unknown attack ''"),
    (RATES + '"/" = 0.1', "unknown protocol ''"),
    (RATES + '"" = 0.1', "unknown protocol or attack ''"),
    (RATES + "null = 0.1", "'null' is a control, so the gate does not check its rate; remove it"),
    (RATES + "none = 0.1", "'none' is a control, so the gate does not check its rate; remove it"),
    (RATES + "severity-2 = 0.1", "'severity-2' lowers the quality on purpose, so the gate does not check"),
    (RATES + '"pairwise/severity-1" = 0.1', "'severity-1' lowers the quality on purpose"),
    (RATES + "sycophancy = 3", "max-flip-rates.sycophancy: expected a share between 0.000001 and 1"),
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


@hypothesis_settings(deadline=None)  # a file each
@given(st.sampled_from(sorted(KEYS)), NUMBERS)
def test_file_accepts_the_same_numbers_as_a_gate(
    tmp_path_factory: pytest.TempPathFactory, key: str, number: float
) -> None:
    path = write_file(tmp_path_factory.getbasetemp(), f"{GATE}{key} = {number!r}\n", "number.toml")
    try:
        Limits(**{KEYS[key]: number})  # type: ignore[arg-type]
        taken = isinstance(number, int) or key != "min-n"
    except UsageError:
        taken = False
    if taken:
        settings = load_settings(path)
        assert settings == {KEYS[key]: number}
        assert merge_limits(settings, {}) == Limits(**{KEYS[key]: number})  # type: ignore[arg-type]
    else:
        assert "tool.distract.gate" in refusal_message(path)


@hypothesis_settings(deadline=None)  # a file each
@given(st.dictionaries(st.sampled_from(["prolixity", "pairwise", "absolute/sycophancy"]), st.floats(1e-6, 0.999)))
def test_rates_round_trip(tmp_path_factory: pytest.TempPathFactory, rates: dict[str, float]) -> None:
    text = RATES + "".join(f"{json.dumps(name)} = {rate!r}\n" for name, rate in rates.items())
    limits = merge_limits(load_settings(write_file(tmp_path_factory.getbasetemp(), text, "rates.toml")), {})
    assert limits == Limits(others=rates)


@hypothesis_settings(deadline=None)  # a file each
@given(st.text() | st.binary())
def test_any_text_is_settings_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    refusal_message(write_file(tmp_path_factory.getbasetemp(), raw, "any.toml"))


@hypothesis_settings(deadline=None)  # a file each
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    ),
    st.sampled_from([*KEYS, "certify", "max-flip-rates", "other", "\x1b[2J"]),
)
def test_any_value_of_any_key_is_settings_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, value: object, key: str
) -> None:
    path = write_file(tmp_path_factory.getbasetemp(), f"{GATE}{json.dumps(key)} = {_toml(value)}\n", "value.toml")
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
    def test_gate_ignores_the_judge_and_store_of_tests(self, tmp_path: Path) -> None:
        path = write_file(tmp_path, 'tool.distract.judge = "j"\ntool.distract.store = "deep/s"\n' + WHOLE)
        assert load_settings(path) == load_settings(write_file(tmp_path, WHOLE))

    @each(
        "text, expected",
        ("", (None, None, None)),
        ("[tool.distract]", (None, None, None)),
        ("[tool.distract]\njudge = 'j'\n[tool.distract.gate]", ("j", None, {})),
        ("[tool.distract]\nstore = '/s'", (None, Path("/s"), None)),
    )
    def test_settings_for_tests_are_read(self, tmp_path: Path, text: str, expected: tuple[Any, ...]) -> None:
        project = read_project(write_file(tmp_path, text))
        assert (project.judge, project.store, project.command("gate")) == expected

    def test_store_path_is_relative_to_the_file_that_names_it(self, tmp_path: Path) -> None:
        assert read_project(write_file(tmp_path, "[tool.distract]\nstore = 'a/../s'")).store == tmp_path / "a/../s"

    @each("value", "3", "true", "['a']", "''", "' '", "{ a = 1 }")
    @each("key", "judge", "store")
    def test_non_string_values_are_refused(self, tmp_path: Path, key: str, value: str) -> None:
        assert f": tool.distract.{key}: expected the" in refusal_message(
            write_file(tmp_path, f"[tool.distract]\n{key} = {value}")
        )
