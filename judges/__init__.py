"""Protocols: ways of asking a judge, with their prompts. Those that differ only in prompt and format share a file."""
