"""The comparisons of a run one by one: the clearest flips, and all of them as a table."""

from __future__ import annotations

import io
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal

from distract.core import files
from distract.core.errors import UnknownName, import_library
from distract.core.printable import line
from distract.core.records import BASELINE, RESAMPLED, Judgment, Rewrite, Row
from distract.core.runs import LoadedRun
from distract.judging.pass_marks import read_verdict
from distract.stats.figure import count
from distract.stats.measures import MEASURES, headline
from distract.studies.measures.run import list_trials, pair_unit, read_effects

MOST = 3  # default number of flips to show
WIDTH = 160  # default number of characters of an excerpt

FlipOutcome = Literal["flip", "softened", "counter-flip"]
"""How a rewrite changed a verdict: its loser wins, its loser ties, or its winner loses."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A verdict that a rewrite of one of its responses changed.

    By default a response that lost and, rewritten, wins. ``other`` is the author of the other response. ``before`` and
    ``after`` hold the strength of the rewritten and of the other response: probabilities averaged over the orders
    shown (a tie has the rest), or scores or ratings under a ``rule``. ``margin`` is how much the rewritten one gained
    on the other, negative in a counter-flip; ``severities`` are in the same order; ``first`` says whether the rewritten
    one is a of its ``rows``, before and after. Both texts are empty if no rewrite is ``written`` on record.
    """

    case: str
    protocol: str
    rule: str | None
    attack: str
    rewritten: str
    other: str
    before: tuple[float, float]
    after: tuple[float, float]
    margin: float
    original: str
    rewrite: str
    severities: tuple[int | None, int | None] = (None, None)
    first: bool = False
    outcome: FlipOutcome = "flip"
    rows: tuple[Row, ...] = field(default=(), compare=False, repr=False)
    written: Rewrite | None = field(default=None, compare=False, repr=False)


def find_flips(
    rows: Iterable[Row],
    rewrites: Iterable[Rewrite],
    protocol: str,
    rule: str | None,
    attack: str,
    most: int = MOST,
    margin: float = 0.0,
    outcome: FlipOutcome = "flip",
    rate: str = "flip_rate",
) -> tuple[Flip, ...]:
    """Return the verdicts that changed this way and most strongly; leads up to ``margin`` are ties.

    With another ``rate`` of failures than that of flips, return those that it counts.
    """
    judged = [row for row in rows if row.design == "flip" and row.protocol == protocol]
    names: Mapping[FlipOutcome, str] = {"softened": "softened_rate", "counter-flip": "counter_flip_rate"}
    measure = MEASURES[names.get(outcome, rate)]
    # A response may have several rewrites; only an accepted one was judged.
    accepted = [one for one in rewrites if one.response.attack == attack and one.is_accepted]
    texts = {(one.case, one.response.author, one.response.severity, one.rival): one for one in accepted}
    trials = [*list_trials(judged, rule, attack, measure.aim or "loser", margin)]
    counted = count(measure, trials).hits(measure)
    hits = [trial for trial in trials if trial.before is not None and counted.get(trial.unit, ("", None))[1]]
    flips = [(_build_flip(*trial.rows, rule, texts, outcome), str(trial.unit)) for trial in hits]
    flips.sort(key=lambda one: (-abs(one[0].margin), one[0].case, one[0].rewritten, one[0].other, one[1]))
    return tuple(flip for flip, _ in flips[:most])


def clearest_flips(
    rows: Iterable[Row],
    rewrites: Iterable[Rewrite],
    protocols: Mapping[str, Sequence[str]],
    attacks: Sequence[str],
    most: int,
    case: str | None = None,
    outcome: FlipOutcome = "flip",
) -> tuple[Flip, ...]:
    """Return the clearest flips of a run, or the verdicts that changed in another way.

    Protocols measure strength on different scales, so they take turns: the clearest flip of each, then the second of
    each.
    """
    rows, rewrites = [row for row in rows if row.design == "flip" and case in (None, row.case)], list(rewrites)
    ranked = []
    for protocol, rules in protocols.items():
        rule = headline("flip_rate", rules)
        flips = (find_flips(rows, rewrites, protocol, rule, attack, most, outcome=outcome) for attack in attacks)
        # Sorting is stable, so among equals the attack named first comes first.
        ranked.append(sorted(chain.from_iterable(flips), key=lambda flip: -abs(flip.margin)))
    turns = (flip for turn in zip_longest(*ranked) for flip in turn if flip is not None)
    return tuple(turns)[:most]


