"""The record of a rating system: a pure function from matches to ratings, and the same for drawn prompts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distract.core.errors import guard_plugin, redirect_output
from distract.core.plugin import check_plugin
from distract.core.printable import line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from distract.stats.ratings.matches import Matches

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """The result of a rating system.

    Attributes:
        system: name of the system.
        models: the models of the matches, in their order.
        rating: rating of each model, shape (models,); more is better.
        parameters: all parameters, including defaults.
        covariance: covariance of the ratings over prompts, shape (models, models), uncorrected for few prompts; None
            without a closed form, so that intervals need draws.
        sigma: the system's own uncertainty of each rating, if any; this is not an interval over prompts.
        extra: further figures by name, such as the value of length.
        notes: remarks for the reader, one line each.
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
        object.__setattr__(self, "notes", tuple(map(line, self.notes)))  # names of models may be hostile text


@dataclass(frozen=True)
class RatingSystem:
    """A rating system.

    Attributes:
        name: name for users.
        summary: one line.
        rate: called as ``rate(matches, **parameters)``; its keyword-only parameters, each with a default, are those of
            the system.
        redraw: called as ``redraw(matches, draws, **parameters)``; returns the rating of each model under each draw,
            shape (draws, models), float64. The same ``draws`` give the same prompts the same weights in all matches.
        unit: ``points`` or ``share``.
        default: whether to use it if the user names none.
        lengths: whether it needs the lengths of responses.
        former: former name, if any, for runs on disk.
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
        signature = inspect.signature(self.rate).parameters.values()
        defaults = {p.name: p.default for p in signature if p.kind is inspect.Parameter.KEYWORD_ONLY}
        for name, value in defaults.items():
            if not isinstance(value, str | int | float | None):
                raise ValueError(f"rating system {self.name}: the default of {name} is not text, a number or None")
        object.__setattr__(self, "parameters", MappingProxyType(defaults))

    def rate_matches(self, matches: Matches, parameters: Mapping[str, Any]) -> Ratings:
        """Call ``rate`` and check that its ratings are finite; a fault of the plug-in raises PluginError."""
        import numpy as np

        with guard_plugin(f"rating system {self.name!r} failed"), redirect_output():
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
