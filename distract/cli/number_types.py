"""The numbers of ``distract.cli.bounds`` as types of click."""

from __future__ import annotations

from typing import Any

import click

from distract.cli import bounds


class WholeType(bounds.WholeRange, click.ParamType[int]):
    """See ``bounds.WholeRange``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See ``click.ParamType``."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class NumberType(bounds.NumberRange, click.ParamType[float]):
    """See ``bounds.NumberRange``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See ``click.ParamType``."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def click_type(bound: str | bounds.WholeRange | bounds.NumberRange) -> WholeType | NumberType:
    """The type of click for bounds, or for those of an option by its name."""
    bound = bounds.BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(bound, bounds.WholeRange):
        return WholeType(bound.least, bound.most, bound.noun, bound.words)
    return NumberType(bound.least, bound.most, bound.is_open)


COUNT, TOKENS, SEED, LIMIT = map(click_type, (bounds.COUNT, bounds.TOKENS, bounds.SEED, bounds.LIMIT))
SHARE, INNER_SHARE, CONFIDENCE, PRICE = map(
    click_type, (bounds.SHARE, bounds.INNER_SHARE, bounds.CONFIDENCE, bounds.PRICE)
)
