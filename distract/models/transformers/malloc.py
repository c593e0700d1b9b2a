"""Memory that is freed stays with the process, so that the next forward need not fetch it anew.

A forward on a CPU takes and frees tens of megabytes at each layer. The C library gives much of that back to the system,
which hands it out again page by page, zeroed: a tenth of the time of a forward of 1,500 tokens. It knows no model.
"""

from __future__ import annotations

import ctypes

_TRIM, _MAP = -1, -3
"""GNU's numbers (malloc.h): how much free memory is kept at the end, and which blocks are maps of their own."""

MOST = 2**30
"""Bytes up to which a block is kept, and free bytes at the end of memory beyond which they are given back."""


def keep(most: int = MOST) -> bool:
    """Tell the C library to keep what is freed; the whole process is concerned."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, Windows, musl
        return False
    return bool(mallopt(_MAP, most)) and bool(mallopt(_TRIM, most))
