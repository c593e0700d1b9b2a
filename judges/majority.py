"""The majority of nine samples of ``cot``, or of five protocols (ReIFE, section 5.1).

The five share calls: each order makes seven or eight distinct ones.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Comparison, Judgment, Plan, Protocol, orders

from .preparation import metric, metric_reference, reference
from .single_call import cot
from .swap_synthesize import swap_synthesize

SAMPLES = 9
ENHANCED = (cot, metric, reference, metric_reference, swap_synthesize)

cot_consistency = Protocol(
    name="cot-consistency",
    summary="nine samples of cot at temperature 0.7; the majority chooses",
    paper="ReIFE 5.1",
    ask=partial(orders.ask_repeatedly, cot, SAMPLES),
    calls=Calls(SAMPLES),
    reads="text",
    prompts=cot.prompts,
)


def ask_enhanced(comparison: Comparison) -> Plan[Judgment]:
    """Ask with all five protocols."""
    return (yield from orders.vote([protocol.ask(comparison) for protocol in ENHANCED], ties=False))


protocol_consistency = Protocol(
    name="protocol-consistency",
    summary="cot, metric, reference, metric-reference and swap-synthesize; the majority chooses",
    paper="ReIFE 5.1",
    ask=ask_enhanced,
    # cot and swap-synthesize share the explanation in the given order.
    calls=Calls(5, prompt=2, conflict=1),
    reads="text",
    prompts=tuple(dict.fromkeys(prompt for protocol in ENHANCED for prompt in protocol.prompts)),
)
