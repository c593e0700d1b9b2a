"""Attacks as the engine sees them: how they write, and what they declare to do to a response."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial, reduce
from types import NoneType
from typing import Literal, get_args

from distract.core.plan import Plan
from distract.core.plugin import NAME_PATTERN, check_plugin
from distract.core.prompts import Prompt
from distract.core.records import Case, Constraint, Message, Request, Response

Effect = Literal["same", "unearned", "hollow", "injection", "worse", "control"]
"""What an attack does to the quality of a response; see ``Attack``."""

FORMER = {"unsupported": "unearned"}
"""The effects that had another name before, in runs, settings and attacks."""

Kept = Literal["meaning", "words", "text", "nothing"]
"""What a rewrite keeps of its original; see ``Attack``."""

Layer = Literal["kept", "format", "additions", "feature", "verifier"]
"""A layer of fidelity: the original is kept as declared; format requirements that held still hold; nothing is added
that the effect excludes; the feature increased; a model finds the same meaning."""

LAYERS: tuple[Layer, ...] = get_args(Layer)


@dataclass(frozen=True, slots=True)
class WritingTask:
    """What an attack's plan sees.

    Attributes:
        case: the case that the response answers.
        response: the response to rewrite; its turns are empty if the attack does not depend on it.
        rival: the response that it is compared with; None if there is none, or if the attack does not depend on it.
        seed: varies the attack's choices; differs from response to response.
        run_seed: seed of the run, for sampling.
        attempt: number of attempts before this one.
        feedback: reasons that rejected the attempt before.
        request: makes a request to the generator from messages and a text of similar length; None if no model writes.
        slots: gives the values of a prompt's slots for the turn at an index: ``question``, ``response``,
            ``requirements`` and ``feedback``; None if no model writes.
    """

    case: Case
    response: Response
    rival: Response | None
    seed: int
    run_seed: int = 0
    attempt: int = 0
    feedback: tuple[str, ...] = ()
    request: Callable[[tuple[Message, ...], str], Request] | None = None
    slots: Callable[[int], Mapping[str, str]] | None = None


def keep_turn(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Change nothing: the rule of an attack that writes by its own plan."""
    return turn


def name_effect(name: str) -> str:
    """Return the name of an effect, given that or its former one."""
    return FORMER.get(name, name)


