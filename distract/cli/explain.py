"""``distract explain``: the smallest part of a rewrite that still flips a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.command import command
from distract.cli.dry_run import preview_search
from distract.cli.options import PATH, NameType, asking_options, option
from distract.cli.shared import echo_json, exit_with, print_lines, report_usage, warn
from distract.cli.terminal import terminal

if TYPE_CHECKING:
    from distract.core.records import Role
    from distract.core.runs import LoadedRun
    from distract.judging.judge import Judge
    from distract.report.blocks import Block
    from distract.studies.attack.flips import Flip
    from distract.studies.explain.run import Explanation


@command()
@click.argument("run", type=PATH)
@click.argument("case", type=NameType(), required=False)
@option("--protocol", "protocols", multiple=True, help="Only flips by this way of asking; repeatable.")
@option("--attack", "attacks", multiple=True, help="Only flips under this attack; repeatable.")
@option("--data", help="Data of the run, if they have moved; as for `distract attack`.")
@option("--responses", multiple=True, help="File of responses to add to --data; repeatable.")
@asking_options
def explain(
    run: Path,
    case: str | None,
    protocols: tuple[str, ...],
    attacks: tuple[str, ...],
    data: str | None,
    responses: tuple[str, ...],
    as_json: bool,
    **more: Any,
) -> None:
    """Find the fewest words that flip a verdict.

    Takes the flips on a CASE of a RUN, the clearest first; without CASE, that of the clearest flip. Asks the judge of
    the run again, about parts of the rewrite. Stored replies are reused: name --store if the run had its own.
    """
    from distract.core import runs
    from distract.core.errors import DistractError
    from distract.report.terminal import show
    from distract.studies.explain import rerun, run as explaining
    from distract.studies.explain.view import explanation_document, heading

    loaded = runs.load(run)
    warn(loaded)
    flips = explaining.find_case_flips(loaded, case, protocols, attacks)
    case = flips[0].case
    recorded = explaining.recorded_smallest(loaded, flips)
    explanations: list[Explanation] = []
    with ExitStack() as stack:
        judge = None
        try:
            missing = [flip for flip in flips if flip not in recorded]
            if terminal().is_dry and not missing:
                preview_search(loaded, missing, None, None)
            if missing:
                whole = rerun.reopen_case(loaded, case, data, responses)
                judge = _open_judge(loaded, missing, stack, more)
        except DistractError as error:
            if not recorded:
                raise
            print_lines([f"warning: {error}; only what the run itself recorded is shown"])
            flips = tuple(recorded)
        if judge is None:
            whole = recorded[flips[0]].case
        parts = explaining.explain_flips(loaded, flips, whole, judge)
        if as_json:
            explanations += parts
            shared = {"judge": loaded.parameters["judge"], "case": case, "prompt": list(whole.prompt)}
            echo_json({**shared, "flips": [explanation_document(explanation) for explanation in explanations]})
        else:
            show(chain(heading(case, whole.prompt, loaded.parameters["judge"]), _show_each(parts, explanations)))
    if all(isinstance(explanation.smallest, str) for explanation in explanations):
        exit_with("no flip could be explained (see the reasons above)", 3)


def _show_each(parts: Iterable[Explanation], explanations: list[Explanation]) -> Iterator[Block]:
    """Show each explanation as it arrives, and collect it."""
    from distract.studies.explain.view import explanation_parts

    for explanation in parts:
        explanations.append(explanation)
        yield from explanation_parts(explanation)


def _open_judge(run: LoadedRun, flips: Sequence[Flip], stack: ExitStack, more: dict[str, Any]) -> Judge:
    """Open the judge of a run until the stack ends, which reports its usage."""
    from distract.core import registry
    from distract.judging.judge import Judge
    from distract.models.opener import open_models
    from distract.studies.execution import renew, split_options
    from distract.studies.explain import rerun

    _, loading, rest = split_options(more)
    name, manner = run.parameters["judge"], rerun.restore_manner(run)
    rerun.load_protocols(run)
    known = registry.protocols()  # a protocol that the judge brings needs no reference model
    needs_reference = any(flip.protocol in known and known[flip.protocol].reference for flip in flips)
    helper = rerun.reference_model(run) if needs_reference else None
    names: dict[Role, str | None] = {"judge": name, "reference": helper[0] if helper else None}
    for model in names.values():
        rerun.check_server(run, model, loading.base_url)
    opened = open_models(names, loading)
    terminal().say(opened.notes)
    backend, reference = opened.models["judge"], opened.models.get("reference")
    rerun.check_same(run, name, run.parameters.get("identity"), backend.identity)
    if helper and reference:
        rerun.check_same(run, *helper, reference.identity)
    if terminal().is_dry:
        preview_search(run, flips, opened, rest["store"])
    if rest["fresh"]:
        renew([backend], rest["store"])
    judge = stack.enter_context(Judge(name, backend, store=rest["store"], manner=manner, reference=reference))
    stack.enter_context(report_usage(judge.tally, opened.prices))
    return judge
