"""Test numeric options of every command: within bounds, or refused in one line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from command_result import check_refusal
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.cli.bounds import INNER_SHARE, LIMIT, PRICE, SEED
from distract.cli.main import COMMANDS, cli
from distract.cli.options import RangeType
from distract.core.errors import DataError, UsageError
from distract.models.catalogue import catalogue
from distract.models.provider import known_settings
from distract.models.ranges import NumberRange, WholeRange
from distract.studies.gate.limits import Limits
from distract.studies.gate.settings import load_settings

HOSTILE = (
    *("nan", "NaN", "inf", "-inf", "infinity", "1e304", "1e999", "-1e304", "1_000", "99999999999999999999", "9" * 5000),
    *("-0", "0x10", "", " ", "٣", "５", "1e", "1,5", "1.5.", "--1", "one", "\ud800", "1\x00", "10%", "1/2", "+-1"),
)


def numeric() -> Iterator[tuple[click.Command, click.Parameter]]:
    """The numeric options of each command, by type or by meaning."""
    for name in sorted(COMMANDS):
        command = cli.get_command(click.Context(cli), name)
        assert command
        for option in command.params:
            default = option.default() if callable(option.default) else option.default
            is_number = isinstance(option.type, RangeType | click.types.IntParamType | click.types.FloatParamType)
            if is_number or (isinstance(default, int | float) and not isinstance(default, bool)):
                yield command, option


def refusal(command: click.Command, *arguments: str) -> str:
    """The error message for the options of a command, which does not start; missing options are reported later."""
    try:
        command.make_context(command.name, [*arguments])
    except click.MissingParameter:
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def test_all_commands_are_covered() -> None:
    options = [f"{command.name} {option.opts[0]}" for command, option in numeric()]
    assert len(options) > 70
    assert {"attack --price-in", "gate --max-flip-rate", "plan-gate --power", "leaderboard --draws"} <= {*options}


@pytest.mark.parametrize(("command", "option"), [*numeric()])
def test_hostile_number_is_one_line_or_within_bounds(command: click.Command, option: click.Option) -> None:
    assert isinstance(option.type, RangeType), "a plain number has no bounds"
    kind = option.type.bounds
    assert math.isfinite(kind.least)
    assert math.isfinite(kind.most)
    for text in HOSTILE:
        refused = refusal(command, f"{option.opts[-1]}={text}")
        if text == "-0" and kind.least <= 0 and not getattr(kind, "_above", False):
            assert refused == ""
            assert str(kind.read(text)) in ("0", "0.0")
        else:
            assert f"'{option.opts[-1]}'" in refused
            assert "expected a" in refused
            assert (len(refused.splitlines()), len(refused) < 200) == (1, True)


@pytest.mark.parametrize("key", [name for name, setting in known_settings().items() if setting.bounds])
def test_hostile_number_of_an_engine_setting_is_one_line(key: str, run: Any) -> None:
    for text in HOSTILE:
        check_refusal(run("attack", "--model-option", f"{key}={text}"), f"{key.replace('_', '-')} ", "expected a")


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_text_is_a_number_within_bounds_or_refused(text: str) -> None:
    for kind in (WholeRange(1, 1000), SEED, LIMIT, PRICE, INNER_SHARE):
        try:
            value = kind.read(text)
        except ValueError:
            continue
        assert value == 0 or kind.least <= value <= kind.most
        assert value == (0 if text == "all" else float(text) if isinstance(kind, NumberRange) else int(text))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan-gate", "--max-flip-rate", "10", "--true-rate", "0.02"), "write 0.10 for 10%"),
        (("plan-gate", "--max-flip-rate", "10%", "--true-rate", "0.02"), "write 0.10 for 10%"),
        (("plan-gate", "--max-flip-rate", "0.5%", "--true-rate", "0.02"), "write 0.005 for 0.5%"),
        (("plan-gate", "--max-flip-rate", "0.1", "--true-rate", "5"), "write 0.05 for 5%"),
        (("gate", "r", "--max-flip-rate", "10"), "write 0.10 for 10%"),
        (("gate", "r", "--confidence", "95"), "write 0.95 for 95%"),
        (("compare", "a", "b", "--max-rise", "2.5"), "write 0.025 for 2.5%"),
        (("attack", "--model-option", "gpu-memory=90"), "write 0.90 for 90%"),
        (("attack", "--price-in", "nan"), "expected a number from 0 to 1e+06"),
        (("attack", "--seed", "99999999999999999999"), "expected a whole number from -9223372036854775808 to "),
        (("attack", "--limit", "99999999999999999999"), "expected a number of cases from 1 to 1000000000, or 'all'"),
        (("attack", "--model-option", "timeout=inf"), "expected a number from 0.001 to 86400"),
    ],
)
def test_refused_number_has_a_suggestion(run: Any, arguments: tuple[str, ...], message: str) -> None:
    check_refusal(run(*arguments), message)


@each(
    "field, value",
    *(("price_in", value) for value in ("nan", "inf", "-inf", "1e304", "-1", "-1e-9", "1e400", "true", '"1"')),
    *(("price_out", value) for value in ("1000000.1", "9" * 400)),
    *(("context", value) for value in ("0", "-1", "1.5", "9" * 400, "nan")),
    *(("parameters", value) for value in ("0", "-1", "nan", "inf", "1e304", "9" * 400)),
)
def test_catalogue_numbers_are_bounded(field: str, value: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f'[a]\nmodel = "x"\nengine = "openai"\n{field} = {value}\n', encoding="utf-8")
    with pytest.raises(DataError, match=f"field '{field}': expected") as error:
        catalogue(file)
    assert len(str(error.value)) < 400


def test_share_in_percent_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.distract.gate]\nmax-flip-rate = 10\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"max-flip-rate: expected .*, found 10; write 0\.10 for 10%$"):
        load_settings(file)


def test_limits_explain_shares_in_percent() -> None:
    with pytest.raises(UsageError, match=r"--max-flip-rate 10: .*; write 0\.10 for 10%$"):
        Limits(max_flip_rate=10)
    with pytest.raises(UsageError, match=r"such as 0\.10$"):
        Limits(max_flip_rate=1e-9)
