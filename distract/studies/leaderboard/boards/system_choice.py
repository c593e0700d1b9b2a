"""Rating systems as somebody chose them: each with the parameters that differ from its defaults.

It knows no rating system by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.errors import UsageError
from distract.stats import ratings
from distract.stats.ratings.draws import Draws
from distract.stats.ratings.matches import Matches, encode
from distract.stats.ratings.system import RatingSystem
from distract.studies.leaderboard.boards.board import build_board, draw_prompts
from distract.studies.leaderboard.boards.specs import check_parameter, parse_spec
from distract.studies.leaderboard.boards.standings import Board

ANCHOR = "anchor"
"""The parameter of those systems that can fix the rating of one model."""


@dataclass(frozen=True)
class SystemChoice:
    """A rating system with the parameters given for it."""

    system: RatingSystem
    given: Mapping[str, Any]

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON values, for the record of a run."""
        return {"name": self.system.name, "parameters": dict(sorted(self.given.items()))}

    @property
    def label(self) -> str:
        """What tells it from the others."""
        return ", ".join((self.system.name, *(f"{name} {value}" for name, value in sorted(self.given.items()))))

    def check(self, models: Sequence[str]) -> None:
        """See that it can rate these models, before anything is paid for."""
        for key in self.given:
            check_parameter(self.system, key)
        # Each beats the next one once; how long its responses are is made up.
        names, others = models[:-1], models[1:]
        played = encode(names, others, ["a"] * len(names), lengths=[(place + 1, 1) for place in range(len(names))])
        self.system.rate_matches(played, self.given)

    def fits(self, matches: Matches) -> bool:
        """Whether the model whose rating is fixed, if any, is among those that play."""
        return self.given.get(ANCHOR) in (None, *matches.models)

    def draws(self, matches: Matches, seed: int, count: int | None) -> Draws:
        """Draws of the prompts of matches, as many as are worth their time where no number is given."""
        return draw_prompts(matches, self.system, seed, count)

    def board(self, matches: Matches, seed: int, count: int | None) -> Board:
        """Matches rated by it; arguments are those of ``draws``."""
        return build_board(matches, self.system, self.given, draws=self.draws(matches, seed, count))


def choose_systems(specs: Sequence[str], anchor: str | None = None) -> tuple[SystemChoice, ...]:
    """The rating systems that are asked for, each once."""
    parsed = [parse_spec(spec) for spec in specs] or [(one, {}) for one in ratings.systems().values() if one.default]
    if anchor is not None and not any(ANCHOR in system.parameters for system, _ in parsed):
        able = ", ".join(one.name for one in ratings.systems().values() if ANCHOR in one.parameters)
        raise UsageError(f"--anchor {anchor}: goes with {able}; name one of them with --system")
    made: dict[str, SystemChoice] = {}
    for system, given in parsed:
        fixed = {ANCHOR: anchor} if anchor is not None and ANCHOR in system.parameters else {}
        if fixed and given.get(ANCHOR, anchor) != anchor:
            raise UsageError(
                f"--anchor {anchor}: {system.name} has the anchor {given[ANCHOR]} already; name one of them"
            )
        one = SystemChoice(system, {**fixed, **given})
        made.setdefault(one.label, one)
    return tuple(made.values())


def renaming_notes(specs: Sequence[str]) -> list[str]:
    """What to say of systems that are asked for by the name that they had, one line each."""
    names = {spec.partition(":")[0].strip() for spec in specs}
    return [f"{s.former} is called {s.name}: {s.summary}" for s in ratings.systems().values() if s.former in names]


def restore_systems(records: Sequence[Mapping[str, Any]]) -> tuple[SystemChoice, ...]:
    """The rating systems of a run."""
    found = tuple(SystemChoice(ratings.get_system(one["name"]), one["parameters"]) for one in records)
    for one in found:
        for key in one.given:
            check_parameter(one.system, key)
    return found
