"""The numbers of ``distract.cli.bounds`` as types of click."""

from __future__ import annotations

from typing import Any

import click

from distract.cli import bounds


class Whole(bounds.Whole, click.ParamType[int]):
    """See ``bounds.Whole``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See ``click.ParamType``."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Number(bounds.Number, click.ParamType[float]):
    """See ``bounds.Number``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See ``click.ParamType``."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def bounded(bound: str | bounds.Whole | bounds.Number) -> Whole | Number:
    """The type of click for bounds, or for those of an option by its name."""
    bound = bounds.BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(bound, bounds.Whole):
        return Whole(bound.least, bound.most, bound.noun, bound.words)
    return Number(bound.least, bound.most, bound.is_open)


COUNT, TOKENS, SEED, LIMIT = map(bounded, (bounds.COUNT, bounds.TOKENS, bounds.SEED, bounds.LIMIT))
SHARE, INNER_SHARE, CONFIDENCE, PRICE = map(
    bounded, (bounds.SHARE, bounds.INNER_SHARE, bounds.CONFIDENCE, bounds.PRICE)
)