def find_run_flips(
    run: LoadedRun,
    protocols: Sequence[str] = (),
    attacks: Sequence[str] = (),
    case: str | None = None,
    outcomes: Sequence[FlipOutcome] = ("flip",),
) -> tuple[Flip, ...]:
    """Return the flips of a run, the clearest of each outcome first; controls count only if they are named.

    Raises:
        UsageError: the run is of another command, or has no such protocol or attack.
    """
    run.check_command("attack", "gate")
    p = run.parameters
    written = [name for name in p["attacks"] if name != RESAMPLED]
    for kind, names, known in (("protocol", protocols, [*p["protocols"]]), ("attack", attacks, written)):
        if unknown := [name for name in names if name not in known]:
            raise UnknownName(kind, unknown[0], known, "the run has no other")
    rules = {name: rules for name, rules in p["protocols"].items() if not protocols or name in protocols}
    rows, rewrites, attacks = list(run.rows), list(run.rewrites), attacks or distractors(p)
    flips = (clearest_flips(rows, rewrites, rules, attacks, len(rows), case, outcome) for outcome in outcomes)
    return tuple(chain.from_iterable(flips))


def distractors(parameters: Mapping[str, Any]) -> list[str]:
    """Return the attacks of a run without its controls."""
    return [name for name in parameters["attacks"] if name not in parameters["controls"]]


