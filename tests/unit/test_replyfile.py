"""Test a store's file that is deleted, replaced, truncated or damaged, before or during use."""

import errno
import json
import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from builders import case, request, row, verdict
from command_result import CommandResult, Run, check_refusal
from loops import each
from test_runs import change_store

from distract.cli import gate_outputs
from distract.core import files
from distract.core.errors import BackendError, UsageError
from distract.core.locks import Claims
from distract.core.recorder import Recorder
from distract.core.records import MAX_TOKENS, Reply
from distract.core.runs import load
from distract.core.store import DEFAULT_PATH, Store
from distract.models import cache
from distract.studies.make.rewrites import save

Change = Callable[[Path], object]

WHO, HELPER = {"model": "m"}, {"model": "helper"}
ENDS = ("", "-wal", "-shm")


def fill(path: Path, numbers: Sequence[int], who: dict[str, str] = WHO) -> None:
    with Store(path, who) as store:
        store.put([(store.key(request(str(n))), Reply(f"{n} " * 100)) for n in numbers])


def replace_store(path: Path) -> None:
    """Replace the store by another one."""
    fill(path.with_name("other"), range(900, 905))
    path.with_name("other").replace(path)


def replace_path(path: Path, make: Change) -> None:
    path.unlink()
    make(path)


def delete(path: Path, *ends: str) -> None:
    for end in ends:
        Path(f"{path}{end}").unlink()


def truncate(path: Path, *ends: str) -> None:
    for end in ends:
        os.truncate(f"{path}{end}", Path(f"{path}{end}").stat().st_size // 2)


GONE: dict[str, Change] = {
    "deleted": Path.unlink,
    "deleted with its parts": lambda path: delete(path, *ENDS),
    "folder deleted": lambda path: shutil.rmtree(path.parent),
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("away")),
    "moved": lambda path: path.rename(path.with_name("away")),
    "-wal deleted": lambda path: delete(path, "-wal"),
    "-shm deleted": lambda path: delete(path, "-shm"),
    "replaced by a store": replace_store,
}
"""Changes to a file after which all replies are still stored."""

TAKEN: dict[str, Change] = {
    "text": lambda path: replace_path(path, lambda there: there.write_text("a text" * 999)),
    "folder": lambda path: replace_path(path, Path.mkdir),
    "pipe": lambda path: replace_path(path, os.mkfifo),
}
"""Changes after which a file is no store: its replies are kept beside it."""

CUT: dict[str, Change] = {
    "file": lambda path: truncate(path, ""),
    "-wal": lambda path: truncate(path, "-wal"),
    "all": lambda path: truncate(path, *ENDS),
    "to nothing": lambda path: os.truncate(path, 0),
}


def keep(store: Store, keys: Sequence[bytes]) -> None:
    store.put([(key, Reply("kept")) for key in keys])


def check_kept(folder: Path, keys: Sequence[bytes]) -> None:
    (beside,) = folder.glob("s.kept-*.sqlite")
    with Store(beside, WHO) as rescue:
        assert rescue.get(keys) == dict.fromkeys(keys, Reply("kept"))


