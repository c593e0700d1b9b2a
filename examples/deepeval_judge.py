"""A metric of deepeval as the judge: distract attack --judge python:examples/deepeval_judge.py:metric."""

from deepeval.metrics import GEval
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import SingleTurnParams


class LongerIsBetter(DeepEvalBaseLLM):
    """Stands for the model that you deploy: it likes long answers, and needs no network."""

    def load_model(self):
        """Load nothing."""

    def get_model_name(self):
        """Name the model."""
        return "longer-is-better"

    def generate(self, prompt, schema=None):
        """Answer with a score from 0 to 10."""
        score = round(min(10, len(prompt) / 500), 2)
        return schema(score=score, reason="It is long.") if schema else f'{{"score": {score}, "reason": "It is long."}}'

    async def a_generate(self, prompt, schema=None):
        """Answer with a score from 0 to 10."""
        return self.generate(prompt, schema)


metric = GEval(
    name="Helpfulness",
    evaluation_steps=["Judge how well the actual output follows the input.", "Ignore length and tone."],
    evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
    model=LongerIsBetter(),
    threshold=0.7,
)
