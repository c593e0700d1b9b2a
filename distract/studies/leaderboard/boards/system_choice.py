"""Rating systems as users choose them: ``elo`` or ``elo:k=16,order=file``, with parameters other than the defaults."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings.matches import Draws, Matches, encode
from distract.stats.ratings.system import RatingSystem
from distract.studies.leaderboard.boards.board import (
    Board,
    build_board,
    check_parameters,
    draw_prompts,
    list_parameters,
)

ANCHOR = "anchor"  # the parameter of those systems that can fix the rating of one model
LARGEST = 1e6  # largest size of a parameter; beyond, and below its inverse, ratings are no longer exact


@dataclass(frozen=True)
class SystemChoice:
    """A rating system with the parameters given for it."""

    system: RatingSystem
    parameters: Mapping[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """JSON values for the record of a run."""
        return {"name": self.system.name, "parameters": dict(sorted(self.parameters.items()))}

    @property
    def label(self) -> str:
        """A name that differs from those of other choices."""
        return ", ".join((self.system.name, *(f"{name} {value}" for name, value in sorted(self.parameters.items()))))

    def check(self, models: Sequence[str]) -> None:
        """Check that it can rate these models, before anything is paid for."""
        check_parameters(self.system, self.parameters)
        # Each beats the next one once, with invented lengths.
        names, others = models[:-1], models[1:]
        chain = encode(names, others, ["a"] * len(names), lengths=[(place + 1, 1) for place in range(len(names))])
        self.system.rate_matches(chain, self.parameters)

    def fits(self, matches: Matches) -> bool:
        """Whether the anchor, if any, plays."""
        return self.parameters.get(ANCHOR) in (None, *matches.models)

    def draws(self, matches: Matches, seed: int, count: int | None) -> Draws:
        """Draw the prompts of matches; see ``draw_prompts``."""
        return draw_prompts(matches, self.system, seed, count)

    def board(self, matches: Matches, seed: int, count: int | None) -> Board:
        """Rate matches."""
        return build_board(matches, self.system, self.parameters, draws=self.draws(matches, seed, count))


def choose_systems(specs: Sequence[str], anchor: str | None = None) -> tuple[SystemChoice, ...]:
    """Parse rating systems, each once; without any, return the default ones."""
    parsed = [parse_spec(spec) for spec in specs] or [(one, {}) for one in ratings.systems().values() if one.default]
    if anchor is not None and not any(ANCHOR in system.parameters for system, _ in parsed):
        able = ", ".join(system.name for system in ratings.systems().values() if ANCHOR in system.parameters)
        raise UsageError(f"--anchor {anchor}: applies only to {able}; name one of them with --system")
    choices: dict[str, SystemChoice] = {}
    for system, parameters in parsed:
        fixed = {ANCHOR: anchor} if anchor is not None and ANCHOR in system.parameters else {}
        if fixed and (other := parameters.get(ANCHOR, anchor)) != anchor:
            raise UsageError(f"--anchor {anchor}: {system.name} has the anchor {other} already; name one of them")
        choice = SystemChoice(system, {**fixed, **parameters})
        choices.setdefault(choice.label, choice)
    return tuple(choices.values())


def renaming_notes(specs: Sequence[str]) -> list[str]:
    """Report the new name of each system that a spec names by its former one."""
    names = {spec.partition(":")[0].strip() for spec in specs}
    return [f"{s.former} is called {s.name}: {s.summary}" for s in ratings.systems().values() if s.former in names]


def restore_systems(records: Sequence[Mapping[str, Any]]) -> tuple[SystemChoice, ...]:
    """Restore the rating systems of a run."""
    choices = tuple(
        SystemChoice(ratings.get_system(record["name"], is_recorded=True), record["parameters"]) for record in records
    )
    for choice in choices:
        check_parameters(choice.system, choice.parameters)
    return choices


def parse_spec(spec: str) -> tuple[RatingSystem, dict[str, Any]]:
    """Parse ``elo`` or ``elo:k=16,order=file``.

    A comma begins a parameter only where a name and ``=`` follow, so that a model's name may hold one.
    """
    name, _, rest = spec.partition(":")
    system = ratings.get_system(name.strip())
    parameters: dict[str, Any] = {}
    for part in re.split(r",(?=\s*\w+\s*=)", rest) if rest.strip() else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(f"{name}: expected name=value, got {part!r}; {list_parameters(system)}")
        if key in parameters:
            raise UsageError(f"{name}: parameter {key!r} is given twice")
        parameters[key] = _parse_value(system, key, text)
    return system, parameters


def _parse_value(system: RatingSystem, key: str, text: str) -> Any:
    """Parse a value by the type of the default; where that is None, by the annotation, as text: it need not resolve."""
    check_parameters(system, [key])
    default = system.parameters[key]
    annotation = inspect.signature(system.rate).parameters[key].annotation
    kind = type(default).__name__ if default is not None else str(annotation)
    try:
        if re.search(r"\bfloat\b", kind) and math.isfinite(value := float(text)):
            if value and not 1 / LARGEST <= abs(value) <= LARGEST:
                raise UsageError(f"{system.name}: parameter {key!r}: expected {1 / LARGEST:g} to {LARGEST:g} in size")
            return value
        if re.search(r"\bint\b", kind):
            if abs(whole := int(text)) > LARGEST:
                raise UsageError(f"{system.name}: parameter {key!r}: expected a size of at most {LARGEST:g}")
            return whole
    except ValueError:
        pass
    if number := re.search(r"\b(int|float)\b", kind):
        expected = "a whole number" if number[0] == "int" else "a number"
        example = "" if default is None else f" like {default}"
        raise UsageError(f"{system.name}: parameter {key!r}: expected {expected}{example}, got {text!r}")
    return text
