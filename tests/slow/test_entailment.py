"""Models of natural language inference as verifiers: tiny ones, made here at random or with known outputs."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import write_rows
from command_result import CommandResult
from loops import each

from distract.core.errors import UsageError
from distract.core.records import Message, Reply, Request
from distract.models.opener import open_models
from distract.models.options import Options
from distract.models.transformers.classifiers import EntailmentModel

Make = Callable[..., Path]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "trip",
    "lake",
    "is",
    "deep",
    "long",
    "takes",
    "3",
    "4",
    "hours",
]
WORDS += ["certainly", "it", "box", "heavy", "."]


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Save a random cross-encoder with these labels."""

    def build(*labels: str, bias: float = 0.0) -> Path:
        import torch
        import transformers

        torch.manual_seed(0)
        folder = tmp_path_factory.mktemp("nli")
        (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
        tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
        config = transformers.BertConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=64,
            id2label=dict(enumerate(labels)),
            label2id={label: at for at, label in enumerate(labels)},
        )
        model = transformers.BertForSequenceClassification(config)
        with torch.no_grad():
            model.classifier.bias[-1] += bias
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return build


def ask(folder: Path, *pairs: tuple[str, str], tokens: int | None = None) -> list[Reply]:
    settings = {"batch_tokens": tokens} if tokens else {}
    model = open_models({"verifier": f"nli:{folder}"}, Options(model_options=settings)).models["verifier"]
    assert isinstance(model, EntailmentModel)
    requests = [Request((Message("user", a), Message("user", b)), choices=("Y", "N"), to="verifier") for a, b in pairs]
    replies = dict(one for batch in model.reply(requests, frozenset(range(len(requests)))) for one in batch)
    return [replies[at] for at in range(len(pairs))]


def logits(folder: Path, text: str, sentence: str) -> list[float]:
    """The output of the model for a pair, by transformers alone."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.inference_mode():
        row: list[float] = model(**tokenizer(text, sentence, return_tensors="pt")).logits[0].tolist()
    return row


@each(
    "labels, place",
    (("contradiction", "neutral", "entailment"), 2),
    (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), 0),
    (("not_entailment", "entailment"), 1),
    (("LABEL_0", "LABEL_1"), 1),
    (("unsupported", "supported"), 1),
)
def test_probability_is_that_of_the_label_for_entailment(make: Make, labels: tuple[str, ...], place: int) -> None:
    folder, pair = make(*labels), ("the trip takes 3 hours .", "it takes 3 hours")
    (reply,) = ask(folder, pair)
    weights = [math.exp(one) for one in logits(folder, *pair)]
    assert reply.probabilities is not None
    assert reply.probabilities == pytest.approx(
        (weights[place] / sum(weights), 1 - weights[place] / sum(weights)), abs=1e-5
    )


def test_single_output_is_the_log_odds(make: Make) -> None:
    folder, pair = make("LABEL_0"), ("the lake is deep", "the lake is long")
    (reply,) = ask(folder, pair)
    assert reply.probabilities is not None
    assert reply.probabilities[0] == pytest.approx(1 / (1 + math.exp(-logits(folder, *pair)[0])), abs=1e-5)


def test_batches_change_nothing_and_order_of_a_pair_counts(make: Make) -> None:
    folder = make("contradiction", "entailment", "neutral")
    pairs = [
        ("the lake is deep", "it is long"),
        ("it is long", "the lake is deep"),
        ("the trip takes 3 hours . " * 3, "it"),
    ]
    together, apart = ask(folder, *pairs), [ask(folder, pair, tokens=64)[0] for pair in pairs]
    for one, other in zip(together, apart, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    assert together[0].probabilities != together[1].probabilities


def test_unknown_labels_and_other_models_are_one_line(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has the labels red, green, blue; expected one that says entailment"):
        ask(make("red", "green", "blue"), ("the lake", "the lake"))
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    with pytest.raises(UsageError, match="is no classifier"):
        ask(tmp_path, ("the lake", "the lake"))
    with pytest.raises(UsageError, match="cannot be a judge"):
        open_models({"judge": f"nli:{tmp_path}"})


def test_long_pair_fails_alone(make: Make) -> None:
    long, short = ask(make("no", "entailment"), ("the lake is deep " * 40, "it"), ("the lake", "it"))
    assert (long.failure or "").startswith("too long")
    assert short.failure is None


def test_check_and_rewrite_take_it(make: Make, run: Callable[..., CommandResult]) -> None:
    sure, unsure = make("no", "entailment", bias=9.0), make("no", "entailment", bias=-9.0)
    row: dict[str, Any] = {"prompt": "How long?", "style": "assertiveness", "kind": "number"}
    texts = {
        "original": "It takes 3 hours, I think. The box is heavy.",
        "rewrite": "It certainly takes 3 hours. The box is heavy.",
    }
    rows = [{**row, **texts, "label": "faithful"}, {**row, **texts, "label": "changed", "changed": "certainly"}]
    write_rows(Path("set.jsonl"), rows)
    checked = {
        one: run("check", "--labelled", "set.jsonl", "--verifier", f"nli:{one}", "--json") for one in (sure, unsure)
    }
    values = {one: {r["measure"]: r["value"] for r in json.loads(checked[one].out)["results"]} for one in checked}
    assert values[sure] == {"false_rejection_rate": 0.0, "missed_change_rate": 1.0}
    assert values[unsure] == {"false_rejection_rate": 1.0, "missed_change_rate": 0.0}
    assert json.loads(checked[sure].out)["chosen"]["threshold"] == "10"
    written = run(
        "rewrite", "--attack", "assertiveness", "--limit", "2", "--verifier", f"nli:{unsure}", "--out", "w.jsonl"
    )
    assert written.code == 0, written.err
    assert "put back" in written.words
