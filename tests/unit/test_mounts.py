"""Test that a store on a network file system is refused, by the mounts that the system lists."""

from pathlib import Path

import pytest
from loops import each

from distract.core import replyfile
from distract.core.errors import UsageError
from distract.core.store import Store

LINES = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw shared:5 master:2 - nfs4 server:/export/home rw,vers=4.2
31 30 8:2 / /home/scratch rw - xfs /dev/sdb1 rw
32 22 0:41 / /mnt/my\\040data rw - fuse.sshfs a@b:/ rw
33 22 0:42 / /twice rw - lustre mds@tcp:/fs rw
34 33 0:43 / /twice rw - tmpfs tmpfs rw
35 22 0:44 / /covered rw - tmpfs tmpfs rw
36 35 0:45 / /covered rw,nosuid - cifs //server/share rw
37 22 0:46 / /shared9p rw - 9p host rw
38 22 0:47 / /virtio rw - virtiofs tag rw
39 22 0:48 / /caf\u00e9 rw - ceph mon:/ rw
a line that nobody expects
"""


@pytest.fixture(autouse=True)
def _listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(LINES, encoding="utf-8")
    monkeypatch.setattr(replyfile, "MOUNTS", tmp_path / "mountinfo")


@each(
    "place, kind, is_network",
    ("/store.sqlite", "ext4", False),
    ("/home/me/.distract/replies.sqlite", "nfs4", True),
    ("/homeless/replies.sqlite", "ext4", False),
    ("/home/scratch/replies.sqlite", "xfs", False),
    ("/mnt/my data/replies.sqlite", "fuse.sshfs", True),
    ("/mnt/my/replies.sqlite", "ext4", False),
    ("/twice/replies.sqlite", "tmpfs", False),
    ("/covered/replies.sqlite", "cifs", True),
    ("/shared9p/replies.sqlite", "9p", False),
    ("/virtio/replies.sqlite", "virtiofs", False),
    ("/café/replies.sqlite", "ceph", True),
)
def test_longest_mount_decides(place: str, kind: str, is_network: bool) -> None:
    assert replyfile.find_type(Path(place)) == kind
    assert replyfile.find_network(Path(place)) == (kind if is_network else None)


def test_unreadable_list_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(replyfile, "MOUNTS", tmp_path / "absent")
    assert replyfile.find_network(Path("/home/me/s.sqlite")) is None


def test_real_list_names_the_type_of_this_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    assert (replyfile.find_type(tmp_path) is None) == (not replyfile.MOUNTS.exists())


@each("place", "net/s.sqlite", "net/new/s.sqlite", "link/s.sqlite", "link.sqlite")
def test_store_on_a_network_is_refused_with_the_reason(place: str, tmp_path: Path) -> None:
    mount = tmp_path.resolve() / "net"
    mount.mkdir()
    (tmp_path / "link").symlink_to(mount)
    (mount / "old.sqlite").write_bytes(b"1")
    (tmp_path / "link.sqlite").symlink_to(mount / "old.sqlite")
    replyfile.MOUNTS.write_text(f"{LINES}40 22 0:49 / {mount} rw - nfs server:/ rw\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        Store(tmp_path / place, {"model": "m"})
    assert str(caught.value) == (
        f"{tmp_path / place}: is on a network file system (nfs); the write-ahead log of a store needs memory that all "
        "its processes share, which no network file system gives; name a file on a local disk with --store, one for "
        "each machine, and merge shards (--shard, `distract merge`)"
    )
    assert not (mount / "new").exists()
    with Store(tmp_path / "local.sqlite", {"model": "m"}) as store:
        assert len(store) == 0
