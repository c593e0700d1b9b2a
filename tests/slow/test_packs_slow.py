"""Test the layout of forwards by property: each token sees exactly its own sequence."""

from __future__ import annotations

from distract.models.transformers.packs import lay_out


def test_deep_tries_need_no_recursion() -> None:
    assert len(lay_out([[0] * n for n in range(1, 1100)], budget=2048)) == 1
