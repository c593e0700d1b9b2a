"""Progress on stderr: the plan before a run, then a bar with rate and time left.

On a terminal the bar is Rich's; elsewhere (a log) a line is written now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rich import progress as rich_progress
from rich.console import Console

from distract.core.backend import describe_rendering
from distract.core.job import Estimate, Job
from distract.core.printable import count, line
from distract.core.records import Role
from distract.core.usage import Price, Tally, cost, format_dollars
from distract.judging.orders import Manner
from distract.report.phrases import columns_lines, left_out_lines

SECONDS_BETWEEN_LINES = 15.0
_READINGS = {
    "packed": "packed: shared parts were computed once",
    "cached prefix": "one at a time, reusing the prefix shared with the last one (this model does not support packing)",
    "one by one": "one by one from the start (this model supports neither packing nor prefix reuse)",
}


def preview_lines(job: Job[Any], estimate: Estimate, stored: int) -> Iterator[str]:
    """Describe a job and its estimated effort before it starts."""
    p = job.parameters
    sets = p["data"] if isinstance(p["data"], list) else [{**p["data"], "drawn": p["limit"]}]
    drawn = (
        f"{line(data['name'])}, {count(data['drawn'], 'case')}"
        + (f" of {data['cases']}" if data["drawn"] != data["cases"] else "")
        for data in sets
    )
    judge = f"judge {line(p['judge'])} · " if "judge" in p else ""
    yield f"{judge}data {'; '.join(drawn)} · seed {p['seed']}"
    yield from columns_lines(sets)
    yield from job.heading
    yield from describe_rendering(job.models)
    yield from _manner_lines(Manner(**p.get("manner", {})))
    yield from map(line, p.get("self_judging", ()))
    yield from left_out_lines(p)
    sizes = {"comparison": estimate.comparisons, "rewrite": estimate.rewrites}
    work = " and ".join(count(number, noun) for noun, number in sizes.items() if number)
    plan = [f"about {work}" if work else "nothing to judge"]
    if work and estimate.requests:
        parts = [f"{line(name)} {number:,}" for name, number in estimate.requests.items()]
        parts += [f"{sum(estimate.requests.values()):,} in all"] if len(parts) > 1 else []
        plan.append(f"requests: at most {', '.join(parts)}")
    if estimate.prompt_tokens:
        plan.append(f"about {estimate.prompt_tokens:,} prompt tokens")
    yield f"plan: {'; '.join(plan)}"
    if price := job.prices.get("judge"):
        most = format_dollars(price.of(estimate.prompt_tokens, estimate.answer_tokens))
        yield (
            f"cost of the judge: at most about {most} ({format_dollars(price.prompts)} per million prompt tokens, "
            f"{format_dollars(price.answers)} per million answer tokens)"
        )
    if stored:
        held = count(stored, "reply", "replies")
        yield f"the store holds {held} of this judge; this run reuses those it needs"
    yield from job.remarks


def _manner_lines(manner: Manner) -> Iterator[str]:
    order = {"both": "", "one": "in one order, drawn for each pair"}.get(manner.orders)
    parts = [f"in the {manner.orders} order only" if order is None else order] if order != "" else []
    parts += [f"{manner.samples} passes of each order; the majority decides"] if manner.samples > 1 else []
    parts += [f"answers in words have at most {count(manner.answer_tokens, 'token')}"] if manner.answer_tokens else []
    if manner.judge_temperature is not None:
        parts.append(f"answers in words at temperature {manner.judge_temperature:g}")
    if parts:
        yield f"how: {'; '.join(parts)}"


def usage_lines(tally: Tally, prices: Mapping[Role, Price]) -> Iterator[str]:
    """Report what was used and what is missing."""
    used = f" ({count(tally.tokens_in, 'token')} in, {tally.tokens_out:,} out)" if tally.made or tally.checks else ""
    spent = cost(prices, tally.tokens)
    yield f"replies: {tally.stored} were stored, {tally.made} made{used}" + (
        f", {format_dollars(spent)}" if spent else ""
    )
    for name, check in tally.checks.items():
        largest = check["largest_move"]
        moved = "" if largest is None else f", probabilities moved by up to {largest:.2f}"
        asked = count(check["asked"], "question")
        yield f"{name}: {asked} asked again, {check['differing']} answered differently{moved}"
    for role, reading in sorted(tally.readings.items()):
        yield f"prompts of the {role} were read {_READINGS.get(reading, reading)}"
    if tally.unanswered:
        yield (
            f"warning: {count(tally.unanswered, 'request')} got no answer ({line(tally.cause)}); the same command asks "
            "again"
        )
    if tally.unshared:
        yield (
            f"warning: the store cannot be locked ({line(tally.unshared)}): other commands that use it now "
            "may send the same requests"
        )


class Progress:
    """Shows the progress of a run; a context manager."""

    def __init__(self, total: int, doing: str = "judging") -> None:
        self._total = total
        self._begin = self._printed = time.monotonic()
        self._bar: rich_progress.Progress | None = None
        if sys.stderr.isatty():
            self._bar = rich_progress.Progress(
                rich_progress.TextColumn(doing),
                rich_progress.BarColumn(),
                rich_progress.TextColumn("{task.completed}/{task.total} replies, {task.fields[rate]}"),
                rich_progress.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=total, rate="")

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        if self._bar:
            self._bar.console.print(sentence, markup=False, highlight=False)
        else:
            print(sentence, file=sys.stderr, flush=True)

    def update(self, tally: Tally) -> None:
        """Show the state after a batch of replies."""
        now = time.monotonic()
        rate = f"{tally.made / max(now - self._begin, 1e-3):.1f}/s"
        copies = dict.fromkeys(tally.workers.values())  # one model may have several roles
        rate += "".join(f", {alive} of {count(total, 'worker')}" for alive, total in copies)
        done = tally.stored + tally.made
        # Repeated requests count again: never show more than all.
        total = max(self._total, done)
        if self._bar:
            self._bar.update(self._task, completed=done, total=total, rate=rate)
        elif now - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = now
            left = (now - self._begin) / max(done, 1) * (total - done)
            text = f"{done}/{total} replies, {rate}, about {left:.0f} s left"
            print(text, file=sys.stderr, flush=True)
