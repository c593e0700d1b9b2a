"""Test that models of another kind or with missing weights are refused in one line."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import error_line
from command_result import Run, check_refusal
from fakes import overwrite
from loops import each

from distract.core.backend import Batch
from distract.core.errors import BackendError, UsageError
from distract.core.records import Message, Request
from distract.models import hardware
from distract.models.location import silence_transformers
from distract.models.opener import open_models
from distract.models.options import Options
from distract.models.transformers.architecture import least_parameters, odd_size, unfit_architecture
from distract.models.transformers.backend import Transformers
from distract.models.vllm.backend import Vllm

ASKED = [Request((Message("user", "Which is better?"),), choices=("A", "B"), prefill="[[")]
OWN = {"auto_map": {"AutoModel": "modeling.OwnModel"}}
WITH_ENCODER = {"is_encoder_decoder": True}
COMMIT = "0123456789" * 4


@each(
    "name, more, is_fit",
    *((name, {}, True) for name in ("LlamaForCausalLM", "LLaMAForCausalLM", "GPT2LMHeadModel", "QWenLMHeadModel")),
    *((name, {}, True) for name in ("ReformerModelWithLMHead", "BertGenerationDecoder", "LlavaLlamaForCausalLM")),
    *((f"{name}ForConditionalGeneration", {}, True) for name in ("Gemma3", "Qwen2_5_VL", "Mistral3")),
    *((name, OWN, True) for name in ("ChatGLMModel", "InternVLChatModel")),
    ("BartForCausalLM", WITH_ENCODER, True),
    *((f"LlamaFor{kind}", {}, False) for kind in ("SequenceClassification", "TokenClassification")),
    *((name, {}, False) for name in ("LlamaForRewardModelWithGating", "Qwen2ForRewardModel", "BertForMaskedLM")),
    *((name, {}, False) for name in ("BertForQuestionAnswering", "MistralModel", "XLMRobertaModel")),
    ("Qwen2ForProcessRewardModel", OWN, False),
    *((name, WITH_ENCODER, False) for name in ("T5ForConditionalGeneration", "BartForConditionalGeneration")),
)
def test_architecture_names_decide(name: str, more: dict[str, Any], is_fit: bool) -> None:
    assert unfit_architecture({"architectures": [name], **more}) == (None if is_fit else name)


@pytest.mark.parametrize("architectures", [None, [], "LlamaModel", 3, [None], {"a": 1}])
def test_engine_decides_without_a_name(architectures: object) -> None:
    assert unfit_architecture({"architectures": architectures, "model_type": "llama"}) is None
    assert unfit_architecture({}) is None
    assert unfit_architecture({"model_type": "t5", **WITH_ENCODER}) == "t5 model with an encoder"


@pytest.fixture
def llama(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A small model that one test may damage."""
    return Path(shutil.copytree(folders["llama"], tmp_path / "llama"))


@pytest.fixture
def reward(llama: Path, tmp_path: Path) -> Path:
    """A small reward model."""
    import transformers

    folder = Path(shutil.copytree(llama, tmp_path / "reward"))
    config = transformers.AutoConfig.from_pretrained(llama)
    with silence_transformers():  # a test reads stderr
        transformers.LlamaForSequenceClassification(config).save_pretrained(folder)
    return folder


def configure(folder: Path, **settings: object) -> None:
    """Change settings in a model's configuration; those that are None are left out."""
    file = folder / "config.json"
    config = {**json.loads(file.read_text()), **settings}
    file.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def reply_to(folder: Path) -> list[Batch]:
    return list(Transformers(str(folder), dtype="float32").reply(ASKED, frozenset([0])))


