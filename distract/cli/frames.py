"""The rows of a run as a flat table, for pandas or anything else that takes one dict per row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distract.core.errors import UsageError, install_command
from distract.core.records import Judgment, Row
from distract.judging.verdicts import outcome

if TYPE_CHECKING:
    import pandas

_PLAIN_FIELDS = ("case", "cluster", "design", "protocol", "judge", "attack", "target", "excluded", "label")


def build_frame(rows: Iterable[Row], protocols: Mapping[str, Sequence[str]]) -> pandas.DataFrame:
    """Build a pandas table with one row for each row of a run."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError(f"to_frame needs pandas, which is not installed: {install_command('pandas')}") from error
    return pandas.DataFrame([flatten_row(row, protocols[row.protocol]) for row in rows])


def flatten_row(row: Row, rules: Sequence[str] = ()) -> dict[str, Any]:
    """Flatten a row into one dict.

    Besides the row's own names there are ``a_author``, ``a_attack``, ``a_severity`` and the same for b; ``outcome``
    over all orders (for a protocol that scores, ``outcome_score`` and ``outcome_rating``), None where no verdict is
    valid; for each order, from 1, ``shown_1``, ``preferred_1``, ``probability_a_1`` (b, tie), ``score_a_1``,
    ``rating_a_1``, ``mass_1``, ``read_1`` and ``failure_1``; and ``requests``, ``tokens_in`` and ``tokens_out``.
    """
    flat: dict[str, Any] = {name: getattr(row, name) for name in (*_PLAIN_FIELDS, "data", "subset")}
    for name, side in (("a", row.a), ("b", row.b)):
        flat |= {f"{name}_author": side.author, f"{name}_attack": side.attack, f"{name}_severity": side.severity}
    for rule in rules or (None,):
        flat[f"outcome_{rule}" if rule else "outcome"] = outcome(row.judgments, rule) if row.judgments else None
    for place, judgment in enumerate(row.judgments, 1):
        if row.shown:
            flat[f"shown_{place}"] = row.shown[place - 1]
        flat |= {f"{name}_{place}": value for name, value in _flatten_judgment(judgment).items()}
    tokens_in, tokens_out = map(sum, zip(*row.tokens, strict=True)) if row.tokens else (0, 0)
    return {**flat, "requests": len(row.keys), "tokens_in": tokens_in, "tokens_out": tokens_out}


def _flatten_judgment(judgment: Judgment) -> dict[str, Any]:
    flat: dict[str, Any] = {"preferred": judgment.preferred}
    for name, values in (
        ("probability", judgment.probabilities),
        ("score", judgment.scores),
        ("rating", judgment.ratings),
    ):
        flat |= {f"{name}_{side}": value for side, value in zip(("a", "b", "tie"), values or (), strict=False)}
    # A failure may be a ``ParseFailure``; a table wants plain text.
    failure = None if judgment.failure is None else str(judgment.failure)
    return {**flat, "mass": judgment.mass, "read": judgment.read, "failure": failure}
