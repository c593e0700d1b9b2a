"""Measure distract's overhead with a server, and how busy its connections stay; a loopback server sets the times.

    python benchmarks/server.py [--requests 2000] [--comparisons 200]

The first part compares the raw ``openai`` client with distract's backend on the same requests with the same number in
parallel, in alternating rounds. The second part runs ``prepair`` (two analyses, then both orders) over comparisons of
distinct responses, with heavy-tailed reply times (median 0.1 s, 2% at 3 s) and 16 requests in parallel. It compares the
run with the time of 16 connections that are busy until no request is left, and with the sum of all reply times divided
by 16, a lower bound. No model runs.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import heapq
import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.loop import execute
from distract.core.plugin import Comparison
from distract.core.records import Case, Message, Request, Response
from distract.core.store import Store
from distract.judging.orders import ask_in_orders
from distract.models.server.backend import OpenAI

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

AT_ONCE = 16


def short(content: str) -> float:
    """Return a constant reply time in seconds."""
    return 0.02


def heavy(content: str) -> float:
    """Return a reply time in seconds that depends on the content alone: median 0.1, and 3 for 2% of replies."""
    draws = [int.from_bytes(hashlib.sha256(f"{i} {content}".encode()).digest()[:6], "big") / 2**48 for i in (1, 2, 3)]
    normal = math.sqrt(-2 * math.log(1 - draws[1])) * math.cos(2 * math.pi * draws[2])
    return 3.0 if draws[0] < 0.02 else 0.1 * math.exp(0.3 * normal)


def serve(seconds: Callable[[str], float], port: Any, times: Any) -> None:
    """Run a server in this process; put its port, and at the end the seconds of all replies, in order."""
    from loopback import Answer, FakeServer, ReceivedRequest, completion, token

    given: list[float] = []

    def answer(asked: ReceivedRequest) -> Answer:
        given.append(seconds(asked.content))
        likely = {"A": 0.6, "B": 0.3, "C": 0.1}
        return Answer(completion("A", logprobs=[token("A", likely)]), delay=given[-1])

    with FakeServer(answer) as server:
        port.put(server.port)
        times.get()
        times.put(given)


class Serving:
    """A server in a separate process, so that it takes no time from the client."""

    def __init__(self, seconds: Callable[[str], float]) -> None:
        context = multiprocessing.get_context("spawn")
        self._times = context.Queue()
        port = context.Queue()
        self._process = context.Process(target=serve, args=(seconds, port, self._times))
        self._process.start()
        self.url = f"http://127.0.0.1:{port.get()}/v1"

    def end(self) -> list[float]:
        """Stop the server and return the seconds of all replies."""
        self._times.put(None)
        time.sleep(0.2)
        given: list[float] = self._times.get()
        self._process.join()
        return given


def requests(count: int, name: str) -> list[Request]:
    """Return distinct requests for a verdict."""
    text = "Which answer follows the instruction more precisely? " * 40
    return [
        Request((Message("user", f"{text} {name} {i}"),), choices=("A", "B", "C"), prefill="[[") for i in range(count)
    ]


async def raw(url: str, asked: list[Request]) -> None:
    """Send the requests with the raw client."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(request: Request) -> None:
            async with room:
                await client.chat.completions.create(
                    model="m",
                    messages=[
                        {"role": "user", "content": request.messages[0].content},
                        {"role": "assistant", "content": request.prefill},
                    ],
                    max_tokens=1,
                    temperature=0,
                    logprobs=True,
                    top_logprobs=20,
                    extra_body={"continue_final_message": True, "add_generation_prompt": False},
                )

        await asyncio.gather(*map(one, asked))


def overhead(count: int, rounds: int = 3) -> None:
    """Print the speed of distract relative to the raw client."""
    server = Serving(short)
    seconds: dict[str, float] = {"raw": 1e9, "distract": 1e9}
    for number in range(rounds):
        begin = time.perf_counter()
        asyncio.run(raw(server.url, requests(count, f"raw {number}")))
        seconds["raw"] = min(seconds["raw"], time.perf_counter() - begin)
        asked = requests(count, f"distract {number}")
        begin = time.perf_counter()
        backend = OpenAI("m", base_url=server.url, concurrency=AT_ONCE)
        got = [reply for batch in backend.reply(asked, frozenset(range(count))) for _, reply in batch]
        seconds["distract"] = min(seconds["distract"], time.perf_counter() - begin)
        assert len(got) == count
        assert all(reply.probabilities for reply in got)
    server.end()
    rates = {name: count / value for name, value in seconds.items()}
    print(f"{count} verdicts of 20 ms, {AT_ONCE} in parallel, best of {rounds} rounds:")
    print(f"  raw client {rates['raw']:.0f}/s, distract {rates['distract']:.0f}/s")
    print(f"  ratio {rates['distract'] / rates['raw']:.3f}")


def tail(count: int) -> None:
    """Print how long a protocol of two stages takes with heavy-tailed reply times."""
    server = Serving(heavy)
    cases = [
        Case(f"c{i}", (f"Question {i}",), (Response("x", (f"One {i}",)), Response("y", (f"Two {i}",))))
        for i in range(count)
    ]
    prepair = registry.get_protocol("prepair")
    backend = OpenAI("m", base_url=server.url, concurrency=AT_ONCE)
    with Store(Path(":memory:"), backend.identity) as store:
        begin = time.perf_counter()
        plans = (ask_in_orders(prepair, Comparison(case, *case.responses)) for case in cases)
        judgments = list(execute(plans, {"judge": (backend, store)}))
        taken = time.perf_counter() - begin
    given = server.end()
    assert all(judgment.failure is None for order in judgments for judgment in order)
    busy = [0.0] * AT_ONCE
    for seconds in given:
        heapq.heapreplace(busy, busy[0] + seconds)
    least = sum(given) / AT_ONCE
    print(f"prepair over {count} comparisons, {len(given)} calls, {AT_ONCE} in parallel: {taken:.2f} s")
    print(f"  {taken / max(busy):.3f} x 16 connections that are busy until no request is left ({max(busy):.2f} s)")
    print(f"  {taken / least:.3f} x the sum of times / 16 ({least:.2f} s; busy connections {max(busy) / least:.3f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--comparisons", type=int, default=200)
    arguments = parser.parse_args()
    overhead(arguments.requests)
    tail(arguments.comparisons)


if __name__ == "__main__":
    main()
