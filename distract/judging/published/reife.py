"""ReIFE's results: ``DATA.MODEL.PROTOCOL.jsonl`` and the same with ``_swap``, which together are one run.

A row has ``instruction, output_1, output_2`` (or holds them in ``data``), ``prompt``, ``response``, and ``result:
{winner, tie, fail, winners?}``. Swap convention: **shown second, named the same**. The swapped prompt shows the second
output first under its own name, Output (b): a winner and an Output (a) always mean ``output_1``, and nothing is mapped
back. If ``fail`` or ``tie`` is set, ReIFE drew the winner at random, so we read no verdict or a tie. If it voted over
several answers, the winner is that of the votes it could read (``winners``), regardless of ``fail``.

A ``winner`` at the top of a row repeats the result. It is not a label; those are in ReIFE's data files.
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
from distract.judging.published import published_runs
from distract.judging.published.published_runs import Names, OrderJudgments, OutputFile, PublishedRun, Slot

FIELDS = {"response", "result"}
_TEXTS = {"instruction", "output_1", "output_2"}
_AUTHORS = ("output_1", "output_2")
_LABELS: Mapping[str, Outcome] = {"a": "a", "b": "b"}
_WINNERS: Mapping[int, Outcome] = {1: "a", 2: "b"}
_SWAP = re.compile(r"_swap(?=\.)")
_NAMED = re.compile(r"Output \([ab]\)")
_BOTH = {"Output (a)", "Output (b)"}

_Key = tuple[tuple[str, ...], int]
"""The texts of a comparison, and the number of earlier rows with the same texts."""


def can_read(value: Mapping[str, Any]) -> bool:
    """Whether an object is such a row."""
    inner = value.get("data")
    return value.keys() >= FIELDS and (value.keys() >= _TEXTS or (isinstance(inner, dict) and inner.keys() >= _TEXTS))


def is_swapped(path: Path) -> bool:
    """Whether a file's name marks the swapped order."""
    return _SWAP.search(path.name) is not None


def unswapped_path(path: Path) -> Path:
    """Return the path of the file for the unswapped order."""
    return path.with_name(_SWAP.sub("", path.name))


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the run of a file, or of the two files of both orders."""
    files = [published_runs.read_output(path) for path in sorted(paths, key=is_swapped)]
    cases: dict[_Key, Case] = {}
    pairs: dict[_Key, list[OrderJudgments]] = {}
    for file in files:
        _add_file(file, cases, pairs)
    names = _parse_names(paths[0])
    comparisons = [published_runs.build_comparison(names, cases[key], _AUTHORS, pairs[key]) for key in pairs]
    orders = [order for pair in pairs.values() for order in pair]
    notes = []
    if len(paths) == 2 and (alone := sum(len(pair) == 1 for pair in pairs.values())):
        notes.append(f"one order only: {alone} of {len(pairs)} pairs are in one of the two files only")
    unparsed = sum(order.parsed is None for order in orders)
    if 0 < unparsed < len(orders):
        notes.append(f"not parsed: {unparsed} answers are no single text about Output (a) and Output (b)")
    ties = any(order.stored.preferred == "tie" for order in orders)
    return (published_runs.assemble_run(names, comparisons, files, ties=ties, notes=notes),)


def _parse_names(path: Path) -> Names:
    """Read judge, protocol and data set from a file's name; a judge's name may hold dots: ``llama-3.1-8b``."""
    data, *rest = _SWAP.sub("", path.name).removesuffix(".jsonl").split(".")
    size = 1 + next((index for index, part in enumerate(rest[1:]) if not part[:1].isdigit()), len(rest))
    if rest[size:]:
        names = (".".join(rest[:size]), ".".join(rest[size:]), data)
    else:
        names = (path.resolve().parent.name or path.stem, "replay", path.name)
    return published_runs.check_names(names, path, "file name")


def _add_file(file: OutputFile, cases: dict[_Key, Case], pairs: dict[_Key, list[OrderJudgments]]) -> None:
    """Add a file's rows; the texts identify a comparison, because the two files may differ in order."""
    first: Slot = "b" if is_swapped(file.path) else "a"
    repeats = Counter[tuple[str, ...]]()
    for item in file.items():
        holder = item if "instruction" in item.value else item.object(item.value.get("data"), "data")
        outputs = [holder.text(name, empty=True) for name in _AUTHORS]
        texts = holder.text("instruction"), *outputs
        key = (texts, repeats[texts])
        repeats[texts] += 1
        if key not in cases:
            responses = [Response(author, (output,)) for author, output in zip(_AUTHORS, outputs, strict=True)]
            cases[key] = Case(f"item-{len(cases) + 1:04d}", texts[:1], tuple(responses))
        verdict = published_runs.winner_judgment(_read_winner(item.object(item.value.get("result"), "result")))
        text = _read_text(item, *outputs)
        parsed = None if text is None else published_runs.parse_judgment(text, OUTPUT, _LABELS, cases[key])
        pairs.setdefault(key, []).append(OrderJudgments(first, verdict, parsed))


def _read_winner(result: Item) -> Outcome | None:
    votes = result.value.get("winners")
    if isinstance(votes, list) and votes:
        first, second = votes.count(1), votes.count(2)
        if first + second < len(votes):
            result.fail("expected a list of 1 and 2", "winners")
        return "tie" if first == second else "a" if first > second else "b"
    winner: Outcome = published_runs.read_choice(result, "winner", _WINNERS)
    if _read_flag(result, "fail"):
        return None
    return "tie" if _read_flag(result, "tie") else winner


def _read_flag(result: Item, field: str) -> bool:
    value = result.value.get(field, False)
    if value not in (0, 1):
        result.fail("expected true or false", field)
    return bool(value)


def _read_text(item: Item, first: str, second: str) -> str | None:
    """Read the only answer, if its prompt names Output (a) and Output (b) and keeps these names when it swaps them."""
    match item.value.get("response"), item.value.get("prompt") or item.value.get("final_prompt"):
        case [{"text": str(text)}], [*_, {"content": str(prompt)}] if {*_NAMED.findall(prompt)} == _BOTH:
            pass
        case _:
            return None
    # In a prompt that renames the swapped outputs, Output (a) is the second output.
    renamed = f"Output (a):\n{second}" in prompt and f"Output (a):\n{first}" not in prompt
    return None if renamed else text
