"""Intervals, exact tests, agreement and ratings, on counts and columns of numbers."""
