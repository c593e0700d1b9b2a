"""Attacks: one file per way of rewriting a response."""
