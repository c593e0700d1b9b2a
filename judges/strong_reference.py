"""Strong reference: the base choice with a stronger model's answer at hand (ReIFE, section 5.1, "gpt4-reference").

The answer is the data's own where they hold one, else that of the reference model.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers

from .base import OUTPUTS
from .reference import ANSWER, PROMPT, request_answer


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Take or make the reference, then choose with it at hand."""
    case = comparison.case
    if case.reference:
        strong = instructions.conversation("Reference", case.reference)
    else:
        (reply,) = yield [request_answer(case, to="reference")]
        if failed := instructions.reject_empty("reference", reply):
            return failed
        strong = instructions.visible_text(reply)
    return (yield from instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, others={"reference": strong}))


strong_reference = Protocol(
    name="strong-reference",
    summary="choose with a reference at hand, of the data, else of --reference-model",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    reference="required",
    prompts=(ANSWER, PROMPT),
)
