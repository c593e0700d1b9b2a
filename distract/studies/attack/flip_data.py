"""The flips of a run as the data of a page: every text once, and each flip by references to its texts."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from distract.core.printable import count_decimals
from distract.core.runs import LoadedRun
from distract.report.html import dump
from distract.report.phrases import join_names, name_protocol
from distract.studies.attack.flip_view import NO_FLIPS, ShownFlip, collect_flips
from distract.studies.attack.flips import Flip, FlipOutcome

MOST = 2000
"""Flips of a page."""

LARGEST = 2_900_000
"""Bytes of the data of a page, so that it stays below 3 MB."""

OUTCOMES: Mapping[FlipOutcome, str] = {
    "flip": "flips (the loser wins after its rewrite)",
    "softened": "softened (the loser ties)",
    "counter-flip": "counter-flips (the winner loses after its rewrite)",
}


def build_flip_data(run: LoadedRun) -> dict[str, Any]:
    """Return the verdicts that a run's rewrites changed, for the browser of a page; of very many, a sample."""
    every, _ = collect_flips(run, outcomes=tuple(OUTCOMES))
    most = MOST
    while (size := len(dump(data := _build(every, most)).encode())) > LARGEST and most > 1:
        most = max(1, min(most * 3 // 4, most * LARGEST // size))
    is_measured = every or any(row.design == "flip" for row in run.rows)
    return data if is_measured else {**data, "about": f"{NO_FLIPS.capitalize()}."}


def _build(every: Sequence[ShownFlip], most: int) -> dict[str, Any]:
    shown = _sample(every, most)
    texts: dict[str, int] = {}
    flips = [_describe(one, texts) for one in shown]
    digits = min(count_decimals(pair for one in shown for pair in (one.flip.before, one.flip.after)), 4)
    counts = Counter(one.flip.outcome for one in every)
    listed = join_names(f"{counts[name]:,} {text}" for name, text in OUTCOMES.items() if counts[name] or name == "flip")
    cut = f" Shown: {len(shown):,}, half of them the clearest, half spread evenly over the others."
    turns = ", the ways of asking in turn" if len({one.flip.protocol for one in every}) > 1 else ""
    labelled = Counter(label for one in every if one.flip.outcome == "flip" and (label := _read_label(one.flip)))
    sides = join_names(f"{labelled[label]:,} rewrote the {label} response" for label in ("better", "worse"))
    about = (
        f"Verdicts that a rewrite changed: {listed}. {f'By the labels, {sides}. ' if labelled else ''}"
        f"The clearest first{turns}.{cut if len(shown) < len(every) else ''}"
    )
    return {"about": about, "digits": digits, "flips": flips, "texts": list(texts)}


def _read_label(flip: Flip) -> str:
    """Say whether the rewritten response is the better or the worse one by the label; empty without one."""
    label = flip.rows[0].label if flip.rows else None
    if label not in ("a", "b"):
        return ""
    return "better" if (label == "a") == flip.first else "worse"


def _sample(flips: Sequence[ShownFlip], most: int) -> Sequence[ShownFlip]:
    """Return at most so many flips: if there are more, half the clearest, and half spread over the others."""
    if len(flips) <= most:
        return flips
    rest = flips[most // 2 :]
    return [*flips[: most // 2], *rest[:: math.ceil(len(rest) / (most - most // 2))]]


def _describe(one: ShownFlip, texts: dict[str, int]) -> dict[str, Any]:
    flip = one.flip

    def refer(text: str) -> int:
        return texts.setdefault(text, len(texts)) if text else -1

    place = (
        flip.case,
        flip.attack,
        flip.protocol,
        flip.rule,
        flip.rewritten,
        flip.other,
        flip.severities,
        flip.outcome,
    )
    return {
        "id": f"flip-{hashlib.sha256(repr(place).encode(errors='replace')).hexdigest()[:10]}",
        "case": flip.case,
        "attack": flip.attack,
        "protocol": name_protocol(flip.protocol, flip.rule),
        "rule": flip.rule or "",
        "outcome": flip.outcome,
        "label": _read_label(flip),
        "rewritten": flip.rewritten,
        "other": flip.other,
        "before": [round(value, 6) for value in flip.before],
        "after": [round(value, 6) for value in flip.after],
        "margin": round(flip.margin, 6),
        "prompt": refer(one.question),
        "original": refer(flip.original),
        "rewrite": refer(flip.rewrite),
        "rival": refer(one.rival),
        "said": [[refer(text) for _, text in words] for words in one.said],
    }
