"""The comparisons on which a judge and people disagree, with texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from typing import Any

from distract.core.errors import UnknownName
from distract.core.printable import count, count_decimals, line
from distract.core.records import PASS_MARK, Judgment, Outcome, Row
from distract.core.runs import LoadedRun
from distract.judging.pass_marks import is_scoring, read_verdict
from distract.judging.texts import Sayings, collect_sayings, find_run_texts, read_said
from distract.report.blocks import Block, Browser, Heading, Note, Sentence, Span, Words, sentences
from distract.report.html import BrowsedVerdict, Browsing, Part, build_data, name_place
from distract.report.phrases import UNSAID, name_protocol, quote_text
from distract.studies.meta.measures import DESIGNS, JudgeRows
from distract.studies.meta.panel import WORDS
from distract.studies.meta.session import JudgeSource, from_run


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict over all orders that differs from the label; each text is empty if it is not known."""

    judge: str
    row: Row
    rule: str | None
    label: Outcome
    verdict: Outcome
    prompt: str = ""
    responses: tuple[str, ...] = ()  # one for each author
    said: Sayings = ()  # what the judge said, if that was kept

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
        a, b, *_ = self.strengths(self.row.judgments) or (float(self.verdict == "a"), float(self.verdict == "b"))
        return a, b

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
        if len(strengths) == len(WORDS["people"]):
            return max(strengths) - dict(zip(WORDS["people"], strengths, strict=True))[self.label]
        # A stored verdict without numbers is certain.
        return abs(strengths[0] - strengths[1]) if strengths else 1.0


def read_source(run: LoadedRun) -> JudgeSource:
    """Read the judge of a run with the texts behind its verdicts."""
    run.check_command("meta")
    return from_run(run.parameters, run.rows, find_run_texts(run))


def _list_judged(sources: Sequence[JudgeSource], protocols: Sequence[str] = ()) -> list[JudgeRows]:
    """List the judges under these protocols, or under all."""
    every = [one for source in sources for one in source.judged]
    known = dict.fromkeys(one.protocol for one in every)
    for name in protocols:
        if name not in known:
            raise UnknownName("protocol", name, known, "the run has no other")
    return [one for one in every if one.protocol in (protocols or known)]


def find_disagreements(sources: Sequence[JudgeSource], protocols: Sequence[str] = ()) -> list[Disagreement]:
    """Find all disagreements, the clearest first.

    Margins of different protocols have different units, so the protocols of all judges take turns: the clearest of
    each, then the second of each.
    """
    ranked = []
    for judge, design in product(_list_judged(sources, protocols), DESIGNS):
        differing = [
            Disagreement(judge.judge, pair.row, judge.headline, pair.label, pair.overall)
            for pair in judge.select(design).labelled
            if pair.label and pair.overall and pair.overall != pair.label
        ]
        ranked.append(sorted(differing, key=lambda one: (-one.margin, one.place)))
    return [one for turn in zip_longest(*ranked) for one in turn if one is not None]


def collect_disagreements(
    sources: Sequence[JudgeSource], most: int | None = None, protocols: Sequence[str] = ()
) -> tuple[list[Disagreement], int]:
    """Return the clearest disagreements with their texts, and the number of all."""
    every = find_disagreements(sources, protocols)
    shown = list[Disagreement]()
    texts = {source.name: source.texts for source in sources}
    rows = {name: [one.row for one in every[:most] if one.judge == name] for name in texts}
    replies = {name: read_said(own.runs, rows[name]) for name, own in texts.items()}
    for one in every[:most]:
        own, row = texts[one.judge], one.row
        case = own.cases.get((row.data, row.case))
        responses = (own.find_response(row, side) for side in (row.a, row.b)[: len(one.authors)])
        written = tuple(response.text if response else "" for response in responses)
        prompt = "\n\n".join(case.prompt) if case else ""
        shown.append(replace(one, prompt=prompt, responses=written, said=collect_sayings(row, replies[one.judge])))
    return shown, len(every)


COLUMNS = (
    *("judge", "data", "case", "protocol", "rule", "judged", "label", "verdict", "margin"),
    *("author_a", "author_b", "strength_a", "strength_b", "orders"),
    *("question", "response_a", "response_b", "said"),
)
"""The columns of ``distract flips --csv``: names, strengths (probability, or score under a rule), texts."""

