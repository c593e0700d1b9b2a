"""Small facts kept in the user's cache folder, in JSON files that are replaced whole.

A missing, damaged or unwritable file costs finding the fact out again; it is never an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.errors import UsageError


def recall(file: Path) -> dict[str, Any]:
    """Facts in a file; empty if it holds no JSON object."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def keep(file: Path, facts: Mapping[str, Any]) -> None:
    """Replace the facts in a file in one step."""
    with contextlib.suppress(OSError, UsageError):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, json.dumps(facts, indent=1) + "\n")
