"""Rewrites: their writers, and the check that a rewrite is still the same answer (``fidelity``)."""
