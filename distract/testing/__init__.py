"""Tools for users' own tests: invariants, strategies of hypothesis, and the pytest plugin."""
