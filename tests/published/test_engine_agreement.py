"""One model, three engines: transformers, vLLM and vLLM's server give the same verdicts, on the real embedded judge.

Runs where vLLM is installed (README, tests); LLMBar's items are read from ``../shared/data``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from distract.core.backend import Backend
from distract.core.loop import execute
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison
from distract.core.records import Case, Judgment, Reply, Request, Response
from distract.core.registry import get_protocol
from distract.core.store import Store
from distract.data import datasets
from distract.judging import orders
from distract.judging.verdicts import outcome

pytestmark = pytest.mark.vllm

LLMBAR = Path(__file__).parents[3] / "shared" / "data" / "llmbar" / "Natural" / "dataset.json"
ITEMS = 4
WITHIN = 0.01
"""Largest difference in probability between engines."""

Verdicts = dict[str, tuple[Judgment, ...]]
Replies = dict[str, tuple[float, ...]]
"""The probabilities of the choices, by the key of the request."""


@pytest.fixture(scope="module")
def cases() -> Sequence[Case]:
    if not LLMBAR.is_file():
        pytest.skip(f"needs LLMBar in {LLMBAR}")
    return datasets.load(f"llmbar:{LLMBAR}").cases[:ITEMS]


def last_step(name: str, comparison: Comparison, seen: Replies) -> Plan[tuple[Judgment, ...]]:
    """A protocol with fixed analyses: the start of each response replaces the analysis of a model."""
    plan = orders.ask_in_orders(get_protocol(name), comparison)
    try:
        requests = next(plan)
        while True:
            if all(request.choices for request in requests):
                replies = yield list(requests)
                for request, reply in zip(requests, replies, strict=True):
                    assert reply.probabilities is not None, reply
                    seen[request.key] = reply.probabilities
            else:
                replies = [Reply(text=f"It begins: {_shown_response(request).text[:200]}") for request in requests]
            requests = plan.send(replies)
    except StopIteration as done:
        judgments: tuple[Judgment, ...] = done.value
        return judgments


def _shown_response(request: Request) -> Response:
    assert request.slots is not None
    (response,) = request.slots.shown
    return response


def judge_cases(backend: Backend, cases: Sequence[Case]) -> tuple[Verdicts, Replies]:
    plans, names, seen = [], [], Replies()
    for case in cases:
        first, second = case.originals[:2]
        for name in ("pairwise", "absolute", "prepair"):
            names.append(f"{name} {case.id}")
            plans.append(last_step(name, Comparison(case, first, second), seen))
    with Store(Path(":memory:"), backend.identity) as store:
        (results,) = execute([gather(plans)], {"judge": (backend, store)})
    return dict(zip(names, results, strict=True)), seen


def near(judgments: Sequence[Judgment], rule: str | None) -> bool:
    """Whether two outcomes are so close that engines may disagree."""
    if rule == "score":
        ((a, b),) = [judgment.scores or (0.0, 0.0) for judgment in judgments]
        return abs(a - b) <= WITHIN
    triples = [judgment.probabilities or (0.0, 0.0, 0.0) for judgment in judgments]
    highest, second, _ = sorted((sum(column) / len(triples) for column in zip(*triples, strict=True)), reverse=True)
    return bool(highest - second <= WITHIN)


def test_three_engines_agree(
    engines: Mapping[str, Backend], cases: Sequence[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    by_engine = {name: judge_cases(backend, cases) for name, backend in engines.items()}
    verdicts, replies = by_engine.pop("transformers")
    assert len(replies) == 6 * ITEMS
    for name, (others, their) in by_engine.items():
        furthest = max(abs(a - b) for key in replies for a, b in zip(replies[key], their[key], strict=True))
        with capsys.disabled():
            print(f"\nlargest difference of a choice between transformers and {name}: {furthest:.1e}")
        assert furthest <= WITHIN
        for key, judgments in verdicts.items():
            rule = "score" if key.startswith("absolute") else None
            same = outcome(judgments, rule) == outcome(others[key], rule)
            assert same or near(judgments, rule), (name, key)
