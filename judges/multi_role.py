"""Three roles discuss the two outputs in one or two rounds; the last round's majority decides (ReIFE, section 5.1).

General Public, Critic and Scientist speak in this order: each sees the arguments so far, argues and votes. The paper
does not say which votes count after two rounds. All six could tie, so only those of the last round count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, orders, parsers, prompts

from .single_call import OUTPUTS

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
            texts = {"role": role, "stance": stance, "earlier": "\n\n".join(earlier) or "Nothing yet."}
            (reply,) = yield [instructions.request_verdict(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, TOKENS, texts)]
            if failed := instructions.reject_empty(f"argument of the {role}", reply):
                return failed
            # The earlier arguments are not quotable texts: a role that repeats one word for word agrees with it.
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

multi_role_round2 = replace(
    multi_role_round1,
    name="multi-role-round2",
    summary="multi-role-round1 with a second round; the majority of that round chooses",
    ask=partial(ask, 2),
    calls=Calls(6),
)
