"""Write files for the user and for distract, and read whole texts.

A user's file may be a link, a device or a pipe: links are followed, devices and pipes are written in place, and any
other file is replaced in one step and keeps its mode. An internal file, in a run folder or a cache, is a regular file
with one name, for this user only. It is never opened through a link, because a hostile repository may contain one; the
folders above it may be links, up to ``.distract``.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO

from distract.core.errors import DataError, UsageError, restore_output, write_error

_NONBLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe without a reader fails instead of waiting; not every system has both flags."""

_NO_FOLLOW = _NONBLOCKING | getattr(os, "O_NOFOLLOW", 0)
"""Flags for opening an internal file, which may have become a link or a pipe since it was checked."""

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
"""Modes of internal files and folders: prompts and answers are nobody else's."""

_IN_PLACE_ERRORS = (errno.EACCES, errno.EPERM, errno.EBUSY)
"""Errors for a writable file that cannot be replaced: its folder is read-only, or it is a mount point."""

HOME = ".distract"
"""The folder, in that of a project, which holds whatever no option places elsewhere."""

_SQLITE = b"SQLite format 3\x00"
_STORE_SUFFIX = re.compile(r"(-wal|-shm|-journal|\.lock)\Z")

MOST_TEXT = 1 << 20
"""Maximum number of bytes of a prompt or a judge file."""

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_stream(path: Path) -> bool:
    """Whether a user's path leads to something that takes text and cannot be replaced: a device, a pipe, stdout."""
    with suppress(OSError):
        mode = path.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _standard_stream(path) is not None
    return False


def check_writable(path: Path, option: str) -> None:
    """Check that a user's file can be written, before any request is paid for; make its folder, open no pipe."""
    with _translate_errors(path, option):
        if is_stream(path):
            _check_access(path)
        else:
            _replace_target(path, None)


def write(path: Path, content: str | bytes, option: str) -> None:
    """Write a user's file; a reader of a regular one sees the old text or the new one, never half of it."""
    with restore_output(), _translate_errors(path, option):
        content = content.encode() if isinstance(content, str) else content
        if is_stream(path) or not _replace_target(path, content):
            _write_in_place(path, content, os.O_TRUNC)


def append(path: Path, text: str, option: str) -> None:
    with _translate_errors(path, option):
        _write_in_place(path, text.encode(), os.O_APPEND | os.O_CREAT)


def check_ownership(path: Path, most_names: int = 1) -> None:
    """Check that an internal file, if it exists, is a regular file with at most ``most_names`` names."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return
    kind = _KINDS.get(stat.S_IFMT(state.st_mode), "a second name of another file" * (state.st_nlink > most_names))
    if kind:
        raise UsageError(f"{path}: is {kind} where distract keeps a file of its own; remove it, or name another place")


def open_own(path: Path) -> BufferedReader:
    check_ownership(path, most_names=sys.maxsize)
    return os.fdopen(os.open(path, os.O_RDONLY | _NO_FOLLOW), "rb")


def check_links(path: Path) -> None:
    """Refuse a place at or below a ``.distract`` that is a link, or is reached by one: a repository may contain it."""
    for part in (path, *path.parents):
        if HOME in part.parts and part.is_symlink():
            advice = "remove it, or name other places with --store and --out"
            raise UsageError(f"{part}: is a link where distract keeps files of its own; {advice}")


def make_folder(path: Path) -> None:
    """Make a folder of distract's own, and those above it, for this user only; one that exists stays as it is."""
    check_links(path)
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(_FOLDER_MODE, exist_ok=True)


def create(path: Path, mode: int = _FILE_MODE) -> IO[str]:
    """Create an internal file, in place of an earlier one; a file that replaces another keeps its mode."""
    with suppress(OSError):
        mode = stat.S_IMODE(path.lstat().st_mode)
    remove(path)
    return open(path, "x", encoding="utf-8", newline="\n", opener=partial(os.open, mode=mode))


