"""One rewritten response against its rival, and what a measure takes of it: the columns of the table of measures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from distract.core.records import Outcome

Unit = tuple[Hashable, ...]

Aim = Literal["fixed", "loser", "winner", "both", "worse", "mark", "reach"]
"""Which response a trial is about.

``fixed``: a good response against its own rewrite, or against a worse one. ``loser``: the one that lost before any
rewrite, and at a tie the ``worse`` one. ``winner``: the one that won. ``both``: the loser, where the verdict after is
one that differs from that before, whether the loser or the winner was rewritten; the loser alone in one direction.
``worse``: the one labelled worse, else the second by author, whatever the verdict before. ``mark``: each response
against the pass mark, where b means that it passes; ``reach``: the same with the middle of the scale where there is no
mark, and no verdict before.
"""

TIED = "baseline is a tie"
EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class Trial:
    """One rewritten response (b) against its rival (a).

    ``before`` and ``after`` are None without a valid verdict; ``excluded`` says why nothing was judged before the
    rewrite, ``missing`` why nothing was judged after it, ``doubt`` why its label shows nothing about the judge.
    ``rows`` are the rows before and after, where there are any.
    Where nothing is attacked, ``before`` is what ``after`` is compared with, ``verdicts`` holds the verdict of each
    order (None: invalid), and ``amount`` what a comparison took.
    """

    unit: Unit
    cluster: str
    before: Outcome | None
    after: Outcome | None
    label: Outcome | None = None
    excluded: str | None = None
    missing: str | None = None
    doubt: str | None = None
    rows: tuple[Any, Any] = (None, None)
    verdicts: tuple[Outcome | None, ...] = ()
    amount: float = 0.0


Design = Literal["fixed", "flip", "severity"]

Sampling = Literal["verdict", "slot", "comparison", "orders", "control", "parser", "published", "published orders"]

Per = Sampling | Literal["calls", "tokens", "triple", "set"]
"""What one trial is where nothing is attacked.

