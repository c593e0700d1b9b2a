"""Test that damaged or hostile model folders give one line and exit code 2 before loading, and run no code."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distract.core.errors import BackendError, UsageError
from distract.core.records import Message, Request
from distract.models import hardware
from distract.models.opener import open_models
from distract.models.options import Options
from distract.models.transformers.architecture import least_parameters, odd_size

Damage = Callable[[Path], object]
DEEP = "[" * 5000 + "]" * 5000
LLAMA = {
    "vocab_size": 300,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with its own tokenizer."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("sound")
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).save_pretrained(folder)
    vocabulary = {one: index for index, one in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), "</s>"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="</s>")
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTRACT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hardware, "gpus", lambda: ())
    monkeypatch.setattr(hardware, "free_memory", lambda: 8 * 2**30)
    return Path(shutil.copytree(sound, tmp_path / "model"))


def ask(folder: Path) -> None:
    judge = open_models({"judge": f"transformers:{folder}"}, Options(dtype="float32")).models["judge"]
    assert judge.identity
    words = Request((Message("user", "hi"),), max_tokens=2)
    (reply,) = (reply for batch in judge.reply([words], frozenset((0,))) for _, reply in batch)
    assert reply.failure is None


def config(**more: object) -> Damage:
    def damage(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **more}))

    return damage


def text(name: str, content: str) -> Damage:
    return lambda folder: (folder / name).write_text(content)


def instead(name: str, content: bytes) -> Damage:
    """Replace the safetensors weights by this file."""

    def damage(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(content)

    return damage


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def evil(folder: Path) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"weight": Runs()}, folder / "pytorch_model.bin")


FAR = "far too large: no model has more than 10,000"

DAMAGES: dict[str, tuple[Damage, str]] = {
    "pickled code": (evil, "with other objects, which may run code; convert them to safetensors"),
    "a plain pickle": (instead("pytorch_model.bin", pickle.dumps({"a": 1})), "convert them to safetensors"),
    "no pickle": (instead("pytorch_model.bin", b"junk" * 99), "cannot load"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
    "an index of brackets": (instead("model.safetensors.index.json", DEEP.encode()), "recursion"),
    "weights cut short": (lambda folder: os.truncate(folder / "model.safetensors", 900), "cannot load"),
    "brackets": (text("config.json", DEEP), "config.json: is not JSON"),
    "brackets inside": (text("config.json", f'{{"a": {DEEP}}}'), "config.json: is not JSON"),
    "a number of 5,000 digits": (text("config.json", f'{{"a": {"9" * 5000}}}'), "config.json: is not JSON"),
    "a list": (text("config.json", "[]"), "config.json: is not a JSON object"),
    "null": (text("config.json", "null"), "config.json: is not a JSON object"),
    "a million layers": (config(num_hidden_layers=1_000_000), FAR),
    "10^30 layers": (config(num_hidden_layers=10**30), FAR),
    "a negative number of layers": (config(num_hidden_layers=-1), "num_hidden_layers is below 0"),
    "layers and a half": (config(num_hidden_layers=1.5), "num_hidden_layers is 1.5, not a whole number"),
    "layers in words": (config(num_hidden_layers="two"), "num_hidden_layers is 'two', not a whole number"),
    "true layers": (config(num_hidden_layers=True), "num_hidden_layers is True, not a whole number"),
    "wide": (config(hidden_size=10**9), "does not fit: it needs about"),
    "of many words": (config(vocab_size=10**11), "does not fit: it needs about"),
    "wide inside": (config(intermediate_size=10**12), "does not fit: it needs about"),
    "wide in a part": (config(text_config={**LLAMA, "hidden_size": 10**10}), "does not fit: it needs about"),
    "a negative width": (config(hidden_size=-16), "hidden_size is below 0"),
    "a list for a width": (config(hidden_size=[16]), "Field 'hidden_size' expected int"),
    "negative words": (config(vocab_size=-1), "vocab_size is below 0"),
    "negative heads": (config(num_attention_heads=-2), "num_attention_heads is below 0"),
    "no heads": (config(num_attention_heads=0), "cannot load"),
    "a negative context": (config(max_position_embeddings=-1), "max_position_embeddings is below 0"),
    "a list for a kind": (config(model_type=["llama"]), "cannot load"),
    "an unknown activation": (config(hidden_act="nope"), "KeyError: 'nope'"),
    "no tokenizer": (text("tokenizer.json", ""), "cannot load"),
    "an empty tokenizer": (text("tokenizer.json", "{}"), "KeyError: 'added_tokens'"),
    "a tokenizer of brackets": (text("tokenizer.json", DEEP), "cannot load"),
    "settings of brackets": (text("tokenizer_config.json", f'{{"a": {DEEP}}}'), "cannot load"),
    "settings in a list": (text("tokenizer_config.json", "[]"), "cannot load"),
    "a length in words": (text("tokenizer_config.json", '{"model_max_length": "x"}'), "cannot load"),
    "generation in brackets": (text("generation_config.json", DEEP), "cannot load"),
    "an end in words": (text("generation_config.json", '{"eos_token_id": "x"}'), "cannot load"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_folder_is_one_line_of_wrong_input(
    what: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    damage, message = DAMAGES[what]
    damage(folder)
    with pytest.raises(UsageError) as error:
        ask(folder)
    assert error.value.exit_code == 2
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value).replace(str(folder), "")) < 500
    assert not Path("ran").exists()


@pytest.mark.parametrize("template", ["{{ 1/0 }}", "{% for", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"])
def test_failing_template_is_one_line(template: str, folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(BackendError, match=r"chat template of .* cannot express the roles user") as error:
        ask(folder)
    assert len(str(error.value).splitlines()) == 1


def test_sound_folder_raises_no_error(folder: Path) -> None:
    ask(folder)


def test_real_model_sizes_pass_the_size_check() -> None:
    for sizes in (
        LLAMA,
        {"n_layer": 96, "n_embd": 12288, "n_head": 96, "vocab_size": 50257},
        {"num_hidden_layers": 126, "hidden_size": 16384, "intermediate_size": 53248, "vocab_size": 128256},
        {"intermediate_size": [16384] * 30, "num_hidden_layers": 30, "num_key_value_heads": None},
        {"text_config": {"num_hidden_layers": 62}, "head_dim": 0},
        {},
    ):
        assert odd_size(sizes) is None
    assert least_parameters({"n_layer": 96, "n_embd": 12288, "vocab_size": 50257}) < 175e9
    assert least_parameters(LLAMA) == 16 * (300 + 2 * 32)
    assert least_parameters({"text_config": LLAMA, "hidden_size": "x"}) == least_parameters(LLAMA)
    assert least_parameters({}) == 0
