"""Strong reference: the base choice with a stronger model's answer in view (ReIFE, section 5.1, "gpt4-reference").

The data's own reference is used if there is one, otherwise the reference model writes it.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers

from .base import OUTPUTS
from .reference import ANSWER, PROMPT, request_answer


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Take or request the reference, then choose with it."""
    case = comparison.case
    if case.reference:
        texts = {"reference": instructions.format_turns("Reference", case.reference)}
        return instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, texts=texts)
    requests = {"reference": request_answer(case, to="reference")}
    return instructions.choose_with(requests, comparison, PROMPT, parsers.OUTPUT, OUTPUTS)


strong_reference = Protocol(
    name="strong-reference",
    summary="choose with a reference answer, from the data or from --reference-model",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    reference="required",
    prompts=(ANSWER, PROMPT),
)
