"""Test that the keys of stored replies never change, so that replies stay paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from distract.core import registry
from distract.core.plugin import Comparison
from distract.core.store import Store
from distract.data import datasets

IDENTITY = {"engine": "openai", "model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}

KEYS = {
    "absolute": "a935b87e9d3f04718f9c9eed",
    "alpaca-eval": "61f2f8a46af5a2efc924b184",
    "arena-hard": "fd63e36112fd731cd0021562",
    "base": "730196e5317c7d70a466f9a8",
    "cot": "f7fe503affe11ccd53a9037a",
    "cot-consistency": "414fa185cef2b9e63ebcf9c3",
    "fine-grained-diff": "c30f2980b7ac5a4ce94b6f63",
    "metric": "2b3a764ab7db21d5a3377931",
    "metric-reference": "2b3a764ab7db21d5a3377931",
    "multi-aspect-single": "128bf07a9abc6fefd859c257",
    "multi-aspect-two": "4663138eb47bce9c48e3010b",
    "multi-role-round1": "d163220b5ceb9f9095d9c67c",
    "multi-role-round2": "d163220b5ceb9f9095d9c67c",
    "pairwise": "f6b90d1d65a533e662b77b2d",
    "pointwise": "9654ff4a3f99d1ab5f5eb07e",
    "prepair": "177a1ae9038b4095f51101b4",
    "prepair-metric": "2b3a764ab7db21d5a3377931",
    "prepair-star": "85ff658d398a680a36e7888e",
    "prepair-tie": "177a1ae9038b4095f51101b4",
    "protocol-consistency": "f7fe503affe11ccd53a9037a",
    "rank": "8ade38be60a45dc598a478ef",
    "reference": "c189e4a4687ec547080907c1",
    "solve-first": "e04c87f44a3133f479e1ea1f",
    "strong-reference": "c189e4a4687ec547080907c1",
    "swap-synthesize": "f7fe503affe11ccd53a9037a",
    "wild-bench": "bede3ee8f07da26f8c64945e",
}
"""The keys of the first request of each protocol about one case, as of November 2026."""


@pytest.mark.parametrize("name", KEYS)
def test_stored_keys_do_not_change(name: str, tmp_path: Path) -> None:
    case = datasets.load("tweakset").cases[0]
    first, second, *_ = case.originals
    plan = registry.get_protocol(name).ask(Comparison(case, first, second))
    request, *_ = next(plan)
    with Store(tmp_path / "store", IDENTITY) as store:
        assert store.key(request).hex()[:24] == KEYS[name]
