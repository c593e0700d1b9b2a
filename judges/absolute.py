"""Absolute scoring: each response is rated alone on a scale of 1 to 7 (Distracted evaluation, section 3.3).

The score is the probability-weighted mean of the ratings; the rating is the most likely one. Either can decide which
response is preferred, from the same requests.
"""

from __future__ import annotations

from functools import cache, partial

from distract import (
    Calls,
    Case,
    Comparison,
    Judgment,
    Plan,
    Protocol,
    Request,
    Response,
    Slots,
    instructions,
    prompts,
    verdicts,
)

PROMPT = prompts.load("distract.judges", "absolute")
SCALE = (1, 2, 3, 4, 5, 6, 7)


def request_rating(prompt: prompts.Prompt, scale: tuple[int, ...], case: Case, response: Response) -> Request:
    """Request a rating of one response."""
    choices, outcomes = _labels(scale)
    return Request(
        messages=instructions.fill(prompt, case, {"response": response}),
        choices=choices,
        prefill=prompt.prefill,
        slots=Slots(case.id, (response,), outcomes),
    )


@cache
def _labels(scale: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    choices = tuple(map(str, scale))
    return choices, tuple(zip(choices, choices, strict=True))


def ask(prompt: prompts.Prompt, scale: tuple[int, ...], comparison: Comparison) -> Plan[Judgment]:
    """Rate both and prefer the higher score."""
    both = (comparison.first, comparison.second)
    replies = yield [request_rating(prompt, scale, comparison.case, response) for response in both]
    read = "text" if any(reply.probabilities is None for reply in replies) else "choices"
    mass = min((reply.mass for reply in replies if reply.mass is not None), default=None)
    quotable = instructions.quotable_texts(comparison.case, both)
    first, second = [verdicts.read_rating(reply, prompt.prefill, scale, quotable) for reply in replies]
    if isinstance(first, str) or isinstance(second, str):
        failure = first if isinstance(first, str) else str(second)
        return Judgment(None, mass=mass, read=read, failure=failure)
    scores, ratings = (first[0], second[0]), (first[1], second[1])
    return Judgment(verdicts.compare_scores(*scores), scores=scores, ratings=ratings, mass=mass, read=read)


absolute = Protocol(
    name="absolute",
    summary="rate each response alone, 1 to 7: most likely rating and probability-weighted score",
    paper="Distracted evaluation 3.3",
    ask=partial(ask, PROMPT, SCALE),
    calls=Calls(response=1),
    ties=True,
    rules=("score", "rating"),
    orders="none",
    prompts=(PROMPT,),
    default=True,
)
