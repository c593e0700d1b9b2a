"""Test seconds by part: nested parts, no observer, other threads."""

from __future__ import annotations

import threading
from itertools import count as counting

import pytest

from distract.core import timer
from distract.core.timer import Clock


def test_nested_part_is_charged_once() -> None:
    # The clock advances by one second per call.
    clock = Clock(_now=map(float, counting()).__next__)
    with clock.part("store"):
        with clock.part("forward"):
            pass
        with clock.part("store"):
            pass
    assert clock.seconds == {"store": 4.0, "forward": 1.0}


def test_error_closes_its_part() -> None:
    clock = Clock(_now=map(float, counting()).__next__)
    with pytest.raises(ValueError, match="no"), clock.part("load"):
        raise ValueError("no")
    with clock.part("store"):
        pass
    assert clock.seconds == {"load": 1.0, "store": 1.0}


def test_nothing_is_measured_without_an_observer() -> None:
    with timer.time_part("load"):
        timer.count("tokens", 3)
        timer.count("tokens", lambda: 1 / 0)
    with timer.measure() as clock:
        pass
    assert (clock.seconds, clock.counts) == ({}, {})


def test_counts_add_up_without_other_threads() -> None:
    def elsewhere() -> None:
        with timer.time_part("load"):
            timer.count("tokens", 100)

    with timer.measure() as clock:
        timer.count("tokens", 3)
        timer.count("tokens", lambda: 4)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with timer.time_part("store"), timer.measure() as inner:
            timer.count("tokens", 9)
    assert clock.counts == {"tokens": 7}
    assert inner.counts == {"tokens": 9}
    assert set(clock.seconds) == {"store"}
