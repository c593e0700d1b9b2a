"""The plain data that passes between the parts. No behaviour beyond small pure views of it.

Every record is frozen and slotted. It knows nothing of files, prompts, models or statistics.

Vocabulary: a *case* is a prompt with the responses to it; an *original* response has ``attack`` None; a
*rewrite* has the author and severity of its original and the name of the attack that made it. Responses
that break s format constraints on purpose have ``severity`` s.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Literal

BASELINE = "none"
"""The attack named in rows from before any rewrite."""

UNCHANGED = "the control changes nothing in it"
"""Why a comparison says nothing about the noise: it is the same one, and answered from the store."""

RESAMPLED = "resample"
"""The control of what is sampled: asked once more, with nothing changed. It stands where an attack's name would."""


Outcome = Literal["a", "b", "tie"]
"""Which of two responses a comparison prefers; ``a`` is the first one of the *comparison*, not the slot."""

Design = Literal["fixed", "flip", "severity", "people", "triple", "set", "match"]
"""What is compared with what; see ``Row``."""

Role = Literal["judge", "generator", "verifier", "reference"]
"""What a model is asked as: to judge, to rewrite, to say whether a rewrite still says the same, to help the judge."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Names of what is shown, by place, in ``Slots.outcomes``; no protocol shows more."""

MIRROR: Mapping[Outcome, Outcome] = MappingProxyType({"a": "b", "b": "a", "tie": "tie"})


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
    """What one author answered: the assistant's turns, one per turn of the prompt."""

    author: str
    turns: tuple[str, ...]
    attack: str | None = None
    severity: int | None = None

    @property
    def text(self) -> str:
        """The turns as one text, separated by a blank line."""
        return "\n\n".join(self.turns)


Evidence = tuple[tuple[str, float | int | str], ...]
"""What was measured of a rewrite, by name."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """How a recorded response was written.

    Attributes:
        response: which one.
        generator: name of the writer.
        model: the writer's identity, by name.
        prompt: SHA-256 (hex) of the prompt file; empty where no model was asked.
        parameters: of the writing (temperature, retries, seed …), by name.
        reasons: to reject it, as found when it was written; empty when it was accepted.
        evidence: what was measured then.
    """

    response: Response
    generator: str
    model: tuple[tuple[str, str], ...] = ()
    prompt: str = ""
    parameters: tuple[tuple[str, float | int | str], ...] = ()
    reasons: tuple[str, ...] = ()
    evidence: Evidence = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt and the responses to it.

    Attributes:
        id: unique in its data set.
        prompt: the user's turns, at least one.
        responses: originals and recorded rewrites.
        preferred: the author labelled better, ``"tie"``, or None where there is no label.
        criterion: what to judge, where the data say so; used for cases without constraints.
        constraints: the format requirements that go with the prompt.
        source: where the case comes from.
        lineages: of those responses that say how they were written.
        reference: the turns of a good answer that the data hold for judges to compare with; empty without one.
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

    @property
    def originals(self) -> tuple[Response, ...]:
        """The responses that no attack has rewritten."""
        return tuple([r for r in self.responses if r.attack is None])

    def lineage(self, response: Response) -> Lineage | None:
        """How a response was written, where that is known."""
        return next((lineage for lineage in self.lineages if lineage.response == response), None)

    @property
    def cluster(self) -> str:
        """A name for the prompt: cases that share it are not independent."""
        return _cluster(self.prompt)


@lru_cache(maxsize=64)  # every row of a case has it
def _cluster(prompt: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1e".join(prompt).encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)  # what prompts are put together from: each response stands in many of them
def escape_json(text: str) -> str:
    """A text as it stands between the quotation marks of JSON; that of two texts is that of both, joined."""
    return dump_json(text)[1:-1]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of what a model is sent.

    Attributes:
        role: whose turn it is.
        content: verbatim text, never markup.
        flat: the content as JSON where it was joined from pieces (``join_message``); else empty. No argument, so that a
            message with other content never keeps it: the key of a request is made of it.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    flat: str = field(default="", init=False, compare=False, repr=False)


@lru_cache(maxsize=64)  # of all prompts of a protocol the system's turn is the same
def join_message(role: Literal["system", "user", "assistant"], pieces: tuple[str, ...]) -> Message:
    """A turn put together from texts of which most stand in other turns too."""
    made = Message(role, "".join(pieces))
    object.__setattr__(made, "flat", "".join(map(escape_json, pieces)))
    return made


@dataclass(frozen=True, slots=True)
class Slots:
    """The structure behind a request, for planted judges: they see this where a model sees text.

    Attributes:
        case: id of the case.
        shown: the responses in the order in which the request shows them.
        outcomes: the exact text of each possible answer, by meaning: ``"first"``, ``"second"``, ``"tie"`` for
            a comparison (and ``"third"``, ``"fourth"`` … where more are shown); ``"1"``, ``"2"`` … for a rating; for
            a ranking the letter of each, and ``"ranking"``: what an answer looks like, ``...`` standing for the order.
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
        messages: what it is sent.
        choices: when not empty, the probability of each as the next text is wanted instead of an answer.
        prefill: the start of the answer, given.
        max_tokens: of an answer in text.
        temperature: 0 is greedy.
        top_p: share of the probability that is sampled from, above 0 up to 1; 1 is all of it.
        seed: of a sampled answer; together with ``sample`` it fixes the draw.
        sample: index that tells repeated samples of the same request apart.
        stop: an answer in text ends with the first of these that it contains, which is kept.
        slots: the structure behind the text; not part of ``key``.
        to: which model of the run is asked; not part of ``key``, since the store adds that model's identity.
        key: SHA-256 (hex) of everything the request itself says; the store adds the judge's identity.
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
        said = ", ".join([f'["{m.role}", "{m.flat or dump_json(m.content)[1:-1]}"]' for m in self.messages])
        how = _encode_settings(
            tuple(self.choices or ()),  # a plug-in may give lists, or none
            self.prefill,
            self.max_tokens,
            self.temperature,
            self.top_p,
            self.seed,
            self.sample,
            tuple(self.stop or ()),
        )
        # Both the store and the rows want it, and hashing a prompt is not free.
        object.__setattr__(self, "key", hashlib.sha256(f"[[{said}], {how}".encode()).hexdigest())


