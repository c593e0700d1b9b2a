"""The formats that distract reads, by name. It knows neither where a file lies nor what becomes of its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType

from distract.core.records import Case
from distract.data import prompt_parts
from distract.data.formats import (
    alpaca_eval,
    ifeval,
    instrusum,
    judgebench,
    llmbar,
    mt_bench,
    mt_bench_human,
    native,
    pandalm,
    reife,
    rewardbench,
)
from distract.data.formats.answers import Omission
from distract.data.formats.ifeval import ConstrainedPrompt


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format. Every function raises DataError with the place of what is wrong.

    Attributes:
        summary: one line.
        recognise: whether a text is in this format, from its beginning.
        read: the whole text and the file's name to cases; None for a format whose responses lie in further files.
        join: the same with the texts of those files, by path; None for a format that holds its responses.
        needs: what the further files are, where they are named with ``--responses``; empty otherwise.
        gather: a folder, or its first file, to all files of the data set, the first one first (none where the folder
            is of another kind); None for a format that is no folder.
        prompts: like ``read``, without responses; None for a format whose prompts hold no verifiable requirements.
        code: what else decides what is judged, and is part of the checksum.
        better_first: whether the better response is always listed first, so that the order must be drawn.
    """

    summary: str
    recognise: Callable[[str], bool]
    read: Callable[[str, str], Iterator[Case | Omission]] | None = None
    join: Callable[[str, str, Mapping[str, str]], Iterator[Case | Omission]] | None = None
    needs: str = ""
    gather: Callable[[Path], tuple[Path, ...]] | None = None
    prompts: Callable[[str, str], Iterator[ConstrainedPrompt | Omission]] | None = None
    code: ModuleType | None = None
    better_first: bool = False


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "native": Reader(native.SUMMARY, native.recognise, native.read),
        "llmbar": Reader(llmbar.SUMMARY, llmbar.recognise, llmbar.read),
        "ifeval": Reader(
            ifeval.SUMMARY,
            ifeval.recognise,
            join=ifeval.join,
            needs=ifeval.NEEDS,
            prompts=ifeval.read_prompts,
            code=prompt_parts,
        ),
        "reife": Reader(reife.SUMMARY, reife.recognise, reife.read),
        "mt-bench": Reader(mt_bench.SUMMARY, mt_bench.recognise, join=mt_bench.join, gather=mt_bench.gather),
        "mt-bench-human": Reader(mt_bench_human.SUMMARY, mt_bench_human.recognise, mt_bench_human.read),
        "rewardbench": Reader(rewardbench.SUMMARY, rewardbench.recognise, rewardbench.read, better_first=True),
        "judgebench": Reader(judgebench.SUMMARY, judgebench.recognise, judgebench.read),
        "pandalm": Reader(pandalm.SUMMARY, pandalm.recognise, pandalm.read),
        "instrusum": Reader(instrusum.SUMMARY, instrusum.recognise, instrusum.read),
        "alpaca-eval": Reader(
            alpaca_eval.SUMMARY, alpaca_eval.recognise, join=alpaca_eval.join, needs=alpaca_eval.NEEDS
        ),
    }
)


def detect_format(text: str) -> str | None:
    """The format that a text is in, or None; the native format is told by the least and asked last."""
    return next((name for name in reversed(tuple(READERS)) if READERS[name].recognise(text)), None)