FILTERS = {"verdict": "Verdict", "judge": "Judge", "protocol": "Way of asking", "data": "Data"}

CLEAREST = 3  # disagreements that Markdown shows


def disagreements_document(shown: Iterable[Disagreement], total: int) -> dict[str, Any]:
    """Return disagreements as JSON values."""
    listed = []
    for one in shown:
        orders = [
            {
                "first": getattr(one.row, one.row.shown[at]).author if one.row.shown else None,
                "verdict": verdict and _name(one, verdict),
                "strengths": [round(value, 4) for value in one.strengths([judgment])],
            }
            for at, judgment in enumerate(one.row.judgments)
            for verdict in [read_verdict(one.row, [judgment], one.rule)]
        ]
        listed.append({**flatten_shown(one), "orders": orders, "said": [text for _, text in one.said]})
    return {"disagreements": listed, "total": total}


def _name(one: Disagreement, outcome: Outcome) -> str:
    return WORDS["pass" if one.is_alone else "people"][outcome]


def flatten_shown(one: Disagreement) -> dict[str, Any]:
    """Return a disagreement by the names of ``COLUMNS``."""
    row = one.row
    names = (one.judge, row.data, row.case, row.protocol, one.rule, "response" if one.is_alone else "pair")
    verdicts = (_name(one, one.label), _name(one, one.verdict), round(one.margin, 4))
    authors, texts = ((*values, "")[:2] for values in (one.authors, one.responses))
    strengths = [round(value, 4) for value in one.pair]
    said = "\n\n".join(text for _, text in one.said)
    values = (*names, *verdicts, *authors, *strengths, "; ".join(_list_orders(one, 4)), one.prompt, *texts, said)
    return dict(zip(COLUMNS, values, strict=True))


def disagreements_report(
    sources: Sequence[JudgeSource], shown: Sequence[Disagreement], total: int, whole: bool, protocols: Sequence[str]
) -> Iterator[Block]:
    """Show disagreements, the clearest first; long texts in full only if ``whole``."""
    judges = ", ".join(line(source.name) for source in sources)
    if not shown:
        yield Heading(f"judge {judges}: no verdict differs from the label of people")
        for judge in _list_judged(sources, protocols):
            name = name_protocol(judge.protocol, judge.headline)
            yield Sentence(f"{name}: none of {count(len(judge.labelled), 'labelled comparison')}", apart=False)
        return
    first = ", the clearest first" if len(shown) > 1 else ""
    yield Heading(f"judge {judges}: {count(total, 'disagreement')} with people{first}")
    for number, one in enumerate(shown, 1):
        yield from _disagreement_blocks(number, one, whole)
    if total > len(shown):
        yield Note(f"shown: {len(shown)} of {total:,}; --top N shows more, --top all shows all")
    if not any(one.said for one in shown) and any(j.read == "text" for one in shown for j in one.row.judgments):
        yield Note(UNSAID)


def _disagreement_blocks(number: int, one: Disagreement, whole: bool) -> Iterator[Heading | Sentence]:
    digits = count_decimals([one.pair])
    yield Heading(f"{number}. case {line(one.row.case)} · {name_protocol(one.row.protocol, one.rule)}", level=2)
    texts = [("question", one.prompt)]
    texts += [(f"response ({line(author)})", text) for author, text in zip(one.authors, one.responses, strict=True)]
    yield from (quote_text(name, text, whole) for name, text in texts if text)
    label, verdict = Span(_describe_label(one)), Span(_describe_verdict(one, digits), "strong")
    lines = [(Span("people: ", "dim"), label), (Span("judge:  ", "dim"), verdict)]
    lines += [(Span("  "), Span(order)) for order in _list_orders(one, digits)]
    yield from sentences(map(Words, lines), apart=False)
    for author, text in one.said:
        yield quote_text(f"the judge said{f', {line(author)} first' if author else ''}", text, whole)


def _describe_label(one: Disagreement) -> str:
    return f"{_name(one, one.label)} it" if one.is_alone else _describe_preference(one, one.label, "prefer")


def _describe_preference(one: Disagreement, outcome: Outcome, verb: str) -> str:
    return "a tie" if outcome == "tie" else f"{verb} {line(one.authors['ab'.index(outcome)])}"


def _describe_verdict(one: Disagreement, digits: int) -> str:
    alone = "passes it" if one.verdict == "a" else "fails it"
    verdict = alone if one.is_alone else _describe_preference(one, one.verdict, "prefers")
    return ": ".join([verdict, *_list_strengths(one, one.row.judgments, digits)])


