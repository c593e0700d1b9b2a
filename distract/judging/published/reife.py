"""ReIFE's results: ``DATA.MODEL.PROTOCOL.jsonl`` and the same with ``_swap``, which together are one run.

A row has ``instruction, output_1, output_2`` (or holds them in ``data``), ``prompt``, ``response``, and ``result:
{winner, tie, fail, winners?}``. Swap convention: **shown second, named the same**. The swapped prompt shows the second
output first under its own name, Output (b): a winner and an Output (a) always mean ``output_1``, and nothing is mapped
back. Where ``fail`` or ``tie`` is set, ReIFE drew the winner at random: that is no verdict, or a tie. Where it voted
over several answers, the winner is that of the votes it could read (``winners``), whatever ``fail`` says of the others.

The files' own ``winner`` repeats the result; they are not taken for labels, which ReIFE's data files have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.records import Case, Outcome, Response
from distract.data.fields import Item
from distract.judging.parsers import OUTPUT
from distract.judging.published.output_files import OutputFile, check_name, checksum, read_choice, read_output
from distract.judging.published.published_runs import (
    Names,
    OrderJudgments,
    PublishedRun,
    Slot,
    assemble_run,
    build_comparison,
    parse_judgment,
    winner_judgment,
)

FIELDS = {"response", "result"}
_TEXTS = {"instruction", "output_1", "output_2"}
_AUTHORS = ("output_1", "output_2")
_LABELS: Mapping[str, Outcome] = {"a": "a", "b": "b"}
_WINNERS: Mapping[int, Outcome] = {1: "a", 2: "b"}
_SWAP = re.compile(r"_swap(?=\.)")
_NAMED = re.compile(r"Output \([ab]\)")

_Key = tuple[str, str, str, int]
"""The texts of a comparison, and how many with the same texts came before it."""


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    inner = value.get("data")
    return value.keys() >= FIELDS and (value.keys() >= _TEXTS or (isinstance(inner, dict) and inner.keys() >= _TEXTS))


def is_swapped(path: Path) -> bool:
    """Whether a file holds the swapped order, by its name."""
    return _SWAP.search(path.name) is not None


def unswapped_path(path: Path) -> Path:
    """The file's name for the order that is not swapped."""
    return path.with_name(_SWAP.sub("", path.name))


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """The run of a file, or of the two files of both orders."""
    names = _parse_names(paths[0])
    ordered = sorted(paths, key=is_swapped)
    sources = [read_output(path) for path in ordered]
    cases: dict[_Key, Case] = {}
    heard: dict[_Key, list[OrderJudgments]] = {}
    for path, source in zip(ordered, sources, strict=True):
        _add_file(source, "b" if is_swapped(path) else "a", cases, heard)
    found = [build_comparison(names, cases[key], _AUTHORS, orders) for key, orders in heard.items()]
    ties = any(one.stored.preferred == "tie" for orders in heard.values() for one in orders)
    notes = []
    if len(paths) == 2 and (alone := sum(len(orders) == 1 for orders in heard.values())):
        notes.append(f"one order only: {alone} of {len(heard)} pairs are in one of the two files only")
    texts = [one.parsed is not None for orders in heard.values() for one in orders]
    if any(texts) and not all(texts):
        notes.append(f"not parsed: {texts.count(False)} answers are no single text about Output (a) and Output (b)")
    return (assemble_run(names, found, ties=ties, source=ordered[0], sha256=checksum(sources), notes=tuple(notes)),)


def _parse_names(path: Path) -> Names:
    """Judge, way of asking and data set from a file's name, in which model names may hold dots: ``llama-3.1-8b``."""
    data, *rest = _SWAP.sub("", path.name).removesuffix(".jsonl").split(".")
    size = 1 + next((index for index, part in enumerate(rest[1:]) if not part[:1].isdigit()), len(rest))
    if rest[size:]:
        found = (".".join(rest[:size]), ".".join(rest[size:]), data)
    else:
        found = (path.resolve().parent.name or path.stem, "replay", path.name)
    judge, protocol, data = (check_name(part, path, "file name") for part in found)
    return judge, protocol, data


def _add_file(
    source: OutputFile, shown: Slot, cases: dict[_Key, Case], heard: dict[_Key, list[OrderJudgments]]
) -> None:
    """Add what a file says to what is known; a comparison is known by its texts, since files may differ in order."""
    seen = Counter[tuple[str, str, str]]()
    for item in source.items():
        holder = item if "instruction" in item.value else item.object(item.value.get("data"), "data")
        first, second = (holder.text(name, empty=True) for name in _AUTHORS)
        texts = holder.text("instruction"), first, second
        key = (*texts, seen[texts])
        seen[texts] += 1
        if key not in cases:
            responses = (Response("output_1", (first,)), Response("output_2", (second,)))
            cases[key] = Case(f"item-{len(cases) + 1:04d}", texts[:1], responses)
        verdict = winner_judgment(_read_winner(item.object(item.value.get("result"), "result")))
        text = _read_text(item, first, second)
        said = None if text is None else parse_judgment(text, OUTPUT, _LABELS, texts)
        heard.setdefault(key, []).append(OrderJudgments(shown, verdict, said))


def _read_winner(result: Item) -> Outcome | None:
    votes = result.value.get("winners")
    if isinstance(votes, list) and votes:
        one, two = votes.count(1), votes.count(2)
        if one + two < len(votes):
            result.fail("expected a list of 1 and 2", "winners")
        return "tie" if one == two else "a" if one > two else "b"
    winner: Outcome = read_choice(result, "winner", _WINNERS)
    if _read_flag(result, "fail"):
        return None
    return "tie" if _read_flag(result, "tie") else winner


def _read_flag(result: Item, field: str) -> bool:
    value = result.value.get(field, False)
    if value not in (0, 1):
        result.fail("expected true or false", field)
    return bool(value)


def _read_text(item: Item, first: str, second: str) -> str | None:
    """The one answer, where it was to name Output (a) or Output (b) and these are the outputs in that order."""
    said = item.value.get("response")
    if not isinstance(said, list) or len(said) != 1 or not isinstance(said[0], dict):
        return None
    text, asked = said[0].get("text"), item.value.get("prompt") or item.value.get("final_prompt")
    if not isinstance(text, str) or not isinstance(asked, list) or not asked or not isinstance(asked[-1], dict):
        return None
    prompt = asked[-1].get("content")
    if not isinstance(prompt, str) or not {"Output (a)", "Output (b)"} <= set(_NAMED.findall(prompt)):
        return None
    # A prompt that renames what it swaps says so: its Output (a) is the second output.
    renamed = f"Output (a):\n{second}" in prompt and f"Output (a):\n{first}" not in prompt
    return None if renamed else text
