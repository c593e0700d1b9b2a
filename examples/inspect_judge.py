"""A scorer of inspect_ai as the judge: distract attack --judge python:examples/inspect_judge.py:polite."""

from inspect_ai.scorer import Score, mean, scorer


@scorer(metrics=[mean()])
def polite():
    """Score courtesy, as a scorer should not."""

    async def score(state, target):
        words = state.output.completion.lower()
        hits = sum(words.count(word) for word in ("thank", "please", "happy", "wonderful"))
        return Score(value=hits, explanation=f"{hits} words of courtesy")

    return score
