"""Judges side by side: on the labelled comparisons that all of them judged, and by how hard a comparison is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from statistics import fmean

from distract.core.printable import bar, count, interval, line, p_value, percent
from distract.core.records import Outcome
from distract.judging import BASE
from distract.report.blocks import Block, Detail, Heading, Note, Sentence, Table, TableRow
from distract.report.phrases import VERDICTS, join_names
from distract.stats import agreement
from distract.stats.figure import CONFIDENCE
from distract.studies.meta import measures
from distract.studies.meta.measures import Agreement, ComparisonUnit, DataPlace, JudgeRows, MetaDesign, split_designs
from distract.studies.meta.session import JudgeSource

WORDS: Mapping[MetaDesign, Mapping[Outcome, str]] = {
    "people": {"a": "a", "b": "b", "tie": "tie"},
    "pass": {"a": "pass", "b": "fail"},
}
"""Labels and verdicts of each design in words."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """Numbers of verdicts, over all orders, by label and verdict."""

    judge: str
    protocol: str
    rule: str | None
    design: MetaDesign
    data: str | None  # None for all data sets together
    counts: Mapping[str, Mapping[str, int]]  # by label, then by verdict; ``invalid`` is a verdict too


def confusions(judged: Sequence[JudgeRows]) -> list[Confusion]:
    """Count the verdicts of each judge under each protocol and rule, in total and by data set."""
    results = []
    for design, judges in split_designs(judged).items():
        labels, sets = WORDS[design], [data for data, subset in measures.places(judges) if subset is None]
        for judge, rule in [(one, rule) for one in judges for rule in one.rules or (None,)]:
            whole = measures.collect_comparisons(judge.by(rule), rule)
            for data in sets if any(pair.label is not None for pair in whole) else ():
                part = measures.select_place(whole, (data, None))
                counts = Counter((pair.label, verdict) for pair in part for verdict in pair.verdicts)
                by_label = {
                    name: {word: counts[label, verdict] for verdict, word in (*labels.items(), (None, "invalid"))}
                    for label, name in labels.items()
                }
                results.append(Confusion(judge.judge, judge.protocol, rule, design, data, by_label))
    return results


BINS = 10  # for the share of verdicts that are right


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of two lists of n accuracies, with its interval."""

    between: str
    first: str
    second: str
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Number of comparisons by the share of verdicts that are right; an invalid verdict is not right."""

    n: int  # number of comparisons that every judge had under every protocol
    bins: Sequence[int]  # counts from the hardest tenth (right in less than 10%) to the easiest (at least 90%)
    never: int  # number of comparisons without a right verdict
    always: int  # number of comparisons with right verdicts only


def whole_place(figures: Sequence[Agreement]) -> DataPlace:
    """Find the place that holds everything: the only data set, or all of them together."""
    names = {figure.data for figure in figures}
    return (names.pop() if len(names) == 1 else None), None


Accuracies = Mapping[str, Mapping[str, float]]  # accuracies by judge and protocol


def accuracies(judged: Sequence[JudgeRows], figures: Sequence[Agreement], place: DataPlace) -> Accuracies:
    """Select the accuracies at one place, by the headline rules."""
    rules = {(one.judge, one.protocol): one.headline for one in judged}
    by_judge: dict[str, dict[str, float]] = defaultdict(dict)
    for f in figures:
        is_there = f.measure == "accuracy" and f.against is None and (f.data, f.subset) == place
        if is_there and f.value is not None and f.rule == rules[f.judge, f.protocol or ""]:
            by_judge[f.judge][f.protocol or ""] = f.value
    return by_judge


def correlations(
    judged: Sequence[JudgeRows],
    figures: Sequence[Agreement],
    accuracy: Accuracies,
    means: Mapping[str, float],
    base: str | None,
) -> list[Correlation]:
    """Correlate accuracies: between data sets over judges and protocols, of base and mean over judges."""
    sets = sorted({f.data for f in figures if f.data is not None})
    by_set = {name: accuracies(judged, figures, (name, None)) for name in sets}
    pairs = [("data sets", one, other, by_set[one], by_set[other]) for one, other in combinations(sets, 2)]
    if base is not None and any(base in own for own in accuracy.values()):
        mean = {judge: {base: value} for judge, value in means.items()}
        pairs.append(("base and mean over protocols", base, "mean", accuracy, mean))
    results = []
    for between, first, second, values, others in pairs:
        keys = ({(judge, name) for judge, own in of.items() for name in own} for of in (values, others))
        shared = sorted(set.intersection(*keys))
        x, y = ([of[judge][name] for judge, name in shared] for of in (values, others))
        low, high = agreement.spearman_interval(x, y, CONFIDENCE) or (None, None)
        results.append(Correlation(between, first, second, len(x), agreement.spearman(x, y), low, high))
    return results


def difficulty(judged: Sequence[JudgeRows]) -> Difficulty:
    """Count comparisons by the share of right verdicts."""
    right: dict[object, list[list[bool]]] = defaultdict(list)
    for pair in (pair for judge in judged for pair in judge.labelled):
        right[pair.unit].append([verdict == pair.label for verdict in pair.verdicts])
    shares = [fmean(chain(*parts)) for parts in right.values() if len(parts) == len(judged) and any(parts)]
    counts = Counter(min(BINS - 1, int(share * BINS + 1e-9)) for share in shares)
    bins = [counts[index] for index in range(BINS)]
    return Difficulty(len(shares), bins, sum(share == 0 for share in shares), sum(share == 1 for share in shares))


BASES = (BASE, "Vanilla", "base_pairwise.pairwise_vanilla")
"""Names of plain pairwise choice: distract's own, and those in LLMBar's and ReIFE's published runs."""