def drop(folder: Path, name: str) -> None:
    """Delete a weight from a checkpoint."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_classifier_is_refused_before_loading(run: Run, reward: Path) -> None:
    for engine in (Transformers, Vllm):
        with pytest.raises(UsageError, match="is a LlamaForSequenceClassification, not a causal language model"):
            engine(str(reward))
    ran = run("attack", "--judge", f"transformers:{reward}", "--limit", "1")
    check_refusal(ran, f"distract: transformers:{reward} is a classifier with 2 labels")


def test_weights_decide_whatever_the_architectures(llama: Path, reward: Path) -> None:
    configure(llama, architectures=None)
    assert reply_to(llama)
    configure(reward, architectures=None)
    assert "lacks weights: lm_head.weight" in error_line(UsageError, reply_to, reward)
    configure(reward, architectures=["LlamaForCausalLM"], tie_word_embeddings=True)
    assert "instead of a language model head: score.weight" in error_line(UsageError, reply_to, reward)


def test_tied_weights_are_not_missing(llama: Path) -> None:
    configure(llama, tie_word_embeddings=True)
    drop(llama, "lm_head.weight")
    assert reply_to(llama)


def test_multimodal_model_can_judge(llama: Path) -> None:
    import transformers

    text = {**json.loads((llama / "config.json").read_text()), "head_dim": 8, "model_type": "gemma3_text"}
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(
        text_config=text, vision_config={**vision, "image_size": 28, "patch_size": 14}, mm_tokens_per_image=4
    )
    transformers.Gemma3ForConditionalGeneration(config).save_pretrained(llama)
    assert json.loads((llama / "config.json").read_text())["architectures"] == ["Gemma3ForConditionalGeneration"]
    assert reply_to(llama)


@pytest.fixture
def hub(reward: Path, llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a process with org/llama and org/reward in its hub cache, and without a network."""
    for folder in (llama, reward):
        place = tmp_path / "hub" / f"models--org--{folder.name}"
        shutil.copytree(folder, place / "snapshots" / COMMIT)
        (place / "refs").mkdir()
        (place / "refs" / "main").write_text(COMMIT)
    return {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}


@pytest.mark.parametrize("revision", ["", f"@{COMMIT}", "@main"])
def test_classifier_from_the_hub_is_refused(hub: dict[str, str], tmp_path: Path, revision: str) -> None:
    name = f"transformers:org/reward{revision}"
    command = [sys.executable, "-m", "distract", "attack", "--judge", name, "--dtype", "float32", "--limit", "1"]
    done = subprocess.run(command, env=hub, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"distract: {name} is a classifier with 2 labels")


