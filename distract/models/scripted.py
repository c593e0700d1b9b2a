"""The scripted backend: a shipped fake that replies from a list, a callable or a planted bias.

Tests use it in place of a model, and users can try within a second how the tool detects a biased judge. A planted judge
reads ``Request.slots``, the structure behind the prompt, instead of text; the slots give the meaning of each answer.

The planted biases (the command line's ``planted:NAME`` or ``planted:NAME=STRENGTH``):

- ``fair`` prefers the response to the question where only one is, then the lower severity, then by a stable hash of
  case and author, so that nothing flips, a response ties with its rewrite and one with broken constraints loses;
- ``coin`` tosses a coin for each author: it knows nothing, and yet nothing flips;
- ``longer`` prefers the longer response, ``bold`` the one with more boosters, ``markdown`` the one with more headings,
  bullets and bold terms, ``citations`` the one with more sources and praise by others (equal ones as ``fair``);
- ``first`` prefers the slot shown first; with nothing to compare it is fair;
- ``gullible`` prefers the response that asks to be chosen, hidden requests included (equal ones as ``fair``);
- ``blind`` goes by the author alone, so that it takes a hollow answer for a real one; with all others but ``random``
  such an answer loses;
- ``random`` answers by a hash of the responses shown; ``garbage`` never gives a verdict.

With a strength the bias acts in that share of the cases, chosen by hash, and the rest is fair.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from distract.core import registry
from distract.core.backend import Batch
from distract.core.errors import BackendError, UnknownName, UsageError
from distract.core.plain_text import read_plainly
from distract.core.records import ORDINALS, Reply, Request, Response, Slots

BATCH = 256
BOOSTERS = re.compile(
    r"\b(?:absolutely|certain(?:ly)?|clearly|definitely|definitively|undoubtedly|undeniably|unquestionably|always|never|"
    r"indisputably|obviously|must|precisely|exactly|conclusively|decisively|decidedly|guaranteed|"
    r"without (?:a |any )?doubt|without question|beyond (?:any )?(?:doubt|question|dispute)|in fact|of course)\b",
    re.IGNORECASE,
)
MARKS = re.compile(r"^#{1,6} (?=\S)|^[ \t]*[-*+•] (?=\S)|\*\*[^*\n]{1,200}\*\*", re.MULTILINE)
CLAIMS = re.compile(
    r"\b(?:as (?:stated|shown) in|sources?:)|https?://|[”\"] — \w"
    r"|\b(?:people|readers|users|experts)\b[^.\n]{0,40}? (?:prefer|agree|recommend)"
    r"|\b(?:refined|revised|improved|written) by\b|\bI am an? [\w ]{0,20}expert\b"
    r"|\b(?:rating|score|rated)\b:? \d",
    re.IGNORECASE,
)
REQUESTS = re.compile(
    r"\b(?:choose|pick|prefer|select) this (?:answer|response)\b|\bgive it the highest score\b"
    r"|\bthis response is the better one\b|\[\[[A-D]\]\]",
    re.IGNORECASE,
)

Strength = Callable[[str, Response], float]
Answer = Callable[[Request], Reply]


class ScriptedBackend:
    """Replies from a list, in the order of requests, or from a callable."""

    used: str | None = None  # it reads no prompts, as ``LocalBackend``s do, but runs here like these

    def __init__(
        self,
        replies: Sequence[Reply | str] | Callable[[Request], Reply | str],
        *,
        name: str = "scripted",
        reads_slots: bool = True,
    ) -> None:
        self.identity: Mapping[str, str] = MappingProxyType({"engine": "scripted", "model": name})
        self.reads_slots = reads_slots
        self.requests: list[Request] = []
        self._replies = replies

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        indices = sorted(wanted)
        for start in range(0, len(indices), BATCH):
            yield [(index, self._answer_one(requests[index])) for index in indices[start : start + BATCH]]

    def _answer_one(self, request: Request) -> Reply:
        count = len(self.requests)
        if callable(self._replies):
            reply = self._replies(request)
        else:
            # Record requests only for a list, so that a callable needs constant memory in runs of any length.
            self.requests.append(request)
            if count >= len(self._replies):
                raise BackendError(f"the script holds {count} replies, and one more was requested")
            reply = self._replies[count]
        return Reply(text=reply) if isinstance(reply, str) else reply


def make_planted(spec: str) -> ScriptedBackend:
    """A planted judge from ``NAME`` or ``NAME=STRENGTH``."""
    name, equals, value = spec.partition("=")
    if name not in PLANTED:
        raise UnknownName("planted judge", name, PLANTED)
    try:
        strength = float(value) if equals else 1.0
    except ValueError:
        strength = -1.0
    if not 0.0 <= strength <= 1.0:
        raise UsageError(f"planted:{spec}: expected a strength from 0 to 1, as in planted:{name}=0.7")
    biased, fair = PLANTED[name][1], PLANTED["fair"][1]

    def answer(request: Request) -> Reply:
        case = request.slots.case if request.slots else ""
        if request.slots and not request.slots.outcomes:
            # The request is for reasoning before a verdict, and a planted judge has none.
            return Reply(text="banana" if name == "garbage" else "A planted judge has no reasons.")
        return biased(request) if share("strength", case) < strength else fair(request)

    return ScriptedBackend(answer, name=f"planted:{spec}")


@lru_cache(maxsize=512)  # many requests contain the same responses
def share(*parts: str) -> float:
    """A stable hash of texts, as a number in [0, 1)."""
    digest = hashlib.sha256("\x1e".join(parts).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _quality(case: str, response: Response) -> float:
    """A number from 0 to 1: answers its question, breaks fewer constraints, then a hash of case and author."""
    if response.author == case:  # in an exchange, a response has the id of its case
        return 1.0
    return (3 - (response.severity or 0) + share("quality", case, response.author)) / 4


def _is_hollow(response: Response) -> bool:
    """Whether an attack left no content; its text alone does not always show that."""
    if response.attack is None:
        return False
    attacks = registry.attacks()
    return response.attack in attacks and attacks.traits(response.attack)["effect"] == "hollow"


def _count(pattern: re.Pattern[str]) -> Strength:
    """Count what a pattern finds in a text, as a reader sees it."""
    return lambda case, response: len(pattern.findall(read_plainly(response.text))) + _quality(case, response)


def _prefer_more(strength: Strength, scale: float, is_blind: bool = False) -> Answer:
    """A judge that prefers more of ``strength``; at ``scale`` a score reaches half of its range.

    A hollow answer has none, unless the judge is blind to it.
    """

    def answer(request: Request) -> Reply:
        slots = request.slots
        if slots is None:
            return Reply(text="", failure="a planted judge needs a request with slots")
        values = [0.0 if not is_blind and _is_hollow(one) else strength(slots.case, one) for one in slots.shown]
        if len(values) > 1:
            return _choose_most(request, slots, values)
        ratings = [int(name) for name, _ in slots.outcomes]
        lowest, highest = min(ratings), max(ratings)
        score = lowest + (highest - lowest) * values[0] / (values[0] + scale)
        floor = min(int(score), highest - 1)
        return make_reply(request, {str(floor): floor + 1 - score, str(floor + 1): score - floor})

    return answer


def _choose_most(request: Request, slots: Slots, values: Sequence[float]) -> Reply:
    """Prefer the response of the highest value, or rank all; equal ones tie where they may."""
    outcomes = dict(slots.outcomes)
    if "ranking" in outcomes:
        return _rank(outcomes, values)
    most = max(values)
    best = [name for name, value in zip(ORDINALS, values, strict=False) if value == most]
    if len(best) > 1 and "tie" not in outcomes:
        return make_reply(request, dict.fromkeys(best, 1 / len(best)))
    return make_reply(request, {"tie" if len(best) > 1 else best[0]: 1.0})


def _rank(outcomes: Mapping[str, str], values: Sequence[float]) -> Reply:
    tiers: dict[float, list[str]] = {}
    for name, value in zip(ORDINALS, values, strict=False):
        tiers.setdefault(value, []).append(outcomes[name])
    order = " > ".join(" = ".join(tiers[value]) for value in sorted(tiers, reverse=True))
    return Reply(text=outcomes["ranking"].replace("...", order))


def _prefer_first(request: Request) -> Reply:
    if request.slots is None or len(request.slots.shown) < 2:
        return PLANTED["fair"][1](request)
    shown = request.slots.shown
    values = [-place - len(shown) * _is_hollow(response) for place, response in enumerate(shown)]
    return _choose_most(request, request.slots, values)


def _answer_random(request: Request) -> Reply:
    outcomes = [name for name, _ in request.slots.outcomes] if request.slots else []
    if not outcomes:
        return Reply(text="", failure="a planted judge needs a request with slots")
    # Use the slots, since a prompt for a verdict on analyses does not show the responses.
    texts = [text for response in request.slots.shown for text in response.turns] if request.slots else []
    draw = share("random", request.key, *texts)
    if request.slots and "ranking" in outcomes:
        values = [share("rank", str(place), str(draw)) for place in range(len(request.slots.shown))]
        return _rank(dict(request.slots.outcomes), values)
    return make_reply(request, {outcomes[int(draw * len(outcomes))]: 1.0})


def make_reply(request: Request, weights: Mapping[str, float]) -> Reply:
    """A reply with these weights on outcomes: probabilities of the choices, else the likeliest outcome's text."""
    outcomes = dict(request.slots.outcomes) if request.slots else {}
    if not request.choices:
        return Reply(text=outcomes[max(weights, key=lambda name: weights[name])])
    by_choice = {outcomes[name]: weight for name, weight in weights.items()}
    probabilities = tuple([by_choice.get(choice, 0.0) for choice in request.choices])
    return Reply(probabilities=probabilities, mass=1.0, finish="choices")


