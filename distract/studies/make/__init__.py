"""Makers of data: better and worse answers from a reference, and questions with format constraints."""

from __future__ import annotations

from distract.studies.make.attempts import MakeResult, yield_document
from distract.studies.make.pairs import make_pair
from distract.studies.make.tweakset import make_tweak

__all__ = ["MakeResult", "make_pair", "make_tweak", "yield_document"]