def _list_strengths(one: Disagreement, judgments: Sequence[Judgment], digits: int) -> Iterator[str]:
    """Describe the numbers behind a verdict, if there are any."""
    values = [f"{value:.{digits}f}" for value in one.strengths(judgments)]
    if one.is_alone and one.unit and values:
        yield f"{one.unit} {values[0]}, the mark is {values[1]}"
    elif values and not one.is_alone:
        a, b = map(line, one.authors)
        tie = f", {values[2]} for a tie" if not one.unit and float(values[2]) else ""
        yield f"{one.unit or 'probability'} {values[0]} for {a}, {values[1]} for {b}{tie}"


def _list_orders(one: Disagreement, digits: int) -> Iterator[str]:
    for first, judgment in zip(one.row.shown, one.row.judgments, strict=False):
        said = [line(judgment.failure or "no verdict")]
        if (verdict := read_verdict(one.row, [judgment], one.rule)) is not None:
            said = [_describe_preference(one, verdict, "prefers"), *_list_strengths(one, [judgment], digits)]
        yield f"{line(getattr(one.row, first).author)} first: {', '.join(said)}"


def browser_block(sources: Sequence[JudgeSource]) -> Browser:
    """Make the place of the disagreements in a report; Markdown shows the clearest."""
    shown, total = collect_disagreements(sources, CLEAREST)
    heading = Heading(f"{count(total, 'disagreement')} with people, the clearest", level=2)
    parts = [part for number, one in enumerate(shown, 1) for part in _disagreement_blocks(number, one, False)]
    return Browser((heading, *parts) if shown else ())


def build_disagreement_data(sources: Sequence[JudgeSource]) -> dict[str, Any] | None:
    """Return the disagreements of judges for the browser of a page; None if nothing is labelled."""
    if not any(row.label for one in _list_judged(sources) for row in one.by(one.headline)):
        return None
    shown, total = collect_disagreements(sources)
    digits = min(count_decimals(one.pair for one in shown), 4)
    turns = ", the judges and ways of asking in turn" if len({one.place[:3] for one in shown}) > 1 else ""
    about = f"Verdicts over all orders that differ from the label of people: {total:,}. The clearest first{turns}."
    verdicts = [_browse(one, digits) for one in shown]
    several = {"verdict", *(name for name in FILTERS if len({one.filters[name] for one in verdicts}) > 1)}
    filters = {name: label for name, label in FILTERS.items() if name in several}
    return build_data(Browsing("Disagreements with people", verdicts, about, filters, {}))


def _browse(one: Disagreement, digits: int) -> BrowsedVerdict:
    row, kind, protocol = one.row, _classify(one), name_protocol(one.row.protocol, one.rule)
    place, title = name_place("verdict", one.place), f"{row.case} · {one.judge} · {protocol}"
    note = f"{protocol} · {kind}, by {one.margin:.{digits}f} {'points' if one.unit else 'in probability'}"
    filters = {"verdict": kind, "judge": one.judge, "protocol": protocol, "data": row.data}
    return BrowsedVerdict(place, row.case, title, note, filters, tuple(_list_parts(one, digits)))


def _classify(one: Disagreement) -> str:
    if one.is_alone:
        return "passes what people fail" if one.verdict == "a" else "fails what people pass"
    if one.verdict == "tie":
        return "ties what people rank"
    return "ranks what people tie" if one.label == "tie" else "prefers the worse"


def _list_parts(one: Disagreement, digits: int) -> Iterator[Part]:
    yield Part("text", "Question", (one.prompt,))
    for side, author, text in zip("ab", one.authors, one.responses, strict=False):
        who = "people" if one.label == side else "the judge" if one.verdict == side else ""
        better = f", preferred by {who}" if who and not one.is_alone else ""
        yield Part("text", f"Response: {author}{better}", (text,))
    if len(one.responses) > 1:
        yield Part("compare", "compare the two", one.responses)
    yield Part("heading", "Verdict")
    yield Part("line", f"people: {_describe_label(one)}")
    yield Part("strong", f"judge: {_describe_verdict(one, digits)}")
    yield from (Part("line", order) for order in _list_orders(one, digits))
    for author, text in one.said:
        yield Part("text", f"The judge said{f', {author} first' if author else ''}", (text,))
