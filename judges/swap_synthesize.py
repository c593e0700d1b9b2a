"""Swap and synthesize: cot in both orders; if they disagree, a further call decides (ReIFE, section 5.1).

That call sees both explanations, each under the output it favours, and chooses without a further explanation. The
explanations are those of ``cot``.
"""

from __future__ import annotations

import re

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .single_call import COT_TOKENS, OUTPUTS, cot

(COT,) = cot.prompts
PROMPT = prompts.load("distract.judges", "swap-synthesize")
_EXCHANGED = str.maketrans("abAB", "baBA")
_NAME = re.compile(r"\b([Oo]utput[*_]{0,2}\s*)(\([aAbB]\)|[AB]\b)")


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Explain in both orders; on conflict, choose between the explanations."""
    orders = (comparison, comparison.swap())
    straight, swapped = yield [
        instructions.request_verdict(order, COT, parsers.OUTPUT, OUTPUTS, COT_TOKENS) for order in orders
    ]
    first = instructions.read_verdict(straight, orders[0], COT, parsers.OUTPUT, OUTPUTS)
    second = instructions.read_verdict(swapped, orders[1], COT, parsers.OUTPUT, OUTPUTS).mirror()
    for judgment in (first, second):
        if judgment.failure is not None:
            return judgment
    if first.preferred == second.preferred:
        return first
    # In the swapped order each output had the other's name.
    texts = {
        first.preferred: instructions.visible_text(straight),
        second.preferred: _NAME.sub(_other_name, instructions.visible_text(swapped)),
    }
    favours = {"for_a": texts["a"], "for_b": texts["b"]}
    return (yield from instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, texts=favours))


def _other_name(match: re.Match[str]) -> str:
    return match[1] + match[2].translate(_EXCHANGED)


swap_synthesize = Protocol(
    name="swap-synthesize",
    summary="cot in both orders; where they disagree, choose between the two explanations",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(2, conflict=1),
    reads="text",
    prompts=(COT, PROMPT),
)
