"""``distract check``: does a rewrite still say the same, and how well do rules and a verifier know?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distract.cli.command import command
from distract.cli.inquiry import Inquiry, ask
from distract.cli.shared import print_result, warn
from distract.cli.terminal import terminal
from distract.core.printable import count
from distract.models.options import ModelOptions, Options, narrow, setting
from distract.models.ranges import DATA_TEXT, PATH, SHARE, Several
from distract.rewriting.generator_options import VerifierOptions
from distract.studies.options import JsonOptions, StoreOptions

if TYPE_CHECKING:
    from distract.studies.check.audit import CheckedRewrite


@dataclass(frozen=True, kw_only=True)
class _Options(VerifierOptions, StoreOptions, ModelOptions, JsonOptions):
    paths: tuple[Path, ...] = setting(
        (), "texts or run", Several(PATH), argument=True, metavar="ORIGINAL REWRITE | RUN"
    )
    labelled: Path | None = setting(None, "JSON Lines of rewrites labelled faithful or changed", PATH)
    attack: str | None = setting(None, "attack that the rewrite is meant for: also checks its marker")
    prompt: Path | None = setting(None, "file of the prompt that both texts answer", PATH)
    constraints: tuple[str, ...] = setting(
        (), 'format to keep, as {"kind": ...}; repeatable', DATA_TEXT, flag="--constraint"
    )
    max_missed_rate: float = setting(
        0.15, "changed rewrites that may be accepted; with --verifier, finds a threshold", SHARE
    )


@command(_Options)
def check(options: _Options) -> None:
    """Check whether a rewrite still says the same.

    Takes a text and its REWRITE, a RUN with its rewrites, or a labelled set. A labelled set is JSON Lines of
    {prompt, original, rewrite, style, label, kind, constraints?, changed?}: style is an attack, label faithful or
    changed, kind what was changed, and changed the words of the rewrite that say it. A verifier reads what the rules
    let pass; on a labelled set, both errors are shown over its threshold. Ends with 0 whatever it finds.
    """
    from distract.core import runs
    from distract.rewriting.writer_choice import name_verifier
    from distract.studies.check import audit, view

    paths, labelled = options.paths, options.labelled
    reader = name_verifier(None, options.verifier)
    if len(paths) not in ((0,) if labelled else (1, 2)):
        raise click.UsageError("check takes two text files, or one run folder, or --labelled FILE")
    if (options.attack or options.prompt or options.constraints) and len(paths) != 2:
        raise click.UsageError("--attack, --prompt and --constraint apply only to two text files")
    if terminal().is_dry and not reader:
        raise click.UsageError("--dry-run plans what a --verifier is asked; name one")
    if len(paths) == 1:
        if reader:
            raise click.UsageError("--verifier reads two texts or a labelled set; a run has its own")
        loaded = runs.load(paths[0])
        loaded.check_command("attack")
        warn(loaded)
        print_result(options.as_json, audit.run_document(loaded.rewrites), list(view.run_report(loaded.rewrites)))
        return
    if labelled:
        checks = audit.check_labelled(labelled)
    else:
        checks = [audit.check_files(paths[0], paths[1], options.prompt, options.attack, options.constraints)]
    checks = _read_by_model(checks, reader, options) if reader else checks
    if labelled:
        document = audit.labelled_document(checks, options.max_missed_rate)
        parts = list(view.labelled_report(audit.error_rates(checks)))
        parts += view.threshold_report(checks, options.max_missed_rate) if reader else ()
    else:
        document, parts = audit.pair_document(checks[0]), list(view.pair_report(checks[0]))
    print_result(options.as_json, document, parts)


def _read_by_model(checks: list[CheckedRewrite], name: str, options: _Options) -> list[CheckedRewrite]:
    from distract.core.job import open_stores
    from distract.core.loop import execute
    from distract.core.records import Reply
    from distract.models.opener import open_models
    from distract.rewriting.verifier import Verifier
    from distract.studies.check import audit
    from distract.studies.estimate import estimate_plans

    opened, size = open_models({"verifier": name}, narrow(options, Options)), len(checks)
    terminal().say(opened.notes)
    plans = [audit.read_by(Verifier(name, options.verifier_threshold), one) for one in checks]
    heading, about = f"verifier {name} · {count(size, 'rewrite')}", {"verifier": name, "cases": size}
    confirm = Reply(probabilities=(1.0, 0.0), mass=1.0)
    inquiry = Inquiry(opened.models, opened.prices, heading, about, lambda: estimate_plans(plans, "verifier", confirm))
    with (
        ask(inquiry, options, "reading", size) as (store, tally, progress),
        open_stores(opened.models, store) as models,
    ):
        return list(execute(plans, models, tally=tally, progress=progress))
