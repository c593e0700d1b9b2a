"""A gate on the terminal: its checks, its decision and its cost, and the words for them in every output.

Every text is one line that is safe to print; each output format does its own escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from distract.core.printable import count, interval, line, p_value, percent
from distract.report.blocks import Block, Heading, Note, Prose, Sentence, Span, Table, TableRow, Tone, Words, notes
from distract.report.glossary import empty_reason
from distract.report.phrases import join_names
from distract.stats.figure import LEAST
from distract.stats.measures import MEASURES
from distract.studies.attack.flips import Flip, excerpt_difference
from distract.studies.gate.limits import Decision, Kind, Limits, Place, find_kind, split_name
from distract.studies.gate.power import cures, too_few_reason
from distract.studies.gate.verdict import Check, Verdict

State = Literal["pass", "fail", "inconclusive", "skipped"]
ClearestFlips = Mapping[tuple[str, str, str], Sequence[Flip]]
"""The clearest flips by (protocol, attack, measure)."""

WHOLE = "gate"
"""Place of a finding that no single check explains."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check, or (without a check) of the gate as a whole."""

    state: State
    reason: str
    check: Check | None = None

    @property
    def place(self) -> str:
        """Protocol and attack."""
        return f"{protocol_label(self.check)} under {attack_label(self.check)}" if self.check else WHOLE


def findings(verdict: Verdict) -> list[CheckFinding]:
    """Return a finding for each check, and one for the whole gate if no check ended as the gate did.

    So an empty or undecided gate never looks green: a document without a fault reads as a pass.
    """
    results = [CheckFinding("skipped" if c.skipped else c.decision, line(c.reason), c) for c in verdict.checks]
    if verdict.decision not in {result.state for result in results}:
        state: Decision = "inconclusive" if verdict.decision == "pass" else verdict.decision
        results.append(CheckFinding(state, line(verdict.reason) or "no check was made"))
    return results


def protocol_label(check: Check) -> str:
    """Name a check's protocol, with its rule."""
    return line(check.protocol) + (f" by {line(check.rule)}" if check.rule else "")


def attack_label(check: Check) -> str:
    """Name a check's attack."""
    name = line(check.attack) + ("" if check.row.primary else f" ({check.row.failure})")
    return name + " since the baseline" * (check.kind == "rise")


def format_threshold(threshold: float | None) -> str:
    """Format a threshold in percent with all its digits."""
    return "–" if threshold is None else f"{100 * threshold:g}"


def is_worth(check: Check) -> bool:
    """Whether a check is about what a style is worth, in its own unit, and no rate of hits."""
    return check.unit != "share"


def format_amount(check: Check) -> str:
    """Format the value of a check that has a unit of its own."""
    return "–" if check.value is None else f"{check.value:z.2f} {line(check.unit)}"


def format_bounds(check: Check) -> str:
    """Format the bounds of a check with a unit of its own; empty if there is no figure."""
    lower = "–∞" if check.lower is None else f"{check.lower:z.2f}"
    upper = "∞" if check.upper is None else f"{check.upper:z.2f}"
    return "" if check.value is None else f"{lower} to {upper}"


def figure_lines(check: Check, confidence: float) -> Iterator[str]:
    """Describe the figures of a check, one line each."""
    noun, is_rise, one_sided = (
        check.name_rate(),
        check.kind == "rise",
        f"(each bound one-sided, {percent(confidence)}%)",
    )
    if is_worth(check):
        yield f"{noun}: {format_amount(check)}; of {check.n}, {check.invalid} invalid"
        if bounds := format_bounds(check):
            yield f"bounds: {bounds} {one_sided}"
        yield f"largest {noun}: {check.threshold:g}"
        return
    basis = "" if check.prompts is None else f", mean over {count(check.prompts, 'prompt')}"
    rate = f" ({percent(check.value)}%{basis})" if check.value is not None else ""
    share = "" if check.eligible_share is None else f"; {percent(check.eligible_share)}% of the comparisons eligible"
    counts = f"{check.k} of {check.n} {check.row.hits}{rate}"
    yield f"{counts}; {check.invalid} invalid, {check.excluded} excluded{share}"
    if check.reference is not None:
        only = f"; {check.row.hit}s only in this run {check.only_here}, only in the reference {check.only_there}"
        only = "" if check.only_here is None or check.only_there is None else only
        under = "of the baseline" if is_rise else "under the control"
        yield f"{noun} {under}: {percent(check.reference)}%{'' if is_rise else f' of {check.n}'}{only}"
    if bounds := interval(check.lower, check.upper):
        noun = {"excess": "excess over the control", "rise": "rise since the baseline"}.get(check.kind, noun)
        yield f"{noun}: {bounds}% {one_sided}"
    if check.threshold is not None:
        limit = format_threshold(check.threshold)
        yield f"largest rise: {limit} points" if is_rise else f"threshold: {limit}%"
    if check.margin_n is not None:
        yield f"{_describe_margin(check)}; all {check.row.hit}s: {check.all_k} of {check.all_n}"
    if check.p_value is not None:
        adjusted = f", {p_value(check.p_adjusted)} after Holm's adjustment" if check.p_adjusted is not None else ""
        yield f"p: {p_value(check.p_value)}{adjusted}"
    if check.needed is not None:
        yield _describe_needed(check.needed)


