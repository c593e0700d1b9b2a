"""Makers of data: better and worse answers from a reference, and questions with format constraints."""
