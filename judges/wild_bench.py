"""WildBench's prompt, made binary: a checklist for the instruction, then a verdict in JSON (ReIFE, section 4.2).

The reference model writes the checklist, or the judge if there is none. It depends on the prompt only, so all
comparisons share it.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "wild-bench")
CHECKLIST = prompts.load("distract.judges", "checklist")
CHECKLIST_TOKENS, TOKENS = 320, 1024


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Write the checklist, then compare with it."""
    texts = {"checklist": instructions.request_text(comparison.case, CHECKLIST, CHECKLIST_TOKENS, to="reference")}
    return instructions.choose_with(texts, comparison, PROMPT, parsers.JSON, LETTERS, TOKENS)


wild_bench = Protocol(
    name="wild-bench",
    summary="compare by a checklist (from --reference-model or its own), answer in JSON",
    paper="ReIFE 4.2",
    ask=ask,
    calls=Calls(1, prompt=1),
    reads="text",
    reference="optional",
    prompts=(CHECKLIST, PROMPT),
)
