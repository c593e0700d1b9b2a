"""Compressed files: gzip, and logs of inspect_ai as ZIP archives of one JSON file per sample (deflate or Zstandard)."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, BinaryIO

from distract.core.errors import DataError, import_library
from distract.data.fields import DECODER, flaw
from distract.data.json_stream import Object

KIND = "an inspect_ai log"
_SAMPLES = "samples/"
_HEADERS = ("header.json", "_journal/start.json")
"""What a log says about its evaluation: in full, or where that did not end, as it began."""

_ZSTANDARD = 93
_HEADER = struct.Struct("<26xHH")
"""The fixed part of a local header, which ends with the lengths of the two parts before the content."""

_MOST = 1 << 28
"""Maximum number of bytes of a sample; an archive of a few kilobytes may claim or hold gigabytes."""

MOST_LAYERS = 3
"""Maximum number of times that a file may be compressed by gzip: each layer costs a reader."""


def open_log(
    open_file: Callable[[], BinaryIO], where: str
) -> tuple[Callable[[], Iterator[Object]], dict[str, Any]] | None:
    """A function that reads the samples of a log in the order of the archive, and its header; None for another archive.

    A log without samples has its header as the only row.
    """
    with open_file() as file, _open_archive(file, where) as archive:
        # Of two members with one name, the last counts: inspect_ai replaces a sample by a later one.
        members = {member.filename: member for member in archive.infolist()}
        member = next((members[name] for name in _HEADERS if name in members), None)
        header = _read_object(archive, member, where) if member else {}
    samples = [member for name, member in members.items() if name.startswith(_SAMPLES)]
    if not header and not samples:
        return None

    def read() -> Iterator[Object]:
        if not samples:
            yield 1, header
            return
        with open_file() as file, _open_archive(file, where) as archive:
            for number, member in enumerate(samples, 1):
                yield number, _read_object(archive, member, where)

    return read, header


def _open_archive(file: BinaryIO, where: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:
        problem = "is a damaged ZIP archive; if it is a log of inspect_ai, `inspect log recover` may help"
        raise DataError(f"{problem} ({error})", path=where) from error


def _read_object(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> dict[str, Any]:
    try:
        value = DECODER.decode(_read_member(archive, member, where).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{member.filename}: not valid JSON ({flaw(error)})", path=where) from error
    if not isinstance(value, dict):
        raise DataError(f"{member.filename}: expected an object", path=where)
    return value


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> bytes:
    try:
        with _open_member(archive, member, where) as file:
            text = bytearray()
            while len(text) <= _MOST and (part := file.read(1 << 20)):
                text += part
    except Exception as error:
        known = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError)
        if not isinstance(error, known) and type(error).__module__.partition(".")[0] != "zstandard":
            raise
        raise DataError(f"{member.filename}: damaged ({error})", path=where) from error
    if len(text) > _MOST:
        raise DataError(f"{member.filename}: has more than {_MOST >> 20} MB; leave this sample out", path=where)
    if len(text) < member.file_size:
        raise DataError(f"{member.filename}: damaged (it ends too early)", path=where)
    return bytes(text)


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Any:
    """Open a member; Python before 3.14 reads no Zstandard, of which a large member has several frames."""
    if member.compress_type != _ZSTANDARD:
        return archive.open(member)
    file = archive.fp
    assert file is not None
    file.seek(member.header_offset)
    file.seek(sum(_HEADER.unpack(file.read(_HEADER.size))), 1)
    content = BytesIO(file.read(member.compress_size))
    zstandard = import_library("zstandard", "logs", f"{where}:")
    return zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)


class _Expanded(RawIOBase):
    def __init__(self, open_file: Callable[[], BinaryIO], where: str) -> None:
        self._file, self._where = open_file(), where
        self._text = gzip.GzipFile(fileobj=self._file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self._text.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"is a damaged gzip file ({error})", path=self._where) from error
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


def expand(open_file: Callable[[], BinaryIO], where: str) -> BinaryIO:
    return BufferedReader(_Expanded(open_file, where))
