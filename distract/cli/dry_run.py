"""``--dry-run``: what a command would ask and what it would cost, in place of doing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from distract.cli.run import Terminal, terminal
from distract.cli.shared import CommandExit, echo, echo_json, safe_line
from distract.core.price import format_dollars
from distract.core.printable import count

if TYPE_CHECKING:
    from distract.core.backend import Backend
    from distract.core.job import Estimate, Job
    from distract.core.price import Price
    from distract.core.records import Role
    from distract.core.runs import LoadedRun
    from distract.models.opener import RunModels
    from distract.studies.attack.flips import Flip
    from distract.studies.make.maker import MakeJob

CLOSING = "dry run: nothing was asked, and nothing was written"


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
        self.finish([_view_job(job, store, is_fresh) for job in jobs])

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
    lines = [*preview_lines(job, estimated, stored.get("judge", 0)), *stored_lines(stored)]
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
    dollars = None if price is None else round(price.of(estimated.tokens, estimated.answers), 6)
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
    """Say how many replies of models other than the judge are stored."""
    return [
        f"the store holds {count(number, 'reply', 'replies')} of the {role}"
        for role, number in stored.items()
        if role != "judge" and number
    ]


def preview_making(job: MakeJob, opened: RunModels, store: Path, heading: str) -> NoReturn:
    """Show what making cases would ask at most, and end the command."""
    from distract.studies.make.maker import estimate_most

    estimated, stored = estimate_most(job), count_stored(opened.models, store)
    about = {"command": "make", "generator": job.generator, "cases": len(job.plans)}
    _preview_most([heading], about, estimated, opened.prices.get("generator"), stored)


def preview_search(run: LoadedRun, flips: Sequence[Flip], opened: RunModels, store: Path) -> NoReturn:
    """Show what the search for the smallest part of flips would ask at most, and end the command."""
    from distract.studies.explain.run import estimate_most

    estimated, stored = estimate_most(run, flips), count_stored(opened.models, store)
    judge, case = run.parameters["judge"], flips[0].case if flips else ""
    heading = [f"judge {judge} · case {case} · {count(len(flips), 'flip')} to explain"]
    if held := stored.get("judge"):
        heading.append(f"the store holds {count(held, 'reply', 'replies')} of this judge; this search reuses those")
    about = {"command": "explain", "judge": judge, "cases": 1}
    _preview_most(heading, about, estimated, opened.prices.get("judge"), stored)


def _preview_most(
    heading: Sequence[str],
    about: Mapping[str, Any],
    estimated: Estimate,
    price: Price | None,
    stored: Mapping[Role, int],
) -> NoReturn:
    requests = ", ".join(f"{name} {number:,}" for name, number in estimated.requests.items())
    lines = [*heading, f"plan: at most; requests: {requests or 'none'}; {estimated.tokens:,} prompt tokens"]
    if price:
        lines.append(f"cost: at most about {format_dollars(price.of(estimated.tokens, estimated.answers))}")
    shell = terminal()
    assert isinstance(shell, DryRun)
    document = {**about, **cost_document(estimated, price, stored)}
    shell.finish([PlanView([*lines, *stored_lines(stored)], document)])
