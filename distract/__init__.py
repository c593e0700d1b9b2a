"""Measure how easily an LLM judge is distracted by style."""

from importlib.metadata import version

__version__ = version("distract")
