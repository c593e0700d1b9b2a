"""Test writing files: targets named by the user, own files, and that one module writes them all."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import case, row, verdict
from command_result import Run, check_refusal
from loops import each

from distract.cli import gate_outputs
from distract.core import files
from distract.core.errors import BackendError, UsageError
from distract.core.locks import Claims
from distract.core.recorder import Recorder
from distract.core.runs import load
from distract.core.store import Store
from distract.studies.make.rewrites import save


def decide(junit: Path | None, summary: Path | None) -> None:
    gate = gate_outputs.Outputs(junit, False, summary, False)
    gate.begin(())
    gate.end(gate_outputs.inconclusive_verdict("why"), "j", (), ())


def record(path: Path) -> None:
    files.check_writable(path, "--out")
    save([case("c1")], path)


WRITERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "--out": (record, '{"id": "c1"'),
    "--junit": (lambda path: decide(path, None), "<testsuites"),
    "--summary": (lambda path: decide(None, path), "distract"),
}
each_writer = each("write, holds", *WRITERS.values())


@each_writer
def test_link_stays_and_its_target_is_written(tmp_path: Path, write: Callable[[Path], None], holds: str) -> None:
    (tmp_path / "far").mkdir()
    target, link, chain = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("far/target")
    chain.symlink_to("link")
    for before in (None, "old"):
        if before:
            target.write_text(before)
        write(chain)
        assert link.is_symlink()
        assert chain.is_symlink()
        assert holds in target.read_text()
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["chain", "far", "link", "target"]


@each_writer
def test_file_keeps_its_mode_and_is_replaced_atomically(
    tmp_path: Path, write: Callable[[Path], None], holds: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    with path.open() as reader:
        write(path)
        assert reader.read() == "old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert holds in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@each_writer
@each("name", "s.sqlite", "s.sqlite-wal", "s.sqlite.lock", "run/rows.jsonl", "run/run.json")
def test_own_files_of_distract_are_not_replaced(
    tmp_path: Path, write: Callable[[Path], None], holds: str, name: str
) -> None:
    with Store(tmp_path / "s.sqlite", {"model": "m"}), Recorder(tmp_path / "run", {"judge": "j"}):
        (tmp_path / "s.sqlite.lock").touch()
        path = tmp_path / name
        content = path.read_bytes()
        with pytest.raises(UsageError, match=r"belongs to a database, such as|is part of a run; name"):
            write(path)
        assert path.read_bytes() == content


@each_writer
def test_pipe_receives_the_whole_text_once(tmp_path: Path, write: Callable[[Path], None], holds: str) -> None:
    path, read = tmp_path / "pipe", list[str]()
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write(path)
    read.append(os.read(reader, 65536).decode())
    os.close(reader)
    assert holds in read[0]
    assert read[0].count("<testsuites") <= 1
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


@each_writer
def test_unread_pipe_is_one_line_when_written(tmp_path: Path, write: Callable[[Path], None], holds: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    files.check_writable(tmp_path / "pipe", "--out")
    with pytest.raises(UsageError, match=r"cannot be written \(it has no reader\); name another file with --"):
        write(tmp_path / "pipe")


@each_writer
@each("place", "folder", "a/b", "circle")
def test_impossible_file_is_one_line(tmp_path: Path, write: Callable[[Path], None], holds: str, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_text("a file")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(UsageError, match=r"cannot be written .*; name another file with --"):
        write(tmp_path / place)


def test_device_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    for path in (Path(os.devnull), link):
        for write, _ in WRITERS.values():
            write(path)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    path.chmod(0o444)
    with pytest.raises(UsageError, match="Permission denied"):
        files.write(path, "new", "--out")
    assert path.read_text() == "mine"


def test_irreplaceable_file_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    path = tmp_path / "mounted"
    path.write_text("something longer than what comes")
    monkeypatch.setattr(Path, "replace", busy)
    files.write(path, "new", "--out")
    assert path.read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["mounted"]


def test_job_summary_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "summary").write_text("before\n")
    (tmp_path / "link").symlink_to("summary")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "link"))
    gate = gate_outputs.Outputs(None, True, None, False)
    gate.begin(())
    gate.end(gate_outputs.inconclusive_verdict("why"), "j", (), ())
    assert (tmp_path / "summary").read_text().startswith("before\n")
    assert "why" in (tmp_path / "summary").read_text()


@pytest.mark.parametrize("command", [("rewrite", "--attack", "sycophancy")])
def test_command_reports_unusable_pipe_or_folder_in_one_line(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for place in ("pipe", "folder"):
        ran = run(*command, "--limit", 1, "--out", place)
        assert ran.code == 2
        assert "Traceback" not in ran.err
        assert place in ran.err.splitlines()[-1]


OURS = ("run.json", "rows.jsonl", "rewrites.jsonl", "texts.jsonl", "summary.json", "manifest.json")
ATTACK = ("attack", "--judge", "planted:longer", "--attack", "sycophancy", "--protocol", "pairwise", "--limit", 2)


def foreign(path: Path, kind: str, victim: Path) -> None:
    """Replace a file of distract by something else."""
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(victim)
        case "hard link":
            path.hardlink_to(victim)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("name", OURS)
def test_run_never_writes_through_foreign_links(run: Run, tmp_path: Path, kind: str, name: str) -> None:
    victim = tmp_path / "victim"
    assert run(*ATTACK, "--out", "r").code == 0
    (tmp_path / "r" / "manifest.json").unlink()  # so that the run restarts
    victim.write_text((tmp_path / "r" / name).read_text() if name == "run.json" else "years of work")
    before = victim.read_text()
    foreign(tmp_path / "r" / name, kind, victim)
    ran = run(*ATTACK, "--out", "r")
    assert ran.code == 2
    assert ran.err.splitlines()[-1].partition(" is a ")[0].endswith(f"{Path('r', name)}:")
    assert "remove it" in ran.err
    assert victim.read_text() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
@pytest.mark.parametrize("name", OURS[:3] + OURS[4:])
def test_run_is_never_read_through_foreign_links(run: Run, tmp_path: Path, kind: str, name: str) -> None:
    assert run(*ATTACK, "--out", "r").code == 0
    victim = (tmp_path / "r" / name).rename(tmp_path / "victim")
    foreign(tmp_path / "r" / name, kind, victim)
    for command in (("report", "r"), ("gate", "r", "--max-flip-rate", "0.3")):
        ran = run(*command)
        assert ran.code == 2
        assert ran.err.splitlines()[-1].partition(" is a ")[0].endswith(f"{Path('r', name)}:")


def test_linked_folder_and_hard_linked_copy_can_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / ".distract").symlink_to("disk")
    assert run(*ATTACK).code == 0
    (folder,) = (tmp_path / "disk" / "runs").iterdir()
    (tmp_path / "copy").mkdir()
    for file in folder.iterdir():
        (tmp_path / "copy" / file.name).hardlink_to(file)
    assert load(tmp_path / "copy").flaw is None


@each("name", "rows.jsonl", "rewrites.jsonl", "texts.jsonl", "run.json")
@each("what", "deleted", "changed", "replaced")
def test_file_changed_during_the_run_is_noticed(tmp_path: Path, name: str, what: str) -> None:
    with Recorder(tmp_path / "r", {"judge": "j"}) as recorder:
        recorder.add([row("c1", [verdict("a")])], [])
        place = tmp_path / "r" / name
        if what != "changed":
            place.unlink()
        if what != "deleted":
            place.write_text("something else")
        with pytest.raises(BackendError, match=f"{name}: was changed or removed during the run"):
            recorder.finish({}, {})
    assert not (tmp_path / "r" / "manifest.json").exists()


@pytest.mark.parametrize("out", ["d.jsonl", "./d.jsonl", "link"])
def test_rewrites_never_replace_their_source_data(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save([case(f"c{i}") for i in range(3)], Path("d.jsonl"))
    Path("link").symlink_to("d.jsonl")
    content = Path("d.jsonl").read_bytes()
    check_refusal(
        run("rewrite", "--data", "d.jsonl", "--limit", "1", "--attack", "sycophancy", "--out", out),
        "is something that the command reads or keeps",
    )
    assert Path("d.jsonl").read_bytes() == content


def test_only_own_partial_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "film.part").write_text("half a film")
    (tmp_path / "run.json.12.part").write_text("{")
    with Recorder(tmp_path, {"judge": "j"}):
        pass
    assert (tmp_path / "film.part").read_text() == "half a film"
    assert not (tmp_path / "run.json.12.part").exists()


def test_lock_is_never_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "s.lock").symlink_to("elsewhere")
    with pytest.raises(UsageError, match="is a link where distract keeps a file of its own"):
        Claims(tmp_path / "s")
    assert not (tmp_path / "elsewhere").exists()


def test_store_has_one_lock_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "s").symlink_to("far/s")
    with Claims(tmp_path / "s"):
        assert (tmp_path / "far" / "s.lock").is_file()
