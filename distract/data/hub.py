"""Data sets of the Hugging Face hub as tables, through the optional library ``datasets``.

Loading runs no code of the data set's author: the library stopped doing so in version 4.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distract.core.errors import DataError, UsageError, install_command
from distract.data.frames import read_dicts
from distract.data.tables import Table

FORM = "hub:ORG/NAME[:CONFIG[:SPLIT]]"
_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
PATIENCE = 10.0
"""Seconds to wait for the hub's first answer."""


def load_table(where: str, expected: str) -> Table:
    name = where.removeprefix("hub:")
    path, config, split = _split_name(name, where)
    api, library = _import_library(where)
    if not Path(path).is_dir():
        _reach(api, path, where)
    try:
        splits: Mapping[str, Any] = library.load_dataset(path, config)
        if split is None and len(splits) == 1:
            split = next(iter(splits))
        if split is None or split not in splits:
            known = ", ".join(sorted(map(str, splits)))
            wrong = "has several splits" if split is None else f"has no split {split!r}"
            raise UsageError(f"{where}: {wrong} (known: {known}); name one as {path}:{config or ''}:SPLIT")
        table = read_dicts(splits[split], "a data set of the hub", where)
    except UsageError:
        raise
    except Exception as error:  # the library passes on the exceptions of its many parts
        choose = f" (expected {FORM})" if isinstance(error, ValueError) else ""
        raise UsageError(f"{where}: cannot be loaded: {_describe_error(error)}{choose}") from error
    if not table.first:
        raise DataError(f"is empty; expected {expected}", path=where)
    return table


def _split_name(name: str, where: str) -> tuple[str, str | None, str | None]:
    path, *rest = name.split(":")
    if len(rest) > 2 or not _NAME.fullmatch(path):
        raise UsageError(f"{where}: expected {FORM}")
    config, split = (*rest, "", "")[:2]
    return path, config or None, split or None


def _import_library(where: str) -> tuple[Any, Any]:
    spec = importlib.util.find_spec("datasets")
    if spec is None or spec.origin is None:  # only a folder of that name
        raise UsageError(f"{where}: needs the library datasets, which is not installed: {install_command('hub')}")
    try:
        api, library = importlib.import_module("huggingface_hub"), importlib.import_module("datasets")
        library.disable_progress_bars()
    except Exception as error:
        raise UsageError(f"{where}: the library datasets cannot be used: {_describe_error(error)}") from error
    return api, library


def _reach(api: Any, path: str, where: str) -> None:
    """Ask the hub once for the data set, because loading it would retry, with messages."""
    if api.constants.HF_HUB_OFFLINE:
        return  # use the local copy
    try:
        api.HfApi().dataset_info(path, timeout=PATIENCE)
    except api.errors.RepositoryNotFoundError as error:
        raise DataError("no such data set on the hub, or it is not public", path=where) from error
    except Exception as error:
        advice = "download the data set elsewhere and name its file"
        raise UsageError(f"{where}: the hub cannot be reached ({_describe_error(error)}); {advice}") from error


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
