"""What several test modules share: the real embedded judge, where it can be had."""

from __future__ import annotations

import pytest

from distract.backends.transformers import Transformers, embedded_judge
from distract.errors import BackendError, UsageError


@pytest.fixture(scope="session")
def smollm2() -> Transformers:
    """The real embedded judge, loaded; skips where it cannot be fetched."""
    pytest.importorskip("torch")
    judge = embedded_judge()
    try:
        assert judge.reading == "packed"
    except (BackendError, UsageError) as error:
        pytest.skip(f"the embedded judge is not available: {error}")
    return judge
