"""The third layer of fidelity: a model that reads.

Each sentence that a rewrite restyled is asked about alone, both ways: does the original say what the sentence says, and
does the sentence say what the original said in its place? The answer is the log-odds of yes, from probabilities if the
backend has them. A sentence below the threshold is put back. The model is not told which text is the rewrite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from distract.core.plan import Plan
from distract.core.prompts import load
from distract.core.records import Evidence, Message, Request, Response
from distract.judging.verdicts import read_shares
from distract.rewriting.fidelity.alignment import align, join_bodies
from distract.rewriting.generator_options import MOST_ODDS

SENTENCE = load("distract.rewriting", "verify-sentence")
CHOICES = ("Y", "N")

NLI = "nli:"
"""Start of the names of models that take a text and a sentence instead of a prompt."""

UNREAD = -math.inf
"""The log-odds of a reply without a verdict."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A model that reads, by its name, and the log-odds that a sentence needs to stay."""

    name: str
    threshold: float = 0.5

    @property
    def parameters(self) -> tuple[tuple[str, str | float], ...]:
        """Describe it for a lineage: with the SHA-256 (hex) of its prompt."""
        return ("verifier", self.name), ("verifier_prompt", SENTENCE.checksum), ("verifier_threshold", self.threshold)

    def read(self, original: Response, rewrite: Response) -> Plan[tuple[frozenset[str], Evidence]]:
        """Ask about each restyled sentence; returns those to put back, and measurements."""
        odds = yield from self.measure(original, rewrite)
        if not odds:
            return frozenset(), ()
        denied, unread = self.choose(odds), sum(value == UNREAD for value in odds.values())
        evidence: Evidence = (
            ("verifier_sentences", len(odds)),
            ("verifier_put_back", len(denied)),
            ("verifier_least", round(max(min(odds.values()), -MOST_ODDS), 4)),
            *((("verifier_unread", unread),) if unread else ()),
        )
        return denied, evidence

    def choose(self, odds: Mapping[str, float]) -> frozenset[str]:
        """Choose the sentences to put back."""
        return frozenset(sentence for sentence, value in odds.items() if value < self.threshold)

    def measure(self, original: Response, rewrite: Response) -> Plan[Mapping[str, float]]:
        """Measure the log-odds that each restyled sentence says the same, the lower of both directions.

        One that is new is compared with the whole original: a courtesy states nothing more.
        """
        questions = list[tuple[str, str, str]]()
        for turns in zip(original.turns, rewrite.turns, strict=True):
            for pair in align(*turns):
                old, new = join_bodies(pair.old), join_bodies(pair.new)
                if pair.old and pair.new and not pair.is_equal:
                    questions += [(new, old, new), (new, new, old)]
                elif pair.new and not pair.old:
                    questions.append((new, turns[0], new))
        if not questions:
            return {}
        replies = yield [self._request(text, sentence) for _, text, sentence in questions]
        odds = dict[str, float]()
        for (key, _, _), reply in zip(questions, replies, strict=True):
            shares = read_shares(reply, SENTENCE.prefill, CHOICES)
            odds[key] = min(odds.get(key, MOST_ODDS), UNREAD if isinstance(shares, str) else _measure_odds(*shares))
        return odds

    def _request(self, text: str, sentence: str) -> Request:
        if self.name.startswith(NLI):
            return Request((Message("user", text), Message("user", sentence)), choices=CHOICES, to="verifier")
        messages = SENTENCE.fill({"text": text, "sentence": sentence})
        return Request(messages, choices=CHOICES, prefill=SENTENCE.prefill, to="verifier")


def _measure_odds(yes: float, no: float) -> float:
    if min(yes, no) <= 0:
        return math.copysign(MOST_ODDS, yes - no)
    return max(-MOST_ODDS, min(MOST_ODDS, math.log(yes / no)))
