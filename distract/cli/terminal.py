"""Report a run: on the terminal while it runs or, with ``--dry-run``, as a plan instead."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from distract.cli.command import ARGUMENTS
from distract.cli.shared import CommandExit, echo, echo_json, print_lines, report_usage, safe_line
from distract.core.errors import redirect_output
from distract.core.printable import count, hide_credentials
from distract.studies.listener import Listener

if TYPE_CHECKING:
    from distract.core.backend import Backend
    from distract.core.job import Estimate, Follower, Job
    from distract.core.records import Role
    from distract.core.usage import Price, Tally

CLOSING = "dry run: nothing was asked, and nothing was written"
_TERMINAL = "distract.terminal"
"""Key under which a context keeps its terminal."""


class Terminal(Listener):
    """Shows messages, plan, progress and usage of a run on stderr."""

    is_dry = False

    @property
    def command(self) -> str:  # type: ignore[override]  # fixed elsewhere
        """The command line as typed."""
        context = click.get_current_context()
        arguments = (context.info_name or "", *context.meta.get(ARGUMENTS, ()))
        return hide_credentials(shlex.join(("distract", *arguments)))

    def say(self, lines: Iterable[str]) -> None:
        """Print lines for the user."""
        print_lines(lines)

    @contextmanager
    def count(self, tally: Tally, prices: Mapping[Role, Price]) -> Iterator[None]:
        """Report usage in the end; nothing that code of the user's own prints gets into a document."""
        with redirect_output(), report_usage(tally, prices):
            yield

    @contextmanager
    def follow(self, job: Job[Any], stored: int, doing: str) -> Iterator[Follower]:
        """Show the plan, then progress."""
        from distract.report.progress import Progress, preview_lines
        from distract.studies.estimate import estimate

        estimated = estimate(job)
        print_lines(preview_lines(job, estimated, stored))
        with Progress(sum(estimated.requests.values()), doing) as progress:
            yield progress

    def preview_gate(self, parameters: Mapping[str, Any]) -> Iterable[str]:
        """Describe the gate."""
        from distract.studies.gate.view import gate_lines

        return gate_lines(parameters)


@dataclass(frozen=True)
class PlanView:
    """One run that a command would make: for people and for machines."""

    lines: Sequence[str]
    document: Mapping[str, Any]


class DryRun(Terminal):
    """Shows the plan of each run where it would begin, and ends the command."""

    is_dry = True

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def say(self, lines: Iterable[str]) -> None:
        """Keep lines for the plan."""
        self.notes.extend(lines)

    def preview(self, jobs: Sequence[Job[Any]], store: Path, is_fresh: bool) -> None:
        """Show the plans."""
        with redirect_output():
            plans = [_view_job(job, store, is_fresh) for job in jobs]
        self.finish(plans)

    def finish(self, plans: Sequence[PlanView]) -> NoReturn:
        """Print plans and end the command."""
        if self._as_json:
            echo_json({"plans": [plan.document for plan in plans], "notes": self.notes})
        else:
            for line in (*self.notes, *(line for plan in plans for line in plan.lines), CLOSING):
                echo(safe_line(line))
        raise CommandExit(0)


def _view_job(job: Job[Any], store: Path, is_fresh: bool) -> PlanView:
    from distract.report.progress import preview_lines
    from distract.studies.estimate import estimate
    from distract.studies.execution import is_finished

    estimated, stored = estimate(job), {} if is_fresh else count_stored(job.models, store)
    is_complete = not is_fresh and is_finished(job, store)
    lines = [*preview_lines(job, estimated, stored.get("judge", 0)), *stored_lines({**stored, "judge": 0})]
    if is_complete:
        lines.append(f"this run is complete in {job.out}: no call is needed")
    return PlanView(
        lines,
        {
            "command": job.study.name,
            "judge": job.parameters.get("judge"),
            "cases": len(job.cases),
            "complete": is_complete,
            "out": str(job.out),
            **cost_document(estimated, job.prices.get("judge"), stored),
        },
    )


def cost_document(estimated: Estimate, price: Price | None, stored: Mapping[Role, int]) -> dict[str, Any]:
    """Describe an estimate and its cost as JSON values."""
    dollars = None if price is None else round(price.of(estimated.prompt_tokens, estimated.answer_tokens), 6)
    return {**estimated.document, "most_dollars": dollars, "stored": dict(stored)}


def count_stored(models: Mapping[Role, Backend], store: Path) -> dict[Role, int]:
    """Count the stored replies of each model; creates no store."""
    from distract.core.store import Store

    counts: dict[Role, int] = {}
    for role, model in models.items() if store.exists() else ():
        with Store(store, model.identity, model.reads_slots) as replies:
            counts[role] = len(replies)
    return counts


def stored_lines(stored: Mapping[Role, int]) -> list[str]:
    """Say how many replies of each model are stored."""
    return [
        f"the store holds {count(number, 'reply', 'replies')} of the {role}"
        for role, number in stored.items()
        if number
    ]


def terminal() -> Terminal:
    """Return the terminal of the command: with ``--dry-run``, one that ends it before anything is asked."""
    context = click.get_current_context()
    if context.params.get("dry_run") and _TERMINAL not in context.meta:
        context.meta[_TERMINAL] = DryRun(context.params["as_json"])
    listener: Terminal = context.meta.setdefault(_TERMINAL, Terminal())
    return listener
