"""Test that models of another kind or with missing weights are refused in one line."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_result import Run
from loops import each
from overwrites import overwrite

from distract.core.errors import BackendError, UsageError
from distract.core.records import Message, Request
from distract.models.location import silence_transformers
from distract.models.transformers.architecture import unfit_architecture
from distract.models.transformers.backend import Transformers
from distract.models.vllm.backend import Vllm

ASKED = [Request((Message("user", "Which is better?"),), choices=("A", "B"), prefill="[[")]
OWN = {"auto_map": {"AutoModel": "modeling.OwnModel"}}
WITH_ENCODER = {"is_encoder_decoder": True}
COMMIT = "0123456789" * 4


@each(
    "name, more, is_fit",
    ("LlamaForCausalLM", {}, True),
    ("LLaMAForCausalLM", {}, True),
    ("GPT2LMHeadModel", {}, True),
    ("QWenLMHeadModel", {}, True),
    ("ReformerModelWithLMHead", {}, True),
    ("BertGenerationDecoder", {}, True),
    ("Gemma3ForConditionalGeneration", {}, True),
    ("Qwen2_5_VLForConditionalGeneration", {}, True),
    ("Mistral3ForConditionalGeneration", {}, True),
    ("LlavaLlamaForCausalLM", {}, True),
    ("ChatGLMModel", OWN, True),
    ("InternVLChatModel", OWN, True),
    ("BartForCausalLM", WITH_ENCODER, True),
    ("LlamaForSequenceClassification", {}, False),
    ("LlamaForTokenClassification", {}, False),
    ("Qwen2ForRewardModel", {}, False),
    ("Qwen2ForProcessRewardModel", OWN, False),
    ("LlamaForRewardModelWithGating", {}, False),
    ("BertForMaskedLM", {}, False),
    ("BertForQuestionAnswering", {}, False),
    ("MistralModel", {}, False),
    ("XLMRobertaModel", {}, False),
    ("T5ForConditionalGeneration", WITH_ENCODER, False),
    ("BartForConditionalGeneration", WITH_ENCODER, False),
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
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"distract: transformers:{reward} is a classifier with 2 labels")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: drop(f, "lm_head.weight"), "lacks weights: lm_head.weight; fetch or save it again"),
        (lambda f: drop(f, "model.layers.1.mlp.up_proj.weight"), "lacks weights: model.layers.1.mlp.up_proj.weight;"),
        (
            lambda f: configure(f, intermediate_size=40),
            "whose shapes differ from config.json: model.layers.0.mlp.down_proj.weight [32, 48], not [32, 40], "
            "model.layers.0.mlp.gate_proj.weight [48, 32], not [40, 32], model.layers.0.mlp.up_proj.weight [48, 32], "
            "not [40, 32] and 3 more;",
        ),
        (
            lambda f: configure(f, architectures=None, model_type="qwen2_vl"),
            "is a qwen2_vl, which transformers does not load as a causal language model",
        ),
        (
            lambda f: configure(f, architectures=["Qwen2VLForConditionalGeneration"], model_type="qwen2_vl"),
            "is a Qwen2VLForConditionalGeneration, which transformers does not load",
        ),
    ],
)
def test_damaged_folder_is_wrong_input(llama: Path, damage: Callable[[Path], object], says: str) -> None:
    damage(llama)
    with pytest.raises(UsageError) as raised:
        list(Transformers(str(llama), dtype="float32").reply(ASKED, frozenset([0])))
    assert says in str(raised.value)
    assert raised.value.exit_code == 2


def test_checkpoint_with_missing_weights_ends_the_command(run: Run, llama: Path) -> None:
    drop(llama, "model.norm.weight")
    ran = run("attack", "--judge", f"transformers:{llama}", "--dtype", "float32", "--limit", "1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].endswith("lacks weights: model.norm.weight; fetch or save it again")


def test_weights_decide_without_architectures(llama: Path, reward: Path) -> None:
    configure(llama, architectures=None)
    assert list(Transformers(str(llama), dtype="float32").reply(ASKED, frozenset([0])))
    configure(reward, architectures=None)
    with pytest.raises(UsageError, match=r"lacks weights: lm_head\.weight"):
        list(Transformers(str(reward), dtype="float32").reply(ASKED, frozenset([0])))


def test_scorer_with_tied_embeddings_is_recognised_by_its_head(reward: Path) -> None:
    configure(reward, architectures=["LlamaForCausalLM"], tie_word_embeddings=True)
    with pytest.raises(UsageError, match=r"instead of a language model head: score\.weight"):
        list(Transformers(str(reward), dtype="float32").reply(ASKED, frozenset([0])))


def test_tied_weights_are_not_missing(llama: Path) -> None:
    configure(llama, tie_word_embeddings=True)
    drop(llama, "lm_head.weight")
    assert list(Transformers(str(llama), dtype="float32").reply(ASKED, frozenset([0])))


def test_multimodal_model_can_judge(llama: Path) -> None:
    import transformers

    text = {**json.loads((llama / "config.json").read_text()), "head_dim": 8, "model_type": "gemma3_text"}
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(
        text_config=text, vision_config={**vision, "image_size": 28, "patch_size": 14}, mm_tokens_per_image=4
    )
    transformers.Gemma3ForConditionalGeneration(config).save_pretrained(llama)
    assert json.loads((llama / "config.json").read_text())["architectures"] == ["Gemma3ForConditionalGeneration"]
    assert list(Transformers(str(llama), dtype="float32").reply(ASKED, frozenset([0])))


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
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"distract: {name} is a classifier with 2 labels")


def test_hub_model_is_identified_by_its_commit(hub: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from distract.models.transformers.backend import Transformers\n"
        "for revision in (None, 'main'):\n"
        "    print(sorted(Transformers('org/llama', revision=revision, dtype='float32').identity.items()))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=hub, capture_output=True, text=True, check=True)
    identity = {"model": "org/llama", "revision": COMMIT, "engine": "transformers", "dtype": "float32"}
    assert done.stdout.splitlines() == [str(sorted(identity.items()))] * 2


def zero(file: Path) -> None:
    """Overwrite the end of a file with zeros, and put its times back."""
    overwrite(file, file.read_bytes()[:-4000] + bytes(4000))


def test_weights_changed_in_place_give_another_identity(run: Run, llama: Path) -> None:
    command = ("attack", "--judge", f"transformers:{llama}", "--dtype", "float32", "--limit", "2")
    first = run(*command, "--protocol", "pairwise")
    assert first.code == 0
    assert "replies: 0 were stored" in first.err
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


def test_folder_that_changes_while_loading_is_refused(llama: Path) -> None:
    judge = Transformers(str(llama), dtype="float32")
    assert judge.identity["weights"]
    zero(llama / "model.safetensors")
    with pytest.raises(BackendError, match="changed while they were loaded"):
        list(judge.reply(ASKED, frozenset([0])))
