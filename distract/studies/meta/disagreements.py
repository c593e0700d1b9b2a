"""Comparisons whose verdict over all orders differs from the label of people, with their texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from distract.core.errors import UnknownName
from distract.core.records import BASELINE, PASS_MARK, Judgment, Outcome, Row
from distract.core.runs import LoadedRun
from distract.judging.pass_marks import is_scoring, read_verdict
from distract.judging.texts import Sayings, collect_sayings, find_run_texts, read_said
from distract.studies.meta.comparisons import DESIGNS, JudgeRows
from distract.studies.meta.published_judges import JudgeSource
from distract.studies.meta.study import from_run

OUTCOMES: tuple[Outcome, ...] = ("a", "b", "tie")
"""The outcomes in the order of a judgment's probabilities."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict over all orders that differs from the label."""

    judge: str
    row: Row
    rule: str | None
    label: Outcome
    verdict: Outcome

    @property
    def is_alone(self) -> bool:
        """Whether the response was judged alone, against the pass mark."""
        return self.row.design == "pass"

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors of the responses."""
        return tuple(side.author for side in (self.row.a, self.row.b) if side.author != PASS_MARK or not self.is_alone)

    @property
    def place(self) -> tuple[str, ...]:
        """What identifies it."""
        row = self.row
        sides = [f"{side.author}\x1e{side.severity}" for side in (row.a, row.b)]
        return (self.judge, row.protocol, self.rule or "", row.design, row.data, row.case, *sides)

    @property
    def pair(self) -> tuple[float, float]:
        """The strengths of a and b over all orders; those of a certain verdict if none is known."""
        strengths = self.strengths(self.row.judgments)
        return (strengths[0], strengths[1]) if strengths else (float(self.verdict == "a"), float(self.verdict == "b"))

    @property
    def unit(self) -> str | None:
        """What decided the verdict: ``score`` or ``rating``; None for probabilities."""
        has_scores = self.is_alone and all(judgment.scores for judgment in self.row.judgments)
        return self.rule if is_scoring(self.rule) else "score" if has_scores else None

    def strengths(self, judgments: Sequence[Judgment]) -> tuple[float, ...]:
        """Average what decided a verdict over orders: scores of a and b, or probabilities of a, b and a tie.

        Empty if no judgment holds any such number.
        """
        field = {"score": "scores", "rating": "ratings", None: "probabilities"}[self.unit]
        known = [values for judgment in judgments if (values := getattr(judgment, field)) is not None]
        return tuple(math.fsum(column) / len(known) for column in zip(*known, strict=True))

    @property
    def margin(self) -> float:
        """How clearly the verdict differs: the distance of the scores, or how much more probable it is than the label.

        0 for a tie of equal probabilities.
        """
        strengths = self.strengths(self.row.judgments)
        if len(strengths) == len(OUTCOMES):
            return max(strengths) - strengths[OUTCOMES.index(self.label)]
        # A stored verdict without numbers is certain.
        return abs(strengths[0] - strengths[1]) if strengths else 1.0


@dataclass(frozen=True, slots=True)
class ShownDisagreement:
    """A disagreement with its texts, each empty if it is not known, and what the judge said, if that was kept."""

    disagreement: Disagreement
    prompt: str
    responses: tuple[str, ...]  # one for each author
    said: Sayings


def read_source(run: LoadedRun) -> JudgeSource:
    """Read the judge of a run with the texts behind its verdicts."""
    run.check_command("meta")
    return from_run(run.parameters, run.rows, find_run_texts(run))


def find_disagreements(sources: Sequence[JudgeSource], protocols: Sequence[str] = ()) -> list[Disagreement]:
    """Find all disagreements, the clearest first.

    Margins of different protocols have different units, so the protocols of all judges take turns: the clearest of
    each, then the second of each.
    """
    known = dict.fromkeys(one.protocol for source in sources for one in source.judged)
    for name in protocols:
        if name not in known:
            raise UnknownName("protocol", name, known, "the run has no other")
    ranked = [
        sorted(
            _list_disagreements(one.select(design)),
            key=lambda disagreement: (-disagreement.margin, disagreement.place),
        )
        for source in sources
        for one in source.judged
        if not protocols or one.protocol in protocols
        for design in DESIGNS
    ]
    return [disagreement for turn in zip_longest(*ranked) for disagreement in turn if disagreement is not None]


def _list_disagreements(judge: JudgeRows) -> Iterator[Disagreement]:
    rule = judge.headline
    for row in judge.by(rule):
        if row.attack != BASELINE or row.excluded is not None or row.label is None:
            continue
        verdict = read_verdict(row, row.judgments, rule)
        if verdict is not None and verdict != row.label:
            yield Disagreement(judge.judge, row, rule, row.label, verdict)


def collect_disagreements(
    sources: Sequence[JudgeSource], most: int | None = None, protocols: Sequence[str] = ()
) -> tuple[list[ShownDisagreement], int]:
    """Return the clearest disagreements with their texts, and the number of all."""
    every = find_disagreements(sources, protocols)
    chosen = every[:most]
    said = {
        source.name: read_said(source.texts.runs, (one.row for one in chosen if one.judge == source.name))
        for source in sources
    }
    texts = {source.name: source.texts for source in sources}
    shown = []
    for one in chosen:
        own = texts[one.judge]
        case = own.cases.get((one.row.data, one.row.case))
        sides = (one.row.a, one.row.b)[: len(one.authors)]
        responses = tuple(response.text if (response := own.find_response(one.row, side)) else "" for side in sides)
        prompt = "\n\n".join(case.prompt) if case else ""
        shown.append(ShownDisagreement(one, prompt, responses, collect_sayings(one.row, said[one.judge])))
    return shown, len(every)