def touch(path: Path) -> None:
    """Create an empty internal file; never open one that exists, since closing it would release the locks on it."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _FILE_MODE))


def replace(path: Path, text: str) -> None:
    """Replace an internal file in one step: a reader sees the old text or the new one, never half of it."""
    check_ownership(path)
    part = _part_path(path)
    with create(part, stat.S_IMODE(path.stat().st_mode) if path.exists() else _FILE_MODE) as file:
        file.write(text)
    part.replace(path)


def move(path: Path, target: Path) -> None:
    """Move an internal file over another, or a folder to a new place, in one step."""
    check_ownership(target)
    path.replace(target)


def cache_folder() -> Path:
    """The user's cache folder; may not exist yet."""
    if folder := os.environ.get("DISTRACT_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "distract")


def remove(path: Path) -> None:
    check_ownership(path)
    path.unlink(missing_ok=True)


def open_lock(path: Path) -> IO[bytes]:
    """Open an internal lock file, whose bytes are locked and never written; create it and its folder."""
    make_folder(path.parent)
    check_ownership(path)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, _FILE_MODE), "r+b")


@contextmanager
def _translate_errors(path: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_error(error, path, f"name another file with {option}") from error


def _replace_target(path: Path, content: bytes | None) -> bool:
    """Replace the file that a user's path leads to; without content, only check that this is possible."""
    # ``Path.resolve`` would raise its own error for circular links.
    place = Path(os.path.realpath(path))
    previous = place.stat() if place.exists() else None
    _check_replaceable(place)
    for code, is_true in ((errno.EISDIR, place.is_dir()), (errno.ELOOP, place.is_symlink())):
        if is_true:
            raise OSError(code, os.strerror(code), str(path))
    if previous is not None:
        _check_access(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = _part_path(place)
    try:
        remove(part)
        with part.open("xb") as file:
            file.write(content or b"")
        if previous is not None:
            with suppress(OSError, AttributeError):  # only root may change owners, and Windows has none
                os.chown(part, previous.st_uid, previous.st_gid)
            part.chmod(stat.S_IMODE(previous.st_mode))
        if content is not None:
            part.replace(place)
    except OSError as error:
        if previous is None or error.errno not in _IN_PLACE_ERRORS:
            raise
        return False
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return True


def _check_replaceable(place: Path) -> None:
    """Check that a user's file would not replace a file of distract."""
    if not place.is_file():
        return
    for path in (place, place.with_name(_STORE_SUFFIX.sub("", place.name))):
        with suppress(OSError), path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                raise UsageError(f"{place}: belongs to a database, such as a store of replies; name another file")
    if place.suffix in (".json", ".jsonl") and (place.parent / "run.json").is_file():
        raise UsageError(f"{place}: is part of a run; name another file")


def _write_in_place(path: Path, content: bytes, flags: int) -> None:
    """Write into an existing file. A pipe without a reader is an error: a reader may never come."""
    if (number := _standard_stream(path)) is not None:
        (sys.stdout if number == 1 else sys.stderr).flush()
        descriptor = os.dup(number)
    else:
        try:
            descriptor = os.open(path, os.O_WRONLY | _NONBLOCKING | flags, 0o666)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise OSError(errno.ENXIO, "it has no reader", str(path)) from error
            raise
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _standard_stream(path: Path) -> int | None:
    """Return the number of the standard stream that a path leads to, so that other output there is not cut off."""
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(path.stat(), os.fstat(number)):
                return number
    return None


def _check_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _part_path(path: Path) -> Path:
    """Name a temporary part of a file, in the same folder, for this process only."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


def open_input(path: Path) -> BinaryIO:
    """Open a user's file for reading."""
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        kinds: dict[type, str] = {
            FileNotFoundError: "no such file",
            IsADirectoryError: "is a directory; name a file in it",
        }
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(kinds.get(type(error), f"cannot be read: {reason}"), path=path) from error


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Read a whole file; with a maximum number of bytes, a regular one: a device or a pipe might never end."""
    with suppress(OSError, ValueError):  # opening it says what is wrong
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
        if most is not None and kind not in (None, "a folder"):
            raise DataError(f"is {kind}; name a regular file", path=path)
    with open_input(path) as file:
        try:
            raw = file.read(-1 if most is None else most + 1)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path=path) from error
    if most is not None and len(raw) > most:
        raise DataError(f"has more than {most >> 20} MB; name the file that you meant", path=path)
    return raw


def read_text(path: Path, most: int | None = None) -> str:
    return decode(read_bytes(path, most), str(path))


def decode(raw: bytes, where: str) -> str:
    """Decode UTF-8; report the first line that is not."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8; convert the file to UTF-8", path=where, line=line) from error
