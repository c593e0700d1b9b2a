"""The flips of a run as the data of a page: every text once, and each flip by references to its texts."""

from __future__ import annotations

import hashlib
from typing import Any

from distract.core.printable import count, count_decimals
from distract.core.runs import LoadedRun
from distract.report.phrases import name_protocol
from distract.studies.attack.flip_view import ShownFlip, collect_flips

MOST = 2000
"""Flips of a page."""


def build_flip_data(run: LoadedRun) -> dict[str, Any]:
    """Return the clearest flips of a run for the browser of a page."""
    shown, total = collect_flips(run, MOST)
    texts: dict[str, int] = {}
    flips = [_describe(one, texts) for one in shown]
    digits = min(count_decimals(pair for one in shown for pair in (one.flip.before, one.flip.after)), 4)
    which = f"the {len(shown):,} clearest of {total:,}" if total > len(shown) else f"all {count(total, 'flip')}"
    about = f"A losing response that wins after its rewrite: {which}, the clearest first."
    return {"about": about, "digits": digits, "flips": flips, "texts": list(texts)}


def _describe(one: ShownFlip, texts: dict[str, int]) -> dict[str, Any]:
    flip = one.flip

    def refer(text: str) -> int:
        return texts.setdefault(text, len(texts)) if text else -1

    place = (flip.case, flip.attack, flip.protocol, flip.rule, flip.rewritten, flip.other, flip.severities)
    return {
        "id": f"flip-{hashlib.sha256(repr(place).encode(errors='replace')).hexdigest()[:10]}",
        "case": flip.case,
        "attack": flip.attack,
        "protocol": name_protocol(flip.protocol, flip.rule),
        "rule": flip.rule or "",
        "outcome": "flip",
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
