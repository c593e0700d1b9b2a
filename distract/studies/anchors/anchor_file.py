"""The file of anchors: cases, verdicts, how they were asked for, and what is known of the judge that gave them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from distract.core import files
from distract.core.errors import DataError, UsageError
from distract.core.plan import Plan
from distract.core.plugin import Comparison, Protocol
from distract.core.readings import Reading
from distract.core.recorder import dump, format_json
from distract.core.records import BASELINE, Case, Judgment, Response, Row
from distract.core.run_decoder import decode_case, decode_row
from distract.core.study import Shape, has_shape
from distract.data.fields import flaw
from distract.judging.comparison import judge_comparison, label, side
from distract.judging.orders import Manner, Orders
from distract.judging.verdicts import outcome
from distract.stats.measures import headline

FORMAT = "distract anchors 1"
REMAKE = "make it again with `distract anchors make`"

_MOST_ASKED = 1_000_000

_SHAPE: Mapping[Any, Shape] = {
    "format": str,
    "judge": str,
    "identity": dict,
    "protocol": str,
    "manner": dict,
    "data": {"name": str},
    "served": dict,
    "steadiness": {"asked": int, "flickering": int, "largest_move": float | int | None},
    "anchors": [{"case": dict, "row": dict, "place": str}],
}

Place = Literal["near", "far"]
"""Whether a verdict is near the judge's boundary or far from it, among those that it was chosen from."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A comparison in one order, with its verdict."""

    case: Case
    row: Row
    place: Place

    @property
    def orders(self) -> Orders:
        """The order in which the two responses were shown."""
        return "swapped" if self.row.shown == ("b",) else "given"

    @property
    def pair(self) -> tuple[Response, Response]:
        """The two responses, a and b."""
        by_side = {side(response): response for response in self.case.originals}
        return by_side[self.row.a], by_side[self.row.b]


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How the same judge answered the same requests twice, when the anchors were made."""

    asked: int = 0  # comparisons asked twice
    flickering: int = 0  # those with two different verdicts, which are no anchors
    largest_move: float | None = None  # largest move of a share among the others


@dataclass(frozen=True, slots=True)
class AnchorSet:
    """Anchors, and what identifies the judge that gave them.

    ``served`` holds the models and configurations that a server reported; ``data`` names the data set.
    """

    judge: str
    identity: Mapping[str, Any]
    protocol: str
    manner: Manner
    data: Mapping[str, Any]
    steadiness: Steadiness
    anchors: tuple[Anchor, ...]
    served: Mapping[str, Any]
    path: Path | None = None


def ask(judge: str, protocol: Protocol, manner: Manner, helped: bool, anchor: Anchor) -> Plan[Row]:
    """Judge the comparison of an anchor, in its order."""
    case, row = anchor.case, anchor.row
    a, b = anchor.pair
    own = replace(manner, orders=anchor.orders)
    empty = partial(
        Row,
        case.id,
        case.cluster,
        "people",
        protocol.name,
        judge,
        BASELINE,
        row.a,
        row.b,
        label=label(case, a, b),
        prompt_group=case.prompt_group,
    )
    return (yield from judge_comparison(empty, protocol, Comparison(case, a, b), own, helped))


def read_verdict(row: Row, protocol: Protocol) -> Reading:
    """Read the verdict of a row, with its probabilities, or scores as places on their scale."""
    rule = headline("flip_rate", protocol.rules)
    if row.excluded or not row.judgments:
        return Reading(None)
    return Reading(outcome(row.judgments, rule), _list_shares(row.judgments[0], protocol))


def _list_shares(judgment: Judgment, protocol: Protocol) -> tuple[float, ...] | None:
    if judgment.read != "choices" or judgment.failure is not None:
        return None
    if judgment.scores is None:
        return judgment.probabilities
    low, high = protocol.scale or (None, None)
    if low is None or high is None:
        return None
    return tuple((score - low) / (high - low) for score in judgment.scores)


def write_anchors(anchors: AnchorSet, path: Path) -> None:
    """Write a file of anchors; the same anchors always give the same bytes."""
    entries = [{"case": one.case, "row": one.row, "place": one.place} for one in anchors.anchors]
    fields = {name: getattr(anchors, name) for name in ("judge", "identity", "protocol", "data", "served")}
    parts = {**fields, "manner": asdict(anchors.manner), "steadiness": asdict(anchors.steadiness), "anchors": entries}
    document = {"format": FORMAT, **parts, "sha256": _digest(parts)}
    files.write(path, format_json(document), "--out")


def read_anchors(path: Path) -> AnchorSet:
    """Read a file of anchors; raise DataError if it is another file, or was changed."""
    if path.exists() and not path.is_file():
        raise DataError("is not a regular file", path=path)
    try:
        document = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not a file of anchors ({flaw(error)}); {REMAKE}", path=path) from error
    if not has_shape(document, _SHAPE) or document["format"] != FORMAT or not document["anchors"]:
        raise DataError(f"is not a file of anchors of this version; {REMAKE}", path=path)
    parts = {name: value for name, value in document.items() if name not in ("format", "sha256")}
    try:
        if document.get("sha256") != _digest(parts):
            raise DataError(f"was changed since it was made; {REMAKE}", path=path)
        return AnchorSet(
            document["judge"],
            document["identity"],
            document["protocol"],
            Manner(**document["manner"]),
            document["data"],
            _decode_steadiness(document["steadiness"]),
            tuple(map(_decode_anchor, document["anchors"])),
            document["served"],
            path,
        )
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise DataError(f"is not a file of anchors ({error}); {REMAKE}", path=path) from error


def _decode_anchor(value: dict[str, Any]) -> Anchor:
    anchor = Anchor(decode_case(value["case"]), decode_row(value["row"]), value["place"])
    sides = {side(response) for response in anchor.case.originals}
    if anchor.row.extra:
        raise ValueError(f"a row has no field {next(iter(anchor.row.extra))!r}")
    if not {anchor.row.a, anchor.row.b} <= sides or anchor.place not in get_args(Place):
        raise ValueError("an anchor names a response that its case lacks, or an unknown place")
    if len(anchor.row.judgments) != 1 or not all(map(_is_valid, anchor.row.judgments)) or anchor.row.excluded:
        raise ValueError("an anchor has no valid verdict")
    return anchor


def _is_valid(judgment: Judgment) -> bool:
    shares = (*(judgment.probabilities or ()), *(judgment.scores or ()), *(judgment.ratings or ()))
    are_numbers = all(type(share) in (int, float) and math.isfinite(share) for share in shares)
    are_all = len(judgment.probabilities or ()) in (0, 3) and len(judgment.scores or ()) in (0, 2) and len(shares) > 1
    return judgment.failure is None and are_numbers and are_all


def _decode_steadiness(value: dict[str, Any]) -> Steadiness:
    steadiness = Steadiness(**value)
    if (
        not 0 <= steadiness.flickering <= steadiness.asked <= _MOST_ASKED
        or not 0 <= (steadiness.largest_move or 0) <= 1
    ):
        raise ValueError("its steadiness is no count of verdicts")
    return steadiness


def _digest(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump(parts).encode()).hexdigest()
