"""A comparison to a judgment: ``compare`` asks a protocol and makes a row, ``judge`` is a judge called from Python."""
