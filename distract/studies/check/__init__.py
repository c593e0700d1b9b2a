"""``distract check``: rewrites checked outside a run."""
