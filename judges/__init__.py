"""Protocols: ways of asking a judge, with their prompts; those with different prompts and formats only share a file."""
