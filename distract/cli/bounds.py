"""The bounds of every option that takes a number; the Python API shares them and needs no click."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distract.core.usage import MAX_PRICE
from distract.models.options import COMMON_SETTINGS
from distract.models.ranges import NumberRange, Range, WholeRange
from distract.rewriting.generator_options import MOST_ODDS
from distract.stats.measures import list_limited

COUNT = WholeRange(1)
TOKENS = WholeRange(1, 10**7)
SHARE = NumberRange(0, 1)
AMOUNT = NumberRange(0, 1000)
"""Points of a score, a difference of probabilities, or broken requirements."""
INNER_SHARE = NumberRange(0, 1, is_open=True)
CONFIDENCE = NumberRange(0.5, 1, is_open="most")
"""A probability of being right: below a half it would be wrong more often."""
PRICE = NumberRange(0, MAX_PRICE)
SEED = WholeRange(-(2**63), 2**63 - 1)
LIMIT = WholeRange(1, noun="number of cases", words=MappingProxyType({"all": 0}))
"""A number of cases; ``all`` is 0, which is otherwise out of bounds."""

BOUNDS: Mapping[str, Range] = MappingProxyType(
    {
        **{name: setting.bounds for name, setting in COMMON_SETTINGS.items() if setting.bounds},
        **{row.key: INNER_SHARE if row.unit == "share" else AMOUNT for row in list_limited()},
        "ahead": COUNT,
        "answer_tokens": TOKENS,
        "best_of": WholeRange(1, 1000),
        "budget": COUNT,
        "confidence": CONFIDENCE,
        "limit": LIMIT,
        "margin": AMOUNT,
        "max_invalid_rate": SHARE,
        "max_missed_rate": SHARE,
        "max_rise": INNER_SHARE,
        "max_tokens": TOKENS,
        "min_eligible": SHARE,
        "min_n": COUNT,
        "pass_mark": NumberRange(-(10**9), 10**9),
        "price_in": PRICE,
        "price_out": PRICE,
        "retries": WholeRange(0, 1000),
        "samples": WholeRange(1, 10_000),
        "seed": SEED,
        "size": WholeRange(20, 10_000),
        "temperature": NumberRange(0, 10),
        "top_p": NumberRange(0, 1, "least"),
        "verifier_threshold": NumberRange(-MOST_ODDS, MOST_ODDS),
    }
)
"""The bounds of options, by name."""
