"""Files compressed by gzip, expanded while they are read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO

from distract.core.errors import DataError


class _Expanded(RawIOBase):
    """The text of a file compressed by gzip."""

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
