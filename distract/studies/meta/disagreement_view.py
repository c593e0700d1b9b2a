"""Disagreements with people side by side: question, responses, label, the verdict of each order, the judge's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from distract.core.printable import count, count_decimals, line
from distract.core.records import Judgment, Outcome
from distract.judging.pass_marks import read_verdict
from distract.report.blocks import Block, Browser, Heading, Note, Sentence, Span, Words
from distract.report.browser import BrowsedVerdict, Browsing, Part, build_data, name_place
from distract.report.phrases import UNSAID, name_protocol, quote_text
from distract.studies.meta.confusion import WORDS
from distract.studies.meta.disagreements import Disagreement, ShownDisagreement, collect_disagreements
from distract.studies.meta.published_judges import JudgeSource

COLUMNS = (
    *("judge", "data", "case", "protocol", "rule", "judged", "label", "verdict", "margin"),
    *("author_a", "author_b", "strength_a", "strength_b", "orders"),
    *("question", "response_a", "response_b", "said"),
)
"""The columns of ``distract flips --csv``: names, strengths (probability, or score under a rule), texts."""

FILTERS = {"verdict": "Verdict", "judge": "Judge", "protocol": "Way of asking", "data": "Data"}

CLEAREST = 3
"""Number of disagreements that Markdown shows."""


def disagreements_document(shown: Iterable[ShownDisagreement], total: int) -> dict[str, Any]:
    """Return disagreements as JSON values."""
    listed = []
    for one in shown:
        orders = [_describe_order(one.disagreement, at) for at in range(len(one.disagreement.row.judgments))]
        listed.append({**flatten_shown(one), "orders": orders, "said": [text for _, text in one.said]})
    return {"disagreements": listed, "total": total}


def _describe_order(one: Disagreement, at: int) -> dict[str, Any]:
    """Describe the verdict of one order: who was shown first, and the strengths of a, b and a tie."""
    row, judgment = one.row, one.row.judgments[at]
    verdict = read_verdict(row, [judgment], one.rule)
    strengths = [round(value, 4) for value in one.strengths([judgment])]
    first = getattr(row, row.shown[at]).author if row.shown else None
    return {"first": first, "verdict": None if verdict is None else _name(one, verdict), "strengths": strengths}


def _name(one: Disagreement, outcome: Outcome) -> str:
    return WORDS["pass" if one.is_alone else "people"][outcome]


def flatten_shown(one: ShownDisagreement) -> dict[str, Any]:
    """Return a disagreement by the names of ``COLUMNS``."""
    disagreement, row = one.disagreement, one.disagreement.row
    judged = "response" if disagreement.is_alone else "pair"
    names = (disagreement.judge, row.data, row.case, row.protocol, disagreement.rule, judged)
    verdicts = (
        _name(disagreement, disagreement.label),
        _name(disagreement, disagreement.verdict),
        round(disagreement.margin, 4),
    )
    authors, texts = ((*values, "")[:2] for values in (disagreement.authors, one.responses))
    strengths = [round(value, 4) for value in disagreement.pair]
    orders = "; ".join(_list_orders(disagreement, 4))
    said = "\n\n".join(text for _, text in one.said)
    values = (*names, *verdicts, *authors, *strengths, orders, one.prompt, *texts, said)
    return dict(zip(COLUMNS, values, strict=True))


def disagreements_report(
    sources: Sequence[JudgeSource],
    shown: Sequence[ShownDisagreement],
    total: int,
    whole: bool,
    protocols: Sequence[str] = (),
) -> Iterator[Block]:
    """Show disagreements, the clearest first; long texts in full only if ``whole``."""
    judges = ", ".join(line(source.name) for source in sources)
    if not shown:
        yield Heading(f"judge {judges}: no verdict differs from the label of people")
        for source in sources:
            for judge in source.judged:
                if not protocols or judge.protocol in protocols:
                    labelled = sum(pair.label is not None for pair in judge.comparisons.pairs)
                    name = name_protocol(judge.protocol, judge.headline)
                    yield Sentence(f"{name}: none of {count(labelled, 'labelled comparison')}", apart=False)
        return
    first = ", the clearest first" if len(shown) > 1 else ""
    yield Heading(f"judge {judges}: {count(total, 'disagreement')} with people{first}")
    for number, one in enumerate(shown, 1):
        yield from _disagreement_blocks(number, one, whole)
    if total > len(shown):
        yield Note(f"shown: {len(shown)} of {total:,}; --top N shows more, --top all shows all")
    is_in_words = any(j.read == "text" for one in shown for j in one.disagreement.row.judgments)
    if is_in_words and not any(one.said for one in shown):
        yield Note(UNSAID)


def _disagreement_blocks(number: int, one: ShownDisagreement, whole: bool) -> Iterator[Heading | Sentence]:
    disagreement = one.disagreement
    digits = count_decimals([disagreement.pair])
    yield Heading(f"{number}. {_name_place(disagreement)}", level=2)
    if one.prompt:
        yield quote_text("question", one.prompt, whole)
    for author, text in zip(disagreement.authors, one.responses, strict=True):
        if text:
            yield quote_text(f"response ({line(author)})", text, whole)
    yield Sentence(Words((Span("people: ", "dim"), Span(_describe_label(disagreement)))), apart=False)
    yield Sentence(
        Words((Span("judge:  ", "dim"), Span(_describe_verdict(disagreement, digits), "strong"))), apart=False
    )
    for order in _list_orders(disagreement, digits):
        yield Sentence(Words((Span("  "), Span(order))), apart=False)
    for author, text in one.said:
        yield quote_text(f"the judge said{f', {line(author)} first' if author else ''}", text, whole)


def _name_place(disagreement: Disagreement) -> str:
    return f"case {line(disagreement.row.case)} · {name_protocol(disagreement.row.protocol, disagreement.rule)}"


def _describe_label(disagreement: Disagreement) -> str:
    if disagreement.is_alone:
        return f"{_name(disagreement, disagreement.label)} it"
    return _describe_preference(disagreement, disagreement.label, "prefer")


def _describe_preference(disagreement: Disagreement, outcome: Outcome, verb: str) -> str:
    return "a tie" if outcome == "tie" else f"{verb} {line(disagreement.authors['ab'.index(outcome)])}"


def _describe_verdict(disagreement: Disagreement, digits: int) -> str:
    """Say what the judge says, and by how much."""
    if disagreement.is_alone:
        verdict = "passes it" if disagreement.verdict == "a" else "fails it"
    else:
        verdict = _describe_preference(disagreement, disagreement.verdict, "prefers")
    numbers = _describe_strengths(disagreement, disagreement.row.judgments, digits)
    return f"{verdict}{f': {numbers}' if numbers else ''}"


def _describe_strengths(disagreement: Disagreement, judgments: Sequence[Judgment], digits: int) -> str:
    values = [f"{value:.{digits}f}" for value in disagreement.strengths(judgments)]
    if not values:
        return ""
    if disagreement.unit:
        if disagreement.is_alone:
            return f"{disagreement.unit} {values[0]}, the mark is {values[1]}"
        a, b = disagreement.authors
        return f"{disagreement.unit} {values[0]} for {line(a)}, {values[1]} for {line(b)}"
    if disagreement.is_alone:
        return ""
    a, b = disagreement.authors
    tie = f", {values[2]} for a tie" if float(values[2]) else ""
    return f"probability {values[0]} for {line(a)}, {values[1]} for {line(b)}{tie}"


def _list_orders(disagreement: Disagreement, digits: int) -> Iterator[str]:
    """Say the verdict of each order, where there are several."""
    row = disagreement.row
    for first, judgment in zip(row.shown, row.judgments, strict=False):
        verdict = read_verdict(row, [judgment], disagreement.rule)
        if verdict is None:
            said = line(judgment.failure or "no verdict")
        else:
            numbers = _describe_strengths(disagreement, [judgment], digits)
            said = f"{_describe_preference(disagreement, verdict, 'prefers')}{f', {numbers}' if numbers else ''}"
        yield f"{line(getattr(row, first).author)} first: {said}"


def browser_block(sources: Sequence[JudgeSource]) -> Browser:
    """Make the place of the disagreements in a report; Markdown shows the clearest."""
    shown, total = collect_disagreements(sources, CLEAREST)
    if not shown:
        return Browser()
    heading = Heading(f"{count(total, 'disagreement')} with people, the clearest", level=2)
    parts = [part for number, one in enumerate(shown, 1) for part in _disagreement_blocks(number, one, False)]
    return Browser((heading, *parts))


def build_disagreement_data(sources: Sequence[JudgeSource]) -> dict[str, Any] | None:
    """Return the disagreements of judges for the browser of a page; None if nothing is labelled."""
    judged = [one for source in sources for one in source.judged]
    if not any(row.label for one in judged for row in one.by(one.headline)):
        return None
    shown, total = collect_disagreements(sources)
    pairs = [
        disagreement.strengths(disagreement.row.judgments)[:2] or (0.0, 1.0)
        for disagreement in (one.disagreement for one in shown)
    ]
    digits = min(count_decimals(pairs), 4)  # type: ignore[arg-type]
    turns = ", the judges and ways of asking in turn" if len({one.disagreement.place[:3] for one in shown}) > 1 else ""
    about = f"Verdicts over all orders that differ from the label of people: {total:,}. The clearest first{turns}."
    verdicts = [_browse(one, digits) for one in shown]
    filters = {name: label for name, label in FILTERS.items() if name == "verdict" or _has_several(verdicts, name)}
    return build_data(Browsing("Disagreements with people", verdicts, about, filters, {}))


def _has_several(verdicts: Sequence[BrowsedVerdict], name: str) -> bool:
    return len({one.filters[name] for one in verdicts}) > 1


def _browse(one: ShownDisagreement, digits: int) -> BrowsedVerdict:
    disagreement, row = one.disagreement, one.disagreement.row
    protocol = name_protocol(row.protocol, disagreement.rule)
    unit = "points" if disagreement.unit else "in probability"
    kind = _classify(disagreement)
    return BrowsedVerdict(
        id=name_place("verdict", disagreement.place),
        case=row.case,
        title=f"{row.case} · {disagreement.judge} · {protocol}",
        note=f"{protocol} · {kind}, by {disagreement.margin:.{digits}f} {unit}",
        filters={"verdict": kind, "judge": disagreement.judge, "protocol": protocol, "data": row.data},
        parts=tuple(_list_parts(one, digits)),
    )


def _classify(disagreement: Disagreement) -> str:
    if disagreement.is_alone:
        return "passes what people fail" if disagreement.verdict == "a" else "fails what people pass"
    if disagreement.verdict == "tie":
        return "ties what people rank"
    return "ranks what people tie" if disagreement.label == "tie" else "prefers the worse"


def _list_parts(one: ShownDisagreement, digits: int) -> Iterator[Part]:
    disagreement = one.disagreement
    yield Part("text", "Question", (one.prompt,))
    sides: Sequence[Outcome] = ("a", "b")
    for side, author, text in zip(sides, disagreement.authors, one.responses, strict=False):
        who = [
            name
            for name, choice in (("people", disagreement.label), ("the judge", disagreement.verdict))
            if choice == side
        ]
        better = f", preferred by {who[0]}" if who and not disagreement.is_alone else ""
        yield Part("text", f"Response: {author}{better}", (text,))
    if len(one.responses) > 1:
        yield Part("compare", "compare the two", one.responses)
    yield Part("heading", "Verdict")
    yield Part("line", f"people: {_describe_label(disagreement)}")
    yield Part("strong", f"judge: {_describe_verdict(disagreement, digits)}")
    for order in _list_orders(disagreement, digits):
        yield Part("line", order)
    for author, text in one.said:
        yield Part("text", f"The judge said{f', {author} first' if author else ''}", (text,))
