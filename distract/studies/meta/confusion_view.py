"""The report on verdicts by label: confusion matrices, and the rates of pass-or-fail verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from distract.core.printable import count, interval, percent
from distract.report.blocks import Detail, Table, TableRow
from distract.report.glossary import empty_reason
from distract.report.phrases import name_protocol
from distract.studies.meta.comparisons import Agreement, MetaDesign
from distract.studies.meta.confusion import WORDS, Confusion

DESIGN_TITLES: Mapping[MetaDesign, str] = {"people": "Pairs", "pass": "Pass or fail"}

PASS_NAMES = {
    "true_positive_rate": "true positive rate",
    "true_negative_rate": "true negative rate",
    "precision": "precision",
}
"""The rates of pass-or-fail verdicts, in display order."""

SHORT = 6
"""Maximum number of rows of a confusion matrix outside of the details."""


def pass_sentences(figures: Iterable[Agreement]) -> Iterator[str]:
    """Say of each protocol how often it passes what people pass, and fails what they fail."""
    rates = {(f.protocol, f.rule, f.measure): f for f in figures}
    for (protocol, rule, measure), right in rates.items():
        if measure != "true_positive_rate":
            continue
        wrong = rates[protocol, rule, "true_negative_rate"]
        parts = [_describe(f, verbs) for f, verbs in ((right, ("passes", "pass")), (wrong, ("fails", "fail")))]
        if right.n or wrong.n:
            yield f"{name_protocol(protocol, rule)} {' and '.join(parts)}."


def _describe(figure: Agreement, verbs: tuple[str, str]) -> str:
    theirs = f"that people {verbs[1]}"
    if not figure.n:
        return f"is not measured on responses {theirs} ({empty_reason(figure)})"
    rate = f"{percent(figure.value)}%, {interval(figure.low, figure.high)}%"
    return f"{verbs[0]} {figure.k} of {count(figure.n, 'response')} {theirs} ({rate})"


def confusion_tables(matrices: Sequence[Confusion]) -> Iterator[Table | Detail]:
    """Show matrices of one design: a row for each label, a column for each verdict."""
    if not matrices:
        return
    design = matrices[0].design
    rows: list[TableRow] = [
        (name_protocol(one.protocol, one.rule), f" {_name_label(design, label)}", list(map(str, verdicts.values())))
        for one in matrices
        for label, verdicts in one.counts.items()
        if design == "pass" or any(verdicts.values())
    ]
    names = {"people": "Labels by verdicts, over all orders; a is the first response", "pass": "Labels by verdicts"}
    table = Table(names[design], ("", *WORDS[design].values(), "inv."), rows)
    yield table if design == "pass" and len(rows) <= SHORT else Detail(table)


def _name_label(design: MetaDesign, label: str) -> str:
    return f"people {label}" if design == "pass" else f"label {label}"
