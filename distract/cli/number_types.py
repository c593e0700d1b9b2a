"""The ranges of ``distract.cli.bounds`` as click types, so that the Python face needs no click."""

from __future__ import annotations

from typing import Any

import click

from distract.cli import bounds


class _RangeType(click.ParamType[Any]):
    """Reports a number outside its range as click reports any bad value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.read(value)  # type: ignore[attr-defined]  # the range beside it in the bases
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WholeType(bounds.WholeRange, _RangeType):
    """A whole number within bounds."""


class NumberType(bounds.NumberRange, _RangeType):
    """A number within bounds."""


def click_type(bound: str | bounds.WholeRange | bounds.NumberRange) -> WholeType | NumberType:
    """Return the click type for a range, or for the option of that name."""
    bound = bounds.BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(bound, bounds.WholeRange):
        return WholeType(bound.least, bound.most, bound.noun, bound.words)
    return NumberType(bound.least, bound.most, bound.is_open)


COUNT, SEED, LIMIT = map(click_type, (bounds.COUNT, bounds.SEED, bounds.LIMIT))
SHARE, INNER_SHARE, CONFIDENCE, PRICE = map(
    click_type, (bounds.SHARE, bounds.INNER_SHARE, bounds.CONFIDENCE, bounds.PRICE)
)
