"""The formats that distract reads, by name: one module per format, but one for all sets of labelled pairs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distract.data.formats import alpaca_eval, ifeval, logs, mt_bench, mt_bench_human, native, pandalm, table
from distract.data.formats.labelled_pairs import INSTRUSUM, JUDGEBENCH, LLMBAR, REIFE
from distract.data.formats.reader import Reader
from distract.data.tables import Table

READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "table": table.READER,
        "native": native.READER,
        "llmbar": Reader(LLMBAR.summary, LLMBAR.recognise, LLMBAR.read),
        "ifeval": ifeval.READER,
        "reife": Reader(REIFE.summary, REIFE.recognise, REIFE.read),
        "mt-bench": mt_bench.READER,
        "mt-bench-human": mt_bench_human.READER,
        "rewardbench": table.REWARDBENCH,
        "judgebench": Reader(JUDGEBENCH.summary, JUDGEBENCH.recognise, JUDGEBENCH.read),
        "pandalm": pandalm.READER,
        "instrusum": Reader(INSTRUSUM.summary, INSTRUSUM.recognise, INSTRUSUM.read),
        "alpaca-eval": alpaca_eval.READER,
        "inspect": logs.INSPECT,
        "promptfoo": logs.PROMPTFOO,
        "lm-eval": logs.LM_EVAL,
    }
)


def detect_format(table: Table) -> str | None:
    """The format of a table, or None; tables of the user's own come last because they may look like any other.

    Published sets are objects: a CSV file with their columns is the user's own.
    """
    names = reversed(tuple(READERS)) if table.typed and not table.roles else ("table",)
    return next((name for name in names if READERS[name].recognise(table)), None)
