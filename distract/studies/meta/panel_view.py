"""The report on several judges: protocols over judges, gains, agreement of data sets, difficulty of cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from distract.core.printable import bar, count, interval, line, p_value, percent
from distract.report.blocks import Block, Detail, Heading, Note, Sentence, Table, TableRow
from distract.report.phrases import VERDICTS
from distract.studies.meta.difficulty import Correlation
from distract.studies.meta.panel import Panel


def panel_sentences(panel: Panel) -> Iterable[Block]:
    """The protocol and the judge that agree best with the labels."""
    total = count(panel.comparisons, "comparison")
    if panel.protocols:
        first = panel.protocols[0]
        best = [line(one.protocol) for one in panel.protocols if one.mean_accuracy == first.mean_accuracy]
        yield Sentence(
            f"Over {count(first.judges, 'judge')} and the {total} that all of them have, "
            f"{join_alike(best, 'matches', 'match')} the label most often: {percent(first.mean_accuracy)}% on average.",
            apart=False,
        )
    if panel.judges:
        judge = panel.judges[0]
        accuracy = percent(judge.mean_accuracy if judge.accuracy is None else judge.accuracy)
        under = f" under {line(panel.base)}" if panel.base and judge.accuracy is not None else " on average"
        yield Sentence(f"{line(judge.judge)} is the most accurate judge: {accuracy}%{under}.", apart=False)


def join_alike(names: Sequence[str], one: str, several: str) -> str:
    """Join names that share a figure, with their verb."""
    return f"{names[0]} {one}" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} alike {several}"


def panel_parts(panel: Panel) -> Iterable[Block]:
    """The tables of a panel, top to bottom."""
    base = line(panel.base or "")
    rows: list[TableRow] = []
    for one in panel.protocols:
        # Model names are long, and only the first column folds.
        best = f"{line(one.protocol)}\n best: {line(one.best_judge)}, {percent(one.best_accuracy)}"
        cells = [percent(one.mean_accuracy), f"{one.mean_rank:.1f}", percent(one.strong_gain), percent(one.weak_gain)]
        rows.append(("", best, cells))
    if rows:
        name = f"Protocols over {count(panel.protocols[0].judges, 'judge')}: accuracy in %, gains over {base} in points"
        if not any(one.strong_gain is not None for one in panel.protocols):
            name = f"Protocols over {count(panel.protocols[0].judges, 'judge')}: accuracy in %"
        yield Table(name, ("", "mean", "mean rank", "strong", "weak"), rows)
    rows = [
        ("", line(one.judge), [*([percent(one.accuracy)] if base else []), percent(one.mean_accuracy), one.half or ""])
        for one in panel.judges
    ]
    columns = ("", *([_shorten(base)] if base else []), "mean", "half")
    yield Table("Judges, most accurate first, in %; which half they are in", columns, rows)
    rows = []
    for judge in panel.judges:
        if judge.best_protocol is not None:
            versus = f"{VERDICTS.get(judge.compared or '', '')} {p_value(judge.p_adjusted)}".strip()
            name = f"{line(judge.judge)}: {line(judge.best_protocol)}"
            rows.append(("", name, [percent(judge.gain), interval(judge.low, judge.high), versus]))
    if rows:
        name = f"Largest gain over {base} on the same verdicts"
        yield Table(name, ("", "points", "95% CI", "p"), rows)
    if panel.correlations:
        yield Detail(Heading("Rank correlation (Spearman) of accuracies", level=3))
        yield from map(Detail, map(_format_correlation, panel.correlations))
    difficulty = panel.difficulty
    if difficulty.n:
        size = len(difficulty.bins)
        rows = [
            ("", f"{100 * index // size} to {100 * (index + 1) // size}%", [str(number), bar(number / difficulty.n)])
            for index, number in enumerate(difficulty.bins)
        ]
        cases = count(difficulty.n, "comparison")
        name = f"Difficulty: share of all verdicts that are right, over {cases}"
        yield Detail(Table(name, ("right in", "comparisons", ""), rows))
        yield Detail(Note(f"never right {difficulty.never}, always right {difficulty.always}", apart=False))


def _format_correlation(c: Correlation) -> Sentence:
    between = "" if c.low is None or c.high is None else f", 95% CI {c.low:.2f} to {c.high:.2f}"
    value = "–" if c.value is None else f"{c.value:.3f}"
    return Sentence(f" {line(c.first)} and {line(c.second)}: {value} (n = {c.n}{between})", apart=False)


def _shorten(name: str, width: int = 20) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"
