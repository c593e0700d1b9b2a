"""Ratings from matches: the matches, draws of their prompts, and the record that a rating system is."""
