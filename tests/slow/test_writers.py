"""Test the identity of a run's rewriting code, and the location of changes in conversations."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from distract.core.registry import attacks
from distract.rewriting.writers import _edit_one_turn, checksum

CODE = (
    "from distract.core import registry; from distract.rewriting import writers; "
    "print(writers.checksum(list(registry.attacks().values())))"
)


def test_checksum_is_stable_across_processes_and_covers_attacks() -> None:
    checksums = set()
    for seed in ("0", "1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
        checksums.add(done.stdout.strip())
    assert checksums == {checksum(list(attacks().values()))}
    assert checksum([]) not in checksums


@pytest.mark.parametrize(
    ("turns", "new", "expected"),
    [
        (("a",), "b", ("b",)),
        (("a", "b"), "a\n\nc", ("a", "c")),
        (("a", "b"), "c\n\nb", ("c", "b")),
        (("a", "b", "c"), "a\n\nx\n\ny\n\nc", ("a", "x\n\ny", "c")),
        (("a", "b"), "x\n\ny", ("a", "b")),
        (("a", "a"), "a\n\na", ("a", "a")),
        (("a", "b"), "a", ("a", "b")),
    ],
)
def test_change_is_located_in_its_turn(turns: tuple[str, ...], new: str, expected: tuple[str, ...]) -> None:
    assert _edit_one_turn(turns, new) == expected
