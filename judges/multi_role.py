"""Three roles discuss the two outputs in one or two rounds; the last round's majority decides (ReIFE, section 5.1).

General Public, then Critic, then Scientist: each sees what was said before, argues and votes. The paper does not say
whose votes count after two rounds; six could tie, so that those of the last round do.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, orders, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "multi-role")
TOKENS = 256
ROLES = {
    "General Public": "You speak for everyday users, who want an answer that they understand and that helps them.",
    "Critic": "You look for what is wrong: mistakes, gaps, what was not asked for, instructions that are not followed.",
    "Scientist": "You look for evidence and logic: whether what is said is correct and follows.",
}


def ask(rounds: int, comparison: Comparison) -> Plan[Judgment]:
    """Let each role argue in turn."""
    earlier: list[str] = []
    for _ in range(rounds):
        votes = []
        for role, stance in ROLES.items():
            others = {"role": role, "stance": stance, "earlier": "\n\n".join(earlier) or "Nothing yet."}
            (reply,) = yield [instructions.request_verdict(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, TOKENS, others)]
            if failed := instructions.reject_empty(f"argument of the {role}", reply):
                return failed
            # What others said is no material: who repeats it word for word agrees.
            votes.append(instructions.read_verdict(reply, comparison, PROMPT, parsers.OUTPUT, OUTPUTS))
            earlier.append(f"## {role}\n{instructions.visible_text(reply)}")
    return orders.majority(votes, ties=False)


multi_role_round1 = Protocol(
    name="multi-role-round1",
    summary="General Public, Critic and Scientist argue in turn; the majority chooses",
    paper="ReIFE 5.1",
    ask=partial(ask, 1),
    calls=Calls(3),
    reads="text",
    prompts=(PROMPT,),
)

multi_role_round2 = Protocol(
    name="multi-role-round2",
    summary="the same in two rounds; the majority of the second chooses",
    paper="ReIFE 5.1",
    ask=partial(ask, 2),
    calls=Calls(6),
    reads="text",
    prompts=(PROMPT,),
)
