"""Test tiny random models of every family: each layout reads the same as one forward per prompt."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from builders import request
from hypothesis import given, strategies as st

from distract.models.transformers import replies
from distract.models.transformers.architecture import forward_operations, reach
from distract.models.transformers.backend import Transformers
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.packs import Attention, Sharing, lay_out

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.5,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}


def rope(kind: str, **options: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0, **options}}


LONG = rope("longrope", original_max_position_embeddings=32, short_factor=[1.0] * 4, long_factor=[3.0] * 4)
LLAMA3 = rope("llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=128)
NEXT = {
    "layer_types": ["linear_attention", "full_attention"],
    "num_experts": 0,
    "head_dim": 8,
    **{f"linear_{name}_head_dim": 8 for name in ("key", "value")},
    **{f"linear_num_{name}_heads": 2 for name in ("key", "value")},
}
SHARED = {
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 8,
    "num_kv_shared_layers": 2,
    "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 8,
}
"""Settings of layers that reuse the cache of other layers."""

FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "llama": ("Llama", {}, "packed"),
    "llama, tied": ("Llama", {"tie_word_embeddings": True}, "packed"),
    "llama, heads not grouped": ("Llama", {"num_key_value_heads": 4}, "packed"),
    "llama, linear": ("Llama", rope("linear"), "packed"),
    "llama, dynamic": ("Llama", rope("dynamic"), "packed"),
    "llama, yarn": ("Llama", rope("yarn", original_max_position_embeddings=128), "packed"),
    "llama, llama3": ("Llama", LLAMA3, "packed"),
    "qwen2": ("Qwen2", {}, "packed"),
    "qwen2, windows": ("Qwen2", {**MIXED, "use_sliding_window": True}, "packed"),
    "qwen3": ("Qwen3", {"head_dim": 16}, "packed"),
    "mistral": ("Mistral", {"sliding_window": None}, "packed"),
    "mistral, windows": ("Mistral", {"sliding_window": 8}, "packed"),
    "gemma": ("Gemma", {"head_dim": 16}, "packed"),
    "gemma2": ("Gemma2", {"head_dim": 16, **MIXED, "attn_logit_softcapping": 2.0}, "packed"),
    "gemma3": ("Gemma3Text", {"head_dim": 16, **MIXED}, "packed"),
    "gemma3n": ("Gemma3nText", {**SHARED, "head_dim": 16, "laurel_rank": 4, "altup_num_inputs": 2}, "packed"),
    "gemma4": ("Gemma4Text", {**SHARED, "head_dim": 8, "global_head_dim": 16}, "packed"),
    "phi": ("Phi", {}, "packed"),
    "phi3": ("Phi3", {}, "packed"),
    "phi3, windows": ("Phi3", {"sliding_window": 8}, "packed"),
    "phi3, longrope": ("Phi3", {**LONG, "original_max_position_embeddings": 32}, "packed"),
    "mamba": ("Mamba", {"state_size": 4}, "one by one"),
    "falcon mamba": ("FalconMamba", {"state_size": 4}, "one by one"),
    "jamba": ("Jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4}, "one by one"),
    "qwen3 next": ("Qwen3Next", NEXT, "cached prefix"),
    "gpt neo": (
        "GPTNeo",
        {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 4, "window_size": 48},
        "cached prefix",
    ),
    "bloom": ("Bloom", {"n_head": 4, "n_layer": 2}, "cached prefix"),
}
Tokens = tuple[int, ...]


def judge_of(family: str, budget: int = 20) -> Transformers:
    import torch
    import transformers

    name, options, _ = FAMILIES[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SHAPE | options)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    judge = Transformers(family, dtype="float32", batch_tokens=budget)
    vars(judge).update(_loaded=model, _ends=set(), _commit="")
    return judge


def read(judge: Transformers, sequences: Sequence[Tokens], budget: int, sharing: Sharing) -> Any:
    """Probabilities after each sequence."""
    import torch

    by_index: dict[int, Any] = {}
    forwards = lay_out(sequences, budget, sharing, reach(judge._loaded.config))
    for forward, logarithms, _ in judge._run(forwards, sharing):
        for row, (_, ending) in enumerate(forward.reads):
            by_index.update((index, logarithms[row].exp()) for index in ending)
    return torch.stack([by_index[index] for index in range(len(sequences))])


def read_alone(judge: Transformers, sequences: Sequence[Tokens]) -> Any:
    """The same probabilities from the unmodified model, with one forward pass per sequence."""
    import torch

    with torch.inference_mode():
        rows = [judge._loaded(torch.tensor([one])).logits[0, -1].softmax(-1) for one in sequences]
    return torch.stack(rows)


def sequences_of(cuts: Sequence[tuple[int, int]]) -> list[Tokens]:
    """Sequences that begin with part of one text and continue with tokens of their own."""
    draw = Random(0)
    text = [draw.randrange(64) for _ in range(64)]
    return [tuple(text[:shared] + [draw.randrange(64) for _ in range(own)]) for shared, own in cuts]


def torch_generated(judge: Transformers, prompt: Tokens, tokens: int) -> list[int]:
    """The most likely tokens, each from a forward pass over all earlier ones."""
    import torch

    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(tokens):
            ids.append(int(judge._loaded(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def attend_segments(
    query: Any, key: Any, value: Any, queries: Any, keys: Any, *longest: int, scale: float, window_size: tuple[int, int]
) -> Any:
    """Do what the kernel of a GPU does, which aligns queries and keys at their ends."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    assert longest == (queries.diff().max(), keys.diff().max())
    outputs = []
    for (start, stop), (first, last) in zip(*(pairwise(some.tolist()) for some in (queries, keys)), strict=True):
        behind = torch.arange(last - first - (stop - start), last - first)[:, None] - torch.arange(last - first)
        seen = (behind >= -window_size[1]) & ((behind <= window_size[0]) | (window_size[0] < 0))
        q, k, v = (part.transpose(0, 1) for part in (query[start:stop], key[first:last], value[first:last]))
        outputs.append(scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scale).transpose(0, 1))
    return torch.cat(outputs)


