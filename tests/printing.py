"""A report as a terminal shows it."""

import io
from collections.abc import Iterable

from rich.console import Console

from distract.report.blocks import Block
from distract.report.terminal import show


def print_parts(parts: Iterable[Block], width: int = 80, verbose: bool = True) -> str:
    """The text of the parts without colours."""
    file = io.StringIO()
    show(parts, Console(file=file, width=width, highlight=False, force_terminal=False), verbose)
    return file.getvalue()
