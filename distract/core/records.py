"""Plain records that modules exchange: frozen and slotted, with only small pure views as methods.

Vocabulary: a *case* is a prompt with the responses to it; an *original* response has ``attack`` None; a *rewrite* has
the author and severity of its original and the name of the attack that made it. Responses that break s format
constraints on purpose have ``severity`` s.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from distract.core.plain_text import fold_text

BASELINE = "none"
"""The name that rows from before any rewrite have in place of an attack."""

Evidence = tuple[tuple[str, float | int | str], ...]
"""Measurements of a rewrite, by name."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One verifiable format requirement.

    Attributes:
        kind: an IFEval id such as ``punctuation:no_comma``.
        arguments: sorted (name, value) pairs; values are str, int or tuple of str.
    """

    kind: str
    arguments: tuple[tuple[str, str | int | tuple[str, ...]], ...] = ()

    def __getitem__(self, name: str) -> Any:
        return dict(self.arguments)[name]


@dataclass(frozen=True, slots=True)
class Response:
    """One author's answer: the assistant's turns, one per turn of the prompt."""

    author: str
    turns: tuple[str, ...]
    attack: str | None = None
    severity: int | None = None

    @property
    def text(self) -> str:
        """The turns as one text, separated by a blank line."""
        return "\n\n".join(self.turns)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The origin of a recorded response."""

    response: Response
    generator: str  # name of the writer
    model: tuple[tuple[str, str], ...] = ()  # the writer's identity, by name
    prompt: str = ""  # SHA-256 (hex) of the prompt file; empty if no model was asked
    parameters: tuple[tuple[str, float | int | str], ...] = ()  # generation settings (temperature, retries, seed …)
    reasons: tuple[str, ...] = ()  # why the writer's checks rejected it; empty if accepted
    evidence: Evidence = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt and the responses to it.

    Attributes:
        id: unique in its data set.
        prompt: the user's turns, at least one.
        responses: originals and recorded rewrites.
        preferred: the author labelled better, ``"tie"``, or None without a label.
        criterion: the criterion to judge by, if the data give one; used for cases without constraints.
        constraints: the format requirements that go with the prompt.
        source: origin of the case.
        lineages: lineages of those responses whose origin is known.
        reference: turns of a good answer in the data, for judges to compare with; empty without one.
        passed: whether people pass its only original response; None without such a label.
    """

    id: str
    prompt: tuple[str, ...]
    responses: tuple[Response, ...]
    preferred: str | None = None
    criterion: str | None = None
    constraints: tuple[Constraint, ...] = ()
    source: str | None = None
    lineages: tuple[Lineage, ...] = ()
    reference: tuple[str, ...] = ()
    passed: bool | None = None

    @property
    def originals(self) -> tuple[Response, ...]:
        """The responses that no attack has rewritten."""
        return tuple([response for response in self.responses if response.attack is None])

    def lineage(self, response: Response) -> Lineage | None:
        return next((lineage for lineage in self.lineages if lineage.response == response), None)

    @property
    def cluster(self) -> str:
        """A name for the exact prompt, by which runs and shards are joined."""
        return hashlib.sha256("\x1e".join(self.prompt).encode()).hexdigest()[:16]

    @property
    def prompt_group(self) -> str:
        """The SHA-256 (hex) of the prompt, however it is written: cases that share it are not independent."""
        return _group_prompt(self.prompt)


@lru_cache(4096)  # many comparisons share a prompt
def _group_prompt(turns: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1e".join(map(fold_text, turns)).encode("utf-8", "surrogatepass")).hexdigest()


Role = Literal["judge", "generator", "verifier", "reference"]
"""A model's task: judge, rewrite, check that a rewrite says the same, or help the judge."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Names of places in ``Slots.outcomes``; no protocol shows more responses."""

NO_REPLY = "no reply"
"""Prefix of a reply's failure if the model never answered, through no fault of its own."""

NO_ANSWER = "nothing but reasoning"
"""Failure of a reply that holds thoughts and no answer."""

MAX_TOKENS = 10**9
"""Upper bound for a reported token count; a sum of numbers with thousands of digits is not valid JSON."""

dump_json = json.JSONEncoder(check_circular=False).encode
"""``json.dumps`` for values that cannot contain themselves."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn sent to a model."""

    role: Literal["system", "user", "assistant"]
    content: str  # verbatim text, never markup


