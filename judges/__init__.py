"""Protocols: one file per way of asking a judge, and their prompts."""
