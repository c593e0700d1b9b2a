"""The formats that distract reads, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType

from distract.core.records import Case
from distract.data import prompt_parts
from distract.data.formats import alpaca_eval, ifeval, mt_bench, mt_bench_human, native, pandalm, rewardbench
from distract.data.formats.answers import Omission
from distract.data.formats.ifeval import ConstrainedPrompt
from distract.data.formats.labelled_pairs import INSTRUSUM, JUDGEBENCH, LLMBAR, REIFE


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format. Every function raises DataError with the place of a fault.

    Attributes:
        summary: one line.
        recognise: whether the beginning of a text is in this format.
        read: reads the cases of a text, given the file's name; None if responses come from other files.
        join: the same, with the texts of those files by path; None if the format holds its responses.
        needs: a description of the files for ``--responses``; empty if there are none.
        gather: finds all files of a folder, or beside its first file, the first one first (none if it is another kind
            of folder); None if the format is no folder.
        prompts: like ``read``, without responses; None if prompts hold no verifiable requirements.
        code: other code that affects the cases, and so is part of the checksum.
        better_first: whether the better response always comes first, so that we must draw the order.
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
        "llmbar": Reader(LLMBAR.summary, LLMBAR.recognise, LLMBAR.read),
        "ifeval": Reader(
            ifeval.SUMMARY,
            ifeval.recognise,
            join=ifeval.join,
            needs=ifeval.NEEDS,
            prompts=ifeval.read_prompts,
            code=prompt_parts,
        ),
        "reife": Reader(REIFE.summary, REIFE.recognise, REIFE.read),
        "mt-bench": Reader(mt_bench.SUMMARY, mt_bench.recognise, join=mt_bench.join, gather=mt_bench.gather),
        "mt-bench-human": Reader(mt_bench_human.SUMMARY, mt_bench_human.recognise, mt_bench_human.read),
        "rewardbench": Reader(rewardbench.SUMMARY, rewardbench.recognise, rewardbench.read, better_first=True),
        "judgebench": Reader(JUDGEBENCH.summary, JUDGEBENCH.recognise, JUDGEBENCH.read),
        "pandalm": Reader(pandalm.SUMMARY, pandalm.recognise, pandalm.read),
        "instrusum": Reader(INSTRUSUM.summary, INSTRUSUM.recognise, INSTRUSUM.read),
        "alpaca-eval": Reader(
            alpaca_eval.SUMMARY, alpaca_eval.recognise, join=alpaca_eval.join, needs=alpaca_eval.NEEDS
        ),
    }
)


def detect_format(text: str) -> str | None:
    """The format of a text, or None; the native format comes last because it matches almost any JSON Lines."""
    return next((name for name in reversed(tuple(READERS)) if READERS[name].recognise(text)), None)
