"""Hypothesis settings for tests that call a model, which may be slow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from distract.core import files
from distract.core.store import DEFAULT_PATH

EXAMPLES = DEFAULT_PATH.parent / "examples"
"""Folder for failing examples, beside the store with the replies that they need."""

MAX_EXAMPLES = 20  # default number of examples: each one costs calls

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)
"""Health checks of speed and size, which mean nothing if a model takes seconds."""


class _ExampleDatabase(DirectoryBasedExampleDatabase):
    """Keeps failing examples in a folder for this user only."""

    def save(self, key: bytes, value: bytes) -> None:
        """Save an example; without one, there is no folder."""
        with suppress(OSError):  # a folder that cannot be written keeps none
            files.make_folder(EXAMPLES)
        super().save(key, value)


def unhurried(**more: Any) -> settings:
    """Settings for a test that calls a model, as a decorator: ``@unhurried()`` or ``@unhurried(max_examples=50)``.

    Sets no deadline, ignores slow or large examples and draws 20, none of them to explain a failure or to find a second
    one. Shrinking a failing example comes on top: often ten times as many, most of them answered from the store.
    Failing examples are kept in ``.distract/examples`` of the current folder; the next run starts with one, stops if it
    still fails, and then makes no calls. If the active profile derandomizes (as hypothesis does in CI), nothing is
    kept: the same examples are drawn again, and the store has their replies. Keyword arguments override these settings.
    """
    active = settings()
    defaults: dict[str, Any] = {
        "max_examples": MAX_EXAMPLES,
        "deadline": None,
        "phases": [phase for phase in active.phases if phase is not Phase.explain],
        "suppress_health_check": sorted({*active.suppress_health_check, *SLOW}, key=lambda check: check.value),
        # The failure message needs a few lines; a drawn case in full would take a hundred.
        "verbosity": Verbosity.quiet,
        # Hypothesis searches for further failures for a time that depends on the clock, so its draws would too.
        "report_multiple_bugs": False,
    }
    # Hypothesis rejects a database for examples that are the same every time.
    if not more.get("derandomize", active.derandomize):
        files.check_links(EXAMPLES)
        defaults["database"] = _ExampleDatabase(EXAMPLES)
    return settings(**{**defaults, **more})
