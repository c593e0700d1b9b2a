"""Test that text from files and models never moves the cursor or breaks a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from distract.core.printable import clean_text, line


@given(st.text())
def test_plain_text_moves_no_cursor_and_starts_no_escape(text: str) -> None:
    cleaned = clean_text(text)
    assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
    assert not any(0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\ufeff" for c in cleaned)
    assert "\n" not in line(text)
