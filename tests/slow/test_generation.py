"""Test generated answers: batches equal single answers, and samples are independent."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, strategies as st
from loops import each
from test_transformers_backend import ask

from distract.core.errors import BackendError
from distract.core.records import Message, Reply, Request
from distract.models.transformers import decoder
from distract.models.transformers.backend import Transformers
from distract.models.transformers.decoder import Decoder, ForwardResult, KnownAnswer, write
from distract.models.transformers.packs import Sharing, lay_out, prune
from distract.models.transformers.replies import Answer, draw_token

RULES = "You are asked by people of all trades. Answer each in one or two plain sentences, without any list. "
QUESTIONS = [
    "Hi",
    "What is the capital of France?",
    "What is the capital of Italy?",
    "Why is the sky blue? " + "Say it in simple words, please. " * 12,
    "Count from one to twelve.",
    RULES * 12 + "How does a bicycle stay upright?",
    RULES * 12 + "How does a bicycle brake?",
    "Name three rivers of Asia. " * 3,
]
ROOMS = [16, 6, 24, 8, 20, 3, 8, 1]
CERTAIN = {"temperature": 1.2, "top_p": 1e-6}


def make_request(question: str, **options: Any) -> Request:
    return Request((Message("system", RULES), Message("user", question)), **options)


def assert_greedy(judge: Transformers, requests: Sequence[Request], replies: dict[int, Reply]) -> None:
    """Check that every answer equals that of the model's ``generate``, up to a tie."""
    import torch

    for index, request in enumerate(requests):
        ids = torch.tensor([judge._chat.encode(request).prompt], device=judge._loaded.device)
        options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": request.max_tokens, "do_sample": False}
        expected = judge._loaded.generate(ids, **options)[0]
        new = expected[ids.shape[1] :].tolist()
        reply = replies[index]
        if reply.text == judge._chat.tokenizer.decode(new, skip_special_tokens=True):
            assert reply.finish == ("stop" if new[-1] in judge._ends else "length")
            assert (reply.tokens_in, reply.tokens_out) == (ids.shape[1], len(new))
            continue
        own = judge._chat.tokenizer(reply.text, add_special_tokens=False)["input_ids"]
        same = next(at for at, (one, other) in enumerate(zip([*own, -1], new, strict=False)) if one != other)
        with torch.inference_mode():
            logits = judge._loaded(expected[None, : ids.shape[1] + same]).logits[0, -1]
        first, second = logits.float().log_softmax(dim=-1).topk(2).values.tolist()
        assert first - second <= 1e-4, (index, reply.text)


def test_draws_follow_the_distribution() -> None:
    logits = np.array([0.0, 1.0, -math.inf, 2.0, 0.5], np.float32)
    for temperature in (0.5, 1.0, 3.0):
        expected = np.exp(logits / temperature)
        expected /= expected.sum()
        spaced = (np.arange(2000) + 0.5) / 2000
        shares = np.bincount([draw_token(logits, temperature, 1.0, u) for u in spaced], minlength=5) / 2000
        assert abs(shares - expected).max() <= 1e-3


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, -20.0]), min_size=1, max_size=8), st.floats(0.001, 1.0))
def test_nucleus_is_the_smallest_set_that_reaches_the_share(values: list[float], top_p: float) -> None:
    logits = np.array(values)
    weights = np.exp(logits) / np.exp(logits).sum()
    tokens = {draw_token(logits, 1.0, top_p, u) for u in np.linspace(0, 1, 400, endpoint=False)}
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    allowed = {int(i) for i, b in zip(order, before, strict=True) if b < top_p + 1e-9}
    assert tokens <= allowed
    assert {int(i) for i, b in zip(order, before, strict=True) if b < top_p - 1e-9 and weights[i] > 0.01} <= tokens


def test_draws_handle_the_edges_of_the_range() -> None:
    logits = np.array([-math.inf, 0.0, 0.0, -math.inf], np.float32)
    assert {draw_token(logits, 1.0, top_p, u) for top_p in (0.9, 1.0) for u in (0.0, 1 - 2**-53)} == {1, 2}
    assert {draw_token(logits, 1.0, 1e-6, u) for u in (0.0, 0.5, 1 - 2**-53)} == {1}
    assert draw_token(np.array([1.0, 1.1], np.float32), 1e-3, 1.0, 0.999) == 1


def spell(request: Request, words: Sequence[str], room: int = 99) -> Reply:
    """The answer of a model that generates these tokens; the last one ends it."""
    import torch

    answer = Answer(request, 5, room, {len(words)}, lambda ids: "".join([*words, ""][i] for i in ids))
    for token in range(len(words) + 1):
        if not answer.finish:
            answer.write(torch.zeros(99), token, 0.0)
    return answer.reply()