def test_hub_model_is_identified_by_its_commit(hub: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from distract.models.transformers.backend import Transformers\n"
        "for revision in (None, 'main'):\n"
        "    print(sorted(Transformers('org/llama', revision=revision, dtype='float32').identity.items()))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=hub, capture_output=True, text=True, check=True)
    identity = {"model": "org/llama", "revision": COMMIT, "engine": "transformers", "dtype": "float32"}
    assert done.stdout.splitlines() == [str(sorted(identity.items()))] * 2
    (tmp_path / "hub" / "models--org--llama" / "snapshots" / COMMIT / "chat_template.jinja").write_text(DATED)
    done = subprocess.run([sys.executable, "-c", code], env=hub, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(sorted({**identity, **THOUGHT, **TODAY}.items()))] * 2


def zero(file: Path) -> None:
    """Overwrite the end of a file with zeros, and put its times back."""
    overwrite(file, file.read_bytes()[:-4000] + bytes(4000))


def test_weights_changed_in_place_give_another_identity(run: Run, llama: Path) -> None:
    command = ("attack", "--judge", f"transformers:{llama}", "--dtype", "float32", "--limit", "2")
    first = run(*command, "--protocol", "pairwise")
    assert (first.code, "replies: 0 were stored" in first.err) == (0, True)
    assert f"distract: hashed 16.2 MB of weights of transformers:{llama} in" in first.err
    assert "is complete" in run(*command, "--protocol", "pairwise").err
    zero(llama / "model.safetensors")
    second = run(*command, "--protocol", "pairwise")
    assert "replies: 0 were stored" in second.err
    assert second.out != first.out


@pytest.mark.parametrize("engine", [Transformers, Vllm])
def test_folder_identity_covers_what_decides_its_replies(llama: Path, engine: type[Transformers | Vllm]) -> None:
    def identity(**options: Any) -> dict[str, str]:
        return dict(engine(str(llama), dtype="float32", **options).identity)

    first = identity()
    assert first.keys() == {"model", "weights", "engine", "dtype"}
    assert identity() == identity(revision="main") == first
    (llama / "README.md").write_text("About it.")
    assert identity() == first
    (llama / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert identity() != first
    # A named commit replaces the digest of the folder.
    assert identity(revision=COMMIT) == {**{k: v for k, v in first.items() if k != "weights"}, "revision": COMMIT}


THINKS = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<think>\\n' if add_generation_prompt else '' }}"
DATED = "{{ strftime_now('%d %B %Y') }} " + THINKS
THOUGHT, TODAY = {"thinking": "closed"}, {"date": "26 Jul 2024"}


@each("template, needs", (THINKS, THOUGHT), (DATED, {**THOUGHT, **TODAY}), ("{{ 1 }}" + THINKS[:50], {}))
def test_identity_says_what_a_template_needed(llama: Path, template: str, needs: dict[str, str]) -> None:
    (llama / "chat_template.jinja").write_text(template)
    for engine in (Transformers, Vllm):
        first, second = engine(str(llama), dtype="float32"), engine(str(llama), dtype="float32")
        assert dict(first.identity) == dict(second.identity)
        assert {n: v for n, v in first.identity.items() if n in ("thinking", "date")} == needs
        assert list(first.identity)[:4] == ["model", "weights", "engine", "dtype"]
        assert "_chat" not in vars(second), "it is remembered, so that stored replies need no library"


def test_template_that_is_not_the_identified_one_is_refused(llama: Path) -> None:
    judge = Transformers(str(llama), dtype="float32", revision=COMMIT)
    assert not TODAY.keys() & judge.identity.keys()
    (llama / "chat_template.jinja").write_text(DATED)
    with pytest.raises(BackendError, match=r"chat template of .* is another than when it was identified; run again"):
        list(judge.reply(ASKED, frozenset([0])))


def test_plan_run_and_try_say_what_a_template_needed(llama: Path, run: Run) -> None:
    (llama / "chat_template.jinja").write_text(DATED)
    name = f"transformers:{llama}"
    lines = [
        "the chat template of the judge opens a thought, which is closed at once: the model answers without thinking",
        "the chat template of the judge writes today's date, for which it gets 26 Jul 2024",
    ]
    arguments = ("--judge", name, "--dtype", "float32", "--protocol", "pairwise", "--limit", "1", "--out", "r")
    assert set(lines) < set(run("attack", *arguments, "--dry-run").out.splitlines())
    ran = run("attack", *arguments)
    assert (ran.code in (0, 3), set(lines) < set(ran.err.splitlines())) == (True, True)
    identity = json.loads(Path("r/run.json").read_text())["parameters"]["identity"]
    assert identity.items() > {**THOUGHT, **TODAY}.items()
    tried = run("try", name, "--dtype", "float32", "--protocol", "pairwise")
    assert tried.out.splitlines()[1:3] == lines
    assert run("try", name, "--dtype", "float32", "--protocol", "pairwise", "--json").document["notes"] == lines


def test_folder_that_changes_while_loading_is_refused(llama: Path) -> None:
    judge = Transformers(str(llama), dtype="float32")
    assert judge.identity["weights"]
    zero(llama / "model.safetensors")
    with pytest.raises(BackendError, match="changed while they were loaded"):
        list(judge.reply(ASKED, frozenset([0])))


Damage = Callable[[Path], object]
DEEP = "[" * 5000 + "]" * 5000
LLAMA = {"vocab_size": 300, "hidden_size": 16, "intermediate_size": 32, "max_position_embeddings": 256}
LLAMA |= {f"num_{part}": 2 for part in ("hidden_layers", "attention_heads", "key_value_heads")}


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


def config(**settings: object) -> Damage:
    return lambda folder: configure(folder, **settings)


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
    "a missing weight": (lambda f: drop(f, "lm_head.weight"), "lacks weights: lm_head.weight; fetch or save it again"),
    "other shapes": (config(intermediate_size=40),
        "whose shapes differ from config.json: model.layers.0.mlp.down_proj.weight [16, 32], not [16, 40], "
        "model.layers.0.mlp.gate_proj.weight [32, 16], not [40, 16], model.layers.0.mlp.up_proj.weight [32, 16], "
        "not [40, 16] and 3 more;"),
    "another kind": (config(architectures=None, model_type="qwen2_vl"),
        "is a qwen2_vl, which transformers does not load as a causal language model"),
    "another architecture": (config(architectures=["Qwen2VLForConditionalGeneration"], model_type="qwen2_vl"),
        "is a Qwen2VLForConditionalGeneration, which transformers does not load"),
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
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_folder_is_one_line_of_wrong_input(
    what: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    damage, expected = DAMAGES[what]
    damage(folder)
    message = error_line(UsageError, ask, folder)
    assert expected in message
    assert len(message.replace(str(folder), "")) < 500
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
