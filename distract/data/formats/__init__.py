"""The formats that distract reads, by name: one module per format, but one for all sets of labelled pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distract.data.formats.reader import Reader
    from distract.data.tables import Table

_PLACES = {
    "table": "table.READER",
    "native": "native.READER",
    "llmbar": "labelled_pairs.LLMBAR",
    "ifeval": "ifeval.READER",
    "reife": "labelled_pairs.REIFE",
    "mt-bench": "mt_bench.READER",
    "mt-bench-human": "mt_bench.HUMAN",
    "rewardbench": "table.REWARDBENCH",
    "judgebench": "labelled_pairs.JUDGEBENCH",
    "pandalm": "labelled_pairs.PANDALM",
    "instrusum": "labelled_pairs.INSTRUSUM",
    "alpaca-eval": "alpaca_eval.READER",
    "inspect": "logs.INSPECT",
    "promptfoo": "logs.PROMPTFOO",
    "lm-eval": "logs.LM_EVAL",
}
"""The module and the name of each reader."""


class _Readers(Mapping[str, "Reader"]):
    """The readers by name; each loads when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Reader] = {}

    def __getitem__(self, name: str) -> Reader:
        if name not in self._loaded:
            from distract.data.formats.reader import Reader

            module, _, attribute = _PLACES[name].partition(".")
            value = getattr(import_module(f"{__name__}.{module}"), attribute)
            is_reader = isinstance(value, Reader)
            self._loaded[name] = value if is_reader else Reader(value.summary, value.recognise, value.read)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in _PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


READERS: Mapping[str, Reader] = _Readers()


def detect_format(table: Table) -> str | None:
    """The format of a table, or None; tables of the user's own come last because they may look like any other.

    Published sets are objects: a CSV file with their columns is the user's own.
    """
    names = reversed(tuple(READERS)) if table.typed and not table.roles else ("table",)
    return next((name for name in names if READERS[name].recognise(table)), None)
