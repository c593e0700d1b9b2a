"""The report on several judges: protocols over judges, gains, agreement of data sets, difficulty of cases."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import bar, count, interval, line, p_value, percent
from distract.report.tables import grid, title
from distract.studies.meta.difficulty import Correlation
from distract.studies.meta.panel import Panel

VERSUS = {"better": "better", "worse": "worse", "not distinguishable": "n.s."}


def panel_parts(panel: Panel) -> Iterable[RenderableType]:
    """The tables of a panel, top to bottom."""
    base = line(panel.base or "")
    if panel.protocols:
        yield title(f"Protocols over {count(panel.protocols[0].judges, 'judge')}: accuracy in %, gains in points")
        table = grid("", "mean", "rank", "strong", "weak")
        for one in panel.protocols:
            mean = (percent(one.mean_accuracy), f"{one.mean_rank:.1f}")
            # Model names are long, and only the first column folds.
            best = Text(f"{line(one.protocol)}\n best: {line(one.best_judge)}, {percent(one.best_accuracy)}")
            table.add_row(best, *mean, percent(one.strong_gain), percent(one.weak_gain))
        yield table
        gains = any(one.strong_gain is not None for one in panel.protocols)
        halves = f"; strong, weak: gain over {base} in either half of the judges" if gains else ""
        yield Text(f"on the {count(panel.comparisons, 'comparison')} that all of them have{halves}", style="dim")
    yield title("Judges, most accurate first, in %; which half they are in")
    table = grid("", *([_shorten(base)] if base else []), "mean", "half")
    for judge in panel.judges:
        plain = [percent(judge.accuracy)] if base else []
        table.add_row(Text(line(judge.judge)), *plain, percent(judge.mean_accuracy), judge.half or "")
    yield table
    largest = [judge for judge in panel.judges if judge.best_protocol is not None]
    if largest:
        yield title(f"Largest gain over {base} on the same verdicts, in points; exact McNemar, Holm")
        table = grid("", "points", "95% CI", "p (Holm)")
        for judge in largest:
            versus = f"{VERSUS.get(judge.compared or '', '')} {p_value(judge.p_adjusted)}".strip()
            name = Text(f"{line(judge.judge)}: {line(judge.best_protocol or '')}")
            table.add_row(name, percent(judge.gain), interval(judge.low, judge.high), versus)
        yield table
    if panel.correlations:
        yield title("Rank correlation (Spearman) of accuracies")
        yield from map(_format_correlation, panel.correlations)
    difficulty = panel.difficulty
    if difficulty.n:
        cases = count(difficulty.n, "comparison")
        yield title(f"Difficulty: share of all verdicts that are right, over {cases}")
        table = grid("right in", "comparisons", "")
        for index, number in enumerate(difficulty.bins):
            low = 100 * index // len(difficulty.bins)
            high = 100 * (index + 1) // len(difficulty.bins)
            table.add_row(Text(f"{low} to {high}%"), str(number), bar(number / difficulty.n))
        yield table
        yield Text(f"never right {difficulty.never}, always right {difficulty.always}", style="dim")


def _format_correlation(c: Correlation) -> Text:
    between = "" if c.low is None or c.high is None else f", 95% CI {c.low:.2f} to {c.high:.2f}"
    value = "–" if c.value is None else f"{c.value:.3f}"
    return Text(f" {line(c.first)} and {line(c.second)}: {value} (n = {c.n}{between})")


def _shorten(name: str, width: int = 20) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"
