"""The identity of judge functions: a change of code or state is noticed or refused, and nothing else changes it."""

import functools
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import error_line
from judge_states import IMPORTS, STATES, Folders
from loops import each

from distract.core.errors import UsageError
from distract.judging.functions.declaration import declare
from distract.judging.functions.digest import identify
from distract.judging.functions.source import find


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setattr(sys, "path", [*sys.path])
    return Folders(tmp_path)


@pytest.mark.parametrize("name", [*STATES, *IMPORTS])
def test_a_change_is_noticed_and_only_a_change(name: str, folders: Folders) -> None:
    text, files = (STATES[name], {}) if name in STATES else IMPORTS[name]
    first = folders.digest(text, 1, files)
    assert folders.digest(text, 1, files, about="# layout does not count\n\n") == first
    assert folders.digest(text, 2, files) != first


class Held:
    """A judge that holds something."""

    def __init__(self, held: object) -> None:
        self.held, self.calls = held, 0

    def __call__(self, a: str, b: str) -> str:
        self.calls += 1
        return "A"


def code_of(held: object) -> str:
    return identify(declare(Held(held)))["code"]


def nest(depth: int) -> list[Any]:
    return functools.reduce(lambda inner, _: [inner], range(depth), [])


@each(
    "held, place",
    ((letter for letter in "ab"), "attribute held (builtins.generator) cannot be described"),
    (
        {"deep": [threading.Lock(), iter({1: 2}.items()).__class__, (x for x in "")]},
        "attribute held['deep'][2] (builtins",
    ),
    (np.zeros(2**23 + 1), "attribute held (numpy.ndarray) holds more than 64 MB"),
    (np.zeros((2**23 + 1, 2))[:, 0], "attribute held (numpy.ndarray) holds more than 64 MB"),
    (nest(2000), "is nested too deeply to be described"),
)
def test_what_cannot_be_described_is_refused(held: object, place: str) -> None:
    message = error_line(UsageError, lambda: code_of(held))
    assert message.startswith("judge Held: ")
    assert place in message
    assert 'declare a version with @distract.judge(version="1")' in message
    assert identify(declare(Held(held), version="1")) == identify(declare(Held(object()), version="1"))


def test_64_megabytes_are_described() -> None:
    assert code_of(np.zeros(2**23)) == code_of(np.zeros(2**23))


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distract.judging.functions.digest.MAX_VALUES", 1000)
    assert code_of(list(range(100_000)))
    assert "holds more than 1,000 values" in error_line(UsageError, lambda: code_of([[] for _ in range(1000)]))


def test_keys_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc-123-def")
    assert code_of({"api_key": "one"}) == code_of({"api_key": "two"}) != code_of({"word": "one"})
    assert code_of("abc-123-def") != code_of("abc-123-deg")
    before = code_of(["abc-123-def"])
    monkeypatch.setenv("MY_TOKEN", "ghi-456-jkl")
    assert code_of(["ghi-456-jkl"]) == before


VERSIONED = """
import functools, helper
def judge(question, a, b, limit=3, *, tone="calm"):
    return "A" if helper.size(a) > len(b) else "B"
def make(limit, names=("x", 2.5, None), table={"a": [1, b"z"]}):
    def inner(a, b):
        return limit and names and table
    return inner
bound = make(7)
def wrap(f):
    @functools.wraps(f)
    def g(*args, **kw):
        return f(*args, **kw)
    return g
@wrap
def wrapped(a, b):
    return 1
class Judge:
    def __init__(self, limit): self.limit = limit
    def __call__(self, a, b): return self.limit
    def method(self, a, b): return self.limit
instance = Judge(3)
method = instance.method
part = functools.partial(judge, "q")
"""


@each(
    "name, code",
    ("judge", "4884b5e5b678a6883edf762d5d034b8477aaf39bffd65bc561dd008dda9b98ce"),
    ("bound", "26b21d190e2c2a7ea14d70839b1757bf53154f899629a59f2ca07489e7e6dde0"),
    ("wrapped", "cc4aa51e48856f7b14c296f099a4c0a7669ac6f7cab8c9e44f43ab11d1f28a22"),
    ("instance", "18724c08afd1e6a5bdfea7921d6df3c767cd38d08d6439ed436c89cddf8a9be6"),
    ("method", "82973f725f393ecb2c6a4ce5dacd32aa94ce34f5cf033ba1ea05ec034432d479"),
    ("part", "7b90462a5c7379512b9b8d636cc5a92c09935149d802c468ebb6282adc0a414c"),
)
def test_a_version_keeps_the_identity_of_earlier_releases(name: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def size(text): return len(text)\n")
    (tmp_path / "my_judge.py").write_text(VERSIONED)
    function = find(f"{tmp_path / 'my_judge.py'}:{name}").function
    assert identify(declare(function, name=name, version="1"))["code"] == code
