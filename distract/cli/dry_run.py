"""``--dry-run`` of commands whose requests depend on the replies: an upper limit on their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from distract.cli.terminal import DryRun, PlanView, cost_document, count_stored, stored_lines, terminal
from distract.core.printable import count
from distract.core.usage import format_dollars

if TYPE_CHECKING:
    from distract.core.job import Estimate
    from distract.core.plan import Plan
    from distract.core.records import Request, Role
    from distract.core.runs import LoadedRun
    from distract.core.usage import Price
    from distract.models.opener import RunModels
    from distract.studies.attack.flips import Flip
    from distract.studies.make.maker import MakeJob


def preview_making(job: MakeJob, opened: RunModels, store: Path, heading: str) -> NoReturn:
    """Show the upper limit of requests for making cases, and end the command."""
    from distract.studies.make.maker import estimate_most

    estimated, stored = estimate_most(job), count_stored(opened.models, store)
    about = {"generator": job.generator, "cases": len(job.plans)}
    preview_most([heading], about, estimated, opened.prices.get("generator"), stored)


def preview_reading(plans: Sequence[Plan[Any]], name: str, opened: RunModels, store: Path) -> NoReturn:
    """Show how many requests a verifier gets for a labelled set, and end the command."""
    from distract.core.job import Estimate
    from distract.core.plan import drive
    from distract.core.records import Reply
    from distract.core.usage import estimate_tokens

    sizes = list[float]()

    def confirm(requests: Sequence[Request]) -> list[Reply]:
        sizes.extend(sum(estimate_tokens(one.content) for one in request.messages) for request in requests)
        return [Reply(probabilities=(1.0, 0.0), mass=1.0)] * len(requests)

    for plan in plans:
        drive(plan, confirm)
    estimated = Estimate(0, 0, {"verifier": len(sizes)}, round(sum(sizes)), len(sizes))
    heading = f"verifier {name} · {count(len(plans), 'rewrite')}"
    about = {"verifier": name, "cases": len(plans)}
    preview_most([heading], about, estimated, opened.prices.get("verifier"), count_stored(opened.models, store))


def preview_search(run: LoadedRun, flips: Sequence[Flip], opened: RunModels, store: Path | None) -> NoReturn:
    """Show the upper limit of requests for a search for the smallest parts of flips, and end the command."""
    from distract.core.store import DEFAULT_PATH
    from distract.studies.explain.run import estimate_most

    estimated, stored = estimate_most(run, flips), count_stored(opened.models, store or DEFAULT_PATH)
    judge = run.parameters["judge"]
    heading = [f"judge {judge} · {count(len(flips), 'flip')} to explain"]
    if held := stored.get("judge"):
        heading.append(f"the store holds {count(held, 'reply', 'replies')} of this judge; this search reuses those")
    about = {"judge": judge, "cases": len({flip.case for flip in flips})}
    preview_most(heading, about, estimated, opened.prices.get("judge"), stored)


def preview_most(
    heading: Sequence[str],
    about: Mapping[str, Any],
    estimated: Estimate,
    price: Price | None,
    stored: Mapping[Role, int],
) -> NoReturn:
    """Show an upper limit of requests, and end the command."""
    requests = ", ".join(f"{name} {number:,}" for name, number in estimated.requests.items())
    lines = [
        *heading,
        f"plan: at most these requests: {requests or 'none'}; about {estimated.prompt_tokens:,} prompt tokens",
    ]
    if price:
        lines.append(
            f"cost: at most about {format_dollars(price.of(estimated.prompt_tokens, estimated.answer_tokens))}"
        )
    shell = terminal()
    assert isinstance(shell, DryRun)
    document = {
        "command": click.get_current_context().command_path.partition(" ")[2],
        **about,
        **cost_document(estimated, price, stored),
    }
    shell.finish([PlanView([*lines, *stored_lines(stored)], document)])