def _describe_margin(check: Check) -> str:
    """Describe the margin beyond which flips count."""
    value, most = ("–" if lead is None else f"{lead:.3f}" for lead in (check.margin, check.margin_upper))
    return f"margin {value}, at most {most}, by {count(check.margin_n or 0, 'placebo rewrite')}"


def explain_open(finding: CheckFinding) -> str:
    """Explain why a check is open and, if known, what would settle it."""
    more = finding.check.needed if finding.check else None
    return finding.reason if more is None else f"{finding.reason}; {_describe_needed(more)}"


def _describe_needed(comparisons: int) -> str:
    return f"about {count(comparisons, 'comparison')} would settle it"


def select_flips(check: Check | None, flips: ClearestFlips) -> Sequence[Flip]:
    """Return the clearest flips of a check, if known."""
    return flips.get((check.protocol, check.attack, check.measure), ()) if check else ()


def describe_flip(flip: Flip) -> str:
    """Describe one flip: the two responses, and both verdicts."""
    (a, b), (c, d) = flip.before, flip.after
    place = f"case {line(flip.case)}: {line(flip.rewritten)}, rewritten, against {line(flip.other)}"
    return f"{place}: {a:.2f} : {b:.2f} before -> {c:.2f} : {d:.2f} after"


def excerpts(flip: Flip) -> tuple[tuple[str, str], ...]:
    """Return named excerpts of original and rewrite where they first differ, if they are on record."""
    texts = excerpt_difference(flip.original, flip.rewrite) if flip.original or flip.rewrite else ()
    return tuple(zip(("original", "rewrite"), texts, strict=False))


def detail_lines(finding: CheckFinding, confidence: float, flips: ClearestFlips, *, texts: bool = False) -> list[str]:
    """Return the reason for a finding, its figures and, for a failure, its clearest flips."""
    lines = [finding.reason]
    if finding.check and finding.state != "skipped":
        lines += figure_lines(finding.check, confidence)
    for flip in select_flips(finding.check, flips) if finding.state == "fail" else ():
        lines += [describe_flip(flip), *(f"{name}: {text}" for name, text in excerpts(flip) if texts)]
    return lines


def effort_lines(verdict: Verdict) -> Iterator[str]:
    """Describe what a live gate used and saved."""
    if effort := verdict.effort:
        calls, saved = count(effort.calls, "judge call"), "not made" if effort.cut else "saved"
        judged = f"{effort.cases:,} of {count(effort.of, 'case')} judged with {calls}"
        yield f"{judged}, about {effort.saved:,} {saved} ({line(effort.stopped)})"


TONES: Mapping[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "doubtful"}


def gate_report(verdict: Verdict) -> Iterable[Block]:
    """Show the decision of a gate and its reason, its checks and its cost."""
    yield Sentence(_describe_decision(verdict), apart=False)
    unknown = [check for check in verdict.checks if check.decision == "inconclusive" and not check.skipped]
    if len(unknown) > 1 or (unknown and verdict.decision == "fail"):
        yield Sentence("still unknown:", apart=False)
        reasons: dict[tuple[str, str], list[str]] = {}
        for check in unknown:
            reasons.setdefault((protocol_label(check), line(check.reason)), []).append(attack_label(check))
        for (protocol, why), attacks in reasons.items():
            yield Sentence(f"  {protocol}, {', '.join(attacks)}: {why}", apart=False)
    for measure in dict.fromkeys(check.measure for check in verdict.checks):
        yield _table([check for check in verdict.checks if check.measure == measure])
    shares = sorted(check.eligible_share for check in verdict.checks if check.eligible_share is not None)
    if shares and shares[0] < 1:
        to = f" to {percent(shares[-1])}%" if percent(shares[0]) != percent(shares[-1]) else ""
        yield Note(f"eligible: {percent(shares[0])}%{to} of the comparisons judged before any rewrite", apart=False)
    noise: dict[str, list[str]] = {}
    for check in verdict.checks:
        if check.margin_n is not None:
            every = noise.setdefault(f"{protocol_label(check)}: {_describe_margin(check)}", [])
            every.append(f"{attack_label(check)} {check.all_k} of {check.all_n}")
    yield from (Note(f"{margin}; all flips: {', '.join(every)}", apart=False) for margin, every in noise.items())
    yield from (Sentence(text, apart=False) for text in effort_lines(verdict))
    yield from notes(map(line, verdict.notes), apart=False)


