"""Test that an error is one line that cannot move the cursor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distract.core.errors import BackendError, DataError, DistractError, PluginError, UnknownName, UsageError


@pytest.mark.parametrize(
    "error",
    [
        lambda name: UsageError(f"{name}: no such folder"),
        lambda name: UnknownName("judge", name, [name + "x"], hint=name),
        lambda name: DataError(f"expected a number, not {name}", path=name, line=3, field=name),
        lambda name: PluginError(f"the attack {name} failed"),
        lambda name: BackendError(f"the server {name} has stopped answering"),
    ],
)
@given(name=st.text(max_size=30))
@example(name="~\x85")
@example(name="\u2028\x1b[2J\r\n\ud800")
def test_error_is_one_line(error: Callable[[str], DistractError], name: str) -> None:
    message = str(error(name))
    assert len(message.splitlines()) == 1
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in message)
    message.encode()
