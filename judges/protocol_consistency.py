"""The majority of five ways of asking: cot, metric, reference, both, swap and synthesize (ReIFE, section 5.1).

Their calls are shared: seven or eight distinct ones an order.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, orders

from .cot import cot
from .metric import metric
from .metric_reference import metric_reference
from .reference import reference
from .swap_synthesize import swap_synthesize

ENHANCED = (cot, metric, reference, metric_reference, swap_synthesize)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Ask in all five ways."""
    return (yield from orders.vote([protocol.ask(comparison) for protocol in ENHANCED], ties=False))


protocol_consistency = Protocol(
    name="protocol-consistency",
    summary="cot, metric, reference, metric-reference and swap-synthesize; the majority chooses",
    paper="ReIFE 5.1",
    ask=ask,
    # The explanation in the order given is both cot's and swap-synthesize's.
    calls=Calls(5, prompt=2, conflict=1),
    reads="text",
    prompts=tuple(dict.fromkeys(prompt for protocol in ENHANCED for prompt in protocol.prompts)),
)
