"""Read a protocol from a file: a prompt file, or the prompt and verdict of a judge file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from distract.core.plugin import Protocol
from distract.judging.judge_file import read_judge
from distract.judging.own_prompt import make_protocol, split_file


def read_protocol(path: Path) -> Protocol:
    """Read the protocol of a prompt file or, from a file that ends in ``.toml``, of a judge file.

    Raises:
        DataError: The file is wrong; the message has its line or field.
    """
    if path.suffix == ".toml":
        return read_judge(path).protocol
    file = split_file(path)
    return make_protocol(path, *file, hashlib.sha256(file[0].encode()).hexdigest())