@each(
    "stop, text, count",
    ((), "ab]] cd[[A]] e", 6),
    (("]]",), "ab]]", 2),
    (("[[A]]",), "ab]] cd[[A]]", 4),
    (("[[A]]", "d"), "ab]] cd", 3),
    (("b]] cd[", "cd[[", ""), "ab]] cd[", 3),
    (("none",), "ab]] cd[[A]] e", 6),
)
def test_answer_ends_right_after_its_first_stop(stop: tuple[str, ...], text: str, count: int) -> None:
    reply = spell(make_request("?", stop=stop), ["ab", "]] ", "cd[[", "A]]", " e"])
    assert (reply.text, reply.finish, reply.tokens_out, reply.tokens_in) == (text, "stop", count, 5)


def test_stop_after_a_long_answer_is_detected_in_a_short_tail() -> None:
    words = [*("word " for _ in range(60)), "x", "y", "z"]
    assert spell(make_request("?", stop=("xyz",)), words).text.endswith("word xyz")
    assert spell(make_request("?"), words, room=60).finish == "length"


def test_nan_logits_are_a_failure() -> None:
    import torch

    answer = Answer(make_request("?", temperature=1.0), 5, 9, {0}, lambda ids: "x" * len(ids))
    answer.write(torch.full((4,), math.nan), 0, math.nan)
    assert (answer.finish, answer.reply().failure) == ("stop", "not a number")


def test_greedy_answers_equal_one_at_a_time_answers(smollm2: Transformers) -> None:
    rooms = {0: 8, 1: 10, 3: 5}
    requests = [make_request(QUESTIONS[at], max_tokens=room) for at, room in rooms.items()]
    assert smollm2._can_batch
    replies = ask(smollm2, requests)
    assert_greedy(smollm2, requests, replies)
    assert {reply.finish for reply in replies.values()} == {"stop", "length"}


@pytest.mark.parametrize("layout", ["packed", "prefix"])
def test_other_layouts_write_the_same_text(folders: dict[str, Path], layout: str) -> None:
    requests = [make_request(q, max_tokens=4) for q in (*QUESTIONS[2:], QUESTIONS[2])]
    judge, other = (Transformers(str(folders["llama"]), dtype="float32", batch_tokens=n) for n in (2048, 300))
    vars(other).update(_sharing=layout, _batched=True)
    assert ask(other, requests) == ask(judge, requests)


def test_sampled_answer_does_not_depend_on_the_others(folders: dict[str, Path]) -> None:
    judge = Transformers(str(folders["llama"]), dtype="float32")
    options: dict[str, Any] = {"max_tokens": 6, "temperature": 1.2, "top_p": 0.95}
    requests = [make_request(QUESTIONS[3], sample=sample, **options) for sample in range(4)]
    requests += [make_request(QUESTIONS[3], seed=1, **options), make_request(QUESTIONS[6], **options)]
    together = ask(judge, requests)
    for index in (1, 5):
        assert ask(judge, [requests[index]])[0] == together[index]
    assert len({together[index].text for index in range(5)}) == 5
    tiny, greedy = (make_request(QUESTIONS[3], max_tokens=10, **more) for more in (CERTAIN, {}))
    assert len({reply.text for reply in ask(judge, [tiny, greedy]).values()}) == 1


def test_real_model_honours_stops_and_prefills(smollm2: Transformers) -> None:
    free = ask(smollm2, [make_request(QUESTIONS[2], max_tokens=12)])[0].text
    middle = free[5:11]
    message = {"prefill": free[:5], "max_tokens": 12}
    requests = [
        make_request(QUESTIONS[2], max_tokens=12, stop=(free[8:14], middle)),
        make_request(QUESTIONS[2], **message),
        make_request(QUESTIONS[2], **message, stop=(free[:5],)),
    ]
    replies = ask(smollm2, requests)
    assert (replies[0].text, replies[0].finish) == (free[: free.index(middle) + len(middle)], "stop")
    assert replies[1].text
    assert replies[2] == replies[1]


@pytest.mark.parametrize("kind", ["qwen2", "gpt2", "bloom", "mistral", "llama"])
def test_tiny_models_write_the_same_in_batches(folders: dict[str, Path], kind: str) -> None:
    judge = Transformers(str(folders[kind]), dtype="float32", batch_tokens=150)
    if kind == "llama":
        vars(judge)["_can_batch"] = False
    requests = [make_request(q, max_tokens=room) for q, room in zip(QUESTIONS, ROOMS, strict=True)]
    replies = ask(judge, requests)
    assert judge._can_batch is (kind != "llama")
    assert_greedy(judge, requests, replies)
    drawn = [make_request("Hi", max_tokens=8, temperature=1.0, stop=("e",), sample=sample) for sample in range(4)]
    replies = ask(judge, drawn)
    assert len({reply.text for reply in replies.values()}) > 1
    assert all(reply.text.find("e") in (-1, len(reply.text) - 1) for reply in replies.values())
    assert {index: ask(judge, [request])[0] for index, request in enumerate(drawn)} == replies


@pytest.mark.parametrize("deaf", ["position_ids", "attention_mask"])
def test_model_that_ignores_the_mask_writes_alone(folders: dict[str, Path], deaf: str) -> None:
    judge = Transformers(str(folders["qwen2"]), dtype="float32")
    requests = [make_request(q, max_tokens=6) for q in QUESTIONS[:3]]
    expected = ask(judge, requests)
    forward = judge._loaded.forward

    def listening(*given: Any, **options: Any) -> Any:
        return forward(*given, **{name: value for name, value in options.items() if name != deaf})

    other = Transformers(str(folders["qwen2"]), dtype="float32")
    other._loaded.forward = listening
    assert (other.prompt_mode, other._can_batch) == ("cached prefix" if deaf == "position_ids" else "packed", False)
    assert ask(other, requests) == expected


