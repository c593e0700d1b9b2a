"""Requests beside a run: announced, planned by ``--dry-run``, followed and counted in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.pages import check_out
from distract.cli.shared import echo, report_usage, safe_line
from distract.cli.terminal import DryRun, PlanView, cost_document, count_stored, stored_lines, terminal
from distract.core.backend import describe_rendering
from distract.core.errors import redirect_output
from distract.core.usage import format_dollars

if TYPE_CHECKING:
    from distract.core.backend import Backend
    from distract.core.job import Estimate
    from distract.core.records import Role
    from distract.core.usage import Price, Tally
    from distract.judging.judge import Judge
    from distract.judging.orders import Manner
    from distract.studies.options import JudgeOptions, StoreOptions


@dataclass(frozen=True)
class Inquiry:
    """What a command asks of models beside a run.

    The price of the first of ``models`` counts, which gets most requests. ``about`` describes the plan in a document,
    ``most`` estimates the most requests, and ``out`` is the file that the command writes.
    """

    models: Mapping[Role, Backend]
    prices: Mapping[Role, Price]
    heading: str
    about: Mapping[str, Any]
    most: Callable[[], Estimate]
    out: Path | None = None

    def preview(self, store: Path) -> None:
        """With ``--dry-run``, show the plan and end the command."""
        shell = terminal()
        if isinstance(shell, DryRun):
            shell.finish([self._view(store)])

    def _view(self, store: Path) -> PlanView:
        estimate, stored = self.most(), count_stored(self.models, store)
        requests = ", ".join(f"{name} {number:,}" for name, number in estimate.requests.items())
        plan = f"plan: at most these requests: {requests or 'none'}; about {estimate.prompt_tokens:,} prompt tokens"
        lines, price = [self.heading, *describe_rendering(self.models), plan], self.prices.get(next(iter(self.models)))
        if price:
            dollars = format_dollars(price.of(estimate.prompt_tokens, estimate.answer_tokens))
            lines.append(f"cost: at most about {dollars}")
        command = click.get_current_context().command_path.partition(" ")[2]
        document = {"command": command, **self.about, **cost_document(estimate, price, stored)}
        return PlanView([*lines, *stored_lines(stored)], document)


@contextmanager
def ask(
    inquiry: Inquiry, options: StoreOptions, doing: str = "judging", size: int | None = None
) -> Iterator[tuple[Path, Tally, Callable[[Tally], None]]]:
    """Announce an inquiry and follow it; yields the reply store, the tally and who takes it.

    ``size`` is the number of its steps, by default that of its requests.
    """
    from distract.core.store import DEFAULT_PATH
    from distract.core.usage import Tally
    from distract.report.progress import Progress
    from distract.studies.drift import is_pinned
    from distract.studies.execution import renew

    store, tally, judge = options.store or DEFAULT_PATH, Tally(), inquiry.models.get("judge")
    inquiry.preview(store)
    if inquiry.out is not None:
        check_out(inquiry.out)
    echo(safe_line(inquiry.heading), err=True)
    if judge and getattr(options, "fresh", False) and is_pinned(judge):  # any other judge is asked anyway
        renew([judge], store)
    total = sum(inquiry.most().requests.values()) if size is None else size
    with redirect_output(), report_usage(tally, inquiry.prices), Progress(total, doing) as progress:
        yield store, tally, progress.update


@contextmanager
def consult(
    name: str,
    backend: Backend,
    prices: Mapping[Role, Price],
    options: JudgeOptions,
    manner: Manner | None = None,
    reference: Backend | None = None,
) -> Iterator[Judge]:
    """Open a judge for questions one by one, and report its usage."""
    from distract.judging.judge import Judge
    from distract.judging.orders import DEFAULT
    from distract.studies.execution import renew

    if options.fresh:
        renew([backend], options.store)
    with (
        Judge(name, backend, store=options.store, manner=manner or DEFAULT, reference=reference) as judge,
        report_usage(judge.tally, prices),
    ):
        yield judge
