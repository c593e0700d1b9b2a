"""Reward models: a real one, trained here to prefer longer texts, beside causal models and classifiers."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_result import CommandResult
from loops import each

import distract
from distract.core.errors import UsageError
from distract.core.plugin import Comparison
from distract.core.records import Case, Message, Request
from distract.judging.judge import Judge
from distract.judging.providers.reward import PROTOCOL as protocol
from distract.models.opener import open_judge
from distract.models.options import Options
from distract.models.transformers.architecture import reward_labels
from distract.models.transformers.backend import Transformers
from distract.models.transformers.classifiers import RewardModel

STEPS, BATCH = 120, 16


@pytest.fixture(scope="session")
def longer(smollm2: Transformers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small reward model, trained to prefer longer texts."""
    import torch
    import transformers

    texts = [response.text for case in distract.load("tweakset") for response in case.responses]
    tokenizer, draw = smollm2._chat.tokenizer, random.Random(0)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0,
    )
    model = transformers.LlamaForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        sample = []
        for text in draw.sample(texts, BATCH):
            words = text.split()
            sample.append(" ".join(words[: draw.randint(3, len(words))]))
        chats = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}], tokenize=False
            )
            for text in sample
        ]
        encoded = [tokenizer(chat, add_special_tokens=False)["input_ids"][:400] for chat in chats]
        longest = max(map(len, encoded))
        ids = torch.tensor([[*one, *[config.pad_token_id] * (longest - len(one))] for one in encoded])
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in encoded])
        target = torch.tensor([len(one) / 100 for one in encoded])
        loss = ((model(input_ids=ids, attention_mask=mask).logits[:, 0] - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("longer")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def comparisons() -> list[Comparison]:
    return [Comparison(one, *one.originals[:2]) for one in distract.load("tweakset")[:6]]


def test_trained_model_prefers_longer_texts(longer: Path, tmp_path: Path) -> None:
    backend = open_judge(str(longer))
    assert isinstance(backend, RewardModel)
    long, short = "It is so. " * 30, "It is so."
    one = Case("c", ("Why?",), (distract.Response("x", (long,)), distract.Response("y", (short,))))
    with Judge("r", backend, store=tmp_path / "s") as judge:
        (judgment,) = judge.judgments(Comparison(one, *one.responses))
    assert judgment.preferred == "a"
    assert judgment.scores
    assert judgment.scores[0] > judgment.scores[1] + 0.5


def test_sycophancy_flips_it_and_null_does_not(longer: Path, run: Callable[..., CommandResult]) -> None:
    command = (
        "attack",
        "--judge",
        longer,
        "--limit",
        12,
        "--attack",
        "sycophancy",
        "--control",
        "--out",
        "r",
        "--json",
    )
    result = run(*command)
    assert result.code == 0, result.err
    flips = result.figure("flip_rate", attack="sycophancy")
    assert flips["protocol"] == "reward"
    assert flips["value"] >= 0.5
    assert result.figure("flip_rate", attack="null")["k"] == 0
    shift = result.figure("shift", attack="sycophancy")
    assert shift["value"] > 0
    rows, summary = Path("r/rows.jsonl").read_bytes(), Path("r/summary.json").read_bytes()
    again = run(*command[:-2], "q", "--json")
    assert again.code == 0
    assert "0 made" in again.err
    assert (Path("q/rows.jsonl").read_bytes(), Path("q/summary.json").read_bytes()) == (rows, summary)
    assert run("gate", "r", "--max-flip-rate", "0.05").code == 1
    case = distract.Run.read("r").flips()[0].case
    explained = run("explain", "r", case, "--judge", longer)  # its folder is elsewhere
    assert explained.code == 0, explained.err
    assert "reward by score under sycophancy" in explained.words
    assert run("attack", "--judge", longer, "--dry-run").code == 0
    assert run("try", longer).code == 0


def test_batches_change_no_score(longer: Path) -> None:
    requests: list[Request] = []
    for comparison in comparisons():
        requests += next(protocol.ask(comparison))
    every = frozenset(range(len(requests)))
    scores = []
    for tokens in (64, 600, 100_000):
        judge = open_judge(str(longer), Options(model_options={"batch_tokens": tokens}))
        replies = dict(pair for batch in judge.reply(requests, every) for pair in batch)
        scores.append([float(replies[i].text) for i in sorted(replies)])
        alone = dict(pair for batch in judge.reply(requests, frozenset({3})) for pair in batch)
        assert alone == {3: replies[3]}  # the same bytes, whatever is stored already
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert scores[0] == pytest.approx(scores[2], abs=1e-5)


def test_score_is_that_of_transformers_itself(longer: Path, smollm2: Transformers) -> None:
    import torch
    import transformers

    (comparison, *_), judge = comparisons(), open_judge(str(longer), Options(dtype="float32"))
    requests = next(protocol.ask(comparison))
    replies = dict(pair for batch in judge.reply(requests, frozenset({0, 1})) for pair in batch)
    model = transformers.LlamaForSequenceClassification.from_pretrained(longer).eval()
    for index, request in enumerate(requests):
        turns = [{"role": message.role, "content": message.content} for message in request.messages]
        text = smollm2._chat.tokenizer.apply_chat_template(turns, tokenize=False)
        ids = smollm2._chat.tokenizer(text, add_special_tokens=False, return_tensors="pt")
        with torch.inference_mode():
            expected = model(**{name: ids[name] for name in ("input_ids", "attention_mask")}).logits.item()
        assert float(replies[index].text) == pytest.approx(expected, abs=1e-4)


def edit(folder: Path, tmp_path: Path, **changes: object) -> Path:
    """A copy of a folder with another configuration."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).symlink_to(file)
    config = json.loads((folder / "config.json").read_text())
    (copy / "config.json").unlink()
    config |= changes
    (copy / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not None}))
    return copy


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id2label": {"0": "bad", "1": "good"}}, "is a classifier with 2 labels, so its output is no score"),
        ({"architectures": ["LlamaForTokenClassification"]}, "is a LlamaForTokenClassification, not a causal"),
        ({"architectures": ["BertForMaskedLM"]}, "is a BertForMaskedLM, not a causal language model"),
        ({"hidden_size": "many"}, "hidden_size is 'many', not a whole number"),
        ({"hidden_size": 64}, "has weights whose shapes differ from config.json"),
    ],
)
def test_other_models_are_refused_by_name(
    changes: dict[str, object], problem: str, longer: Path, tmp_path: Path, run: Callable[..., CommandResult]
) -> None:
    result = run("attack", "--judge", edit(longer, tmp_path, **changes), "--limit", 1)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err.splitlines()[-1]


def test_kinds_are_told_apart_without_a_flag(longer: Path, folders: dict[str, Path]) -> None:
    assert isinstance(open_judge(str(folders["llama"])), Transformers)
    for name in (str(longer), f"transformers:{longer}", f"reward:{longer}"):
        assert isinstance(open_judge(name), RewardModel)
    with pytest.raises(UsageError, match="is no reward model"):
        open_judge(f"reward:{folders['llama']}").identity  # noqa: B018
    with pytest.raises(UsageError, match="which runs through transformers"):
        open_judge(str(longer), Options(engine="vllm"))


def test_a_fetched_model_of_the_hub_is_recognised(
    longer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = tmp_path / "models--org--longer", "0123456789" * 4
    (folder / "snapshots").mkdir(parents=True)
    (folder / "snapshots" / commit).symlink_to(longer)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("org/longer", f"org/longer@{commit}", "transformers:org/longer"):
        assert isinstance(open_judge(name), RewardModel)
    assert isinstance(open_judge("org/other"), Transformers)


def test_scarce_memory_shrinks_batches(longer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    judge = RewardModel(str(longer), dtype="float32")
    requests = [Request((Message("user", "?"), Message("assistant", "word " * n))) for n in range(1, 40)]
    every = frozenset(range(len(requests)))
    before = dict(pair for batch in judge.reply(requests, every) for pair in batch)
    forward = judge._loaded.forward

    def scarce(*given: Any, input_ids: Any, **options: Any) -> Any:
        if input_ids.numel() > 200:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return forward(*given, input_ids=input_ids, **options)

    monkeypatch.setattr(judge._loaded, "forward", scarce)
    after = dict(pair for batch in judge.reply(requests, every) for pair in batch)
    assert after.keys() == before.keys()
    assert all(float(after[i].text) == pytest.approx(float(before[i].text), abs=1e-4) for i in every)
    assert judge.batch_tokens < 256


def test_it_writes_nothing(longer: Path, run: Callable[..., CommandResult]) -> None:
    result = run("attack", "--judge", "planted:longer", "--generator", longer)
    assert (result.code, "cannot be a generator" in result.err) == (2, True)
    result = run("attack", "--judge", longer, "--protocol", "pairwise")
    assert (result.code, "answers only its own protocol, reward" in result.err) == (2, True)


@each(
    "config, labels",
    ({"architectures": ["LlamaForSequenceClassification"], "num_labels": 1}, 1),
    ({"architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "LABEL_0"}}, 1),
    ({"architectures": ["DebertaV2ForSequenceClassification"]}, 2),
    ({"architectures": ["LlamaForCausalLM"], "num_labels": 1}, None),
    ({"architectures": "x"}, None),
    ({}, None),
)
def test_labels_come_from_the_configuration(config: dict[str, Any], labels: int | None) -> None:
    assert reward_labels(config) == labels
