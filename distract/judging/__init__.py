"""From a comparison to a judgment: ``comparison`` asks a protocol, ``judge`` is a judge for Python code."""

BASE = "base"
"""The protocol that a run compares all others with, if it has this one."""
