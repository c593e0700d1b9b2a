"""Pairwise comparison with a tie, in both orders (Distracted evaluation, section 3.3).

The judge sees two responses and answers [[A]], [[B]] or [[C]]; the verdict is read from the probabilities of the
three letters after a prefilled ``[[``. It knows nothing of attacks or measures.
"""

from __future__ import annotations

from distract import verdicts
from distract.plan import Comparison, Plan, Protocol, both_orders
from distract.records import Judgment, Outcome, Request, Slots

from .rubric import fill, prompt_files, prompt_for

OUTCOMES: dict[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}


def one_order(comparison: Comparison) -> Plan[Judgment]:
    """Ask once, in the order given."""
    case = comparison.case
    prompt = prompt_for(case, "pairwise")
    (reply,) = yield [
        Request(
            messages=fill(prompt, case, {"response_a": comparison.first, "response_b": comparison.second}),
            choices=tuple(OUTCOMES),
            prefill=prompt.prefill,
            slots=Slots(
                case=case.id,
                shown=(comparison.first, comparison.second),
                outcomes=(("first", "A"), ("second", "B"), ("tie", "C")),
            ),
        )
    ]
    return verdicts.comparison(reply, prompt.prefill, OUTCOMES)


pairwise = Protocol(
    name="pairwise",
    summary="compare two responses in both orders: A, B or C for a tie",
    calls=2,
    compare=lambda comparison: both_orders(one_order, comparison),
    prompts=prompt_files("pairwise"),
    default=True,
)
