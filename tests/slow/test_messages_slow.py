"""Test singular and plural in messages."""

from __future__ import annotations

import re
from typing import Any


def test_count_one_uses_the_singular(run: Any) -> None:
    """Numbers in messages get their nouns from ``count``."""
    run("attack", "--judge", "planted:longer", "--generator", "rules", "--limit", "1", "--out", "r")
    for arguments in (
        ("attack", "--judge", "planted:longer", "--generator", "rules", "--limit", "1", "--out", "q"),
        ("report", "r"),
        ("gate", "r", "--max-flip-rate", "0.5"),
        ("check", "r"),
        ("rewrite", "--limit", "1", "--attack", "prolixity", "--out", "w.jsonl"),
        ("consistency", "--judge", "planted:longer", "--limit", "1"),
        ("leaderboard", "--judge", "planted:longer", "--limit", "1", "--generator", "rules"),
        ("meta", "--judge", "planted:longer", "--limit", "1"),
        ("plan-gate", "--max-flip-rate", "0.1", "--true-rate", "0.02"),
    ):
        ran = run(*arguments)
        odd = re.findall(r"(?<![\d.,/])1 (?!class|pass|less|plus|versus|of)[a-z]{3,}s\b(?!')", ran.out + ran.err)
        assert odd == [], (arguments, odd)
