"""What the functions take, for type checkers and editors: written by ``python benchmarks/tables.py``."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from distract.cli.api import AnyPath, Run
from distract.studies.gate.verdict import Verdict

def attack(
    *,
    judge: str | Callable[..., object] = "smollm2-135m",
    protocols: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    limit: int | Literal["all"] | None = 24,
    measures: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    one_direction: bool = False,
    attacks: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    data: Any = "tweakset",
    responses: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    columns: Mapping[str, str | float] = ...,
    seed: int = 0,
    generator: str | None = None,
    best_of: int = 1,
    retries: int = 1,
    temperature: float = 0.7,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    verifier: str | None = None,
    verifier_threshold: float = 0.5,
    reference_model: str | None = None,
    orders: Literal["both", "one", "given", "swapped"] = "both",
    samples: int = 1,
    answer_tokens: int | None = None,
    judge_temperature: float | None = None,
    control: bool = False,
    probe: bool = True,
    shard: str | None = None,
    out: str | PathLike[str] | None = None,
    keep_text: Literal["failures", "all", "none"] = "failures",
    fresh: bool = False,
    store: str | PathLike[str] | None = None,
    revision: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    judge_version: str | None = None,
    model_options: Mapping[str, Any] = ...,
    engine: str | None = None,
    workers: int | None = None,
    dtype: str = "auto",
    quantization: str | None = None,
    base_url: str | None = None,
    same_as: str | None = None,
    concurrency: int = 16,
    timeout: float = 120.0,
    fail_fast: bool = False,
    catalogue: str | PathLike[str] | None = None,
    **settings: Any,
) -> Run:
    """Rewrite responses with distractors and measure how often the judge's verdict changes: ``distract attack``.

    The measures are those of Distracted evaluation, section 3.1.

    Args:
        judge: Judge; `distract list judges` shows the forms.
        protocols: Way of asking: a name, NAME@1 for its first wording, a file, or NAME=FOLDER of other prompts;
            repeatable. Default: pairwise and pointwise.
        limit: Number of cases, spread over the formats of the data. Expects a number of cases from 1, or 'all'.
        measures: Measure, or fixed, flip, severity, net; repeatable. Default: all that fit and cost little.
        one_direction: Rewrite no response that won, which spares calls but hides that a judge punishes a style.
        attacks: Attack, severity or both (severity-2+ATTACK); repeatable.
        data: Built-in name, path (CSV, Parquet, JSON …), or FORMAT:PATH.
        responses: File of {prompt, response}, for data that hold only prompts; repeatable.
        columns: Columns of a table, as in prompt=question,response_a=answer_1,label=winner.
        seed: Seed for the draw, the rewrites and sampling. Expects a whole number from -9223372036854775808 to
            9223372036854775807.
        generator: Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded, if the data have
            any.
        best_of: Texts per attempt; the best is kept. Expects a whole number from 1 to 1000.
        retries: More attempts after a rejected text. Expects a whole number from 0 to 1000.
        temperature: Temperature of the generator; 0 is greedy. Expects a number from 0 to 10.
        top_p: Top-p of the generator. Expects a share above 0 up to 1.
        max_tokens: Maximum number of tokens of a generated text. Expects a whole number from 1 to 10000000.
        verifier: Model that reads whether each restyled sentence says the same, nli:MODEL, or none. Default: a model
            that writes reads what it wrote.
        verifier_threshold: Log-odds that a sentence says the same, below which it is put back. Expects a number from
            -12 to 12.
        reference_model: Model for protocols that need a reference, named like a judge.
        orders: Orders in which to show responses (both: every rotation of three or four; one: drawn for each pair;
            given, swapped: a diagnosis, which no gate passes).
        samples: Passes of each order; the majority wins. Expects a whole number from 1 to 10000.
        answer_tokens: Maximum number of tokens of a judge's answer in words. Expects a whole number from 1 to 10000000.
        judge_temperature: Temperature of every text that a protocol asks for; probabilities of verdicts are read
            without one. Default: the protocol's own, which is 0 for most. Expects a number from 0 to 10.
        control: Measure the noise too, by control rewrites and second samples.
        probe: Where few prompts are labelled, exchange their responses to see whether the judge reads the question.
        shard: Part of the prompts to judge, such as 2/8; `distract merge` joins all parts.
        out: Run folder. Default: a folder under .distract/runs.
        keep_text: Answers of the judge to keep in the run folder: those that could not be read, all or none.
        fresh: Ask the judge everything again, and use no older reply from now on.
        store: Reply store. Default: .distract/replies.sqlite.
        revision: Commit, branch or tag of the judge on the hub (other models: NAME@REVISION).
        price_in: Price per million prompt tokens of the judge (USD). Expects a number from 0 to 1e+06.
        price_out: Price per million output tokens of the judge (USD). Expects a number from 0 to 1e+06.
        judge_version: Version of the judge, to distinguish it from another model of the same name.
        model_options: Any setting of an engine or a server; repeatable. `distract list options` describes each.
        engine: Engine for a name that leaves it open: vllm, transformers or ray.
        workers: Workers that run the model, with the engine ray. Expects a whole number from 1 to 10000.
        dtype: Type of the weights: float32, bfloat16 or float16.
        quantization: Quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports.
        base_url: Server with OpenAI's interface, for openai:MODEL; keys come from the environment only.
        same_as: Address of a server whose stored replies count, if it has moved or has copies.
        concurrency: Requests at once, for each server. Expects a whole number from 1 to 1000.
        timeout: Seconds to wait for a reply. Expects a number from 0.001 to 86400.
        fail_fast: Stop at the first exception of a judge function.
        catalogue: TOML file of more judges.
        **settings: any setting of an engine or a server; see `distract list options`.

    Returns:
        The run, read back if its folder already holds the same one, finished.

    Raises:
        UsageError: an option is wrong or fits no case, or the folder holds another run.
        PluginError: an attack or a protocol failed.
        BackendError: a model failed; the same call resumes, and pays for no reply twice.
    """

def gate(
    run: AnyPath | Run | None = None,
    *,
    judge: str | Callable[..., object] | None = None,
    certify: bool | None = None,
    config: str | PathLike[str] | None = None,
    baseline: str | PathLike[str] | None = None,
    anchors: str | PathLike[str] | None = None,
    beyond_noise: bool | None = None,
    max_margin: float | None = None,
    control: bool = False,
    attacks: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    protocols: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    unlabelled_reason: str | None = None,
    limit: int | Literal["all"] | None = None,
    budget: int | None = None,
    ahead: int = 1,
    trust_store: bool = False,
    max_shift: float | None = None,
    max_exchange_rate: float | None = None,
    max_crossing: float | None = None,
    max_flip_rate: float | None = None,
    max_counter_flip_rate: float | None = None,
    max_gain_rate: float | None = None,
    max_hollow_win_rate: float | None = None,
    max_win_rate: float | None = None,
    margin: float | None = None,
    max_rise: float | None = None,
    max_invalid_rate: float | None = None,
    min_eligible: float | None = None,
    min_n: int | None = None,
    confidence: float | None = None,
    data: Any = "tweakset",
    responses: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    columns: Mapping[str, str | float] = ...,
    seed: int = 0,
    generator: str | None = None,
    best_of: int = 1,
    retries: int = 1,
    temperature: float = 0.7,
    top_p: float = 1.0,
    max_tokens: int = 2048,
    verifier: str | None = None,
    verifier_threshold: float = 0.5,
    reference_model: str | None = None,
    orders: Literal["both", "one", "given", "swapped"] = "both",
    samples: int = 1,
    answer_tokens: int | None = None,
    judge_temperature: float | None = None,
    probe: bool = True,
    out: str | PathLike[str] | None = None,
    keep_text: Literal["failures", "all", "none"] = "failures",
    fresh: bool = False,
    store: str | PathLike[str] | None = None,
    revision: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    judge_version: str | None = None,
    model_options: Mapping[str, Any] = ...,
    engine: str | None = None,
    workers: int | None = None,
    dtype: str = "auto",
    quantization: str | None = None,
    base_url: str | None = None,
    same_as: str | None = None,
    concurrency: int = 16,
    timeout: float = 120.0,
    fail_fast: bool = False,
    catalogue: str | PathLike[str] | None = None,
    **settings: Any,
) -> Verdict:
    """Decide whether rewrites mislead a judge too often: ``distract gate``.

    Reads a finished run, or asks a judge only until the evidence suffices. Fails closed: without enough evidence the
    decision is ``inconclusive``. Thresholds come from the arguments, else from the table ``gate`` of the nearest
    ``distract.toml`` or ``pyproject.toml``; only the command takes its other settings, and only the command runs your
    code in a process of its own: here, code that ends the process ends the caller.

    Args:
        run: a finished run of ``attack``, or its folder.
        judge: Judge to test live; stops when the result is clear. `distract list judges` shows the forms.
        certify: Count inconclusive as a failure (exit 1).
        config: File of settings, in place of the nearest distract.toml or pyproject.toml.
        baseline: Run of `attack` that the judge may not be worse than.
        anchors: File of anchors: decide only if the judge still gives their verdicts.
        beyond_noise: Decide by the flips beyond the judge's own noise, which placebos show and which must be small.
        max_margin: Largest upper bound of that noise to accept, as a share of the scale. Default: 0.05. Expects a share
            from 0 to 1.
        control: Count only flips beyond the judge's own noise (null attack, resampling).
        attacks: Attack; repeatable. Default: assertiveness, prolixity, sycophancy.
        protocols: Way of asking: a name, NAME@1 for its first wording, a file, or NAME=FOLDER of other prompts;
            repeatable. Default: the basic ones.
        unlabelled_reason: Why a judge may pass with --no-probe; a pass shows it.
        limit: Number of cases, drawn by --seed. Default: all. Expects a number of cases from 1, or 'all'.
        budget: Maximum number of model calls, including those answered from the store. Expects a whole number from 1.
        ahead: Prompts to judge in parallel, even if fewer might be enough. Ignored with --budget. Expects a whole
            number from 1.
        trust_store: Use a server's stored replies without repeating a few requests as a check.
        max_shift: Largest shift to accept in a finished RUN, in points or probability. Expects a number from 0 to 1000.
        max_exchange_rate: Largest exchange rate to accept in a finished RUN, in requirements. Expects a number from 0
            to 1000.
        max_crossing: Largest crossing rate to accept under attacks of effect same. Expects a share from 0.000001 to
            below 1.
        max_flip_rate: Largest flip rate to accept under attacks of effect same. Expects a share from 0.000001 to below
            1.
        max_counter_flip_rate: Largest counter-flip rate to accept under attacks of effect same. Expects a share from
            0.000001 to below 1.
        max_gain_rate: Largest gain rate to accept under attacks of effect unearned or injection. Expects a share from
            0.000001 to below 1.
        max_hollow_win_rate: Largest hollow win rate to accept under attacks of effect hollow. Expects a share from
            0.000001 to below 1.
        max_win_rate: Largest rewrite win rate to accept under attacks of effect same. Expects a share from 0.000001 to
            below 1.
        margin: Lead, in points or probability, up to which a verdict is a tie. Default: 0. Expects a number from 0 to
            1000.
        max_rise: Largest rise since the baseline to accept. Default: 0.05. Expects a share from 0.000001 to below 1.
        max_invalid_rate: Largest share of unreadable verdicts. Default: 0.2. Expects a share from 0 to 1.
        min_eligible: Smallest share of comparisons that must be eligible to pass. Default: 0.2. Expects a share from 0
            to 1.
        min_n: Minimum number of verdicts that may pass. Default: 1. Expects a whole number from 1.
        confidence: Confidence of one-sided bounds. Default: 0.95. Expects a share from 0.5 to below 1.
        data: Built-in name, path (CSV, Parquet, JSON …), or FORMAT:PATH.
        responses: File of {prompt, response}, for data that hold only prompts; repeatable.
        columns: Columns of a table, as in prompt=question,response_a=answer_1,label=winner.
        seed: Seed for the draw, the rewrites and sampling. Expects a whole number from -9223372036854775808 to
            9223372036854775807.
        generator: Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded, if the data have
            any.
        best_of: Texts per attempt; the best is kept. Expects a whole number from 1 to 1000.
        retries: More attempts after a rejected text. Expects a whole number from 0 to 1000.
        temperature: Temperature of the generator; 0 is greedy. Expects a number from 0 to 10.
        top_p: Top-p of the generator. Expects a share above 0 up to 1.
        max_tokens: Maximum number of tokens of a generated text. Expects a whole number from 1 to 10000000.
        verifier: Model that reads whether each restyled sentence says the same, nli:MODEL, or none. Default: a model
            that writes reads what it wrote.
        verifier_threshold: Log-odds that a sentence says the same, below which it is put back. Expects a number from
            -12 to 12.
        reference_model: Model for protocols that need a reference, named like a judge.
        orders: Orders in which to show responses (both: every rotation of three or four; one: drawn for each pair;
            given, swapped: a diagnosis, which no gate passes).
        samples: Passes of each order; the majority wins. Expects a whole number from 1 to 10000.
        answer_tokens: Maximum number of tokens of a judge's answer in words. Expects a whole number from 1 to 10000000.
        judge_temperature: Temperature of every text that a protocol asks for; probabilities of verdicts are read
            without one. Default: the protocol's own, which is 0 for most. Expects a number from 0 to 10.
        probe: Where few prompts are labelled, exchange their responses to see whether the judge reads the question.
        out: Run folder. Default: a folder under .distract/runs.
        keep_text: Answers of the judge to keep in the run folder: those that could not be read, all or none.
        fresh: Ask the judge everything again, and use no older reply from now on.
        store: Reply store. Default: .distract/replies.sqlite.
        revision: Commit, branch or tag of the judge on the hub (other models: NAME@REVISION).
        price_in: Price per million prompt tokens of the judge (USD). Expects a number from 0 to 1e+06.
        price_out: Price per million output tokens of the judge (USD). Expects a number from 0 to 1e+06.
        judge_version: Version of the judge, to distinguish it from another model of the same name.
        model_options: Any setting of an engine or a server; repeatable. `distract list options` describes each.
        engine: Engine for a name that leaves it open: vllm, transformers or ray.
        workers: Workers that run the model, with the engine ray. Expects a whole number from 1 to 10000.
        dtype: Type of the weights: float32, bfloat16 or float16.
        quantization: Quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports.
        base_url: Server with OpenAI's interface, for openai:MODEL; keys come from the environment only.
        same_as: Address of a server whose stored replies count, if it has moved or has copies.
        concurrency: Requests at once, for each server. Expects a whole number from 1 to 1000.
        timeout: Seconds to wait for a reply. Expects a number from 0.001 to 86400.
        fail_fast: Stop at the first exception of a judge function.
        catalogue: TOML file of more judges.
        **settings: any setting of an engine or a server; see `distract list options`.

    Returns:
        The verdict: ``decision`` (``pass``, ``fail`` or ``inconclusive``), ``reason``, ``checks`` for each protocol and
        attack, ``notes``, and the ``exit_code`` of the command.

    Raises:
        UsageError: there is no threshold, options conflict, or the run cannot be gated.
        PluginError: an attack or a protocol failed.
        BackendError: a model failed; the same call resumes.
    """
