"""Rewrites: who writes them, and whether they are still the same answer (``fidelity``)."""
