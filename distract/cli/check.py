"""``distract check``: does a rewrite still say the same, and how well do rules and a verifier know?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.command import command
from distract.cli.options import PATH, json_option, model_options, option, store_option, verifier_option
from distract.cli.shared import print_result, report_usage, warn
from distract.cli.terminal import terminal

if TYPE_CHECKING:
    from distract.studies.check.audit import LabelledCheck


@command()
@click.argument("paths", nargs=-1, type=PATH, metavar="ORIGINAL REWRITE | RUN")
@option("--labelled", type=PATH, help="JSON Lines of rewrites labelled faithful or changed.")
@option("--attack", "name", help="Attack that the rewrite is meant for: also checks its marker.")
@option("--prompt", type=PATH, help="File of the prompt that both texts answer.")
@option("--constraint", "constraints", multiple=True, help='Format to keep, as {"kind": ...}; repeatable.')
@verifier_option
@option(
    "--max-missed-rate", default=0.15, help="Changed rewrites that may be accepted; with --verifier, finds a threshold."
)
@store_option
@model_options
@json_option
def check(
    paths: tuple[Path, ...],
    labelled: Path | None,
    name: str | None,
    prompt: Path | None,
    constraints: tuple[str, ...],
    verifier: str | None,
    max_missed_rate: float,
    as_json: bool,
    **more: Any,
) -> None:
    """Check whether a rewrite still says the same.

    Takes a text and its REWRITE, a RUN with its rewrites, or a labelled set. A labelled set is JSON Lines of
    {prompt, original, rewrite, style, label, kind, constraints?, changed?}: style is an attack, label faithful or
    changed, kind what was changed, and changed the words of the rewrite that say it. With a verifier, both errors are
    shown over its threshold. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.rewriting.writer_choice import name_verifier
    from distract.studies.check import audit, view

    reader = name_verifier(None, verifier)
    if len(paths) not in ((0,) if labelled else (1, 2)):
        raise click.UsageError("check takes two text files, or one run folder, or --labelled FILE")
    if (name or prompt or constraints) and len(paths) != 2:
        raise click.UsageError("--attack, --prompt and --constraint apply only to two text files")
    if reader and not labelled:
        raise click.UsageError("--verifier applies only to --labelled FILE")
    if terminal().is_dry and not reader:
        raise click.UsageError("--dry-run plans what a --verifier is asked; name one")
    if labelled:
        checks = audit.check_labelled(labelled)
        checks = _read_by_model(checks, reader, more) if reader else checks
        document = audit.labelled_document(checks, max_missed_rate)
        parts = list(view.labelled_report(audit.error_rates(checks)))
        if reader:
            parts += view.threshold_report(checks, max_missed_rate)
    elif len(paths) == 1:
        loaded = runs.load(paths[0])
        loaded.check_command("attack")
        warn(loaded)
        rewrites = loaded.rewrites
        document, parts = audit.run_document(rewrites), list(view.run_report(rewrites))
    else:
        pair = audit.check_files(paths[0], paths[1], prompt, name, constraints)
        document, parts = audit.pair_document(pair), list(view.pair_report(pair))
    print_result(as_json, document, parts)


def _read_by_model(checks: list[LabelledCheck], name: str, more: dict[str, Any]) -> list[LabelledCheck]:
    from distract.core import job
    from distract.core.errors import redirect_output
    from distract.core.loop import execute
    from distract.core.store import DEFAULT_PATH
    from distract.core.usage import Tally
    from distract.models.opener import open_models
    from distract.report.progress import Progress
    from distract.rewriting.verifier import Verifier
    from distract.studies.check import audit
    from distract.studies.execution import split_options

    options, loading, rest = split_options(more)
    opened, tally = open_models({"verifier": name}, loading), Tally()
    terminal().say(opened.notes)
    plans = [audit.read_by(Verifier(name, options.verifier_threshold), one) for one in checks]
    place = rest["store"] or DEFAULT_PATH
    if terminal().is_dry:
        from distract.cli.dry_run import preview_reading

        preview_reading(plans, name, opened, place)
    with (
        redirect_output(),
        report_usage(tally, opened.prices),
        job.open_stores(opened.models, place) as models,
        Progress(len(plans), "reading") as progress,
    ):
        return list(execute(plans, models, tally=tally, progress=progress.update))
