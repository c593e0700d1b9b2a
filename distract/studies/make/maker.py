"""Run a maker over data: draw, ask, and keep the cases made with their lineage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from distract.core.errors import UsageError
from distract.core.job import Estimate
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.records import Case, Lineage, Reply, Role
from distract.core.store import Answerer
from distract.core.usage import Tally
from distract.data import datasets
from distract.data.good_responses import good_response
from distract.data.prompt_parts import split_prompt
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.eligibility import sample
from distract.studies.estimate import estimate_plans
from distract.studies.make import comparison, pairs, tweakset
from distract.studies.make.attempts import MakeResult, check_author, yield_document


@dataclass(frozen=True)
class MakeJob:
    """A maker's plans, one for each drawn prompt."""

    name: str  # name of the data
    size: int  # number of prompts in the data
    plans: Sequence[Plan[MakeResult]]
    left_out: Mapping[str, int]  # number of useless prompts, by reason
    generator: str
    prompt: str  # SHA-256 (hex) of the prompt file
    asking: GeneratorOptions
    seed: int
    verifier: str | None = None  # name of the model that verifies; None checks by rules only

    @property
    def parameters(self) -> dict[str, float | int]:
        """Generator settings; best-of needs a marker, which only rewrites have."""
        return {name: value for name, value in self.asking.parameters.items() if name != "best_of"}


def pair_job(
    data: str,
    responses: Sequence[str],
    generator: str,
    asking: GeneratorOptions,
    verifier: str | None,
    limit: int | None,
    seed: int,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> MakeJob:
    """Make a better and a worse answer for each drawn case that has a reference: a response known to be good."""
    loaded = datasets.load(data, responses, seed, columns, limit)
    known = [case for case in loaded.cases if good_response(case) is not None]
    usable = [case for case in known if len(case.prompt) == 1]
    if not usable:
        raise UsageError(f"{data}: no case of one turn has a reference (a label, or a single response)")
    unusable = {
        "no response is known to be good": len(loaded.cases) - len(known),
        "more than one turn": len(known) - len(usable),
    }
    left_out = {reason: n for reason, n in {**loaded.left_out, **unusable}.items() if n}
    compare = comparison.verify if verifier else None
    plans = [pairs.make_pair(case, asking, generator, seed, compare) for case in sample(usable, limit, seed)]
    checksum = pairs.prompt_file().checksum
    return MakeJob(loaded.name, loaded.size, plans, left_out, generator, checksum, asking, seed, verifier)


def tweakset_job(data: str, generator: str, asking: GeneratorOptions, limit: int | None, seed: int) -> MakeJob:
    """Make a question with three format constraints, a compliant response and worse ones for each drawn prompt.

    Only prompts whose question and format can be separated are drawn.
    """
    check_author(generator, ())
    loaded = datasets.load_prompts(data)
    usable = [prompt for prompt in loaded.prompts if split_prompt(prompt.text, prompt.constraints) is not None]
    if not usable:
        raise UsageError(f"{data}: {tweakset.NOT_SPLIT} in any prompt")
    unusable = {tweakset.NOT_SPLIT: len(loaded.prompts) - len(usable)}
    left_out = {reason: n for reason, n in {**loaded.left_out, **unusable}.items() if n}
    plans = [tweakset.make_tweak(prompt, asking, generator, seed) for prompt in sample(usable, limit, seed)]
    checksum = tweakset.prompt_file().checksum
    return MakeJob(loaded.name, loaded.size, plans, left_out, generator, checksum, asking, seed)


def estimate_most(job: MakeJob) -> Estimate:
    """Estimate an upper limit on the requests of a job, by rejecting every answer; this uses up the job."""
    estimate = estimate_plans(job.plans, "generator", Reply(""))
    # The verifier reads each of two answers, both ways.
    verified = {"verifier": 4 * estimate.requests["generator"]} if job.verifier else {}
    return replace(estimate, requests={**estimate.requests, **verified})


def make_cases(
    job: MakeJob, models: Mapping[Role, Answerer], tally: Tally, progress: Callable[[Tally], None] | None = None
) -> tuple[list[Case], dict[str, Any]]:
    """Make all cases, and a document of the yield."""
    identity = tuple(sorted(models["generator"][0].identity.items()))
    verified = (("verifier", job.verifier), ("verifier_prompt", comparison.PROMPT.checksum)) if job.verifier else ()
    parameters = (*sorted(job.parameters.items()), ("seed", job.seed), *verified)
    cases, results = [], list(execute(job.plans, models, tally=tally, progress=progress))
    for result in results:
        if (case := result.case) is not None:
            lineage = Lineage(case.responses[0], job.generator, identity, job.prompt, parameters, (), result.evidence)
            lineages = [
                replace(lineage, response=response) if response.severity is None else Lineage(response, "rules")
                for response in case.responses
            ]
            cases.append(replace(case, lineages=tuple(lineages)))
    document = {
        "data": {"name": job.name, "prompts": job.size},
        "generator": job.generator,
        "asking": {**job.parameters, "model": dict(identity)},
        "verifier": job.verifier,
        "seed": job.seed,
        "left_out": dict(job.left_out),
    }
    return cases, {**document, **yield_document(results)}
