"""The protocols as lines for people. It knows none by name."""

from __future__ import annotations

from collections.abc import Iterable

from distract.core.plan import Protocol

READ_LABELS = {"choices": "log-probability", "text": "text"}


def protocol_lines(protocols: Iterable[Protocol]) -> dict[str, str]:
    """One line about each, by name: calls of a comparison in one order, ties, what is read, paper, summary."""
    protocols = list(protocols)
    calls = {p.name: f"calls {_calls(p)}" for p in protocols}
    widths = [max(map(len, column), default=0) for column in (calls.values(), (p.paper for p in protocols))]
    return {
        p.name: f"{calls[p.name]:<{widths[0]}}  {'tie' if p.ties else 'no tie':<6}  {READ_LABELS[p.reads]:<15}  "
        f"{p.paper:<{widths[1]}}  {p.summary}"
        for p in protocols
    }


def _calls(protocol: Protocol) -> str:
    """Requests in one order, and how many orders there are where it is not two."""
    orders = {"none": "", "swap": "", "rotate": f" in {protocol.shows} orders"}[protocol.orders]
    return f"{protocol.calls}{orders}"
