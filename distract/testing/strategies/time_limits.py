"""Settings of hypothesis for tests that ask a model: it may be slow, and what it said is kept.

It knows no strategy and no judge.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from distract.core.store import DEFAULT_PATH

EXAMPLES = DEFAULT_PATH.parent / "examples"
"""Where failing examples are kept: beside the store with the replies that they need."""

EXAMPLES_OF_A_TEST = 20
"""How many are drawn where nobody says: each costs calls."""

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)
"""Checks of how fast and how small examples are, which says nothing where a model takes seconds."""


def unhurried(**more: Any) -> settings:
    """Settings for a test that asks a model, as a decorator: ``@unhurried()`` or ``@unhurried(max_examples=50)``.

    There is no deadline and no complaint about slow or large examples; 20 are drawn, and none only to explain a failure
    or to find another one after the first. What is tried to make a failing example smaller comes on top, often some ten
    times as many, of which the store answers most. A failing example is kept in ``.distract/examples`` of the current
    folder, where commands have their store too: the next run begins with it, ends with it where it still fails, and
    then asks the model nothing.
    Where the profile in force draws the same examples every time (``derandomize``, as hypothesis' own for CI), none
    is kept: they come again, and their replies are in the store.

    Args:
        more: other settings, or other values for these.

    Raises:
        TypeError: no such setting.
        hypothesis.errors.InvalidArgument: a value that it cannot have.
    """
    given = settings()
    ours: dict[str, Any] = {
        "max_examples": EXAMPLES_OF_A_TEST,
        "deadline": None,
        "phases": [phase for phase in given.phases if phase is not Phase.explain],
        "suppress_health_check": sorted({*given.suppress_health_check, *SLOW}, key=lambda check: check.value),
        # What failed says what happened in a few lines; a drawn case in full would be a hundred.
        "verbosity": Verbosity.quiet,
        # How long hypothesis looks for further failures depends on the clock, and what it draws would too.
        "report_multiple_bugs": False,
    }
    # Hypothesis takes examples that are the same every time and a database of them for a contradiction.
    if not more.get("derandomize", given.derandomize):
        ours["database"] = DirectoryBasedExampleDatabase(EXAMPLES)
    return settings(**{**ours, **more})
