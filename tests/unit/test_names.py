"""Test how judge names resolve on machines with and without GPUs and vLLM."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from loops import each

from distract.core import errors
from distract.core.backend import Backend
from distract.core.errors import UnknownName, UsageError
from distract.core.records import Role
from distract.core.usage import Price
from distract.models import hardware, opener
from distract.models.catalogue import CatalogueEntry
from distract.models.hardware import Gpu
from distract.models.opener import choose_engine, open_judge, open_models, resolve
from distract.models.options import COMMON, Options
from distract.models.provider import Target, engines, known_settings, providers, uses
from distract.models.server.addresses import OPENAI
from distract.models.transformers.backend import Transformers

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
    monkeypatch.setattr(opener, "find_spec", lambda name: object() if vllm else None)
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
    assert uses()["dtype"] == {"nli", "ray", "reward", "transformers", "vllm"}
    assert uses()["timeout"] == {"inspect", "openai", "python"}
    assert uses()["fail_fast"] == {"python"}


EMBEDDED = "smollm2-135m"


def open_backends(names: dict[Role, str | None], options: Options | None = None, **more: Any) -> dict[Role, Backend]:
    return open_models(names, options, **more).models


def test_model_with_several_roles_is_opened_once() -> None:
    models = open_backends({"judge": EMBEDDED, "generator": EMBEDDED, "verifier": EMBEDDED})
    assert models["judge"] is models["generator"] is models["verifier"]


def test_model_with_two_names_is_opened_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    models = open_backends({"judge": f"transformers:{tmp_path}", "generator": str(tmp_path)})
    assert models["judge"] is models["generator"]


def test_absent_roles_and_non_models_are_not_opened() -> None:
    models = open_backends({"judge": "planted:fair", "generator": "rules", "verifier": None}, no_models=("rules",))
    assert list(models) == ["judge"]


def test_options_apply_to_local_models_and_revision_to_the_judge(tmp_path: Path) -> None:
    options = Options(dtype="float32", revision="abc", model_options={"trust_remote_code": True})
    backends = open_backends(
        {"judge": "transformers:org/judge", "generator": "transformers:org/writer@v2", "verifier": EMBEDDED}, options
    )
    judge, writer, verifier = (backends[role] for role in ("judge", "generator", "verifier"))
    assert isinstance(judge, Transformers)
    assert isinstance(writer, Transformers)
    assert isinstance(verifier, Transformers)
    assert (judge.model, judge.revision, judge.trust_remote_code) == ("org/judge", "abc", True)
    assert (writer.model, writer.revision, writer.dtype) == ("org/writer", "v2", "float32")
    assert verifier.trust_remote_code is False
    # A planted judge takes no options, but the generator beside it does.
    open_backends({"judge": "planted:fair", "generator": EMBEDDED}, Options(dtype="float32"))
    folder = tmp_path / "a@b"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    local = open_judge(f"transformers:{folder}")
    assert isinstance(local, Transformers)
    assert (local.model, local.revision) == (str(folder), None)


@each(
    "judge, options, message",
    (
        "planted:fair",
        Options(dtype="float32"),
        "--dtype is for models on natural language inference or Ray workers or a reward model "
        "or transformers or vLLM; planted:fair is",
    ),
    ("planted:fair", Options(revision="abc"), "loads no model"),
    (EMBEDDED, Options(revision="abc"), "one fixed file without code"),
    (EMBEDDED, Options(model_options={"trust_remote_code": True}), "one fixed file without code"),
    (EMBEDDED, Options(concurrency=4), "--concurrency is for models on "),
    (EMBEDDED, Options(base_url="http://h/v1"), "--base-url is for models on an OpenAI-compatible server"),
    (
        EMBEDDED,
        Options(model_options={"tensor_parallel": 2}),
        "--model-option tensor-parallel is for models on Ray workers or vLLM",
    ),
    ("http://h/v1#m", Options(dtype="float32"), "http://h/v1#m is asked on a server; remove the option"),
    ("http://h/v1#m", Options(revision="v1"), "--revision"),
    ("http://h/v1#m", Options(base_url="http://i/v1"), "already contains the server; remove --base-url"),
    ("transformers:a/b", Options(engine="vllm"), "already names its engine; remove --engine vllm"),
    ("planted:fair", Options(engine="tpu"), "unknown engine 'tpu' (known: vllm, transformers, ray)"),
    ("http://h/v1", None, "after #, the model, as in http://HOST:8000/v1#MODEL"),
    ("http://#m", None, "after #, the model"),
    ("transformers:/no/such/folder", None, "/no/such/folder: no such folder"),
    ("./no/such/folder", None, "no such folder"),
    ("transformers:", None, "unknown judge 'transformers:'"),
    ("http://me:secret@h/v1#m", None, "environment"),
)
def test_unfit_options_are_one_line(judge: str, options: Options | None, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        open_judge(judge, options)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def test_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no model \(no config.json in it\)"):
        open_judge(str(tmp_path))


@each(
    "judge, library, extra",
    ("vllm:org/model", "vllm", "vllm"),
    ("openai:gpt-4o", "openai", "openai"),
    ("transformers:org/model", "transformers", "local"),
)
def test_missing_library_names_its_extra(judge: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opener, "find_spec", lambda name: None if name == library else object())
    with pytest.raises(UsageError, match=re.escape(errors.install_command(extra))):
        open_judge(judge)


def test_users_prices_and_judge_options_win_over_the_catalogue(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[mine]\nmodel = "m"\nengine = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nprice_in = 2\n')
    names: dict[Role, str | None] = {"judge": "mine", "generator": "mine", "verifier": "planted:fair"}
    del names["verifier"]
    models = open_models(names, Options(catalogue=own, price_out=8.0))
    assert models.prices == {"judge": Price(2.0, 8.0), "generator": Price(2.0, 0.0)}
    assert open_models({"judge": EMBEDDED}).prices == {}


def test_engine_choice_is_noted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    models = open_models({"judge": str(tmp_path)})
    assert models.notes == (f"{tmp_path}: transformers on the CPU, since there is no GPU here",)
    assert open_models({"judge": f"transformers:{tmp_path}"}).notes == ()


@each("role", "generator", "verifier")
def test_unknown_name_is_reported_with_its_role(role: Role) -> None:
    with pytest.raises(UnknownName, match=f"unknown {role} 'smolm2-135m'; did you mean 'smollm2-135m'") as error:
        open_models({"judge": EMBEDDED, role: "smolm2-135m"}, no_models=("rules",))
    assert "planted" not in str(error.value)
    assert len(str(error.value)) < 200
    with pytest.raises(UsageError, match="answers no free request, so it cannot be"):
        open_models({"judge": EMBEDDED, role: "planted:bold"})
