"""The file of anchors: cases, verdicts, how they were asked for, and what is known of the judge that gave them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from distract.core import files
from distract.core.errors import DataError, UsageError
from distract.core.frozen import Reading, Steadiness
from distract.core.plan import Plan
from distract.core.plugin import Comparison, Protocol
from distract.core.recorder import dump, format_json
from distract.core.records import BASELINE, Case, Judgment, Response, Row
from distract.core.run_decoder import decode_case, decode_row
from distract.core.study import Shape, has_shape
from distract.data.fields import flaw
from distract.judging.comparison import judge_comparison, label, side
from distract.judging.consultation import find_problem
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.stats.measures import headline
from distract.studies.setup import Setup

FORMAT = "distract anchors 1"
REMAKE = "make it again with `distract anchors make`"

_SHAPE: Mapping[Any, Shape] = {
    **dict.fromkeys(("format", "judge", "protocol"), str),
    **dict.fromkeys(("identity", "manner", "served"), dict),
    "data": {"name": str},
    "steadiness": {"asked": int, "flickering": int, "largest_move": float | int | None},
    "anchors": [{"case": dict, "row": dict, "place": str}],
}

Place = Literal["near", "far"]  # near the judge's boundary or far from it, among the verdicts that it was chosen from


@dataclass(frozen=True, slots=True)
class Anchor:
    """A comparison in one order, with its verdict."""

    case: Case
    row: Row
    place: Place

    @property
    def pair(self) -> tuple[Response, Response]:
        """The two responses, a and b."""
        by_side = {side(response): response for response in self.case.originals}
        return by_side[self.row.a], by_side[self.row.b]


@dataclass(frozen=True, slots=True)
class AnchorSet:
    """Anchors, and what identifies the judge that gave them."""

    judge: str
    identity: Mapping[str, Any]
    protocol: str
    manner: Manner
    data: Mapping[str, Any]  # names the data set
    steadiness: Steadiness
    anchors: tuple[Anchor, ...]
    served: Mapping[str, Any]  # the models and configurations that a server reported
    # The checksum of a protocol that distract does not ship, and the file that the user named.
    way: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None


def judge_anchor(setup: Setup, anchor: Anchor) -> Plan[Row]:
    """Judge the comparison of an anchor, in its order, with the one protocol of a setup."""
    (protocol,), case, row, (a, b) = setup.protocols, anchor.case, anchor.row, anchor.pair
    about = (case.id, case.cluster, "people", protocol.name, setup.judge, BASELINE, row.a, row.b)
    empty = partial(Row, *about, label=label(case, a, b), prompt_group=case.prompt_group)
    manner = replace(setup.manner, orders="swapped" if row.shown == ("b",) else "given")
    return (yield from judge_comparison(empty, protocol, Comparison(case, a, b), manner, setup.helped))


def read_verdict(judgments: Sequence[Judgment], protocol: Protocol) -> Reading:
    """Read a verdict, with its probabilities, or scores as places on their scale."""
    verdict = outcome(judgments, headline("flip_rate", protocol.rules))
    shares: tuple[float, ...] | None = None
    if verdict is not None and judgments[0].read == "choices":
        (low, high), shares = protocol.scale or (None, None), judgments[0].probabilities
        if scores := judgments[0].scores:
            shares = None if low is None or high is None else tuple((score - low) / (high - low) for score in scores)
    return Reading(verdict, shares)


def write_anchors(anchors: AnchorSet, path: Path) -> None:
    """Write a file of anchors; the same anchors always give the same bytes."""
    parts = {name: value for name, value in asdict(replace(anchors, anchors=())).items() if value or name != "way"}
    parts |= {"anchors": [{"case": one.case, "row": one.row, "place": one.place} for one in anchors.anchors]}
    del parts["path"]
    files.write(path, format_json({"format": FORMAT, **parts, "sha256": _digest(parts)}), "--out")


def read_anchors(path: Path) -> AnchorSet:
    """Read a file of anchors; raise DataError if it is another file, or was changed."""
    if path.exists() and not path.is_file():
        raise DataError("is not a regular file", path=path)
    try:
        document = json.loads(files.read_bytes(path))
        if not has_shape(document, _SHAPE) or document.pop("format") != FORMAT or not document["anchors"]:
            raise DataError(f"is not a file of anchors of this version; {REMAKE}", path=path)
        if document.pop("sha256", None) != _digest(document):
            raise DataError(f"was changed since it was made; {REMAKE}", path=path)
        if not has_shape(document.get("way", {}), {...: str}):
            raise ValueError("its way of asking is damaged")
        document["anchors"] = tuple(map(_decode_anchor, document["anchors"]))
        document["manner"] = Manner(**document["manner"])
        document["steadiness"] = Steadiness(**document["steadiness"])
        return AnchorSet(**document, path=path)
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, UsageError, RecursionError) as error:
        raise DataError(f"is not a file of anchors ({flaw(error)}); {REMAKE}", path=path) from error


def _decode_anchor(value: dict[str, Any]) -> Anchor:
    anchor = Anchor(decode_case(value["case"]), decode_row(value["row"]), value["place"])
    row, sides = anchor.row, {side(response) for response in anchor.case.originals}
    verdicts = [
        one.failure is None and find_problem(one) is None and (one.scores or one.probabilities) for one in row.judgments
    ]
    if row.extra:
        raise ValueError(f"a row has no field {next(iter(row.extra))!r}")
    if not {row.a, row.b} <= sides or anchor.place not in get_args(Place):
        raise ValueError("an anchor names a response that its case lacks, or an unknown place")
    if len(verdicts) != 1 or not all(verdicts) or row.excluded:
        raise ValueError("an anchor has no valid verdict")
    return anchor


def _digest(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump(parts).encode()).hexdigest()
