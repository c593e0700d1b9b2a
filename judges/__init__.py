"""Protocols: one file for each way of asking a judge, with its prompts."""
