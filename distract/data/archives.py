"""Logs of inspect_ai as ZIP archives of one JSON file per sample, compressed by deflate or Zstandard."""

from __future__ import annotations

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from distract.core.errors import DataError, UsageError, install_command
from distract.data.fields import DECODER, flaw
from distract.data.json_stream import Object

KIND = "an inspect_ai log"
_SAMPLES = "samples/"
_ZSTANDARD = 93
_HEADER = struct.Struct("<26xHH")
"""The fixed part of a local header, which ends with the lengths of the two parts before the content."""


def open_log(open_file: Callable[[], BinaryIO], where: str) -> Callable[[], Iterator[Object]] | None:
    """A function that reads the samples of a log, in the order of their names; None for any other archive."""
    with open_file() as file:
        members = [member for member in _list_members(file, where) if member.filename.startswith(_SAMPLES)]
    if not members:
        return None

    def read() -> Iterator[Object]:
        with open_file() as file:
            for number, member in enumerate(members, 1):
                try:
                    value = DECODER.decode(_read_member(file, member, where).decode("utf-8"))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{member.filename}: not valid JSON ({flaw(error)})", path=where) from error
                if not isinstance(value, dict):
                    raise DataError(f"{member.filename}: expected an object", path=where)
                yield number, value

    return read


def _list_members(file: BinaryIO, where: str) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"is a damaged ZIP archive ({error})", path=where) from error


def _read_member(file: BinaryIO, member: zipfile.ZipInfo, where: str) -> bytes:
    try:
        if member.compress_type != _ZSTANDARD:
            with zipfile.ZipFile(file) as archive:
                return archive.read(member)
        file.seek(member.header_offset)
        file.seek(sum(_HEADER.unpack(file.read(_HEADER.size))), 1)
        content = file.read(member.compress_size)
        library = _import_library(where)
        text: bytes = library.ZstdDecompressor().decompressobj().decompress(content)
        return text
    except (zipfile.BadZipFile, zlib.error, struct.error, OSError) as error:
        raise DataError(f"{member.filename}: damaged ({error})", path=where) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "zstandard":
            raise
        raise DataError(f"{member.filename}: damaged ({error})", path=where) from error


def _import_library(where: str) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise UsageError(f"{where}: needs zstandard, which is not installed: {install_command('logs')}") from error