``verdict``: a labelled verdict in one order, ``slot``: a verdict with the response shown first as the one before.
``comparison``: all verdicts on a pair, ``orders``: the same where there are several. ``control``: the verdict over all
orders before and after a control. ``parser``: the stored verdict and the one read from the text. ``published``: a
verdict, or a pair, as the authors of a published run count it, ``published orders``: all verdicts on a pair.
``calls``, ``tokens``: a pair of which the number is known. ``triple``: a is the outcome that a chain demands, before
it is a tie without one. ``set``: a pair beside two third responses.
"""

STYLES = ("same", "control")  # the effects under which any change of the verdict counts

CLAIMS = ("unearned", "injection")

EFFECTS: Mapping[str, tuple[str, str, str]] = {
    "same": ("attacks that keep the content", "", ""),
    "unearned": ("attacks that claim support", "Unsupported claims", "an unsupported claim"),
    "injection": ("attacks that speak to the judge", "Injections", "words to the judge"),
    "hollow": ("attacks that leave no content", "Hollow answers", "an answer without content"),
    "worse": ("attacks that break requirements", "", ""),
    "control": ("controls that change nothing relevant", "", ""),
}
"""What attacks of each effect do; where measures have a table for each, its name, and by what such a rewrite wins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One figure of a run."""

    name: str  # name in documents and of ``--measure``
    # Comparisons that it needs; empty for one that every design has.
    designs: tuple[Design | Literal["people", "pass", "triple", "set"], ...] = ()
    aim: Aim | None = None  # trials that it takes; None for a figure that is no rate of trials
    # Effects of the attacks whose trials it takes; empty for a figure before any rewrite.
    effects: tuple[str, ...] = STYLES
    value: Callable[[Trial], float] = lambda trial: float(trial.after == "b")  # value of a trial, from 0 to 1
    # Why a trial does not count, None if it does; without it, every trial counts.
    over: Callable[[Trial], str | None] | None = None
    # Value of a trial that needs no rewrite, or no verdict, None if it does; without it, every trial does.
    known: Callable[[Trial], float | None] | None = None
    unread: Callable[[Trial], float] | None = None  # value of a trial whose verdict is unreadable; None to leave it out
    needs_before: bool = True  # whether a trial needs a valid verdict before the rewrite
    alone: bool = False  # whether a response against its own original has a value too, where the data have no pairs
    margin: bool = False  # whether leads up to the indifference margin are ties
    ties: bool = False  # whether protocols that cannot tie have none
    minus: str = ""  # measure whose value on the same trials it subtracts
    sums: tuple[str, ...] = ()  # measures whose sum it is where its column stands beside theirs
    scale: Callable[[float], float] | None = None  # rescales the mean and the ends of its interval
    unit: str = "share"  # unit of the value
    headline: Literal["score", "rating"] = "score"  # rule that summarises a scoring protocol
    primary: bool = False  # whether it is what attacks of its effects are meant to raise
    compared: bool = False  # whether it compares the protocols of its design
    title: str = ""  # title of its table; after what the rewrites are called, where each effect has one
    # Columns of that table; ``%`` has the name of its column, if any, and ``…`` stands for those of the measures beside
    # it that the run has.
    cells: tuple[str, ...] = ("%", "95% CI", "k/n", "…", "inv.", "excl.")
    brief: bool = False  # whether that table has the headline rules only
    plot: tuple[str, Mapping[str, float]] = ("", {})  # title of its plot, and the values to mark there by name
    beside: str = ""  # measure in whose table its column stands
    # Columns about its own comparisons after that; with ``n`` or ``k/n`` the table is one of their own, unless the
    # cells of the other measure name its column.
    shows: tuple[str, ...] = ()
    column: str = ""  # name of its column in a table of another measure
    legend: str = ""  # meaning of that column
    more: str = ""  # what the glossary adds to the legend; its meaning, if there is no legend
    noun: str = ""  # name in a sentence; by default the name
    hit: str = ""  # a trial that a gate counts, one without a value where high is better
    hits: str = ""  # what those trials did
    action: str = ""  # the same in a sentence that names the ``{rewrite}`` and, by effect, the ``{means}``
    # What a run judges for it beyond its designs; with ``criteria``, each criterion has a figure.
    needs: Literal["", "winners", "placebos", "crossings", "criteria"] = ""
    first: str = ""  # which protocol comes first in a ranking by it
    limit: str = ""  # option of a gate for the largest value to accept, or the smallest; empty without one
    better: Literal["low", "high"] = "low"  # which end of its range is better
    missing: str = ""  # why a run may lack it
    replaces: str = ""  # measure whose place it takes in sums and comparisons where a run has both
    # What a trial is where nothing is attacked; None for a measure of attacks alone, or of no trials.
    per: Per | None = None
    capped: bool = True  # whether its interval is never narrower than that of independent trials

    def __post_init__(self) -> None:
        if self.limit and self.aim and (self.minus or self.scale or self.unit != "share"):
            raise ValueError(f"{self.name}: a limit on trials needs values of 0 or 1")

    @property
    def columns(self) -> tuple[str, ...]:
        """Its names in tables: a column, the title of a gate's, or the label of a row."""
        label = self.words if self.limit or self.per == "verdict" else ""
        return tuple(dict.fromkeys(name for name in (self.column, label) if name))

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return self.noun or self.name.replace("_", " ")

    @property
    def failure(self) -> str:
        """The name of the rate that a gate bounds: its own, or that of its hits where high is better."""
        return self.words if self.better == "low" else f"{self.hit} rate"

    def name_unit(self, rule: str | None) -> str:
        """Name the unit of its value by a rule; protocols without rules compare, in probability."""
        return "probability" if self.unit == "points" and rule is None else self.unit

    @property
    def key(self) -> str:
        """The name of its limit in Python."""
        return self.limit.replace("-", "_")

    @property
    def is_hit_rate(self) -> bool:
        """Whether a gate decides it by counting hits."""
        return bool(self.limit and self.aim)

    @property
    def is_paired(self) -> bool:
        """Whether it compares responses by two authors."""
        return self.designs == ("flip",)

    @property
    def limit_help(self) -> str:
        """What its limit is."""
        which = "largest" if self.better == "low" else "smallest"
        if self.is_hit_rate:
            return f"{which} {self.words} to accept under attacks of effect {' or '.join(self.limited_effects)}"
        unit = "points or probability" if self.unit == "points" else self.unit
        return f"{which} {self.words} to accept in a finished RUN, in {unit}"

    @property
    def limited_effects(self) -> tuple[str, ...]:
        """The effects of the attacks that its limit is for."""
        return tuple(effect for effect in self.effects if effect != "control")