def excerpt_difference(original: str, rewrite: str, width: int = WIDTH) -> tuple[str, str]:
    """Return one line of each text, starting shortly before their first difference.

    Differences in white space do not count; an ellipsis marks what is left out.
    """
    texts = (line(original), line(rewrite))
    pairs = enumerate(zip(*texts, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
    start = 0
    if texts[0] != texts[1] and max(map(len, texts)) > width and same > width // 4:
        start = same - width // 4
        # Start at the next word if it begins before the difference.
        start = texts[0].find(" ", start - 1, same - 1) + 1 or start
    excerpts = [f"…{text[start:]}" if start else text for text in texts]
    one, other = (text if len(text) <= width else f"{text[: width - 1]}…" for text in excerpts)
    return one, other


def _build_flip(before: Row, after: Row, rule: str | None, texts: Mapping[Any, Rewrite], outcome: FlipOutcome) -> Flip:
    mirrored = after.target == "b"
    # Read the pair from the view of the rewritten response.
    (other, rewritten) = (before.a, before.b) if mirrored else (before.b, before.a)
    first, last = (strengths(row.judgments, rule, mirrored) for row in (before, after))
    margin = (last[0] - last[1]) - (first[0] - first[1])
    written = (before.case, rewritten.author, rewritten.severity)
    rewrite = texts.get((*written, None)) or texts.get((*written, other.author))
    pair = ("\n\n".join(rewrite.original), rewrite.response.text) if rewrite else ("", "")
    place = (before.case, before.protocol, rule, after.attack, rewritten.author, other.author)
    severities = (rewritten.severity, other.severity)
    return Flip(*place, first, last, margin, *pair, severities, not mirrored, outcome, (before, after), rewrite)


def strengths(judgments: Sequence[Judgment], rule: str | None, mirrored: bool) -> tuple[float, float]:
    """Return the mean strengths of both responses, by which the verdict was decided."""
    if rule is None:
        pairs = [j.probabilities[:2] for j in judgments if j.probabilities is not None]
    else:
        pairs = [pair for j in judgments if (pair := j.ratings if rule == "rating" else j.scores) is not None]
    a, b = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return (b, a) if mirrored else (a, b)


COLUMNS: Mapping[str, type] = {
    **dict.fromkeys(("case", "prompt", "data", "design", "attack", "effect", "protocol", "rule", "response"), str),
    **{"response_severity": int, "rival": str, "rival_severity": int, "before": str, "after": str, "flipped": bool},
    **{"margin_before": float, "margin_after": float, "label": str, "failure": str, "excluded": str},
    **dict.fromkeys(("case_line", "rewrite_line", "calls", "tokens_in", "tokens_out"), int),
}
"""The columns with their types; each may be empty. ``docs/reading-results.md`` describes them."""


def list_comparisons(run: LoadedRun) -> Iterator[dict[str, Any]]:
    """Yield one record for each comparison of a run and each rule by which its protocol decides, in plan order."""
    rules = run.parameters["protocols"]
    case_lines = {(case.id, case.cluster): number for number, case in enumerate(run.cases, 1)}
    rewrite_lines: dict[Hashable, int] = {}
    for number, one in enumerate(run.rewrites, 1):
        written = one.response
        if one.is_accepted:
            rewrite_lines.setdefault((one.case, written.author, written.severity, written.attack), number)
    earlier = {_pair(row): row for row in run.rows if row.attack == BASELINE}
    effects = read_effects(run.parameters)
    for row in run.rows:
        # Before a rewrite, the side that it would rewrite, or a.
        is_second = row.design in ("fixed", "severity") or (row.b.attack and not row.a.attack)
        side = row.target or ("b" if is_second else "a")
        response, rival = (row.a, row.b) if side == "a" else (row.b, row.a)
        before = row if row.attack == BASELINE else earlier.get(_pair(row))
        after = None if row.attack == BASELINE else row
        failures = dict.fromkeys(str(judgment.failure) for judgment in row.judgments if judgment.failure)
        tokens = map(sum, zip(*row.tokens, strict=True)) if row.tokens else (0, 0)
        rewritten = (row.case, response.author, response.severity, response.attack)
        effect = "worse" if row.design == "severity" else effects.get(row.attack)
        begin = (row.case, row.cluster, row.data or None, row.design, row.attack, effect, row.protocol)
        lines = (case_lines.get((row.case, row.cluster)), rewrite_lines.get(rewritten), len(row.keys), *tokens)
        for rule in rules[row.protocol] or (None,):
            (was, lead_before), (now, lead_after) = (_read(one, rule, side) for one in (before, after))
            # A tie cannot flip.
            is_eligible = row.design == "flip" and None not in (was, now) and was != "tie"
            flipped = now not in (was, "tie") if is_eligible else None
            values = (
                *(*begin, rule, response.author, response.severity, rival.author, rival.severity),
                *(was, now, flipped, lead_before, lead_after),
                *(_name_side(row.label, side), "; ".join(failures) or None, row.excluded, *lines),
            )
            yield dict(zip(COLUMNS, values, strict=True))


def write_parquet(run: LoadedRun, path: Path, option: str) -> None:
    """Write the table as Parquet.

    Raises:
        UsageError: pyarrow is not installed, or the file cannot be written.
    """
    pyarrow = import_library("pyarrow.parquet", "parquet", option)
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(list_comparisons(run)), schema), file)
    files.write(path, file.getvalue(), option)


def _pair(row: Row) -> Hashable:
    return (row.design, row.protocol, row.data, row.subset, str(row.extra), *pair_unit(row))


def _name_side(verdict: str | None, side: str) -> str | None:
    return verdict if verdict in (None, "tie") else "response" if verdict == side else "rival"


def _read(row: Row | None, rule: str | None, side: str) -> tuple[str | None, float | None]:
    verdict = _name_side(read_verdict(row, row.judgments, rule), side) if row else None
    if row is None or not row.judgments or any(judgment.failure for judgment in row.judgments):
        return verdict, None
    own, other = strengths(row.judgments, rule, mirrored=side == "b")
    return verdict, own - other
