"""Show without labels that a judge reads the question, by exchanging the responses of two prompts.

Each question of a pair is judged with the response to it against the response to the other. A judge that does not read
questions is right about exactly one of the two, whatever it prefers: a length, a format, a place, a hash. If it draws
its verdicts, it is as often right about both as about neither. So a pair is the unit, and says something only where the
judge is right about both questions, or about neither.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from distract.core.plain_text import fold_text
from distract.core.plan import Plan
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count
from distract.core.records import Case, Response, Row
from distract.data.good_responses import pairs
from distract.data.language import name_language
from distract.judging.comparison import RowFactory, judge_comparison, label, side
from distract.judging.orders import Manner, Orders
from distract.studies.measures.run import AnyRow, read_outcome

CHANCE = 0.5

LEAST = 8
"""Labelled prompts that can show a judge: one that is right about all needs 5 in a finished run and 6 in a live gate,
and a few more where it is asked in several ways.
"""

FEW_LABELS = f"fewer than {LEAST} prompts are labelled"

MOST = 50  # pairs of prompts that tell enough; more would only cost more

NOT_PROBED = "--no-probe leaves it out"
NO_PAIR = "there are fewer than two prompts with different responses in one language"
NO_QUESTION = "the judge takes no question"
NO_OTHERS = "it shows more than two responses"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two prompts with the responses to both, which are called by the ids of their cases."""

    questions: tuple[Case, Case]

    def judge(self, row: RowFactory, protocol: Protocol, manner: Manner, helped: bool) -> list[Plan[Row]]:
        """Judge the response to each question against the other."""
        is_drawn = _hash(manner.seed, *(case.id for case in self.questions))[0] % 2 == 0
        is_given = {"given": True, "swapped": False}.get(manner.orders, is_drawn)
        turns: tuple[Orders, Orders] = ("given", "swapped") if is_given else ("swapped", "given")
        plans = []
        for case, orders in zip(self.questions, turns, strict=True):
            own, other = sorted(case.responses, key=lambda one: one.author != case.id)
            # In one order, the same response is first twice, so that a preferred place is right about one question.
            one = manner if manner.orders == "both" else replace(manner, orders=orders)
            filled = partial(row, side(own), side(other), label="a")
            plans.append(judge_comparison(filled, protocol, Comparison(case, own, other), one, helped))
        return plans


def count_labelled(cases: Iterable[Case]) -> int:
    """Count the prompts with a pair of responses of which one is labelled better, up to ``LEAST``."""
    groups = set[str]()
    for case in cases:
        if any(label(case, *pair) in ("a", "b") for pair in pairs(case)):
            groups.add(case.prompt_group)
        if len(groups) >= LEAST:
            break
    return len(groups)


def pair_prompts(cases: Sequence[Case], seed: int) -> Mapping[str, Exchange]:
    """Pair prompts whose responses are alike in language and length; by the id of the case that comes first.

    A prompt is in at most one pair, however often and in whatever spelling the data repeat it.
    """
    known: dict[str, tuple[Case, Response]] = {}
    for case in cases:
        if responses := [one for one in case.originals if one.severity is None and one.text.strip()]:
            drawn = max(responses, key=lambda one: _hash(seed, case.id, one.author))
            known.setdefault(case.prompt_group, (case, drawn))
    alike: dict[tuple[int, str], list[tuple[Case, Response]]] = {}
    for case, response in known.values():
        language = name_language("\n".join((*case.prompt, response.text)))
        alike.setdefault((len(response.turns), language), []).append((case, response))
    neighbours = list[tuple[tuple[Case, Response], ...]]()
    for group in alike.values():
        waiting = list[tuple[Case, Response]]()  # equal responses, between which no judge could choose
        for one in sorted(group, key=lambda one: (len(one[1].text), _hash(seed, one[0].id))):
            if waiting and fold_text(waiting[0][1].text) != fold_text(one[1].text):
                neighbours.append((waiting.pop(), one))
            else:
                waiting.append(one)
    chosen = sorted(neighbours, key=lambda pair: _hash(seed, *(case.id for case, _ in pair)))[:MOST]
    places = {case.id: place for place, case in enumerate(cases)}
    ordered = (sorted(pair, key=lambda one: places[one[0].id]) for pair in chosen)
    return {pair[0][0].id: _exchange(*pair) for pair in ordered}


def _exchange(*pair: tuple[Case, Response]) -> Exchange:
    responses = tuple(Response(case.id, response.turns) for case, response in pair)
    first, second = (replace(case, responses=responses, preferred=case.id, lineages=()) for case, _ in pair)
    return Exchange((first, second))


def number_exchanges(
    exchanges: Mapping[str, Exchange], protocols: Sequence[Protocol], is_probed: bool
) -> dict[str, int | str]:
    """Return the number of exchanges by protocol, or why it has none."""
    numbers: dict[str, int | str] = {}
    for one in protocols:
        reasons = {
            NOT_PROBED: not is_probed,
            NO_QUESTION: not one.reads_question,
            NO_OTHERS: (one.shows or 2) > 2,
            NO_PAIR: not exchanges,
        }
        numbers[one.name] = next((why for why, holds in reasons.items() if holds), len(exchanges))
    return numbers


def describe_plan(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Say how many exchanges a run with these parameters judges, or why it has none; nothing where labels decide."""
    numbers: Mapping[str, int | str] = parameters.get("exchange", {})
    for number in dict.fromkeys(numbers.values()):
        names = ", ".join(name for name, own in numbers.items() if own == number)
        pairs = f"{count(number, 'exchange')} of responses between two prompts" if isinstance(number, int) else ""
        yield f"{FEW_LABELS}: {pairs or f'{names} has no exchange, since {number}'}"


@dataclass(frozen=True, slots=True)
class ExchangeCounts:
    """The pairs of prompts that were judged: right about both questions, about neither, and all with both verdicts."""

    right: int
    wrong: int
    judged: int

    def __add__(self, other: ExchangeCounts) -> ExchangeCounts:
        return ExchangeCounts(self.right + other.right, self.wrong + other.wrong, self.judged + other.judged)

    def describe(self) -> str:
        """Say what they show."""
        return f"right about both questions in {self.right} of {self.judged} exchanges, about neither in {self.wrong}"


def describe_gap(planned: int | str, counts: ExchangeCounts) -> str:
    """Say what exchanges show, or why there are none."""
    return counts.describe() if isinstance(planned, int) else f"{FEW_LABELS}, and there is no exchange, since {planned}"


def weigh_exchanges(rows: Sequence[AnyRow], rule: str | None) -> tuple[list[tuple[str, float]], ExchangeCounts]:
    """Return 1 for each exchange that the judge is right about and 0 for each that it is wrong about, and all counts.

    A tie about one question leaves the other to decide.
    """
    leads: dict[str, list[float]] = {}
    for row in rows:
        verdict = read_outcome(row, rule)
        lead = {"a": 1.0, "tie": 0.0, "b": -1.0, None: math.nan}[verdict]
        leads.setdefault(row.case, []).append(lead)
    sums = {case: sum(both) for case, both in leads.items() if len(both) == 2 and not math.isnan(sum(both))}
    values = [(case, float(total > 0)) for case, total in sums.items() if total]
    right = int(sum(value for _, value in values))
    return values, ExchangeCounts(right, len(values) - right, len(sums))


def _hash(*parts: Any) -> bytes:
    return hashlib.sha256("\x1e".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
