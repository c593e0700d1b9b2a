"""The results of an audit: every figure of its rows, whether a judge is usable, and which attacks are strongest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from distract.core.attack import Effect
from distract.core.records import BASELINE, RESAMPLED, Rewrite
from distract.stats import intervals
from distract.stats.figure import (
    CONFIDENCE,
    FEW,
    Figure,
    adjust_p_values,
    fill_mean,
    is_withheld,
    list_headline,
    measure_trials,
)
from distract.stats.measures import MEASURES, headline, primary_name
from distract.stats.trials import STYLES, Design
from distract.studies.attack.ranks import ProtocolRank, Usability
from distract.studies.attack.style import MarginCurve, flip_sizes, shift_excesses, style_figures
from distract.studies.measures.compact_rows import CompactRow, CompactRows
from distract.studies.measures.run import RunMeasures, list_verdicts, read_effects
from distract.studies.rewrite_counts import CompactRewrites, agreements, rejections

ALLOWED = 0.05  # share of wins that a hollow answer may have by mistake; it has no control, since it must lose


@dataclass(frozen=True, slots=True)
class Strength(Figure):
    """The rate of failures of one attack under one protocol, by its headline rule.

    ``beyond`` is its excess over the rate under ``control`` on the same ``beyond_n`` pairs, and None for a
    ``beyond_reason`` where they are too few; a hollow answer has no control.
    ``p_value`` tests that there is no excess, or that hollow answers win at most 5%; Holm runs over all attacks and
    protocols. ``is_stronger`` is None without a test. ``rank`` counts within effect and protocol.
    """

    effect: Effect = "same"
    family: str = ""
    rank: int = 0
    control: str | None = None
    beyond: float | None = None
    beyond_low: float | None = None
    beyond_high: float | None = None
    beyond_n: int | None = None
    beyond_reason: str | None = None
    is_stronger: bool | None = None


def rank_strengths(figures: Sequence[Figure], parameters: Mapping[str, Any]) -> list[Strength]:
    """Rank the attacks of a run by effect, within their effect and under each protocol."""
    effects, controls = read_effects(parameters), parameters.get("control_of", {})
    rules, families = parameters["protocols"], parameters.get("families", {})
    beyond = [f for f in figures if f.against == f.protocol and f.against_attack == controls.get(f.attack)]
    excesses = {f.place[:4]: f for f in beyond}
    strengths = list[Strength]()
    known = {effect: list_headline(figures, primary_name(effect), rules) for effect in dict.fromkeys(effects.values())}
    for effect, f in ((effect, f) for effect, own in known.items() for f in own if effects.get(f.attack) == effect):
        s = Strength(**asdict(f), effect=effect, family=families.get(f.attack, effect))
        if effect == "hollow":
            n = f.effective_n or f.n
            s = replace(s, p_value=intervals.p_above((s.value or 0.0) * n, n, ALLOWED))
        elif excess := excesses.get(f.place[:4]):
            s = replace(s, control=excess.against_attack, p_value=excess.p_value)
            s = replace(s, beyond=excess.value, beyond_low=excess.low, beyond_high=excess.high, beyond_n=excess.n)
            s = replace(s, beyond_reason=FEW if is_withheld(excess) else None)
        strengths.append(s)
    order = get_args(Effect)
    strengths.sort(
        key=lambda s: (order.index(s.effect), s.protocol or "", -(s.value or 0.0), -(s.beyond or 0.0), s.attack)
    )
    ranks = Counter[tuple[str, str | None]]()
    ranked = list[Strength]()
    for s in adjust_p_values(strengths):
        ranks[s.effect, s.protocol] += 1
        s = replace(s, rank=ranks[s.effect, s.protocol])
        if s.p_adjusted is not None:
            is_significant = s.p_adjusted <= 1 - CONFIDENCE
            s = replace(s, is_stronger=is_significant and (s.effect == "hollow" or (s.beyond or 0.0) > 0))
        ranked.append(s)
    return ranked


def figures(briefs: CompactRows, rewrites: Iterable[Rewrite], parameters: Mapping[str, Any]) -> list[Figure]:
    """Compute every figure that the rows support, in a total order."""
    run = RunMeasures(briefs, parameters)
    shown = [attack for attack in run.effects if attack != RESAMPLED]
    written = [attack for attack in shown if run.effects[attack] in STYLES]
    results = [*rejections(rewrites, shown, briefs.groups), *agreements(rewrites, briefs.groups)]
    for protocol, rules in run.rules.items():
        own = style_figures(briefs, protocol, rules, written, parameters.get("placebos", ()))
        margin = next((f.value for f in own if f.measure == "indifference_margin"), None)
        own += flip_sizes(briefs, protocol, rules, [name for name in written if run.effects[name] != "control"])
        results += [*_quality(protocol, briefs), *own, *run.figures(protocol, margin)]
        results += shift_excesses(briefs, protocol, headline("flip_rate", rules), run.control_of, run.effects)
    results += [*run.excesses(), *run.contrasts()]
    return adjust_p_values(sorted(results, key=lambda figure: figure.place))


def _quality(protocol: str, briefs: CompactRows) -> Iterator[Figure]:
    if ratings := briefs.ratings[protocol]:
        yield Figure("distinct_ratings", protocol, "rating", BASELINE, value=len(ratings), unit="count")
    conditions: dict[tuple[str, int | None], list[CompactRow]] = defaultdict(list)
    for design in get_args(Design):
        for row in briefs.of(protocol, design):
            # Only the severity design distinguishes severities.
            conditions[row.attack, row.b.severity if design == "severity" else None].append(row)
    for attack, severity in sorted(conditions, key=str):
        rows = conditions[attack, severity]
        # The control that changes nothing shares the baseline's name; prefer the baseline if there is one.
        trials = [*list_verdicts([row for row in rows if row.target is None] or rows)]
        names = ["invalid_rate", *(["order_inconsistency"] if any(len(one.verdicts) > 1 for one in trials) else [])]
        empty = Figure("choice_mass", protocol, None, attack, severity)
        yield from (read := [measure_trials(MEASURES[name], trials, empty) for name in names])
        valid = [(mass, one.cluster) for one in trials if one.after is not None for mass in one.rows[0].masses]
        empty = replace(empty, invalid=int(read[0].k or 0), excluded=read[0].excluded)
        mass = fill_mean(empty, [mass for mass, _ in valid], [cluster for _, cluster in valid])
        low, high = (None if end is None else min(max(0.0, end), 1.0) for end in (mass.low, mass.high))
        yield replace(mass, low=low, high=high)


@dataclass(frozen=True)
class AttackResult:
    """The result of a run; ``excluded`` and ``invalid`` count comparisons and verdicts by reason."""

    figures: Sequence[Figure]
    usable: Sequence[Usability]
    standings: Sequence[ProtocolRank]
    rewrites: CompactRewrites
    prompts: int
    excluded: Counter[str]
    invalid: Counter[str]
    curves: Sequence[MarginCurve] = ()
    strengths: Sequence[Strength] = ()
