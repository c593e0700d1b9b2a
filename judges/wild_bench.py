"""WildBench's way of asking, made binary: a checklist for the prompt, then a verdict in JSON (ReIFE, section 4.2).

The checklist is a stronger model's where there is a reference model, else the judge's own; it depends on the prompt
only, so that it is made once.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "wild-bench")
CHECKLIST = prompts.load("distract.judges", "checklist")
CHECKLIST_TOKENS, TOKENS = 320, 1024


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Make the checklist, then compare with it."""
    (made,) = yield [instructions.request_text(comparison.case, CHECKLIST, CHECKLIST_TOKENS, to="reference")]
    if failed := instructions.reject_empty("checklist", made):
        return failed
    return (
        yield from instructions.choose(
            comparison, PROMPT, parsers.JSON, LETTERS, TOKENS, {"checklist": instructions.visible_text(made)}
        )
    )


wild_bench = Protocol(
    name="wild-bench",
    summary="compare by a checklist (of --reference-model, else its own) and answer in JSON",
    paper="ReIFE 4.2",
    ask=ask,
    calls=Calls(1, prompt=1),
    reads="text",
    reference="optional",
    prompts=(CHECKLIST, PROMPT),
)
