"""The report of ``distract check``: facts kept, lost and invented, the difference in colour, error rates.

Without colour the difference is marked as ``[-gone-]`` and ``{+new+}``. The texts are hostile: nothing in them is
markup, and control characters are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distract.core.printable import count, line, percent
from distract.core.records import Rewrite
from distract.report.blocks import Block, Heading, Note, Sentence, Span, Table, TableRow, Words
from distract.report.glossary import explain
from distract.report.phrases import rate_cells
from distract.studies.check.audit import (
    ERRORS,
    CheckedRewrite,
    ErrorRate,
    choose_threshold,
    count_unread,
    measure_thresholds,
)
from distract.studies.differences import mark_difference

_NAMES = dict(zip(ERRORS.values(), ("Faithful rewrites rejected", "Changed rewrites accepted"), strict=True))


def pair_report(rewrite: CheckedRewrite) -> Iterator[Block]:
    """A verdict with its reasons, rule by rule, what a verifier read, and the difference."""
    checked = rewrite.checked
    yield _format_verdict(checked.reasons)
    for kind, difference in checked.facts.items():
        facts = {"kept": difference.kept, "lost": difference.lost, "invented": difference.invented}
        spans = [
            Span(f"{name} {', '.join(map(line, part))}", "" if name == "kept" else "bad")
            for name, part in facts.items()
            if part
        ]
        separated = [span for one in spans for span in (Span("; "), one)][1:]
        if separated:
            yield Sentence(Words((Span(f"{kind}: "), *separated)), apart=False)
    yield Note(explain({"kept, lost, invented"}), apart=False)
    yield Sentence("evidence: " + ", ".join(f"{name} {value}" for name, value in checked.evidence), apart=False)
    if rewrite.odds:
        odds = ", ".join(f"{line(sentence)} ({value:.1f})" for sentence, value in rewrite.odds.items())
        yield Sentence(f"log-odds that a sentence says the same: {odds}", apart=False)
    yield mark_difference("\n\n".join(checked.pair.original), "\n\n".join(checked.pair.rewrite))
    if checked.repaired != checked.pair.rewrite:
        yield Sentence("what would be judged, with sentences put back:")
        yield mark_difference("\n\n".join(checked.pair.original), "\n\n".join(checked.repaired), apart=False)


def run_report(rewrites: Sequence[Rewrite]) -> Iterator[Block]:
    """Every rewrite of a run: rejected ones first, with the difference."""
    rejected = sum(not rewrite.is_accepted for rewrite in rewrites)
    yield Sentence(f"{rejected} of {len(rewrites)} rewrites rejected", apart=False)
    for rewrite in sorted(rewrites, key=lambda rewrite: rewrite.is_accepted):
        r = rewrite.response
        attack = " ".join(part for part in (r.attack, f"severity {r.severity}" if r.severity else "") if part)
        place = ", ".join(map(line, (rewrite.case, r.author, attack)))
        yield Heading(f"{place} ({line(rewrite.generator)})", level=2)
        yield _format_verdict(rewrite.reasons)
        if rewrite.original:
            yield mark_difference("\n\n".join(rewrite.original), "\n\n".join(r.turns), apart=False)


def threshold_report(labelled: Sequence[CheckedRewrite], wanted: float) -> Iterator[Block]:
    """Both error rates over the threshold of the verifier, unless it gave no verdict on half of the sentences."""
    unread, read = count_unread(labelled)
    if unread:
        yield Sentence(f"The verifier gave no verdict on {unread} of {count(read, 'sentence')}.", apart=False)
    if 2 * unread >= read:
        return
    rates = measure_thresholds(labelled)
    chosen = choose_threshold(rates, wanted)
    yield Sentence(
        f"No threshold accepts at most {percent(wanted)}% of the changed rewrites."
        if chosen is None
        else f"--verifier-threshold {chosen} accepts at most {percent(wanted)}% of the changed rewrites.",
        apart=False,
    )
    for measure, name in _NAMES.items():
        rows: list[TableRow] = [
            ("", line(rate.style or ""), rate_cells(rate)) for rate in rates if rate.measure == measure
        ]
        yield Table(f"{name}, by threshold", ("log-odds", "%", "95% CI", "k/n"), rows)


def labelled_report(rates: Sequence[ErrorRate]) -> Iterator[Block]:
    """Both error rates: over all, by style, by kind."""
    tables = list[Table]()
    for measure, name in _NAMES.items():
        part = [rate for rate in rates if rate.measure == measure and None in (rate.kind, rate.style)]
        rows: list[TableRow] = []
        for rate in sorted(part, key=lambda r: (r.kind is not None, r.style is not None)):
            if rate.is_overall:
                yield Sentence(f"{name}: {rate.k} of {rate.n} ({percent(rate.value)}%).", apart=False)
            rows.append(("", line(rate.style or rate.kind or "all"), rate_cells(rate)))
        tables.append(Table(f"{name} (lower is better)", ("", "%", "95% CI", "k/n"), rows))
    yield from tables


def _format_verdict(reasons: Sequence[str]) -> Sentence:
    if not reasons:
        return Sentence(Span("accepted", "good"), apart=False)
    return Sentence(Words((Span("rejected: ", "bad"), Span("; ".join(map(line, reasons))))), apart=False)