# Branches after prefixes longer and shorter than a window, a prompt that starts another, one token, equal prompts, and
# prompts longer than the training context of longrope.
PROMPTS = sequences_of([(15, 3), (15, 15), (15, 2), (10, 4), (0, 1), (10, 0), (10, 0), (40, 2), (40, 9)])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layout_reads_the_same_as_single_forwards(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", attend_segments)
    judge = judge_of(family)
    alone = read_alone(judge, PROMPTS)
    assert judge.prompt_mode == FAMILIES[family][2]
    ways: list[tuple[Sharing, Attention]] = [(judge._sharing, judge._attention)]
    if judge.prompt_mode == "packed":
        # The layouts on a GPU, and the one for models without mask support.
        ways += [("packed", "dense"), ("prefix", "dense")]
    if judge._attention == "runs":
        ways.append(("packed", "kernel"))
    for sharing, attention in ways:
        judge._attend_by(attention)
        for budget in (7, 20, 500):
            assert (read(judge, PROMPTS, budget, sharing) - alone).abs().max() <= 1e-5


@pytest.fixture(scope="module")
def judges() -> Callable[[str], Transformers]:
    return cache(judge_of)


SETS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).filter(any), min_size=1, max_size=8)


@given(cuts=SETS, budget=st.integers(1, 60), twice=st.booleans())
@pytest.mark.parametrize("family", ["llama", "gemma3", "phi3, longrope"])
def test_any_prompt_set_reads_the_same_as_single_forwards(
    judges: Callable[[str], Transformers], family: str, cuts: list[tuple[int, int]], budget: int, twice: bool
) -> None:
    judge = judges(family)
    sequences = sequences_of(cuts) * (1 + twice)
    sources = read(judge, sequences, budget, judge._sharing)
    assert (sources - read_alone(judge, sequences)).abs().max() <= 1e-5


@pytest.mark.parametrize(("family", "together"), [("mistral, windows", True), ("gemma3", True), ("jamba", False)])
def test_windows_hold_for_answers_in_words(family: str, together: bool) -> None:
    assert judge_of(family)._can_batch == together


def test_answers_with_changing_angles_are_written_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judge_of("phi3, longrope")
    vars(judge)["_chat"] = SimpleNamespace(
        encode_all=lambda requests: [EncodedRequest(PROMPTS[int(one.messages[0].content)]) for one in requests],
        tokenizer=SimpleNamespace(decode=lambda ids, **_: " ".join(map(str, ids))),
    )
    alone, real = list[int](), replies._generate

    def noted(model: Any, prompt: Tokens, answer: replies.Answer) -> None:
        alone.append(len(prompt))
        real(model, prompt, answer)

    monkeypatch.setattr(replies, "_generate", noted)
    requests = [replace(request(str(at)), choices=(), max_tokens=8) for at in range(len(PROMPTS))]
    answers = dict(pair for batch in judge.reply(requests, frozenset(range(len(PROMPTS)))) for pair in batch)
    assert sorted(alone) == sorted(len(one) for one in PROMPTS if len(one) + 8 > 32)
    for at, prompt in enumerate(PROMPTS):
        ids = torch_generated(judge, prompt, 8)
        assert answers[at].text == " ".join(map(str, ids))


@pytest.mark.parametrize("family", FAMILIES)
def test_forward_size_fits_every_configuration(family: str) -> None:
    judge = judge_of(family)
    judge._given_tokens = None
    assert judge.batch_tokens in (1 << n for n in range(6, 12))
    assert forward_operations(judge._loaded, 10, 1, 55) > 0


def test_capped_scores_are_left_to_the_model() -> None:
    judge = judge_of("gemma2")
    judge._attend_by("runs")
    with pytest.raises(ValueError, match="capped"):
        read(judge, PROMPTS, 500, "packed")


@pytest.mark.parametrize("family", ["llama", "llama, tied", "qwen3", "phi"])
def test_operation_counts_match_torch(family: str) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    judge = judge_of(family)
    judge._loaded.set_attn_implementation("eager")
    forward = lay_out([PROMPTS[1]], 500)[0]
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        judge._loaded(torch.tensor([PROMPTS[1]]), logits_to_keep=1)
    # Torch also counts masked pairs; norms and biases are weights but no matrices.
    count, heads, width = len(PROMPTS[1]), 4, 16 if family == "qwen3" else 8
    hidden = 4 * 2 * heads * width * (count**2 - forward.pairs)
    assert forward_operations(judge._loaded, len(forward.tokens), len(forward.reads), forward.pairs) == pytest.approx(
        counter.get_total_flops() - hidden, rel=0.05
    )
