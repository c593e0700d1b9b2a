"""The file system that holds a path; only Linux says so."""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

NETWORK_TYPES = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "coda", "lustre", "gpfs", "beegfs", "fhgfs", "ceph"),
        *("glusterfs", "orangefs", "panfs", "pvfs2", "wekafs", "gfs2", "ocfs2", "davfs", "mfs", "acfs"),
    )
)
"""Types of file systems that several machines mount."""

LOCAL_FUSE = frozenset(
    f"fuse.{name}"
    for name in ("fuse-overlayfs", "bindfs", "mergerfs", "unionfs", "encfs", "gocryptfs", "cryfs", "ntfs-3g", "zfs")
)
"""File systems of a program (FUSE) on a local disk; any other is a bucket or another machine's."""

_OCTAL = re.compile(r"\\([0-7]{3})")


def find_type(place: Path) -> str | None:
    """Find the type of the file system that holds a resolved path; None if the system does not say."""
    try:
        lines = MOUNTS.read_bytes().decode(errors="surrogateescape").splitlines()
    except OSError:
        return None
    longest, kind = -1, None
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        # Of several on one point, the last one covers the others.
        if place.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), source.split(" ")[0]
    return kind


def find_network(place: Path) -> str | None:
    """Find the type of the file system that holds a resolved path, if several machines mount it."""
    kind = find_type(place)
    is_remote_fuse = kind == "fuse" or ((kind or "").startswith("fuse.") and kind not in LOCAL_FUSE)
    return kind if kind in NETWORK_TYPES or is_remote_fuse else None
