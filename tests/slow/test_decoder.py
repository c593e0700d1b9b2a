"""Test that answers generated in batches equal answers generated one at a time."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.core.records import Message, Request
from distract.models.transformers import decoder
from distract.models.transformers.backend import Transformers
from distract.models.transformers.decoder import Decoder, ForwardResult, KnownAnswer, write
from distract.models.transformers.packs import Sharing, lay_out, prune
from distract.models.transformers.replies import Answer


class Item(NamedTuple):
    """A prompt and the parameters of its answer."""

    prompt: tuple[int, ...]
    room: int
    ends: frozenset[int]
    request: Request

    def answer(self) -> Answer:
        return Answer(self.request, len(self.prompt), self.room, self.ends, spell)


def spell(tokens: list[int]) -> str:
    return "".join(chr(ord("a") + token) for token in tokens)


def items(count: int) -> list[Item]:
    """Prompts of which some share a prefix, are a prefix of another, or are equal."""
    draw = random.Random(7)
    tiny: list[Item] = []
    for number in range(count):
        stem = draw.choice(tiny).prompt if tiny and draw.random() < 0.8 else ()
        tail = tuple(draw.choices(range(20), k=draw.choice([0, 1, 6, 30])))
        prompt = (*stem[: draw.choice([len(stem), len(stem) // 2])][:40], *tail) or (1,)
        stop = draw.choice([(), ("d", "bc")])
        request = Request((Message("user", "?"),), temperature=draw.choice([0.0, 1.0]), stop=stop, sample=number)
        tiny.append(Item(prompt, draw.choice([1, 2, 5, 14]), frozenset(draw.choice([(), (3, 5)])), request))
    return tiny


ITEMS = items(24)


@pytest.fixture(scope="module", params=["llama", "mistral"])
def judge(request: pytest.FixtureRequest) -> Transformers:
    """A tiny model of one kind; the second sees six tokens back."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    shape: dict[str, Any] = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 1.0}
    torch.manual_seed(1)
    kinds = {"llama": transformers.LlamaConfig, "mistral": transformers.MistralConfig}
    config = kinds[request.param](**shape, **({"sliding_window": 6} if request.param == "mistral" else {}))
    model = Transformers("tiny", dtype="float32")
    vars(model)["_loaded"] = transformers.AutoModelForCausalLM.from_config(config).eval()
    assert (model.prompt_mode, model._can_batch) == ("packed", True)
    return model


@pytest.fixture(scope="module")
def alone(judge: Transformers) -> Callable[[int], Answer]:
    """An item's answer, with one complete forward pass per token."""
    import torch

    @cache
    def written(number: int) -> Answer:
        item = ITEMS[number]
        answer = item.answer()
        while not answer.finish:
            with torch.inference_mode():
                logits = judge._loaded(torch.tensor([[*item.prompt, *answer.tokens]])).logits[0, -1]
            first, second = logits.topk(2).values.tolist()
            assert first - second > 1e-3, "a tie: take another seed"
            answer.write(logits, int(logits.argmax()), first)
        return answer

    return written


@pytest.fixture(scope="module")
def sizes() -> Iterator[list[tuple[int, int]]]:
    """The rows and places of the buffers in each step; they are rearranged every few steps."""
    seen: list[tuple[int, int]] = []
    step = Decoder.step

    def watched(self: Decoder) -> None:
        step(self)
        seen.append((len(self._rows), len(self._rows) * self._columns))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decoder, "step", watched)
        patch.setattr(decoder, "_SPARE", 6)
        patch.setattr(decoder, "_STEPS", 4)
        yield seen


def run_forwards(
    judge: Transformers, prompts: Sequence[tuple[int, ...]], needed: dict[int, Any], **options: Any
) -> Iterator[ForwardResult]:
    sharing: Sharing = options.get("sharing", "packed")
    forwards = prune(lay_out(prompts, options.get("tokens", 64), sharing), needed)
    return judge._run(forwards, sharing, hold=True)