def _describe_decision(verdict: Verdict) -> Words:
    bound = f" ({_describe_bound(verdict)})" if verdict.checks else ""
    decision = Span(line(verdict.outcome), TONES[verdict.decision])
    return Words((decision, Span(f": {line(verdict.reason)}{bound}")))


def _table(checks: Sequence[Check]) -> Table:
    kind = checks[0].kind
    title = checks[0].name_rate() + {"excess": " above noise", "rise": " since baseline"}.get(kind, "")
    reference = {"excess": ["noise"], "rise": ["before"]}.get(kind, [])
    limits = ["limit"] if len({check.threshold for check in checks}) > 1 else []
    columns = ["%", "k/n", *reference, "bounds", *limits, "p (Holm)"]
    columns = ["value", "bounds", "n", "limit"] if is_worth(checks[0]) else columns
    rows: list[TableRow] = []
    for check in checks:
        cells: list[Prose]
        if is_worth(check):
            value = "" if check.value is None else f"{check.value:z.2f}"
            cells, empty = [value, format_bounds(check), str(check.n), f"{check.threshold:g}"], line(check.reason)
        else:
            value, empty = f"{check.k}/{check.n}" if check.n else "", empty_reason(check)
            before = [percent(check.reference)] if reference else []
            limit = [format_threshold(check.threshold)] if limits else []
            bounds = interval(check.lower, check.upper)
            cells = [percent(check.value), value, *before, bounds, *limit, p_value(check.p_adjusted)]
        decision = Span("open", "dim") if check.skipped else Span(check.decision, TONES[check.decision])
        label = f"{protocol_label(check)}, {line(check.attack)}"
        rows.append(("", label, [*cells, decision] if value else f"{decision.text}: {empty}"))
    terms = ["over prompts"] if any(check.prompts for check in checks) else []
    return Table("", (title, *columns, "decision"), rows, terms)


def comparison_report(baseline_name: str, run_name: str, verdict: Verdict) -> Iterable[Block]:
    """Show whether the rates of two runs on the same pairs rose, and the rates."""
    yield Heading(f"before: {line(baseline_name)} · now: {line(run_name)}")
    yield Sentence(_describe_decision(verdict))
    tables: dict[str, list[TableRow]] = {}
    for check in verdict.checks:
        rates: list[Prose] = [percent(check.reference), percent(check.value)]
        rise = f"{_format_rise(check)}\n{interval(check.lower, check.upper)}"
        cells = [*rates, rise, f"{check.only_here}/{check.only_there}", str(check.n), p_value(check.p_adjusted)]
        word = Span(f"   {_describe_rise(check)}", TONES[check.decision])
        label = Words((Span(f" {line(check.attack)}\n"), word))
        title = f"{check.row.failure.capitalize()}s on the same pairs, in %"
        row = (protocol_label(check), label, cells if check.n else empty_reason(check))
        tables.setdefault(title, []).append(row)
    for title, rows in tables.items():
        yield Table(title, ("", "before", "now", "rise", "+/−", "n", "p"), rows)
    yield from notes(map(line, verdict.notes))


def _format_rise(check: Check) -> str:
    if check.value is None or check.reference is None:
        return percent(None)
    points = percent(check.value - check.reference)
    return points if check.value <= check.reference else f"+{points}"


def _describe_rise(check: Check) -> str:
    if check.decision == "inconclusive":
        return "too few" if check.needed is not None else "open"
    if check.decision == "fail":
        return "worse"
    return "a little worse" if check.lower is not None and check.lower > 0 else "not worse"