@dataclass(frozen=True, slots=True)
class ProtocolStanding:
    """A protocol over the judges that have every protocol compared."""

    protocol: str
    judges: int
    mean_accuracy: float
    mean_rank: float  # mean over judges, 1 is the most accurate; equal ones share a mean rank
    best_judge: str
    best_accuracy: float
    # Mean accuracy minus the base's over the stronger half of the judges; None without a base.
    strong_gain: float | None
    weak_gain: float | None  # the same over the weaker half; a middle judge is in neither


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """A judge over its protocols."""

    judge: str
    # ``strong`` or ``weak``, by accuracy under the base if all judges have it, else by ``mean_accuracy``.
    half: str | None
    accuracy: float | None  # accuracy under the base; None without it
    mean_accuracy: float  # mean over the protocols that all judges have; over the judge's own if there are none
    # The protocol with the largest gain over the base, which may be a loss; None without a base.
    best_protocol: str | None = None
    gain: float | None = None  # accuracy minus the base's on the verdicts valid under both, with its interval
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None  # exact McNemar test, after Holm over all pairs of the judge's protocols
    compared: str | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Judges compared."""

    base: str | None  # the protocol that others are compared with; None if no judge has it
    # Number of labelled comparisons that every judge has under every shared protocol (under all of its own if there
    # are none); all figures but the correlations between data sets are based on them.
    comparisons: int
    protocols: Sequence[ProtocolStanding]  # most accurate first
    judges: Sequence[JudgeStanding]  # most accurate first
    correlations: Sequence[Correlation]
    difficulty: Difficulty


def find_base(protocols: Sequence[str], requested: str | None = None) -> str | None:
    """Find the protocol to compare others with: the one named, else the first known base present."""
    known = (requested,) if requested else BASES
    return next((name for name in known if name in protocols), None)


def compare_judges(judged: Sequence[JudgeRows], figures: Sequence[Agreement], base: str | None) -> Panel | None:
    """Compare judges on the comparisons that all of them have."""
    accuracy = accuracies(judged, figures, whole_place(figures))
    if len(accuracy) < 2:
        return None
    common = set[str].intersection(*map(set, accuracy.values()))
    fit = [one for one in judged if one.judge in accuracy and one.protocol in (common or accuracy[one.judge])]
    shared = set.intersection(*({pair.unit for pair in one.labelled} for one in fit))
    all_figures = figures
    if any(pair.unit not in shared for one in judged for pair in one.labelled):
        judged, fit = ([_keep_units(one, shared) for one in some] for some in (judged, fit))
        figures = measures.figures(judged)
        accuracy = accuracies(judged, figures, whole_place(figures))
    if len(accuracy) < 2:
        return None  # no comparison is shared, or none has a valid verdict
    common = set[str].intersection(*map(set, accuracy.values()))
    # Protocols that only some judges have would not compare the judges.
    means = {name: fmean([own[protocol] for protocol in sorted(common or own)]) for name, own in accuracy.items()}
    strength = {name: own[base] if base in common else means[name] for name, own in accuracy.items()}
    order = sorted(accuracy, key=lambda name: (-strength[name], name))
    size = len(order) // 2
    half: dict[str, str | None] = {**dict.fromkeys(order[:size], "strong"), **dict.fromkeys(order[size:], None)}
    half |= dict.fromkeys(order[-size:], "weak")
    ranked = _rank_protocols(sorted(common), accuracy, base, half)
    described = [*_describe_judges(accuracy, means, base, half, figures)]
    correlated = correlations(judged, all_figures, accuracy, means, base)
    return Panel(base, len(shared), ranked, described, correlated, difficulty(fit))


def _keep_units(judge: JudgeRows, units: set[ComparisonUnit]) -> JudgeRows:
    identify = measures.comparison_unit
    rows = {rule: tuple(row for row in rows if identify(row)[0] in units) for rule, rows in judge.rows.items()}
    return replace(judge, rows=rows)


def _rank_protocols(
    common: Sequence[str], accuracy: Accuracies, base: str | None, half: Mapping[str, str | None]
) -> list[ProtocolStanding]:
    names = sorted(half)
    ranks = [agreement.ranks([accuracy[name][protocol] for protocol in common], descending=True) for name in names]
    halves = [[name for name in names if half[name] == which] for which in ("strong", "weak")]
    standings = []
    for protocol, *places in zip(common, *ranks, strict=True):
        own = {name: accuracy[name][protocol] for name in names}
        best = max(own, key=own.__getitem__)
        gains: list[float | None] = [None, None]
        if base is not None and base in common:
            gains = [fmean([own[name] - accuracy[name][base] for name in part]) for part in halves]
        mean_rank = fmean(places)
        standings.append(ProtocolStanding(protocol, len(own), fmean(own.values()), mean_rank, best, own[best], *gains))
    return sorted(standings, key=lambda one: (one.mean_rank, -one.mean_accuracy, one.protocol))


def _describe_judges(
    accuracy: Accuracies,
    means: Mapping[str, float],
    base: str | None,
    half: Mapping[str, str | None],
    figures: Sequence[Agreement],
) -> Iterator[JudgeStanding]:
    place = whole_place(figures)
    for name, which in half.items():
        standing = JudgeStanding(name, which, accuracy[name].get(base or ""), means[name])
        gains = measures.gains_over(base, (f for f in figures if f.judge == name and (f.data, f.subset) == place))
        if measured := [(f.value, protocol) for protocol, f in gains.items() if f.value is not None]:
            gain, best = max(measured)
            f, gain = gains[best], gain + 0.0  # no negative zero
            standing = replace(standing, best_protocol=best, gain=gain, low=f.low, high=f.high)
            standing = replace(standing, p_adjusted=f.p_adjusted, compared=f.compared)
        yield standing


@dataclass(frozen=True)
class MetaResult:
    """The result of a command; ``panels`` compare several judges, by what people judged."""

    sources: tuple[JudgeSource, ...]
    figures: tuple[Agreement, ...]
    base: str | None
    panels: Mapping[MetaDesign, Panel]
    controls: tuple[str, ...] = ()
    confusions: tuple[Confusion, ...] = ()


def measure_judges(sources: Sequence[JudgeSource], base: str | None = None) -> MetaResult:
    """Measure judges, and compare them where there are several."""
    judged = [one for source in sources for one in source.judged]
    controls = tuple(dict.fromkeys(name for source in sources for name in source.controls))
    measured = measures.figures(judged, controls)
    base = find_base([one.protocol for one in judged], base)
    panels: dict[MetaDesign, Panel] = {}
    for design, judges in split_designs(judged).items():
        own = [figure for figure in measured if figure.design == design]
        if (panel := compare_judges(judges, own, base)) is not None:
            panels[design] = panel
    return MetaResult(tuple(sources), tuple(measured), base, panels, controls, tuple(confusions(judged)))


WIDE = 20  # most characters of a protocol's name as a column title


def sum_up(panel: Panel) -> Iterable[Block]:
    """The protocol and the judge that agree best with the labels."""
    total = count(panel.comparisons, "comparison")
    if panel.protocols:
        first = panel.protocols[0]
        best = [line(one.protocol) for one in panel.protocols if one.mean_accuracy == first.mean_accuracy]
        yield Sentence(
            f"Over {count(first.judges, 'judge')} and the {total} that all of them have, "
            f"{name_best(best)} most often: {percent(first.mean_accuracy)}% on average.",
            apart=False,
        )
    if panel.judges:
        judge = panel.judges[0]
        accuracy = percent(judge.mean_accuracy if judge.accuracy is None else judge.accuracy)
        under = f" under {line(panel.base)}" if panel.base and judge.accuracy is not None else " on average"
        yield Sentence(f"{line(judge.judge)} is the most accurate judge: {accuracy}%{under}.", apart=False)


def name_best(names: Sequence[str]) -> str:
    """Say which ways of asking match the label alike."""
    return f"{join_names(names)} {'matches' if len(names) == 1 else 'alike match'} the label"


def show_panel(panel: Panel) -> Iterable[Block]:
    """The tables of a panel, top to bottom."""
    base = line(panel.base or "")
    rows: list[TableRow] = [
        # Model names are long, and only the first column folds.
        (
            "",
            f"{line(one.protocol)}\n best: {line(one.best_judge)}, {percent(one.best_accuracy)}",
            [percent(one.mean_accuracy), f"{one.mean_rank:.1f}", percent(one.strong_gain), percent(one.weak_gain)],
        )
        for one in panel.protocols
    ]
    if rows:
        gains = f", gains over {base} in points" if any(one.strong_gain is not None for one in panel.protocols) else ""
        name = f"Protocols over {count(panel.protocols[0].judges, 'judge')}: accuracy in %{gains}"
        yield Table(name, ("", "mean", "mean rank", "strong", "weak"), rows)
    based = [base if len(base) <= WIDE else f"{base[: WIDE - 1]}…"] if base else []
    rows = [
        ("", line(one.judge), [*([percent(one.accuracy)] if base else []), percent(one.mean_accuracy), one.half or ""])
        for one in panel.judges
    ]
    yield Table("Judges, most accurate first, in %; which half they are in", ("", *based, "mean", "half"), rows)
    rows = []
    for judge in panel.judges:
        if judge.best_protocol is not None:
            versus = f"{VERDICTS.get(judge.compared or '', '')} {p_value(judge.p_adjusted)}".strip()
            name = f"{line(judge.judge)}: {line(judge.best_protocol)}"
            rows.append(("", name, [percent(judge.gain), interval(judge.low, judge.high), versus]))
    if rows:
        yield Table(f"Largest gain over {base} on the same verdicts", ("", "points", "95% CI", "p"), rows)
    if panel.correlations:
        yield Detail(Heading("Rank correlation (Spearman) of accuracies", level=3))
        for c in panel.correlations:
            between = "" if c.low is None or c.high is None else f", 95% CI {c.low:.2f} to {c.high:.2f}"
            value = "–" if c.value is None else f"{c.value:.3f}"
            name = f" {line(c.first)} and {line(c.second)}: {value} (n = {c.n}{between})"
            yield Detail(Sentence(name, apart=False))
    difficulty = panel.difficulty
    if difficulty.n:
        size = len(difficulty.bins)
        rows = [
            ("", f"{100 * index // size} to {100 * (index + 1) // size}%", [str(number), bar(number / difficulty.n)])
            for index, number in enumerate(difficulty.bins)
        ]
        name = f"Difficulty: share of all verdicts that are right, over {count(difficulty.n, 'comparison')}"
        yield Detail(Table(name, ("right in", "comparisons", ""), rows))
        yield Detail(Note(f"never right {difficulty.never}, always right {difficulty.always}", apart=False))
