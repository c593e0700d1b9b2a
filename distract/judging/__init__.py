"""From a comparison to a judgment: ``comparison`` asks a protocol, ``judge`` is a judge that Python code calls."""

BASE = "base"
"""The protocol that every other one is compared with, where a run has it."""