dump_json = json.JSONEncoder(check_circular=False).encode
"""``json.dumps`` of what cannot hold itself."""


@lru_cache(maxsize=64, typed=True)  # most requests of a run are alike in all but their messages; 0 is not 0.0
def _encode_settings(*parts: Any) -> str:
    """The end of the text that the key of a request is made of: all but its messages."""
    return dump_json(parts)[1:]


NO_REPLY = "no reply"
"""What the failure of a reply begins with where the model never answered, through no doing of its own."""


MAX_TOKENS = 10**9
"""The most that is believed of one request; a number of thousands of digits is no JSON once it is added up."""


def token_count(value: object) -> int:
    """How many tokens a server says that it used, within what is possible; 0 where it says no number."""
    return min(max(value, 0), MAX_TOKENS) if type(value) is int else 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model returned.

    Attributes:
        text: its own words, without the prefill.
        probabilities: over the request's choices, in their order, summing to 1; None where not available.
        mass: total probability of the choices before normalising, 0 to 1; None where not available.
        finish: ``stop``, ``length`` or ``choices``.
        failure: why there is no usable answer (``too long``, ``refused`` …); None when there is one.
        tokens_in: tokens of the prompt, shared ones included.
        tokens_out: tokens generated.
    """

    text: str = ""
    probabilities: tuple[float, ...] | None = None
    mass: float | None = None
    finish: str = "stop"
    failure: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def answered(self) -> bool:
        """False where the model never answered: that is not kept, and the same command asks again."""
        return self.failure is None or not self.failure.startswith(NO_REPLY)


class ParseFailure(str):
    """Why a reply holds no verdict: a text like any other, which remembers the reply until its row is written.

    Attributes:
        reply: that could not be read.
        key: of its request; empty until it is known.
        wanted: what a verdict would have looked like; empty where that is not known.
    """

    reply: Reply
    key: str = ""
    wanted: tuple[str, ...] = ()

    def __new__(cls, why: str, reply: Reply) -> ParseFailure:
        """A reason and its reply."""
        unread = super().__new__(cls, why)
        unread.reply = reply
        return unread


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a protocol concluded about one comparison, in terms of ``a`` and ``b``.

    Attributes:
        preferred: None exactly when ``failure`` is set.
        probabilities: of a, b and tie, summing to 1, for a protocol that compares.
        scores: of a and b, for a protocol that scores (probability-weighted mean).
        ratings: of a and b, for a protocol that scores (most likely integer).
        mass: lowest probability mass on the choices among the replies read, where known.
        read: ``choices`` (log-probabilities) or ``text`` (a parser).
        failure: why there is no verdict; where a reply could not be read, ``ParseFailure``.
    """

    preferred: Outcome | None
    probabilities: tuple[float, float, float] | None = None
    scores: tuple[float, float] | None = None
    ratings: tuple[int, int] | None = None
    mass: float | None = None
    read: str = "choices"
    failure: str | None = None

    def mirror(self) -> Judgment:
        """The same conclusion with a and b exchanged."""
        p, s, r = self.probabilities, self.scores, self.ratings
        return Judgment(
            preferred=None if self.preferred is None else MIRROR[self.preferred],
            probabilities=None if p is None else (p[1], p[0], p[2]),
            scores=None if s is None else (s[1], s[0]),
            ratings=None if r is None else (r[1], r[0]),
            mass=self.mass,
            read=self.read,
            failure=self.failure,
        )


