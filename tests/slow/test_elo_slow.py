"""Test that all orders of matches are equally likely."""

from __future__ import annotations

from collections import Counter

from distract.leaderboards.shuffles import Orders


def test_all_orders_are_equally_likely() -> None:
    order_counts = Counter(tuple(Orders(4, "shuffled", 6000, 0).last(index, 4).tolist()) for index in range(6000))
    assert len(order_counts) == 24
    assert sum((often - 250) ** 2 / 250 for often in order_counts.values()) < 49.7  # chi square, 23 degrees, 0.999