@dataclass(frozen=True, slots=True)
class Slots:
    """The structure behind a request, for planted judges: they see this where a model sees text.

    Attributes:
        case: id of the case.
        shown: the responses in the order in which the request shows them.
        outcomes: the exact text of each possible answer, by meaning: ``"first"``, ``"second"``, ``"tie"`` for a
            comparison (and ``"third"``, ``"fourth"`` … if more are shown); ``"1"``, ``"2"`` … for a rating; for a
            ranking the letter of each, and ``"ranking"``: the form of an answer, ``...`` standing for the order.
        ORDINALS: ``"first"``, ``"second"`` and so on, up to ten.
    """

    ORDINALS: ClassVar[tuple[str, ...]] = ORDINALS
    case: str
    shown: tuple[Response, ...]
    outcomes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model.

    Attributes:
        messages: the turns to send.
        choices: if not empty, the request is for the probability of each as the next text instead of for an answer.
        prefill: the fixed start of the answer.
        max_tokens: maximum number of tokens of an answer in text.
        temperature: 0 is greedy.
        top_p: share of the probability to sample from, above 0 up to 1; 1 is all of it.
        seed: seed for a sampled answer; together with ``sample`` it fixes the draw.
        sample: index that tells repeated samples of the same request apart.
        stop: texts of which the first to occur ends an answer in text, and is kept.
        slots: the structure behind the text; not part of ``key``.
        to: the role of the model to ask; not part of ``key``, since the store adds that model's identity.
        key: SHA-256 (hex) of the request's content; the store adds the judge's identity.
    """

    messages: tuple[Message, ...]
    choices: tuple[str, ...] = ()
    prefill: str = ""
    max_tokens: int = 16
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    sample: int = 0
    stop: tuple[str, ...] = ()
    slots: Slots | None = field(default=None, compare=False)
    to: Role = field(default="judge", compare=False)
    key: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        turns = [(message.role, message.content) for message in self.messages]
        choices, stop = tuple(self.choices or ()), tuple(self.stop or ())  # a plug-in may pass lists, or None
        settings = (self.prefill, self.max_tokens, self.temperature, self.top_p, self.seed, self.sample)
        # Computed once: both the store and the rows use it, and hashing a prompt takes time.
        text = dump_json([turns, choices, *settings, stop])
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest())


def token_count(value: object) -> int:
    """Bound the token count that a server reports; 0 if it is not a number."""
    return min(max(value, 0), MAX_TOKENS) if type(value) is int else 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    text: str = ""  # the model's own words, without the prefill
    probabilities: tuple[float, ...] | None = None  # over the request's choices, in order, summing to 1
    mass: float | None = None  # total probability of the choices before normalising, 0 to 1
    finish: str = "stop"  # ``stop``, ``length`` or ``choices``
    failure: str | None = None  # reason for having no usable answer (``too long``, ``refused`` …)
    tokens_in: int = 0  # tokens of the prompt, shared ones included
    tokens_out: int = 0  # tokens generated

    @property
    def answered(self) -> bool:
        """False if the model never answered: such a reply is not stored, and the same command asks again."""
        return self.failure is None or not self.failure.startswith(NO_REPLY)


KeepText = Literal["failures", "all", "none"]
"""The judge's own words that a run folder keeps: those that could not be read, all, or none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply in words, or one that could not be read, behind a judgment."""

    key: str  # of the request
    reply: Reply
    labels: tuple[str, ...]  # forms of a verdict; empty if the request was for another text
    failure: str | None  # why this reply left the judgment without a verdict

    @classmethod
    def of(cls, request: Request, reply: Reply, failure: str | None) -> Answer | None:
        """Describe a reply; None if it holds nothing but probabilities, or never came."""
        is_unread = isinstance(failure, ParseFailure) and failure.reply is reply
        if not reply.answered or (reply.probabilities is not None and not is_unread):
            return None
        outcomes = dict(request.slots.outcomes) if request.slots else {}
        labels = [outcomes["ranking"]] if "ranking" in outcomes else outcomes.values() or request.choices
        wanted = tuple(request.prefill + label for label in labels)
        return cls(request.key, reply, wanted, failure if is_unread else None)


class ParseFailure(str):
    """The reason why a reply holds no verdict: plain text that carries the reply."""

    reply: Reply

    def __new__(cls, why: str, reply: Reply) -> ParseFailure:
        failure = super().__new__(cls, why)
        failure.reply = reply
        return failure


UNCHANGED = "the control changes nothing in it"
"""Reason to exclude a comparison from the noise: it repeats the original and is answered from the store."""

RESAMPLED = "resample"
"""The control for sampled verdicts: a second sample with nothing changed. It takes the place of an attack's name."""

Outcome = Literal["a", "b", "tie"]
"""The preferred response; ``a`` is the first one of the *comparison*, not the slot."""

PASS_MARK = "pass mark"
"""Stands in for the author of b where one response is judged alone: a is preferred when the response passes."""

MIRROR: Mapping[Outcome, Outcome] = MappingProxyType({"a": "b", "b": "a", "tie": "tie"})


FIGURES: Mapping[str, int] = MappingProxyType({"probabilities": 3, "scores": 2, "ratings": 2})
"""Length of each tuple of numbers in a judgment."""


def are_finite(figures: object, size: int) -> bool:
    """Whether these are so many finite numbers, integers of 64 bits included: numpy computes with no others."""
    return (
        isinstance(figures, tuple | list)
        and len(figures) == size
        and all(
            math.isfinite(number) if isinstance(number, float) else isinstance(number, int) and abs(number) < 2**63
            for number in figures
        )
    )


