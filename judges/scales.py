"""Protocols that rate each response alone, with one call per response.

``absolute`` has a scale of 1 to 7 (Distracted evaluation, section 3.3), ``pointwise`` one of 1 to 5 (PrePair, section
3.2). The score is the probability-weighted mean of the ratings, PrePair's reading on LLMBar; the rating is the most
likely one, its reading on MT-Bench, where responses can tie. Either can decide which response is preferred, from the
same requests.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Comparison, Judgment, Plan, Protocol, Request, Slots, instructions, prompts, verdicts


def ask(prompt: prompts.Prompt, scale: range, comparison: Comparison) -> Plan[Judgment]:
    """Rate both and prefer the higher score."""
    case, pair, choices = comparison.case, (comparison.first, comparison.second), tuple(map(str, scale))
    replies = yield [
        Request(
            messages=instructions.fill(prompt, case, {"response": response}),
            choices=choices,
            prefill=prompt.prefill,
            slots=Slots(case.id, (response,), tuple(zip(choices, choices, strict=True))),
        )
        for response in pair
    ]
    read = "text" if any(reply.probabilities is None for reply in replies) else "choices"
    mass = min((reply.mass for reply in replies if reply.mass is not None), default=None)
    quotable = instructions.quotable_texts(case, pair)
    first, second = [verdicts.read_rating(reply, prompt.prefill, scale, quotable) for reply in replies]
    if isinstance(first, str) or isinstance(second, str):
        failure = first if isinstance(first, str) else str(second)
        return Judgment(None, mass=mass, read=read, failure=failure)
    scores, ratings = (first[0], second[0]), (first[1], second[1])
    return Judgment(verdicts.compare_scores(*scores), scores=scores, ratings=ratings, mass=mass, read=read)


def _make(name: str, summary: str, paper: str, scale: range, default: bool = False) -> Protocol:
    prompt = prompts.load("distract.judges", name)
    return Protocol(
        name=name,
        summary=f"rate each response alone, 1 to {scale[-1]}: {summary}",
        paper=paper,
        ask=partial(ask, prompt, scale),
        calls=Calls(response=1),
        ties=True,
        rules=("score", "rating"),
        orders="none",
        prompts=(prompt,),
        default=default,
        scale=(scale[0], scale[-1]),
    )


absolute = _make(
    "absolute",
    "most likely rating and probability-weighted score",
    "Distracted evaluation 3.3",
    range(1, 8),
    default=True,
)
distracted_absolute = _make(
    "distracted-absolute", "by the parts and rules of the paper alone", "Distracted evaluation 3.3", range(1, 8)
)
pointwise = _make("pointwise", "plain rating and probability-weighted score", "PrePair 3.2", range(1, 6))
