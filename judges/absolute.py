"""Absolute scoring: each response is rated alone on a scale of 1 to 7 (Distracted evaluation, section 3.3).

The score is the probability-weighted mean of the ratings, the rating the most likely one. Preference is by either
rule, from the same requests. It knows nothing of attacks or measures.
"""

from __future__ import annotations

from dataclasses import replace

from distract import verdicts
from distract.plan import Comparison, Plan, Protocol, gather
from distract.records import Case, Judgment, Request, Response, Slots

from .rubric import fill, prompt_files, prompt_for

SCALE = (1, 2, 3, 4, 5, 6, 7)
CHOICES = tuple(str(rating) for rating in SCALE)


def rate(case: Case, response: Response) -> Plan[tuple[tuple[float, int] | str, float | None, str]]:
    """Rate one response; returns (score and rating, or why there is none), mass, and how it was read."""
    prompt = prompt_for(case, "absolute")
    (reply,) = yield [
        Request(
            messages=fill(prompt, case, {"response": response}),
            choices=CHOICES,
            prefill=prompt.prefill,
            slots=Slots(case=case.id, shown=(response,), outcomes=tuple(zip(CHOICES, CHOICES, strict=True))),
        )
    ]
    read = "text" if reply.probabilities is None else "choices"
    return verdicts.rating(reply, prompt.prefill, SCALE), reply.mass, read


def compare(comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    """Rate both and prefer the higher score; the order plays no part."""
    (first, mass_a, read), (second, mass_b, _) = yield from gather(
        [rate(comparison.case, comparison.first), rate(comparison.case, comparison.second)]
    )
    masses = [mass for mass in (mass_a, mass_b) if mass is not None]
    mass = min(masses) if masses else None
    if isinstance(first, str) or isinstance(second, str):
        failure = first if isinstance(first, str) else str(second)
        return (Judgment(None, mass=mass, read=read, failure=failure),)
    scored = Judgment("tie", scores=(first[0], second[0]), ratings=(first[1], second[1]), mass=mass, read=read)
    return (replace(scored, preferred=verdicts.outcome([scored], "score")),)


absolute = Protocol(
    name="absolute",
    summary="rate each response alone, 1 to 7: most likely rating and probability-weighted score",
    calls=2,
    compare=compare,
    rules=("score", "rating"),
    prompts=prompt_files("absolute"),
    default=True,
)
