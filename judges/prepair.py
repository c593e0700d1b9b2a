"""PrePair: reason about each response alone, then compare (The Comparative Trap, section 4).

An analysis says how well one response executes the instruction and names its critical drawbacks, without a score and
without having seen the other response. The final call sees the instruction, both responses and both analyses, and must
choose one. ``prepair-tie`` is the form used on MT-Bench: the final call sees the analyses only and may call a tie. An
analysis depends on its response alone, so that it is made once and serves every order, comparison and attack in which
the response appears. It knows nothing of attacks or measures.
"""

from __future__ import annotations

from functools import partial

from distract import verdicts
from distract.plan import Comparison, Plan, Protocol, both_orders, gather
from distract.records import Case, Judgment, Outcome, Reply, Request, Response, Slots

from .rubric import fill, prompt_files, prompt_for

CHOOSE: dict[str, Outcome] = {"A": "a", "B": "b"}
OR_TIE: dict[str, Outcome] = {**CHOOSE, "C": "tie"}
ANALYSIS_TOKENS = 256
"""Enough for the few sentences that are asked for; a longer analysis is cut and used as far as it goes."""


def analyse(case: Case, response: Response) -> Plan[Reply]:
    """Ask for the analysis of one response."""
    (reply,) = yield [
        Request(
            messages=fill(prompt_for(case, "prepair-analysis"), case, {"response": response}),
            max_tokens=ANALYSIS_TOKENS,
            slots=Slots(case.id, (response,), ()),
        )
    ]
    return reply


def decide(
    outcomes: dict[str, Outcome], name: str, analyses: dict[Response, str], comparison: Comparison
) -> Plan[Judgment]:
    """Ask for the verdict in one order, with the analyses at hand."""
    case, first, second = comparison.case, comparison.first, comparison.second
    prompt = prompt_for(case, name)
    values = {"analysis_a": analyses[first], "analysis_b": analyses[second]}
    shown = {} if "response_a" not in prompt.slots else {"response_a": first, "response_b": second}
    words = zip(("first", "second", "tie"), outcomes, strict=False)
    (reply,) = yield [
        Request(
            messages=fill(prompt, case, shown, values),
            choices=tuple(outcomes),
            prefill=prompt.prefill,
            slots=Slots(case.id, (first, second), tuple(words)),
        )
    ]
    return verdicts.comparison(reply, prompt.prefill, outcomes)


def compare(outcomes: dict[str, Outcome], name: str, comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    """Analyse both responses, then decide in both orders."""
    both = (comparison.first, comparison.second)
    replies = yield from gather([analyse(comparison.case, response) for response in both])
    for reply in replies:
        if reply.failure is not None or not reply.text.strip():
            failed = Judgment(None, read="text", failure=f"no analysis: {reply.failure or 'empty'}")
            return failed, failed
    analyses = {response: reply.text.strip() for response, reply in zip(both, replies, strict=True)}
    return (yield from both_orders(partial(decide, outcomes, name, analyses), comparison))


prepair = Protocol(
    name="prepair",
    summary="analyse each response alone, then compare with both analyses at hand: A or B",
    calls=4,
    compare=partial(compare, CHOOSE, "prepair"),
    prompts=(*prompt_files("prepair-analysis"), *prompt_files("prepair")),
)

prepair_tie = Protocol(
    name="prepair-tie",
    summary="prepair as on MT-Bench: the verdict sees the analyses only and may be a tie",
    calls=4,
    compare=partial(compare, OR_TIE, "prepair-tie"),
    prompts=(*prompt_files("prepair-analysis"), *prompt_files("prepair-tie")),
)