@dataclass(frozen=True, eq=False)  # its functions may be any callables, hashable or not
class Attack:
    """A way of rewriting a response, with what it declares to do to it.

    Exactly one of ``rewrite`` and ``write`` is given.

    Attributes:
        name: the value of ``--attack``.
        summary: one line.
        rewrite: a rule for one turn: rewrites it, under constraints; an integer varies its choices.
        marker: measures the intended feature in a text (more is more); None leaves it unmeasured.
        default: whether it is used when no attack is named.
        severity: how many of the constraints it breaks, if it lowers quality on purpose; else None.
        placebo: whether it changes text but neither tone nor quality, so that it shows which changes mean nothing.
        effect: what it does to quality: ``same`` (nothing: tone or format alone), ``worse`` (it breaks constraints),
            ``unearned`` (it adds a claim without support), ``hollow`` (no content is left), ``injection`` (it speaks
            to the judge) or ``control`` (nothing relevant changes; what moves is noise). By default ``worse`` with a
            severity, else ``same``.
        control: whether its effect is ``control``; either of the two says so.
        prompt: prompt for a generator model, with any of the slots ``question``, ``response``, ``requirements`` and
            ``feedback``; None leaves the writing to the rule.
        write: a plan for the whole response that returns its turns, as many as before; a rule is a plan that requests
            nothing.
        asks: whether ``write`` needs a generator model.
        family: the value of ``--attack family:NAME``, a group of attacks that work alike; by default the effect.
        paper: source of the method.
        keeps: what a rewrite by rule keeps: ``meaning`` (the rules of fidelity decide), ``words`` (every word, number,
            address and piece of code, in order), ``text`` (every turn, byte for byte, inside a wrapper) or ``nothing``
            (it replaces the response). A generator's rewrite keeps the meaning.
        restore: gets a turn back from its wrapper; None if the turn is in it as it was.
        layers: the layers of fidelity that apply; by default all that its effect allows.
        adds: the sentences that ``rewrite`` or ``write`` may add, beside those that say nothing about a subject.
        depends: what the plan reads, beside the case: ``response``, ``rival``. A rewrite is written once for each.
        parts: the controls that it is joined of, in the order in which they rewrite; see ``join_controls``.
        max_new_content: decides nothing any more.
        truth: the former name of ``effect``.
    """

    name: str
    summary: str
    rewrite: Callable[[str, tuple[Constraint, ...], int], str] = keep_turn
    marker: Callable[[str], float] | None = None
    default: bool = False
    severity: int | None = None
    max_new_content: InitVar[float | None] = None
    prompt: Prompt | None = None
    placebo: bool = False
    effect: Effect | Literal[""] = ""
    control: bool = False
    write: Callable[[WritingTask], Plan[tuple[str, ...]]] | None = field(default=None, kw_only=True)
    asks: bool = field(default=False, kw_only=True)
    family: str = field(default="", kw_only=True)
    paper: str = field(default="", kw_only=True)
    keeps: Kept = field(default="meaning", kw_only=True)
    restore: Callable[[str], str] | None = field(default=None, kw_only=True)
    layers: tuple[Layer, ...] | None = field(default=None, kw_only=True)
    adds: tuple[str, ...] = field(default=(), kw_only=True)
    depends: tuple[Literal["response", "rival"], ...] = field(default=("response",), kw_only=True)
    parts: tuple[Attack, ...] = field(default=(), kw_only=True)
    truth: InitVar[str] = field(default="", kw_only=True)

    def __post_init__(self, max_new_content: float | None, truth: str) -> None:
        if max_new_content is not None:
            note = f"attack {self.name}: leave out max_new_content: each sentence is compared instead"
            warnings.warn(note, FutureWarning, stacklevel=3)
        optional = (Callable, NoneType)
        check_plugin("attack", self, summary=str, rewrite=Callable, marker=optional, write=optional, restore=optional)
        check_plugin("attack", self, severity=int | None, prompt=Prompt | None, placebo=bool, effect=str, control=bool)
        check_plugin(
            "attack", self, default=bool, asks=bool, family=str, paper=str, keeps=str, depends=tuple, adds=tuple
        )
        self._fill_effect(truth)
        for problem, is_wrong in {
            "expected either rewrite or write": (self.rewrite is keep_turn) == (self.write is None),
            f"effect={self.effect!r}, severity={self.severity}; expected both or neither": (self.severity is not None)
            != (self.effect == "worse"),
            f"placebo=True, effect={self.effect!r}; expected effect='control'": self.placebo and not self.control,
            "asks=True; expected write, which asks": self.asks and self.write is None,
            f"family={self.family!r}; expected a name like an attack's": not NAME_PATTERN.fullmatch(self.family),
            f"keeps={self.keeps!r}; expected one of {', '.join(get_args(Kept))}": self.keeps not in get_args(Kept),
            f"effect={self.effect!r}, keeps={self.keeps!r}; expected both 'hollow' and 'nothing', or neither": (
                self.effect == "hollow"
            )
            != (self.keeps == "nothing"),
            "restore needs keeps='text'": self.restore is not None and self.keeps != "text",
            f"layers={self.layers!r}; expected some of {', '.join(LAYERS)}": not {*(self.layers or ())} <= {*LAYERS},
            f"depends={self.depends!r}; expected some of response, rival": not {*self.depends} <= {"response", "rival"},
        }.items():
            if is_wrong:
                raise ValueError(f"attack {self.name}: {problem}")

    @property
    def checks(self) -> tuple[Layer, ...]:
        """The layers of fidelity that apply."""
        layers = LAYERS if self.layers is None else self.layers
        # A style may never claim support or speak to the judge, whatever it declares.
        own: tuple[Layer, ...] = ("additions",) if self.effect in ("same", "control") else ()
        return () if self.effect == "hollow" else tuple(dict.fromkeys((*layers, *own)))

    def _fill_effect(self, former: str) -> None:
        if former and self.effect:
            raise ValueError(f"attack {self.name}: effect and its former name, truth, are both given; expected one")
        if former or self.effect in FORMER:
            effect = name_effect(self.effect or former)
            note = f"attack {self.name}: write effect={effect!r}; distract 0.2 takes no other name"
            warnings.warn(note, FutureWarning, stacklevel=4)
            object.__setattr__(self, "effect", effect)
        effect = self.effect or ("control" if self.control else "worse" if self.severity else "same")
        if effect not in get_args(Effect):
            raise ValueError(f"attack {self.name}: effect={effect!r}; expected one of {', '.join(get_args(Effect))}")
        if self.control and effect != "control":
            raise ValueError(f"attack {self.name}: control=True, effect={effect!r}; expected effect='control' or none")
        object.__setattr__(self, "effect", effect)
        object.__setattr__(self, "control", effect == "control")
        object.__setattr__(self, "family", self.family or effect)


def join_controls(controls: Sequence[Attack]) -> Attack:
    """Join controls that rules write into one that applies each to the text of the one before, all with one seed.

    What keeps less comes first, whatever the order of the names: other words, then typography, then a sentence more.
    """
    order = get_args(Kept)
    parts = tuple(sorted({*controls}, key=lambda one: (order.index(one.keeps), one.name)))
    for part in parts:
        if not (part.control and part.write is None and part.restore is None):
            raise ValueError(f"{part.name} does not join others: expected controls that rules write into a text")
    if len(parts) == 1:
        return parts[0]
    return Attack(
        "+".join(part.name for part in parts),
        f"control: {' and '.join(part.name for part in parts)} in one",
        partial(_rewrite_in_turn, parts),
        placebo=any(part.placebo for part in parts),
        effect="control",
        keeps=parts[0].keeps,
        adds=tuple(sentence for part in parts for sentence in part.adds),
        parts=parts,
    )


def _rewrite_in_turn(parts: Sequence[Attack], turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    return reduce(lambda text, part: part.rewrite(text, constraints, seed), parts, turn)