@given(
    requests=st.lists(
        st.tuples(st.integers(0, len(ITEMS) - 1), st.booleans()), max_size=12, unique_by=lambda one: one[0]
    ),
    rows=st.integers(1, 5),
    budget=st.integers(1, 300),
    tokens=st.sampled_from([6, 16, 64]),
    sharing=st.sampled_from(["packed", "prefix"]),
)
def test_packed_answers_equal_answers_written_alone(
    judge: Transformers,
    alone: Callable[[int], Answer],
    sizes: list[tuple[int, int]],
    requests: list[tuple[int, bool]],
    rows: int,
    budget: int,
    tokens: int,
    sharing: Sharing,
) -> None:
    sizes.clear()
    answers = {at: ITEMS[number].answer() for at, (number, is_needed) in enumerate(requests) if is_needed}
    reading = run_forwards(
        judge, [ITEMS[number].prompt for number, _ in requests], answers, sharing=sharing, tokens=tokens
    )
    complete: list[int] = []
    for done in write(judge._loaded, reading, answers, budget, rows):
        complete += done
        assert {at for at, answer in answers.items() if answer.finish} >= set(complete)
    assert sorted(complete) == sorted(answers)
    for at, answer in answers.items():
        expected = alone(requests[at][0])
        assert (answer.tokens, answer.reply()) == (expected.tokens, expected.reply())
    assert all(count <= rows and (count == 1 or places <= budget) for count, places in sizes)


def test_waiting_prompts_take_freed_rows(judge: Transformers, sizes: list[tuple[int, int]]) -> None:
    sizes.clear()
    prompts = [(number, 1, 2) for number in range(12)]
    answers = {at: KnownAnswer((*prompt, *range(at % 4)), at % 4) for at, prompt in enumerate(prompts)}
    order = [
        at for done in write(judge._loaded, run_forwards(judge, prompts, answers), answers, 1000, 3) for at in done
    ]
    assert sorted(order) == list(range(12))
    assert order != list(range(12))
    # 3 of 12 are complete with the first token after their prompt; the others take 18 tokens in rows of 3.
    assert len(sizes) <= 18 / 3 + 2
    assert max(count for count, _ in sizes) == 3


def test_forwards_run_only_when_their_prompts_are_next(judge: Transformers) -> None:
    prompts = [(number,) * 10 for number in range(8)]
    answers = {at: KnownAnswer((*prompt, 1, 2), 2) for at, prompt in enumerate(prompts)}
    read: list[int] = []

    def watched() -> Iterator[ForwardResult]:
        for run in run_forwards(judge, prompts, answers, tokens=20):
            # All that was read before is complete or has one of the two rows.
            assert len(read) - sum(bool(one.finish) for one in answers.values()) <= 2
            read.extend(at for _, ending in run[0].reads for at in ending)
            yield run

    writing = write(judge._loaded, watched(), answers, 1000, 2)
    first = next(writing)
    assert len(read) < 8
    assert len(first) + sum(map(len, writing)) == len(read) == 8


def test_nan_does_not_spoil_the_next_answer_in_its_row(judge: Transformers) -> None:
    import torch

    # Its second token turns all later values into NaN; the other two prompts use its row in turn.
    answers = {
        0: KnownAnswer((5,) * 12 + (1, 19, 3), 3),
        1: KnownAnswer((6,) * 4 + (1, 2), 2),
        2: KnownAnswer((7,) * 6 + (1, 2), 2),
    }
    forwards = run_forwards(judge, [(5,) * 12, (6,) * 4, (7,) * 6], answers)
    weights = judge._loaded.get_input_embeddings().weight
    with torch.no_grad():
        before = weights[19].clone()
        weights[19] = torch.nan
        assert sum(map(len, write(judge._loaded, forwards, answers, 1000, 1))) == 3
        weights[19] = before
        assert answers[0].logits.isnan().all()
        for prompt, answer in ((6,) * 4 + (1, 2), answers[1]), ((7,) * 6 + (1, 2), answers[2]):
            expected = judge._loaded(torch.tensor([prompt])).logits[0, -1].log_softmax(dim=-1)
            assert torch.allclose(answer.logits.log_softmax(dim=-1), expected, atol=1e-4)


def test_no_prompts_give_no_answers(judge: Transformers) -> None:
    assert list(write(judge._loaded, iter(()), {}, 100)) == []