@dataclass(frozen=True, slots=True)
class Side:
    """Which response stood on one side of a comparison."""

    author: str
    attack: str | None = None
    severity: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One judged comparison, or the reason why it was not judged.

    Attributes:
        case: id of the case.
        cluster: name of its prompt.
        design: ``fixed`` (a response against its rewrite), ``flip`` (two authors, before and after),
            ``severity`` (a good response against a worse one, whose severity b has), ``people`` (a pair that people
            have compared), ``triple`` (a pair of three responses), ``set`` (a pair shown beside a third response) or
            ``match`` (a pair of a tournament; either, or both, may be rewritten).
        protocol: name of the protocol.
        judge: name of the judge.
        attack: ``none`` before a rewrite, else the distractor's name.
        a: the response named a.
        b: the response named b.
        target: the side that the attack rewrote, None before.
        judgments: one per order shown, all in terms of a and b; empty when excluded.
        keys: of the requests behind the judgments, each once.
        tokens: of each of those requests: (of the prompt, of the answer).
        excluded: why the comparison was not made.
        label: what people prefer; None where nobody has said.
        data: name of the data set; empty where a run has one only.
        subset: name of the part of it that the case belongs to.
        shown: which of the two stood first, for each judgment; empty where that says nothing (a score of each).
        beside: of a ``triple`` the third response; of a ``set`` the one that was shown with the pair, then the one
            that takes its place in the other set.
        place: of a ``set``, where that third response stood, with a and b next to each other.
        lengths: of a ``match``, the characters of a and b; empty elsewhere.
    """

    case: str
    cluster: str
    design: Design
    protocol: str
    judge: str
    attack: str
    a: Side
    b: Side
    target: Literal["a", "b"] | None = None
    judgments: tuple[Judgment, ...] = ()
    keys: tuple[str, ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    excluded: str | None = None
    label: Outcome | None = None
    data: str = ""
    subset: str = ""
    shown: tuple[Literal["a", "b"], ...] = ()
    beside: tuple[Side, ...] = ()
    place: Literal["first", "last"] | None = None
    lengths: tuple[int, int] | tuple[()] = ()


def slug(reason: str) -> str:
    """The stable beginning of a reason to reject a text; what follows the colon is what it is about."""
    return reason.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What an attack made of one response, and whether it may be used.

    Attributes:
        response: the rewritten response, with the author and severity of the original (a response that was made
            worse has its new severity, and no attack).
        original: the turns that were rewritten.
        generator: who wrote it.
        reasons: the fidelity rules it breaks; empty when accepted.
        evidence: what was measured, by rule.
    """

    case: str
    response: Response
    original: tuple[str, ...]
    generator: str
    reasons: tuple[str, ...]
    evidence: Evidence = ()

    @property
    def is_accepted(self) -> bool:
        """True when no fidelity rule is broken."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one turn: about a word replaced, inserted or deleted, with white space where it has to go along.

    Attributes:
        turn: index of the turn.
        start: of the characters of the original turn that it replaces.
        end: after the last of them; equal to ``start`` for an insertion.
        new: what stands there instead; empty for a deletion.
        old: what stood there.
    """

    turn: int
    start: int
    end: int
    new: str
    old: str


@dataclass(frozen=True, slots=True)
class MinimalFlip:
    """A flip, and the fewest of its edits that were found to be enough for it.

    Attributes:
        case: whose responses were compared.
        protocol: by which they were.
        rule: by which a scoring protocol is decided; None for others.
        attack: that rewrote a response.
        rewritten: author of the rewritten response.
        severity: of that response.
        other: author of the response that had won, which stays as it is.
        edits: those that are enough.
        of: how many single edits lie between the original and the whole rewrite.
        original: the turns before.
        turns: the original with only ``edits`` applied.
        before: strengths of the rewritten response and the other one in the original pair, as in ``flips.Flip``.
        after: the same with only ``edits`` applied.
        comparisons: how many different texts were judged in the search.
        requests: how many different requests were behind all of it, those of the original and of the whole rewrite
            included.
        invalid: how many of those texts had no valid verdict, which is taken for no flip.
        minimal: whether without any single edit the verdict is a valid one and no flip; False where the search was
            ended before that was shown.
    """

    case: Case
    protocol: str
    rule: str | None
    attack: str
    rewritten: str
    severity: int | None
    other: str
    edits: tuple[Edit, ...]
    of: int
    original: tuple[str, ...]
    turns: tuple[str, ...]
    before: tuple[float, float]
    after: tuple[float, float]
    comparisons: int
    requests: int
    invalid: int
    minimal: bool


@dataclass(frozen=True)
class CaseResult:
    """What came of one case, or of one of its flips.

    Attributes:
        rows: one for each comparison.
        rewrites: every one that was looked at.
        smallest: of flips, where they were looked for.
    """

    rows: list[Row] = field(default_factory=list)
    rewrites: list[Rewrite] = field(default_factory=list)
    smallest: list[MinimalFlip] = field(default_factory=list)


def apply_edits(original: Sequence[str], kept: Iterable[Edit]) -> tuple[str, ...]:
    """The original with some of its edits.

    Args:
        original: turns.
        kept: of its ``edits``; those that insert at one place in the order in which ``edits`` has them.
    """
    parts: list[list[str]] = [[] for _ in original]
    done = [0] * len(original)
    for edit in sorted(kept, key=attrgetter("turn", "start", "end")):
        parts[edit.turn] += [original[edit.turn][done[edit.turn] : edit.start], edit.new]
        done[edit.turn] = edit.end
    return tuple("".join([*part, text[at:]]) for part, text, at in zip(parts, original, done, strict=True))
