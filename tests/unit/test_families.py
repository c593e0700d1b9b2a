"""Test how names reveal families of models."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.models.families import families, find_self_judging


@each(
    "name, expected",
    ("gpt-4-0613", {"gpt"}),
    ("GPT-3.5 Mini", {"gpt"}),
    ("openai:chatgpt-4o-latest", {"gpt"}),
    ("o3-mini", {"gpt"}),
    ("o1", {"gpt"}),
    ("transformers:meta-llama/Llama-3.3-70B-Instruct", {"llama"}),
    ("LLaMA-13B", {"llama"}),
    ("vicuna-13b", {"llama"}),
    ("transformers:Qwen/Qwen2.5-3B-Instruct@main", {"qwen"}),
    ("transformers:./models/qwen2.5-3b/", {"qwen"}),
    ("DeepSeek-R1-Distill-Qwen-7B", {"deepseek", "qwen"}),
    ("Claude-v1", {"claude"}),
    ("Mixtral-8x7B", {"mistral"}),
    ("smollm2-135m", {"smollm"}),
    ("gemma-2-9b", {"gemma"}),
    ("qwen2.5:7b", {"qwen"}),
    ("meta-llama/llama-3-8b:free", {"llama"}),
    ("anthropic.claude-3-5-sonnet-20240620-v1:0", {"claude"}),
    ("transformers:/c/models--Qwen--Qwen2.5-3B/snapshots/abc123", {"qwen"}),
    ("TinyLlama-1.1B", {"llama"}),
    ("CodeQwen1.5-7B", {"qwen"}),
    ("stablelm-zephyr-3b", {"stablelm-zephyr-3b"}),
    ("transformers:./models/mine", {"mine"}),
    ("good", {"good"}),
    ("output_1", {"output_1"}),
    ("o2-lab", {"o2-lab"}),
    ("o3d-printer", {"o3d-printer"}),
)
def test_name_reveals_the_family(name: str, expected: set[str]) -> None:
    assert families(name) == expected


@each(
    "judge, writers, authors, expected",
    ("smollm2-135m", ["smollm2-135m"], [], ["the generator, smollm2-135m, is the judge itself"]),
    ("qwen2.5-72b", ["qwen-3b"], [], ["the generator, qwen-3b, and the judge are of one family (qwen)"]),
    (
        "gpt-4",
        ["llama-3"],
        ["gpt-3.5-turbo", "claude-v1", "gpt-4"],
        ["author of responses, gpt-3.5-turbo, and the judge are of one family (gpt)", "gpt-4, is the judge itself"],
    ),
    ("model-a", ["model-b"], ["model-c"], []),
    ("llama-3", ["gpt-4"], ["good", "low-1"], []),
)
def test_judging_its_own_family_is_named(
    judge: str, writers: list[str], authors: list[str], expected: list[str]
) -> None:
    notes = find_self_judging(judge, writers, authors)
    assert len(notes) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, notes, strict=True))


@given(st.text(max_size=40))
def test_every_name_has_a_family_that_includes_it(name: str) -> None:
    assert families(name)
    assert find_self_judging(name, [name], [])
