"""How often `distract anchors check` is right, over judges whose change is known.

A simulated server jitters as one that batches does: probabilities move a little, and with ``flicker`` some verdicts
come out the other way. Its judge stays, turns its verdict in a tenth or a twentieth of the cases, or is replaced by one
with another bias. Each seed has its own 200 pairs, anchors and noise.

    python benchmarks/anchors.py [--seeds 100] [--size 64]
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.backend import Batch
from distract.core.records import Case, Reply, Request, Response
from distract.core.usage import Tally
from distract.models.scripted import BOOSTERS, share
from distract.studies.anchors import session
from distract.studies.anchors.session import AnchorSet
from distract.studies.setup import Setup

Bias = Callable[[Sequence[Response]], float]
"""How strongly a judge prefers the first of two responses, in logits."""

NO_STORE = Path(":memory:")
PAIRWISE = registry.protocols()["pairwise"]
WORDS = ["red", "blue", "green", "amber", "ochre", "teal", "plum", "grey", "gold", "rust"]


def prefer_longer(shown: Sequence[Response]) -> float:
    """Prefer the longer response."""
    return (len(shown[0].text) - len(shown[1].text)) / 12


def prefer_bold(shown: Sequence[Response]) -> float:
    """Prefer the response with more boosters."""
    first, second = (len(BOOSTERS.findall(response.text)) for response in shown)
    return 2.0 * (first - second) + 0.3


def prefer_first(shown: Sequence[Response]) -> float:
    """Prefer the response shown first."""
    return 1.5


class NoisyServer:
    """Answers like a server that batches: probabilities jitter, and close verdicts in words flicker.

    ``drift`` is the share of requests whose verdict is turned; ``flicker`` the share of answers that come out the other
    way, whatever they are about.
    """

    reads_slots = True

    def __init__(
        self,
        bias: Bias,
        seed: int,
        *,
        drift: float = 0.0,
        words: bool = False,
        jitter: float = 0.1,
        flicker: float = 0.0,
    ) -> None:
        self.identity: Mapping[str, str] = {"engine": "test", "model": "m"}
        self._bias, self._seed, self._drift, self._words = bias, seed, drift, words
        self._jitter, self._flicker = jitter, flicker
        self._noise = random.Random(seed)
        self.asked = 0

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        self.asked += len(wanted)
        yield [(index, self._answer(requests[index])) for index in sorted(wanted)]

    def _answer(self, request: Request) -> Reply:
        assert request.slots is not None
        logit = self._bias(request.slots.shown) + self._noise.gauss(0, self._jitter)
        if share("drift", str(self._seed), request.slots.case) < self._drift:
            logit = -logit
        if self._noise.random() < self._flicker:
            logit = -logit
        p = 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
        outcomes = dict(request.slots.outcomes)
        if self._words:
            return Reply(f"[[{outcomes['first' if p > 0.5 else 'second']}]]")
        weights = {outcomes["first"]: p, outcomes["second"]: 1 - p}
        return Reply(
            probabilities=tuple(weights.get(choice, 0.0) for choice in request.choices), mass=1.0, finish="choices"
        )


def make_cases(seed: int, number: int = 200) -> list[Case]:
    """Pairs of responses whose lengths, boosters and first words vary independently."""
    rng = random.Random(seed)

    def write(author: str) -> Response:
        words = rng.choices(WORDS, k=rng.randint(5, 40))
        if rng.random() < 0.5:
            words.insert(rng.randrange(len(words)), rng.choice(["certainly", "clearly definitely"]))
        return Response(author, (" ".join(words),))

    return [Case(f"c{place}", (f"Name colours ({place}).",), (write("x"), write("y"))) for place in range(number)]


def make_anchors(backend: NoisyServer, cases: Sequence[Case], size: int = 64, seed: int = 0) -> AnchorSet:
    """Make anchors of a server."""
    setup = Setup("m", backend, (PAIRWISE,))
    drawn = session.draw_candidates(setup, cases, 160, seed)
    return session.make(setup, {"name": "d"}, drawn, size, NO_STORE, Tally())


def check(anchors: AnchorSet, backend: NoisyServer) -> str:
    """Check anchors against a server."""
    setup = Setup("m", backend, (PAIRWISE,))
    return session.check(anchors, setup, NO_STORE, Tally()).status


NOISE: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {},
    "probabilities, 2% flicker": {"flicker": 0.02},
    "words": {"words": True},
    "words, 2% flicker": {"words": True, "flicker": 0.02},
    "words, close ones flicker": {"words": True, "jitter": 0.4},
}
"""Servers, by how noisy they are."""

CHANGES: Mapping[str, tuple[Bias, float]] = {
    "the same judge": (prefer_longer, 0.0),
    "5% of verdicts turned": (prefer_longer, 0.05),
    "10% of verdicts turned": (prefer_longer, 0.1),
    "another bias: boosters": (prefer_bold, 0.0),
    "another bias: first place": (prefer_first, 0.0),
}
"""What happens to the judge, which prefers longer responses."""


def count_statuses(noise: str, changes: Iterable[str], seeds: int, size: int = 64) -> dict[str, Counter[str]]:
    """Count what checks say, by change."""
    counts = {change: Counter[str]() for change in changes}
    for seed in range(seeds):
        anchors = make_anchors(NoisyServer(prefer_longer, seed, **NOISE[noise]), make_cases(seed), size, seed)
        for change, counter in counts.items():
            bias, drift = CHANGES[change]
            counter[check(anchors, NoisyServer(bias, seed + seeds, drift=drift, **NOISE[noise]))] += 1
    return counts


def main() -> None:
    """Print a row for each server and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    print(f"{'server':<28}{'judge':<28}{'unchanged':>10}{'drifted':>10}{'replaced':>10}")
    for noise in NOISE:
        for change, counter in count_statuses(noise, CHANGES, options.seeds, options.size).items():
            numbers = [counter[status] for status in ("unchanged", "drifted", "replaced")]
            print(f"{noise:<28}{change:<28}{numbers[0]:>10}{numbers[1]:>10}{numbers[2]:>10}", flush=True)


if __name__ == "__main__":
    main()
