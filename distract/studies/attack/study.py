"""``distract attack``: how often a rewrite that changes only style changes the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.core.records import MinimalFlip, Rewrite, Row
from distract.core.study import Study
from distract.stats.figure import flatten, headline
from distract.studies.attack import measures, protocol_ranks, strength
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.labels import check_usability
from distract.studies.attack.margins import trace_margins
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.strength import rank_strengths
from distract.studies.attack.truths import STYLES, read_truths
from distract.studies.rewrite_counts import CompactRewrites, count_reasons

_SHARED = (
    *("judge", "data", "left_out", "limit", "seed", "attacks", "degradations", "protocols", "ties", "manner"),
    *("reference", "generator", "asking", "verifier", "self_judging"),
)


def document(parameters: Mapping[str, Any], measured: AttackResult) -> dict[str, Any]:
    """Combine the parameters of ``run.json`` and the result into a run's summary."""
    return {
        **{name: parameters[name] for name in _SHARED},
        "rejected": count_reasons(measured.rewrites),
        "usable": {one.protocol: one.usable for one in measured.usable},
        "ranking": protocol_ranks.document(measured.standings),
        "control_of": dict(parameters.get("control_of", {})),
        "strength": strength.document(measured.strengths),
        "flips_by_margin": [
            {**asdict(curve), "points": [list(point) for point in curve.points]} for curve in measured.curves
        ],
        "results": [flatten(figure) for figure in measured.figures],
        **({} if measured.smallest is None else _minimal_document(measured.smallest)),
    }


def _minimal_document(smallest: Sequence[MinimalFlip]) -> dict[str, Any]:
    from distract.studies.attack.minimal.changed_words import count_words

    words = [{"word": word.text, "change": word.change, "flips": word.flips} for word in count_words(smallest)]
    return {"minimal": {"flips": [flatten_flip(flip) for flip in smallest], "words": words}}


def flatten_flip(flip: MinimalFlip) -> dict[str, Any]:
    """Return a smallest flip as JSON values."""
    names = ("protocol", "rule", "attack", "rewritten", "other")
    numbers = ("of", "comparisons", "requests", "invalid", "minimal")
    return {
        "case": flip.case.id,
        **{name: getattr(flip, name) for name in names},
        "edits": [{"removed": edit.old, "added": edit.new} for edit in flip.edits],
        **{name: getattr(flip, name) for name in numbers},
    }


class _AttackSums:
    """The running summary of a run, in compact form."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._briefs = CompactRows.of_run(parameters)
        self._rewrites = CompactRewrites()
        self._smallest: list[MinimalFlip] = []
        self._excluded, self._invalid = Counter[str](), Counter[str]()

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip] = ()) -> None:
        self._briefs.extend(rows)
        for row in rows:
            self._excluded.update([row.excluded] if row.excluded else [])
            self._invalid.update(judgment.failure for judgment in row.judgments if judgment.failure)
        self._rewrites.extend(rewrites)
        self._smallest.extend(smallest)

    def result(self, flaw: str | None = None) -> AttackResult:
        p = self._parameters
        # Distinguish a search that never started from one that found nothing.
        is_searched = bool(p.get("minimal")) and not (flaw and not self._smallest)
        rules, truths = p["protocols"], read_truths(p)
        styles = [attack for attack in p["attacks"] if truths[attack] in STYLES]
        usable = [
            check_usability(self._briefs.of(name, "flip"), name, headline("clean_accuracy", rules[name]))
            for name in rules
        ]
        families, placebos, control_of = p.get("families", {}), p.get("placebos", ()), p.get("control_of", {})
        figures = measures.figures(
            self._briefs, self._rewrites, rules, p["attacks"], p["ties"], placebos, truths, families, control_of
        )
        return AttackResult(
            figures,
            usable,
            protocol_ranks.rank_protocols(self._briefs, rules, styles, p["controls"], usable),
            self._rewrites,
            self._smallest if is_searched else None,
            len({*self._briefs.clusters.values()}),
            self._excluded,
            self._invalid,
            trace_margins(self._briefs, rules, styles),
            rank_strengths(figures, rules, truths, families, control_of),
        )


def _report(parameters: Mapping[str, Any], measured: AttackResult) -> Iterable[Any]:
    from distract.studies.attack.view import run_report

    return run_report(parameters, measured)


def _interim(parameters: Mapping[str, Any], measured: AttackResult) -> str:
    from distract.studies.attack.headline_view import interim_sentence

    return interim_sentence(parameters, measured.figures)


STUDY = Study(
    name="attack",
    schema={
        "data": {"name": str, "cases": int},
        "limit": int,
        "attacks": [str],
        "degradations": [str],
        "generator": str,
        "asking": dict | None,
        "verifier": dict | None,
    },
    sums=_AttackSums,
    document=document,
    report=_report,
    interim=_interim,
)
