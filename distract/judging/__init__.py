"""Judge comparisons: ``comparison`` asks a protocol, and ``judge`` is a judge for Python code."""

BASE = "base"
"""The protocol with which a run that has it compares all others."""
