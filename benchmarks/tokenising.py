"""Measure the cost of tokenising a prompt, alone and together with distract's own cost per prompt.

    python benchmarks/tokenising.py --items 100

The prompts are those of the first items of LLMBar, judged pairwise in both orders, with each response rated. The
benchmark compares one call of the tokenizer per prompt, one call for all prompts, and the backend with empty caches.
Then a scripted judge that tokenises its requests runs over many more such prompts. The output is microseconds per
prompt; no model runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reading import DATA, requests_of
from targets import HEADER, row

from distract.core import registry
from distract.core.backend import Batch
from distract.core.job import open_stores, run_job
from distract.core.records import Request
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend, make_planted
from distract.models.transformers.backend import embedded_judge
from distract.models.transformers.chat import Chat
from distract.studies.attack import session
from distract.studies.attack.options import AttackOptions
from distract.studies.setup import Setup


class Tokenising:
    """A scripted judge that tokenises its requests, as a judge on a model does."""

    reads_slots = True

    def __init__(self, judge: ScriptedBackend, chat: Chat) -> None:
        self.identity, self._judge, self._chat = judge.identity, judge, chat

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        self._chat.encode_all(requests)
        return self._judge.reply(requests, wanted)


def write_cases(data: Path, items: int, copies: int, path: Path) -> None:
    """Write several copies of LLMBar's items; every line of a copy differs from that line in the others."""
    with path.open("w", encoding="utf-8") as file:
        for copy in range(copies):
            for number, item in enumerate(json.loads(data.read_text(encoding="utf-8"))[:items]):
                texts = [
                    item[key].replace("\n", f" {copy}\n") + f" {copy}" for key in ("input", "output_1", "output_2")
                ]
                responses = [{"author": name, "text": text} for name, text in zip("xy", texts[1:], strict=True)]
                case = {"id": f"{copy}-{number}", "prompt": texts[0], "responses": responses, "preferred": "x"}
                file.write(json.dumps(case) + "\n")


def ran(cases: Path, chat: Chat | None) -> float:
    """Run with or without tokenising; return microseconds per prompt."""
    backend = Tokenising(make_planted("fair"), chat) if chat else make_planted("fair")
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        selected = session.select(AttackOptions(data=str(cases), attacks=("null",), generator="rules", limit=None))
        setup = Setup("planted:fair", backend, registry.choose_protocols(()), out=Path(folder, "run"))
        job = session.prepare(selected, setup)
        with open_stores(job.models, Path(folder, "replies.sqlite")) as models:
            run_job(job, models, tally)
        return (time.perf_counter() - start) / tally.made * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--copies", type=int, default=20, help="changed copies of each item to judge")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    tokenizer, requests = embedded_judge()._chat.tokenizer, requests_of(given.data, given.items)
    encoded = Chat(tokenizer, "embedded").encode_all(requests)
    texts = [tokenizer.decode(list(one.prompt)) for one in encoded]
    assert [tuple(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]] == [
        e.prompt for e in encoded
    ]
    print(f"{len(texts)} prompts, {sum(len(one.prompt) for one in encoded) / len(texts):.0f} tokens each")

    def timed(what: Callable[[], object]) -> float:
        start = time.perf_counter()
        what()
        return (time.perf_counter() - start) / len(texts) * 1e6

    folder = tempfile.TemporaryDirectory()
    cases = Path(folder.name, "cases.jsonl")
    write_cases(given.data, given.items, given.copies, cases)
    seconds: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        chats = [Chat(tokenizer, "embedded") for _ in range(2)]
        for name, value in {
            "one by one": timed(lambda: [tokenizer(text, add_special_tokens=False) for text in texts]),
            "one batch": timed(lambda: tokenizer(texts, add_special_tokens=False)),
            "this backend": timed(lambda chat=chats[0]: chat.encode_all(requests)),  # type: ignore[misc]
            "engine": ran(cases, None),
            "engine with tokenising": ran(cases, chats[1]),
        }.items():
            seconds.setdefault(name, []).append(value)
    for name in ("one by one", "one batch"):
        print(
            f"{name}: {statistics.median(seconds[name]):.0f} us ({min(seconds[name]):.0f} to {max(seconds[name]):.0f})"
        )
    print(HEADER)
    for name, target in {"this backend": 450.0, "engine": 150.0, "engine with tokenising": 600.0}.items():
        print(row(name, seconds[name], target, " us", at_most=True, digits=0))
    folder.cleanup()


if __name__ == "__main__":
    main()
