"""Shared fixtures: the real embedded judge, where it is available."""

import importlib.metadata
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_result import CommandResult
from fuzzer import Fuzz, add_options
from hypothesis import settings
from vllm_servers import NAME, vllm_server

from distract.cli import main
from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import BackendError, UsageError
from distract.models import provider
from distract.models.transformers import embedded
from distract.models.transformers.backend import Transformers, embedded_judge
from distract.models.vllm.backend import Vllm

# Inner runs of pytest for the plugin, the guards of each folder of tests, and stand-ins for models.
pytest_plugins = ["pytester", "guards", "fakes"]

# The number of examples per property: few locally, more in CI, which draws the same ones for the same commit.
# No example is timed: on a busy machine one takes longer than the 200 ms that hypothesis gives it.
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("ci", settings.get_profile("ci"), max_examples=25)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The bounds of the fuzzers, which run only with ``pytest tests/slow``."""
    add_options(parser)


SET = ("CI", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PY_COLORS", "TERM")
SET_FOR = ("CLICOLOR", "DISTRACT_A", "DISTRACT_CATALOGUE", "GITHUB_", "HF_", "OPENAI_", "TRANSFORMERS_", "TTY_")
"""Variables, and prefixes of variables, that change the output, the server, or the requests."""


def pytest_configure() -> None:
    """Give every test the same environment, wherever pytest runs.

    Some libraries read their variables at import, and processes inherit them, so they are removed before any test.
    Restore the handler of Ctrl-C, which a shell disables in background jobs, so that processes of tests receive it.
    """
    for name in list(os.environ):
        if name in SET or name.startswith(SET_FOR):
            del os.environ[name]
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


REAL = re.compile(r'\b(?:smollm2|folders|engines): |"smollm2"')


@cache
def name_group(file: Path) -> str:
    """Group tests by file, and all files that ask for the real model together."""
    return "real" if file.parent.name != "unit" and REAL.search(file.read_text("utf-8")) else file.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the real model."""
    items.sort(key=lambda item: name_group(item.path) != "real")
    assert all(name_group(i.path) == "real" for i in items if "smollm2" in getattr(i, "fixturenames", ()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run a group in one process; pytest 9.2 ignores the names by which marks of pytest-xdist 3.8 would do so."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: name_group(config.rootpath / nodeid.partition("::")[0])
    return scheduler


@pytest.fixture(autouse=True)
def surroundings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep requests on this machine; tests in tests/slow keep the proxy, because they may fetch packages.

    ``PYTEST_ADDOPTS`` is removed here, not above, because workers of pytest-xdist read it at their start.
    """
    registry._own.clear()
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    if request.path.parent.name == "slow":
        return
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> Iterator[Fuzz]:
    """The bounds of a fuzzer from the options; the summary reports the number of checked cases."""
    fuzz = Fuzz.of(request.config)
    yield fuzz
    request.node.user_properties.append(("fuzzed", f"{fuzz.spent} cases from seed {fuzz.seed}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the progress of each fuzzer."""
    for report in terminalreporter.getreports("") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "fuzzed" and report.when == "teardown":
                terminalreporter.line(f"{report.nodeid}: {value}")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Runs a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["distract", *map(str, arguments)])
        code = 0
        try:
            main.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        streams = capsys.readouterr()
        return CommandResult(code, streams.out, streams.err)

    return call


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a module of third-party plug-ins."""
    groups = ("attacks", "judges", "providers")
    entries = [importlib.metadata.EntryPoint("theirs", "theirs", f"distract.{one}") for one in groups]
    entry_points = importlib.metadata.EntryPoints(entries)
    monkeypatch.setattr(registry, "entry_points", lambda group: entry_points.select(group=group))
    monkeypatch.syspath_prepend(tmp_path)

    def install(code: str) -> None:
        (tmp_path / "theirs.py").write_text(code, encoding="utf-8")

    for cached in (registry._load, provider.known_settings, provider.uses):
        cached.cache_clear()
    yield install
    sys.modules.pop("theirs", None)
    for cached in (registry._load, provider.known_settings, provider.uses):
        cached.cache_clear()


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the keys, addresses and proxies of the developer."""
    for name in [name for name in os.environ if name.startswith("OPENAI_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def smollm2() -> Transformers:
    """The real embedded judge, loaded; skips where it cannot be fetched."""
    pytest.importorskip("torch")
    judge = embedded_judge()
    try:
        assert judge.prompt_mode == "packed"
    except (BackendError, UsageError) as error:
        pytest.skip(f"the embedded judge is not available: {error}")
    return judge


@pytest.fixture(scope="session")
def folders(smollm2: Transformers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny models of several architectures with random weights, and the embedded judge's tokenizer, by name."""
    import torch
    import transformers

    shape: dict[str, Any] = {
        "vocab_size": 49152,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.5,
        "max_position_embeddings": 2048,
    }
    small: dict[str, Any] = {"vocab_size": 49152, "n_layer": 2, "n_head": 4, "initializer_range": 0.5}
    configs = {
        "llama": transformers.LlamaConfig(**shape),
        "qwen2": transformers.Qwen2Config(**shape),
        "gpt2": transformers.GPT2Config(n_embd=32, n_positions=2048, **small),
        "mistral": transformers.MistralConfig(**shape, sliding_window=8),
        "bloom": transformers.BloomConfig(hidden_size=32, **small),
    }
    paths = {}
    for name, config in configs.items():
        torch.manual_seed(0)
        paths[name] = tmp_path_factory.mktemp(name)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(paths[name])
        smollm2._chat.tokenizer.save_pretrained(paths[name])
    return paths


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of vLLM's own server with the embedded judge behind it; skips where there is no vLLM."""
    if find_spec("vllm") is None:
        pytest.skip("needs vLLM, in an environment of its own (see .ci/run)")
    try:
        model = embedded.ensure()
    except (BackendError, UsageError) as error:
        pytest.skip(f"the embedded judge is not available: {error}")
    with vllm_server(model, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def real() -> Vllm:
    """The embedded judge in float32 on vLLM's engine, which takes a minute to start; skips where there is no vLLM."""
    if find_spec("vllm") is None:
        pytest.skip("needs vLLM, in an environment of its own (see .ci/run)")
    judge = Vllm(embedded.NAME, revision=embedded.SHA256, prepare=embedded.ensure, dtype="float32")
    try:
        assert judge._engine.context == 8192
    except (BackendError, UsageError) as error:
        pytest.skip(f"the embedded judge is not available: {error}")
    return judge


@pytest.fixture(scope="session")
def engines(smollm2: Transformers, real: Vllm, server: str) -> Mapping[str, Backend]:
    """The embedded judge in float32 on each engine, by the engine's name."""
    from distract.models.server.backend import OpenAI

    return {"transformers": smollm2, "vllm": real, "server": OpenAI(NAME, base_url=server)}
