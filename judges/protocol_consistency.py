"""The majority of cot, metric, reference, metric-reference and swap-synthesize (ReIFE, section 5.1).

The five share calls: each order makes seven or eight distinct ones.
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
    """Ask with all five protocols."""
    return (yield from orders.vote([protocol.ask(comparison) for protocol in ENHANCED], ties=False))


protocol_consistency = Protocol(
    name="protocol-consistency",
    summary="cot, metric, reference, metric-reference and swap-synthesize; the majority chooses",
    paper="ReIFE 5.1",
    ask=ask,
    # cot and swap-synthesize share the explanation in the given order.
    calls=Calls(5, prompt=2, conflict=1),
    reads="text",
    prompts=tuple(dict.fromkeys(prompt for protocol in ENHANCED for prompt in protocol.prompts)),
)
