"""Test how judge names resolve on machines with and without GPUs and vLLM."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UnknownName, UsageError
from distract.models import hardware, names
from distract.models.catalogue import CatalogueEntry
from distract.models.hardware import Gpu
from distract.models.names import choose_engine, resolve
from distract.models.options import COMMON, Options
from distract.models.provider import Target, engines, known_settings, providers, uses
from distract.models.server.addresses import OPENAI

LLAMA = CatalogueEntry("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", parameters=70.6, aliases=("llama-70b",))
GPT = CatalogueEntry("gpt-4o", "gpt-4o-2024-08-06", engine="openai")
CLAUDE = CatalogueEntry(
    "claude", "claude-3", engine="openai", base_url="https://api.anthropic.com/v1/", key="ANTHROPIC_API_KEY"
)
KNOWN = {model.name: model for model in (LLAMA, GPT, CLAUDE)}
ON_CPU = "transformers on the CPU, since there is no GPU here"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all GPUs and the address of an OpenAI server."""
    monkeypatch.setattr(hardware, "gpus", lambda: ())
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@each(
    "name, options, expected",
    ("smollm2-135m", {}, Target("transformers", "smollm2-135m")),
    ("smollm2-135m", {"engine": "vllm"}, Target("vllm", "smollm2-135m")),
    ("planted:longer=0.5", {}, Target("planted", "longer=0.5")),
    ("transformers:a/b", {}, Target("transformers", "a/b")),
    ("transformers:a/b@v1", {}, Target("transformers", "a/b", "v1")),
    ("vllm:a/b@v1", {"revision": "v2"}, Target("vllm", "a/b", "v2")),
    ("a/b", {}, Target("transformers", "a/b", reason=ON_CPU)),
    ("a/b", {"engine": "vllm"}, Target("vllm", "a/b")),
    ("llama-3.3-70b", {}, Target("transformers", LLAMA.model, entry=LLAMA, reason=ON_CPU)),
    ("Llama-70B", {"engine": "vllm"}, Target("vllm", LLAMA.model, entry=LLAMA)),
    ("vllm:meta-llama/Llama-3.3-70B-Instruct", {}, Target("vllm", LLAMA.model, entry=LLAMA)),
    ("openai:m", {}, Target("openai", "m", server=OPENAI, keys=("OPENAI_API_KEY",))),
    (
        "openai:a/b:c#d",
        {"base_url": "http://h:1/v1/"},
        Target("openai", "a/b:c#d", server="http://h:1/v1", keys=("DISTRACT_API_KEY", "OPENAI_API_KEY")),
    ),
    ("http://h:1/v1#m", {}, Target("openai", "m", server="http://h:1/v1", keys=("DISTRACT_API_KEY",))),
    ("https://h/v1/#org/m", {}, Target("openai", "org/m", server="https://h/v1", keys=("DISTRACT_API_KEY",))),
    (
        "m",
        {"base_url": "http://h/v1"},
        Target("openai", "m", server="http://h/v1", keys=("DISTRACT_API_KEY", "OPENAI_API_KEY")),
    ),
    ("gpt-4o", {}, Target("openai", GPT.model, server=OPENAI, keys=("OPENAI_API_KEY",), entry=GPT)),
    (
        "claude",
        {},
        Target("openai", "claude-3", server=CLAUDE.base_url[:-1], keys=("ANTHROPIC_API_KEY",), entry=CLAUDE),
    ),
)
def test_name_resolves_to_one_target(name: str, options: dict[str, str], expected: Target) -> None:
    target = resolve(name, Options(**options), KNOWN)  # type: ignore[arg-type]
    assert (target, target.reason) == (expected, expected.reason)


def test_openai_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert resolve("openai:m", Options(), {}).server == "http://127.0.0.1:9/v1"


@each(
    "gpus, vllm, engine, reason",
    ((), True, "transformers", "no GPU here"),
    ((Gpu("H200", 1, 1),), True, "vllm", "vLLM, since it is installed and there is a GPU (H200)"),
    ((Gpu("H200", 1, 1),), False, "transformers", 'on the GPU (H200); for vLLM, pip install ".[vllm]"'),
)
def test_engine_choice_fits_the_machine(
    gpus: tuple[Gpu, ...], vllm: bool, engine: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "gpus", lambda: gpus)
    monkeypatch.setattr(names, "find_spec", lambda name: object() if vllm else None)
    chosen, why = choose_engine(None)
    assert chosen == engine
    assert reason in why
    for requested in engines():
        assert choose_engine(requested) == (requested, "")


def test_folder_is_resolved_from_any_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text("{}")
    for name in ("own", "./own", str(tmp_path / "own")):
        assert resolve(name, Options(), KNOWN).engine == "transformers"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("vllm:~/own", Options(), KNOWN).model == str(tmp_path / "own")


@given(st.text(max_size=30))
@example("~\x85")  # a line break in Python, and an unknown user
def test_any_other_name_is_one_line(name: str) -> None:
    problem = ""
    try:
        assert resolve(name, Options(), KNOWN).engine in providers()
    except UsageError as error:
        problem = str(error)
    assert len(problem.splitlines()) <= 1


def test_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=re.escape("unknown judge 'llama-3.3-7b'; did you mean 'llama-3.3-70b'?")):
        resolve("llama-3.3-7b", Options(), KNOWN)


def test_every_setting_belongs_to_a_provider() -> None:
    assert uses().keys() == {*known_settings(), "revision"}
    assert all(uses().values())
    assert {*COMMON} < known_settings().keys()
    assert uses()["dtype"] == {"ray", "reward", "transformers", "vllm"}
    assert uses()["timeout"] == {"inspect", "openai", "python"}
    assert uses()["fail_fast"] == {"python"}
