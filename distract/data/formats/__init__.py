"""The formats that distract reads, by name: one module per format, but one for all sets of labelled pairs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from distract.data.formats import alpaca_eval, ifeval, mt_bench, mt_bench_human, native, pandalm, rewardbench
from distract.data.formats.labelled_pairs import INSTRUSUM, JUDGEBENCH, LLMBAR, REIFE
from distract.data.formats.reader import Reader

READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "native": native.READER,
        "llmbar": Reader(LLMBAR.summary, LLMBAR.recognise, LLMBAR.read),
        "ifeval": ifeval.READER,
        "reife": Reader(REIFE.summary, REIFE.recognise, REIFE.read),
        "mt-bench": mt_bench.READER,
        "mt-bench-human": mt_bench_human.READER,
        "rewardbench": rewardbench.READER,
        "judgebench": Reader(JUDGEBENCH.summary, JUDGEBENCH.recognise, JUDGEBENCH.read),
        "pandalm": pandalm.READER,
        "instrusum": Reader(INSTRUSUM.summary, INSTRUSUM.recognise, INSTRUSUM.read),
        "alpaca-eval": alpaca_eval.READER,
    }
)


def detect_format(text: str) -> str | None:
    """The format of a text, or None; the native format comes last because it matches almost any JSON Lines."""
    return next((name for name in reversed(tuple(READERS)) if READERS[name].recognise(text)), None)
