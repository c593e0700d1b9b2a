"""Test a store's file: two processes that write it, and one that is deleted, replaced, truncated or damaged."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from builders import request
from command_result import Run
from test_replyfile import ATTACK, CUT, ENDS, GONE, TAKEN, WHO, damage_pages, fill, reply

from distract.core.errors import DistractError
from distract.core.records import Reply
from distract.core.store import Store


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import sys; from pathlib import Path\n"
        "from distract.core.store import Store; from distract.core.records import *\n"
        "with Store(Path(sys.argv[1]), {'model': 'm', 'engine': 'scripted'}) as store:\n"
        "    for i in range(200):\n"
        "        r = Request((Message('user', sys.argv[2] + str(i % 100)),))\n"
        "        store.put([(store.key(r), Reply('x'))])\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    with Store(path, {"model": "m", "engine": "scripted"}) as store:
        assert len(store) == 200


GATE = ("gate", "--judge", "planted:fair", "--max-flip-rate", "0.3", "--attack", "sycophancy", "--protocol", "pairwise")


@pytest.mark.parametrize("command", [ATTACK, GATE], ids=["attack", "gate"])
@pytest.mark.parametrize("damage", [*GONE.values(), *TAKEN.values(), *CUT.values()], ids=[*GONE, *TAKEN, *CUT])
def test_run_with_a_lost_store_exits_with_4_and_resumes(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[object, ...],
    damage: Callable[[Path], object],
) -> None:
    path, puts, put = tmp_path / "folder" / "s", list[int](), Store.put
    fill(path, range(300))

    def damaging(store: Store, replies: Sequence[tuple[bytes, Reply]]) -> None:
        batch = list(replies)
        put(store, batch)
        if store.path == path:  # an estimate uses a store in memory
            puts.append(len(batch))
            if len(puts) == 1:
                damage(path)

    monkeypatch.setattr(Store, "put", damaging)
    ran = run(*command, "--store", path, "--out", "r")
    assert ran.code == 4
    assert "Traceback" not in ran.err
    assert str(path) in ran.err.splitlines()[-1]
    assert not (tmp_path / "r" / "manifest.json").exists()
    if damage in GONE.values():
        assert run(*command, "--store", path, "--out", "r").code == 0
        counts = json.loads((tmp_path / "r" / "manifest.json").read_text())["replies"]
        assert counts["stored"] >= puts[0]
    else:
        assert run(*command, "--store", path, "--out", "r").code in (0, 2, 4)


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[bytes, Reply], int]:
    path = tmp_path_factory.mktemp("whole") / "s"
    with Store(path, WHO) as store:
        store.renew()
        replies = {store.key(request(str(number))): reply(number) for number in range(30)}
        store.put(replies.items())
    return path.read_bytes(), replies, store.epoch


def test_damaged_page_is_one_line_and_never_another_reply(
    tmp_path: Path, whole_store: tuple[bytes, dict[bytes, Reply], int]
) -> None:
    content, replies, epoch = whole_store
    path, counts = tmp_path / "s", Counter[str]()
    methods: dict[str, Callable[[Store], object]] = {
        "len": len,
        "get": lambda store: store.get(list(replies)),
        "put": lambda store: store.put([(store.key(request("new")), Reply("new"))]),
        "check": Store.check,
        "renew": Store.renew,
    }
    for file in damage_pages(content, seed=1):
        for end in ENDS:
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes(file)
        try:
            with Store(path, WHO) as store:
                for name, method in methods.items():
                    try:
                        result = method(store)
                        if name == "get" and store.epoch == epoch and isinstance(result, dict):
                            assert result.items() <= replies.items()
                    except DistractError:
                        counts[name] += 1
        except DistractError:
            counts["open"] += 1
    assert {"len", "get", "open"} <= counts.keys()


def test_commands_report_any_damaged_page_in_one_line(
    run: Run, tmp_path: Path, whole_store: tuple[bytes, dict[bytes, Reply], int]
) -> None:
    assert run(*ATTACK, "--store", "s", "--out", "r").code == 0
    content = (tmp_path / "s").read_bytes()
    for start in range(0, len(content), 4096):
        (tmp_path / "s").write_bytes(content[:start] + b"\xff" * 4096 + content[start + 4096 :])
        ran = run(*ATTACK, "--store", "s", "--out", f"r{start}")
        assert "Traceback" not in ran.err
        assert ran.code in (2, 4)
        assert ran.err.splitlines()[-1].startswith("distract: s: ")