def test_reply_in_progress_survives_a_truncated_store(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    fill(path, range(300))
    with Store(path, WHO) as store:
        keys = [store.key(request(f"new {n}")) for n in range(20)]
        truncate(path, "")
        with pytest.raises(BackendError, match="was cut short"):
            keep(store, keys)
    check_kept(tmp_path, keys)


def test_overflow_of_a_locked_store_is_kept_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distract.core.replyfile.TIMEOUT", 0.0)
    path = tmp_path / "s.sqlite"
    with Store(path, WHO) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        first, second = store.key(request("1")), store.key(request("2"))
        for key in (first, second):
            with pytest.raises(BackendError, match=r"database is locked; the replies .* are in .*kept-"):
                keep(store, [key])
    check_kept(tmp_path, [first, second])


@each("is_used", True, False)
@each("before", 0, 300)
@each("damage", *GONE.values(), *TAKEN.values())
def test_deleted_store_is_noticed_and_its_replies_kept(
    tmp_path: Path, damage: Change, before: int, is_used: bool
) -> None:
    path = tmp_path / "folder" / "s.sqlite"
    fill(path, range(before))

    def use(keys: Sequence[bytes]) -> None:
        with Store(path, WHO) as store, Store(path, HELPER) as helper:
            keep(store, keys[:5])
            damage(path)
            try:
                if is_used:
                    keep(store, keys[5:])
            finally:  # replies during the end of a run
                helper.put([(helper.key(request("late")), Reply("late"))])

    with Store(tmp_path / "keys", WHO) as store:
        keys = [store.key(request(f"new {n}")) for n in range(9)]
    with pytest.raises(BackendError, match=r"was deleted, moved or replaced during|lost its -wal or -shm") as raised:
        use(keys)
    assert "\n" not in str(raised.value)
    rescue = next(path.parent.glob("s.kept-*.sqlite"), path)
    assert (rescue != path) == (damage in TAKEN.values())
    assert (str(rescue) in str(raised.value)) or rescue == path
    with Store(rescue, WHO) as store, Store(rescue, HELPER) as helper:
        assert store.get(keys) == dict.fromkeys(keys if is_used else keys[:5], Reply("kept"))
        assert len(store.get([store.key(request(str(n))) for n in range(before)])) == before
        assert len(helper) == 1


@each("is_used", True, False)
@each("damage", *CUT.values())
def test_truncated_store_is_one_line(tmp_path: Path, damage: Change, is_used: bool) -> None:
    path = tmp_path / "s.sqlite"
    fill(path, range(300))

    def use() -> None:
        with Store(path, WHO) as store:
            keys = [store.key(request(f"new {n}")) for n in range(9)]
            keep(store, keys[:5])
            damage(path)
            if is_used:
                keep(store, keys[5:])
                store.get(keys)

    with pytest.raises(BackendError, match=r"was cut short during|failed: ") as raised:
        use()
    assert "\n" not in str(raised.value)


def test_mapped_part_may_be_truncated(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        key = store.key(request())
        os.truncate(tmp_path / "s-shm", 0)
        store.put([(key, Reply("kept"))])
    with Store(tmp_path / "s", WHO) as store:
        assert store.get([key])[key].text == "kept"


def test_silently_lost_reply_is_noticed_at_the_end(tmp_path: Path) -> None:
    with Store(tmp_path / "s", WHO) as store:
        store.put([(store.key(request(str(n))), Reply("x")) for n in range(3)])
        store.check()
        store.put([(store.key(request("more")), Reply("x"))])
        change_store(tmp_path / "s", "delete from replies")
        with pytest.raises(BackendError, match="has lost 1 replies during the run"):
            store.check()


ATTACK = ("attack", "--judge", "planted:longer", "--attack", "sycophancy", "--protocol", "pairwise", "--limit", 40)


def test_run_that_loses_folder_and_store_exits_with_4(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put, puts = Store.put, list[int]()

    def damaging(store: Store, replies: Sequence[tuple[bytes, Reply]]) -> None:
        put(store, replies)
        if store.path == DEFAULT_PATH and not puts:
            puts.append(1)
            shutil.rmtree(".distract")

    monkeypatch.setattr(Store, "put", damaging)
    ran = run(*ATTACK)
    assert (ran.code, "Traceback" in ran.err) == (4, False)
    assert run(*ATTACK).code == 0


def reply(number: int) -> Reply:
    shares = (0.1, 0.2, 0.7) if number % 2 else None
    return Reply(f"Answer [[{'ABC'[number % 3]}]] " + "é x" * number * 7, shares, 0.5, "stop", None, number, 2 * number)


def damage_pages(whole_store: bytes, seed: int) -> list[bytes]:
    """The file with each page zeroed, overwritten and cut off, and with bits flipped anywhere."""
    drawn, size = random.Random(seed), 4096
    files = []
    for start in range(0, len(whole_store), size):
        before, page, after = whole_store[:start], whole_store[start : start + size], whole_store[start + size :]
        files += [before + part + after for part in (bytes(size), b"\xff" * size, drawn.randbytes(size))]
        files += [before, before + page[: size // 2]]
        for _ in range(3):
            header = bytearray(page)
            for _ in range(3):
                header[drawn.randrange(120)] = drawn.randrange(256)
            files.append(before + header + after)
    for _ in range(60):
        flipped = bytearray(whole_store)
        for _ in range(drawn.choice([1, 4, 40])):
            flipped[drawn.randrange(len(whole_store))] ^= 1 << drawn.randrange(8)
        files.append(bytes(flipped))
    return files


def read_reply(path: Path, text: str | bytes) -> Reply:
    """Read a reply stored as this text, and another one."""
    with Store(path, WHO) as store:
        keys = [store.key(request(name)) for name in ("one", "two")]
        store.put([(key, Reply("fine")) for key in keys])
        change_store(path, "update replies set reply = ? where key = ?", text, keys[0])
        return store.get(keys)[keys[0]]


FINE = ["text", [0.25, 0.75], 0.5, "stop", None, 3, 4]


def test_older_reply_has_no_checksum(tmp_path: Path) -> None:
    assert read_reply(tmp_path / "s", json.dumps(FINE)) == Reply("text", (0.25, 0.75), 0.5, "stop", None, 3, 4)


WRONG: tuple[tuple[int, object], ...] = (
    *((0, value) for value in (None, 3)),
    *((1, value) for value in ("a", ["a"], [float("nan")], {"a": 1}, 0, [10**400], [2.0])),
    *((2, value) for value in (True, False, "", float("inf"))),
    *((3, None), (4, 5), (5, "3"), (5, True), (6, 1.5), (6, None)),
)


@each(
    "stored",
    *("cut off", "", "null", "5", '["", 3]', b"[", "[" * 20_000, "[null], [null]"),
    *(json.dumps([*FINE[:place], value, *FINE[place + 1 :]]) for place, value in WRONG),
)
def test_damaged_reply_is_one_clear_line(tmp_path: Path, stored: str | bytes) -> None:
    with pytest.raises(UsageError, match="a stored reply is damaged; name another file with --store"):
        read_reply(tmp_path / "s", stored)


@each("count", 10**4299, -1, MAX_TOKENS + 1)
def test_absurd_count_is_bounded_and_its_reply_kept(tmp_path: Path, count: int) -> None:
    reply = read_reply(tmp_path / "s", json.dumps([*FINE[:5], count, count]))
    assert (reply.tokens_in, reply.tokens_out) == (min(max(count, 0), MAX_TOKENS),) * 2
    assert reply.text == "text"


def test_link_leads_to_a_store_or_nothing_is_written(tmp_path: Path) -> None:
    link = tmp_path / "s"
    link.symlink_to("target")
    target = tmp_path / "target"
    for content in (None, "", "years of work\n", "years of work\n" * 999):
        if content is not None:
            target.write_text(content)
        with pytest.raises(UsageError, match="not usable as a store"):
            Store(link, WHO)
        assert (target.read_text() if target.exists() else None) == content
    target.unlink()
    fill(target, range(3))
    fill(link, range(3, 5))
    with Store(target, WHO) as store:
        assert len(store) == 5
    assert link.is_symlink()


def test_foreign_file_is_no_store_and_left_alone(tmp_path: Path) -> None:
    change_store(tmp_path / "cookies", "create table cookies (name)")
    before = (tmp_path / "cookies").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes").write_text("these are not the replies you are looking for, " * 50)
    messages = {"cookies": "it is a database of another program", "notes": "not usable as a store"}
    for name in ("cookies", "notes", ".", "pipe", os.devnull):
        with pytest.raises(UsageError, match=messages.get(name, "it is not a regular file")):
            Store(tmp_path / name, WHO)
    assert (tmp_path / "cookies").read_bytes() == before


def decide(junit: Path | None, summary: Path | None, github: bool = False) -> None:
    gate = gate_outputs.Outputs(junit, github, summary, False)
    gate.begin(())
    gate.end(gate_outputs.inconclusive_verdict("why"), "j", (), ())


def record(path: Path) -> None:
    files.check_writable(path, "--out")
    save([case("c1")], path)


WRITERS: dict[str, tuple[Change, str]] = {
    "--out": (record, '{"id": "c1"'),
    "--junit": (lambda path: decide(path, None), "<testsuites"),
    "--summary": (lambda path: decide(None, path), "distract"),
}
each_writer = each("write, holds", *WRITERS.values())


@each_writer
def test_link_stays_and_its_target_is_written(tmp_path: Path, write: Change, holds: str) -> None:
    (tmp_path / "far").mkdir()
    target, link, chain = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("far/target")
    chain.symlink_to("link")
    for _ in range(2):
        write(chain)
        assert link.is_symlink()
        assert chain.is_symlink()
        assert holds in target.read_text()
        target.write_text("old")
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["chain", "far", "link", "target"]


@each_writer
def test_file_keeps_its_mode_and_is_replaced_atomically(tmp_path: Path, write: Change, holds: str) -> None:
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
def test_own_files_of_distract_are_not_replaced(tmp_path: Path, write: Change, holds: str, name: str) -> None:
    with Store(tmp_path / "s.sqlite", {"model": "m"}), Recorder(tmp_path / "run", {"judge": "j"}):
        (tmp_path / "s.sqlite.lock").touch()
        path = tmp_path / name
        content = path.read_bytes()
        with pytest.raises(UsageError, match=r"belongs to a database, such as|is part of a run; name"):
            write(path)
        assert path.read_bytes() == content


@each_writer
def test_pipe_receives_the_whole_text_once(tmp_path: Path, write: Change, holds: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write(path)
    text = os.read(reader, 65536).decode()
    os.close(reader)
    assert holds in text
    assert text.count("<testsuites") <= 1
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


@each_writer
def test_unread_pipe_is_one_line_when_written(tmp_path: Path, write: Change, holds: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    files.check_writable(tmp_path / "pipe", "--out")
    with pytest.raises(UsageError, match=r"cannot be written \(it has no reader\); name another file with --"):
        write(tmp_path / "pipe")


@each_writer
@each("place", "folder", "a/b", "circle")
def test_impossible_file_is_one_line(tmp_path: Path, write: Change, holds: str, place: str) -> None:
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
    decide(None, None, github=True)
    assert (tmp_path / "summary").read_text().startswith("before\n")
    assert "why" in (tmp_path / "summary").read_text()


def test_command_reports_unusable_pipe_or_folder_in_one_line(run: Run) -> None:
    os.mkfifo("pipe")
    Path("folder").mkdir()
    for place in ("pipe", "folder"):
        ran = run("rewrite", "--attack", "sycophancy", "--limit", 1, "--out", place)
        assert (ran.code, "Traceback" in ran.err) == (2, False)
        assert place in ran.err.splitlines()[-1]


OURS = ("run.json", "rows.jsonl", "rewrites.jsonl", "texts.jsonl", "summary.json", "manifest.json")
ATTACKING = (*ATTACK[:-1], 2)


def foreign(path: Path, kind: str, victim: Path) -> None:
    """Replace a file of distract by something else."""
    path.unlink(missing_ok=True)
    makers: dict[str, Change] = {"pipe": os.mkfifo, "folder": Path.mkdir}
    makers |= {"link": lambda one: one.symlink_to(victim), "hard link": lambda one: one.hardlink_to(victim)}
    makers[kind](path)


def check_foreign(ran: CommandResult, name: str) -> None:
    assert ran.code == 2
    assert ran.err.splitlines()[-1].partition(" is a ")[0].endswith(f"{Path('r', name)}:")


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("name", OURS)
def test_run_never_writes_through_foreign_links(run: Run, tmp_path: Path, kind: str, name: str) -> None:
    victim = tmp_path / "victim"
    assert run(*ATTACKING, "--out", "r").code == 0
    (tmp_path / "r" / "manifest.json").unlink()  # so that the run restarts
    victim.write_text((tmp_path / "r" / name).read_text() if name == "run.json" else "years of work")
    before = victim.read_text()
    foreign(tmp_path / "r" / name, kind, victim)
    ran = run(*ATTACKING, "--out", "r")
    check_foreign(ran, name)
    assert "remove it" in ran.err
    assert victim.read_text() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
@pytest.mark.parametrize("name", OURS[:3] + OURS[4:])
def test_run_is_never_read_through_foreign_links(run: Run, tmp_path: Path, kind: str, name: str) -> None:
    assert run(*ATTACKING, "--out", "r").code == 0
    victim = (tmp_path / "r" / name).rename(tmp_path / "victim")
    foreign(tmp_path / "r" / name, kind, victim)
    for command in (("report", "r"), ("gate", "r", "--max-flip-rate", "0.3")):
        check_foreign(run(*command), name)


def test_linked_folder_and_hard_linked_copy_can_be_read(run: Run) -> None:
    Path("disk").mkdir()
    Path("link").symlink_to("disk")
    assert run(*ATTACKING, "--out", "link/run", "--store", "link/replies").code == 0
    shutil.copytree("disk/run", "copy", copy_function=os.link)
    assert load(Path("copy")).flaw is None


@each("name", "", "runs", "replies.sqlite", "replies.sqlite-wal", "replies.sqlite-journal", "replies.sqlite.lock")
@each("leads", "elsewhere", "nowhere")
def test_own_folder_is_never_a_link_nor_holds_one(run: Run, tmp_path: Path, name: str, leads: str) -> None:
    """A repository may contain it, to have files written where it leads."""
    Path("elsewhere").mkdir()
    link = Path(".distract", name)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / leads, target_is_directory=True)
    ran = run(*ATTACKING)
    assert (ran.code, f"{link}: is a link where distract keeps " in ran.err.splitlines()[-1]) == (2, True)
    assert [*Path("elsewhere").iterdir()] == []
    assert not Path("nowhere").exists()


@each("mask", 0o022, 0o002)
def test_own_files_are_of_this_user_and_earlier_ones_stay_as_they_are(run: Run, tmp_path: Path, mask: int) -> None:
    store, out, page = (tmp_path / name for name in ("kept/replies.sqlite", "kept/run", "page.html"))
    command = (*ATTACKING, "--store", store, "--out", out, "--html", page)
    before = os.umask(mask)
    try:
        assert run(*command).code == 0
        assert page.stat().st_mode & 0o777 == 0o666 & ~mask
        cache.keep(page.parent / "kept/cache/facts.json", {})
        with Store(store, WHO):  # SQLite removes some files when it closes the store
            modes = {path: path.stat().st_mode & 0o777 for path in (page.parent / "kept").rglob("*")}
        assert {path.name for path in modes} >= {"replies.sqlite-wal", "replies.sqlite-shm", "rows.jsonl", "cache"}
        assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
        for path in (out, *out.iterdir(), store):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert run(*command, "--fresh").code == 0
        assert {path.stat().st_mode & 0o777 for path in (*out.glob("r*.json*"), store)} == {0o644}
        assert out.stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)


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
def test_rewrites_never_replace_their_source_data(run: Run, out: str) -> None:
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
