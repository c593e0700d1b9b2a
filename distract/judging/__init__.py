"""A comparison to a judgment: ``comparison`` asks a protocol and makes a row, ``judge`` is a judge called from Python."""

BASE = "base"
"""The protocol that every other one is compared with, where a run has it."""
