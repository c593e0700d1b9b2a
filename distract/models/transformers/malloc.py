"""A setting of the C library that keeps freed memory in the process for the next forward.

A forward on a CPU takes and frees tens of megabytes in each layer. By default much of that goes back to the system and
returns page by page, zeroed, which takes a tenth of the time of a forward of 1,500 tokens.
"""

from __future__ import annotations

import ctypes

_TRIM, _MAP = -1, -3
"""GNU's numbers (malloc.h) for the free memory kept at the end, and for blocks that get maps of their own."""

MOST = 2**30
"""Largest block to keep, and most free bytes to keep at the end of memory."""


def keep(most: int = MOST) -> bool:
    """Make the C library keep freed memory, for the whole process; returns whether it did."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, Windows, musl
        return False
    return bool(mallopt(_MAP, most)) and bool(mallopt(_TRIM, most))