def gate_lines(p: Mapping[str, Any]) -> Iterator[str]:
    """Describe when a live gate with these parameters stops, and what it cannot decide."""
    own = p["gate"]
    limits = Limits.of(**own["limits"])
    bounded = [
        (limits.require(Place(protocol, find_kind(p, attack), row.name)), row.name, kind)
        for protocol, attack, measure in own["checks"]
        for row, kind in [split_name(measure)]
        if kind != "rise"
    ]
    rises = len(own["checks"]) - len(bounded)
    yield from _undecidable_notes(p, limits, bounded)
    parts, least = [f"{count(rises, 'check')} against the baseline"] if rises else [], ""
    if bounded:
        lowest = min(bounded)[0]
        # With noise, a pair without a hit is slightly weaker evidence.
        has_noise = any(kind == "excess" for _, _, kind in bounded)
        beyond, about = (" above the judge's own noise", "about ") if has_noise else ("", "")
        rates = join_names(dict.fromkeys(f"{MEASURES[name].failure}s" for _, name, _ in bounded)) + beyond
        checks = f"{count(len(bounded), 'check')} of {rates}, the strictest at {format_threshold(lowest)}%"
        parts = [checks, *parts]
        several = any(int(pairs) > 1 for pairs in own["prompts"])
        unit = "prompts, each counted as the mean of its pairs" if several else "verdicts"
        fewest = max(limits.least_n(lowest), LEAST if has_noise else 0)
        least = f"; none can pass before {about}{fewest} {unit}"
    yield f"gate: {' and '.join(parts)}; stops as soon as all are decided or one has failed{least}"
    if limits.margin:
        yield f"margin: leads up to {limits.margin:g} are ties, in points of the score or averaged probability"
    if waiver := own.get("unlabelled_reason"):
        yield f"labels: where they are few, all may pass, not shown to tell good from bad ({line(waiver)})"
    else:
        source = "exchanges" if "exchange" in p else "labelled pairs"
        yield f"labels: none passes before {source} show that the judge can tell good from bad"
    if own["budget"] is not None:
        yield f"budget: at most {count(own['budget'], 'call')}, including those answered from the store"


def describe_limit(check: Check) -> str:
    """Name the threshold of a check, as the option that sets it does."""
    row, limit = check.row, check.threshold or 0.0
    if check.kind == "rise":
        return f"largest rise {format_threshold(limit)} points"
    if is_worth(check):
        return f"largest {row.failure} {limit:g}"
    return f"threshold {percent(limit)}%" if row.better == "low" else f"smallest {row.words} {percent(1 - limit)}%"


def _describe_bound(verdict: Verdict) -> str:
    """Name the threshold of the check that decided; if all have passed, those of all."""
    parts = list[str]()
    limits: dict[str, set[float | None]] = {}
    deciding = verdict.deciding
    for check in verdict.checks if deciding is None else ():
        if check.kind in ("rate", "excess") and check.row.is_paired:
            limits.setdefault(f"{check.row.failure}s", set()).add(check.threshold)
    if deciding is not None and deciding.threshold is not None:
        parts.append(describe_limit(deciding))
    elif verdict.threshold is not None:
        none = " where a check has none of its own" if any(len(own) > 1 for own in limits.values()) else ""
        parts.append(f"threshold {percent(verdict.threshold)}%{none}")
    elif len(limits) > 1:  # a table shows those that differ within it
        parts += [f"{name} up to {format_threshold(*own)}%" for name, own in limits.items() if len(own) == 1]
    if verdict.margin:
        parts.append(f"leads up to {verdict.margin:g} are ties")
    rises = [check for check in verdict.checks if check.kind == "rise" and deciding is None]
    parts += dict.fromkeys(map(describe_limit, rises))
    return ", ".join([*parts, f"one-sided {percent(verdict.confidence)}% bounds"])


def _undecidable_notes(
    p: Mapping[str, Any], limits: Limits, bounded: Sequence[tuple[float, str, Kind]]
) -> Iterator[str]:
    own = p["gate"]
    n, unit = sum(own["prompts"].values()), "prompts" if max(map(int, own["prompts"]), default=1) > 1 else "cases"
    remedies, checks = cures(p["limit"], p["data"]["cases"], len(own["checks"])), len(bounded)
    for lowest, rate, _ in sorted(bounded)[:1]:
        if why := too_few_reason(n, unit, lowest, checks, limits.confidence, remedies, rate):
            yield f"warning: {why}"
    if own["baseline"] and n < (least := limits.least_n(limits.max_rise)):
        few = f"{n:,} {unit} cannot show that a rise is below {100 * limits.max_rise:g} points"
        yield f"warning: {few}: at least {least} are needed; use a baseline on more cases, or a larger --max-rise"