def _toss_coin(case: str, response: Response) -> float:
    return share("coin", case, response.author)


def _measure_length(case: str, response: Response) -> float:
    return len(response.text) + _quality(case, response)


FAIR = _prefer_more(_quality, 1.0)
OPPOSITE = _prefer_more(lambda case, response: 1.0 - _quality(case, response), 1.0)
"""Prefers what ``fair`` does not, except to a hollow answer."""

PLANTED: Mapping[str, tuple[str, Answer]] = MappingProxyType(
    {
        "fair": ("blind to rewrites: nothing ever flips", FAIR),
        "coin": ("tosses a coin for each author: knows nothing, yet nothing flips", _prefer_more(_toss_coin, 1.0)),
        "longer": ("prefers the longer response", _prefer_more(_measure_length, 400.0)),
        "first": ("prefers the response shown first", _prefer_first),
        "bold": ("prefers the response with more boosters", _prefer_more(_count(BOOSTERS), 3.0)),
        "markdown": ("prefers the response with more Markdown", _prefer_more(_count(MARKS), 3.0)),
        "citations": ("prefers the response with more claims of support", _prefer_more(_count(CLAIMS), 3.0)),
        "gullible": ("prefers the response that asks to be chosen", _prefer_more(_count(REQUESTS), 1.0)),
        "blind": ("cannot tell a hollow answer from a real one", _prefer_more(_toss_coin, 1.0, is_blind=True)),
        "random": ("answers at random", _answer_random),
        "garbage": ("never gives a verdict", lambda request: Reply(text="banana")),
    }
)
