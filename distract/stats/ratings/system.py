"""What a rating system is: a pure function from matches to ratings, and the same on prompts that are drawn again.

It knows no rating system by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distract.core.definitions import check_plugin
from distract.core.errors import guard_plugin
from distract.core.printable import line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from distract.stats.ratings.matches import Matches


NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})
"""No parameter differs from its default."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What a rating system makes of matches.

    Attributes:
        system: its name.
        models: of the matches, in their order.
        rating: of each model, shape (models,); more is better.
        parameters: all that it was called with, defaults included.
        covariance: of the ratings over prompts, shape (models, models), without any correction for few prompts; None
            where there is no closed form (intervals are then drawn).
        sigma: the system's own uncertainty of each rating, where it has one; it is no interval over prompts.
        extra: further figures by name, such as what length is worth.
        notes: what a reader must know, one line each.
    """

    system: str
    models: tuple[str, ...]
    rating: NDArray[np.float64]
    parameters: Mapping[str, Any]
    covariance: NDArray[np.float64] | None = None
    sigma: NDArray[np.float64] | None = None
    extra: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(type(note) is str for note in self.notes):
            raise ValueError("notes: expected texts")
        object.__setattr__(self, "notes", tuple(map(line, self.notes)))  # names of models are hostile text


@dataclass(frozen=True)
class RatingSystem:
    """A rating system.

    Attributes:
        name: as users write it.
        summary: one line.
        rate: called as ``rate(matches, **parameters)``; its keyword-only parameters, each with a default, are those
            of the system.
        redraw: called as ``redraw(matches, draws, **parameters)``: the rating of each model under each draw, shape
            (draws, models), float64. The same ``draws`` give the same weights to the same prompts in all matches.
        unit: ``points`` or ``share``.
        default: whether it is used where none is named.
        lengths: whether it needs to know how long responses are.
        former: the name that it had, if any, by which runs on disk may know it.
    """

    name: str
    summary: str
    rate: Callable[..., Ratings]
    redraw: Callable[..., NDArray[np.float64]]
    unit: str = "points"
    default: bool = False
    lengths: bool = False
    former: str | None = None
    parameters: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        check_plugin("rating system", self, summary=str, rate=Callable, redraw=Callable, default=bool, lengths=bool)
        check_plugin("rating system", self, unit=str, former=str | None)
        found = inspect.signature(self.rate).parameters.values()
        named = {one.name: one.default for one in found if one.kind is inspect.Parameter.KEYWORD_ONLY}
        for name, value in named.items():
            if not isinstance(value, str | int | float | None):
                raise ValueError(f"rating system {self.name}: the default of {name} is no text, number or None")
        object.__setattr__(self, "parameters", MappingProxyType(named))

    def rate_matches(self, matches: Matches, parameters: Mapping[str, Any]) -> Ratings:
        """What ``rate`` makes of matches: a finite rating of each model, or an error of the plug-in."""
        import numpy as np

        with guard_plugin(f"rating system {self.name!r} failed"):
            ratings = self.rate(matches, **parameters)
            size = len(matches.models)
            if np.shape(ratings.rating) != (size,) or not np.isfinite(ratings.rating).all():
                raise ValueError(f"expected {size} finite ratings, found {ratings.rating}")
            for name, shape in (("covariance", (size, size)), ("sigma", (size,))):
                values = getattr(ratings, name)
                if values is not None and (np.shape(values) != shape or not np.isfinite(values).all()):
                    raise ValueError(f"{name}: expected finite numbers of shape {shape}, or None")
            if not all(type(name) is str and np.isfinite(value) for name, value in ratings.extra.items()):
                raise ValueError("extra: expected finite numbers by name")
        return ratings
