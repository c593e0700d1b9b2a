"""Attacks: ways of rewriting a response."""
