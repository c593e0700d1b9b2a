"""Test that a loop runs every row, reports all that fail and keeps rows apart."""

from pathlib import Path

import pytest
from loops import each


def test_all_failing_rows_are_reported() -> None:
    rows = list[int]()

    @each("number", *range(5))
    def check(number: int) -> None:
        rows.append(number)
        if number == 3:
            pytest.fail("three")
        assert number != 1

    with pytest.raises(BaseExceptionGroup, match="2 of 5 rows fail") as raised:
        check()
    assert rows == [0, 1, 2, 3, 4]
    assert [one.__notes__ for one in raised.value.exceptions] == [["with {'number': 1}"], ["with {'number': 3}"]]


def test_one_failing_row_fails_as_itself_and_a_skipped_row_skips() -> None:
    @each("a, b", (1, 1), (1, 2), (0, 0))
    def check(a: int, b: int) -> None:
        if not a:
            pytest.skip("none")
        assert a == b

    with pytest.raises(AssertionError) as raised:
        check()
    assert raised.value.__notes__ == ["with {'a': 1, 'b': 2}"]
    with pytest.raises(pytest.skip.Exception):
        each("a", 1, 0)(lambda a: check.__wrapped__(a, a))()  # type: ignore[attr-defined]


@each("name", "a", "b")
@each("number", 1, 2)
def test_rows_share_no_folder_no_variable_and_no_output(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    print(name)
    assert capsys.readouterr().out == f"{name}\n"
    print(number)


def test_row_needs_a_value_for_each_name() -> None:
    for names, row in (("a, b", (1,)), ("a, b", (1, 2, 3))):
        with pytest.raises(ValueError, match="zip"):
            each(names, row)
    with pytest.raises(AssertionError, match="without rows"):
        each("a")