def test_half_precision_writes_batches(folders: dict[str, Path]) -> None:
    judge = Transformers(str(folders["qwen2"]), dtype="bfloat16")
    replies = ask(judge, [make_request(q, max_tokens=5) for q in QUESTIONS])
    assert ({reply.tokens_out for reply in replies.values()}, judge._can_batch) == ({5}, True)


@pytest.fixture
def tiny(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Transformers:
    monkeypatch.setattr(decoder.write, "__defaults__", (3,))
    return Transformers(str(folders["gpt2"]), dtype="float32")


def test_answers_are_cut_at_the_end_of_the_context(tiny: Transformers) -> None:
    words = 2048 - len(tiny._chat.encode(make_request("x" + " word" * 100)).prompt) + 100
    questions = ["x" + " word" * (words - short) for short in (0, 1, 3, 400)]
    requests = [make_request(question, max_tokens=30) for question in questions]
    lengths = [len(tiny._chat.encode(request).prompt) for request in requests]
    assert lengths == [2048, 2047, 2045, 1648]
    replies = ask(tiny, requests)
    assert replies[0].failure == f"too long: {lengths[0] + 1} tokens, the model takes 2048"
    assert [replies[i].tokens_out for i in (1, 2, 3)] == [min(30, 2048 - lengths[i]) for i in (1, 2, 3)]
    assert {replies[i].finish for i in (1, 2, 3)} == {"length"}


def test_resumed_round_reads_in_forwards_of_the_same_shape(tiny: Transformers) -> None:
    vars(tiny)["_given_tokens"] = 100
    requests = [make_request(q, max_tokens=4, temperature=t) for q in QUESTIONS[:5] for t in (0.0, 1.0)]
    assert tiny._can_batch
    forward, shapes = tiny._forward, list[tuple[int, ...]]()

    def watched(one: Any, *given: Any) -> Any:
        shapes.append((*one.tokens.tolist(), one.past))
        return forward(one, *given)

    vars(tiny)["_forward"] = watched
    full = ask(tiny, requests)
    before, shapes[:] = list(shapes), []
    assert ask(tiny, requests, {3, 4, 9}) == {index: full[index] for index in (3, 4, 9)}
    assert 0 < len(shapes) < len(before)
    assert set(shapes) < set(before)


def test_answers_before_a_failure_are_kept(tiny: Transformers, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [make_request(q, max_tokens=2 + 3 * at) for at, q in enumerate(QUESTIONS[:5])]
    expected = ask(tiny, requests)
    forward, left = tiny._loaded.forward, [12]

    def fails(*given: Any, **options: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nmore lines")
        return forward(*given, **options)

    monkeypatch.setattr(tiny._loaded, "forward", fails)
    replies: dict[int, Reply] = {}
    under_way = tiny.reply(requests, frozenset(range(5)))
    with pytest.raises(BackendError, match="batch_tokens") as raised:
        replies.update(pair for batch in under_way for pair in batch)
    assert "\n" not in str(raised.value)
    assert (replies, len(replies), left) == ({index: expected[index] for index in replies}, 2, [0])


class Item(NamedTuple):
    """A prompt and the parameters of its answer."""

    prompt: tuple[int, ...]
    room: int
    ends: frozenset[int]
    request: Request

    def answer(self) -> Answer:
        return Answer(self.request, len(self.prompt), self.room, self.ends, spell_out)


def spell_out(tokens: list[int]) -> str:
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
    prompts = [ITEMS[number].prompt for number, _ in requests]
    reading = run_forwards(judge, prompts, answers, sharing=sharing, tokens=tokens)
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
    writing = write(judge._loaded, run_forwards(judge, prompts, answers), answers, 1000, 3)
    order = [at for done in writing for at in done]
    assert sorted(order) == list(range(12)) != order
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
    texts = {0: ((5,) * 12, (1, 19, 3)), 1: ((6,) * 4, (1, 2)), 2: ((7,) * 6, (1, 2))}
    answers = {at: KnownAnswer(prompt + known, len(known)) for at, (prompt, known) in texts.items()}
    forwards = run_forwards(judge, [prompt for prompt, _ in texts.values()], answers)
    weights = judge._loaded.get_input_embeddings().weight
    with torch.no_grad():
        before = weights[19].clone()
        weights[19] = torch.nan
        assert sum(map(len, write(judge._loaded, forwards, answers, 1000, 1))) == 3
        weights[19] = before
        assert answers[0].logits.isnan().all()
        for at in (1, 2):
            expected = judge._loaded(torch.tensor([[*texts[at][0], *texts[at][1]]])).logits[0, -1].log_softmax(dim=-1)
            assert torch.allclose(answers[at].logits.log_softmax(dim=-1), expected, atol=1e-4)