def are_criteria(scores: object) -> bool:
    """Whether these are finite scores of a and b for each criterion, of which there is one at least."""
    return isinstance(scores, Mapping) and bool(scores) and all(are_finite(pair, 2) for pair in scores.values())


@dataclass(frozen=True, slots=True)
class Judgment:
    """A protocol's conclusion about one comparison, in terms of ``a`` and ``b``.

    Attributes:
        preferred: None exactly when ``failure`` is set.
        probabilities: probabilities of a, b and tie, summing to 1, for a protocol that compares.
        scores: scores of a and b, for a protocol that scores (probability-weighted mean).
        ratings: ratings of a and b, for a protocol that scores (most likely integer).
        mass: lowest probability mass on the choices among the replies read, if known.
        read: ``choices`` (log-probabilities) or ``text`` (a parser).
        failure: reason for having no verdict; ``ParseFailure`` if a reply could not be read.
        criteria: scores of a and b by criterion, for a protocol that declares some; ``scores`` are weighted means.
        answers: the judge's own words, until the row is written; not part of the record.
    """

    preferred: Outcome | None
    probabilities: tuple[float, float, float] | None = None
    scores: tuple[float, float] | None = None
    ratings: tuple[int, int] | None = None
    mass: float | None = None
    read: str = "choices"
    failure: str | None = None
    criteria: Mapping[str, tuple[float, float]] | None = None
    answers: tuple[Answer, ...] = field(default=(), compare=False, repr=False)

    def mirror(self) -> Judgment:
        p, s, r = self.probabilities, self.scores, self.ratings
        return Judgment(
            preferred=None if self.preferred is None else MIRROR[self.preferred],
            probabilities=None if p is None else (p[1], p[0], p[2]),
            scores=None if s is None else (s[1], s[0]),
            ratings=None if r is None else (r[1], r[0]),
            mass=self.mass,
            read=self.read,
            failure=self.failure,
            criteria=self.criteria and {name: (b, a) for name, (a, b) in self.criteria.items()},
        )


@dataclass(frozen=True, slots=True)
class Side:
    """The response on one side of a comparison."""

    author: str
    attack: str | None = None
    severity: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One judged comparison, or the reason why it was not judged.

    Its design names the two kinds of response that it compares, as its study describes them; ``extra`` holds what only
    that study records, as JSON values that are not empty.
    """

    case: str  # id of the case
    cluster: str  # name of its exact prompt, for joins
    design: str
    protocol: str
    judge: str
    attack: str  # ``none`` before a rewrite, else the distractor's name
    a: Side
    b: Side
    target: Literal["a", "b"] | None = None  # the side that the attack rewrote, None before
    judgments: tuple[Judgment, ...] = ()  # one per order shown, in terms of a and b; empty when excluded
    keys: tuple[str, ...] = ()  # keys of the requests behind the judgments, without repetition
    tokens: tuple[tuple[int, int], ...] = ()  # of each of those requests: (of the prompt, of the answer)
    excluded: str | None = None  # reason for not making the comparison
    label: Outcome | None = None  # human preference, if known
    data: str = ""  # name of the data set; empty if the run has only one
    subset: str = ""  # name of the part of the data set that the case belongs to
    shown: tuple[Literal["a", "b"], ...] = ()  # side shown first, per judgment; empty for separate scores
    prompt_group: str = ""  # name of its prompt, however it is written; empty where only its cluster is known
    extra: Mapping[str, Any] = field(default_factory=dict)  # written beside the other fields, by name

    @property
    def group(self) -> str:
        """The prompt as statistics know it: rows that share it are not independent."""
        return self.prompt_group or self.cluster

    def without_answers(self) -> Row:
        """Drop the judge's own words, which take memory."""
        if not any(judgment.answers for judgment in self.judgments):
            return self
        return replace(self, judgments=tuple(replace(judgment, answers=()) for judgment in self.judgments))


def slug(reason: str) -> str:
    """Return the stable beginning of a reason to reject a text; details follow its colon."""
    return reason.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A response rewritten by an attack, and the reasons not to use it.

    The rewritten response has the author and severity of the original. A response that was made worse has its new
    severity, and no attack.
    """

    case: str
    response: Response
    original: tuple[str, ...]  # the turns that were rewritten
    generator: str
    reasons: tuple[str, ...]  # the fidelity rules that it breaks; empty when accepted
    evidence: Evidence = ()  # measurements, by rule

    @property
    def is_accepted(self) -> bool:
        return not self.reasons

    @property
    def rival(self) -> str | None:
        """Author of the response against which it was written; None if its attack does not depend on one."""
        return next((str(value) for name, value in self.evidence if name == "rival"), None)


@dataclass(frozen=True)
class CaseResult:
    """The results of one case."""

    rows: list[Row] = field(default_factory=list)  # one per comparison
    rewrites: list[Rewrite] = field(default_factory=list)  # all that were considered
