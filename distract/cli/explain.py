"""``distract explain``: the smallest parts of rewrites that still flip verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distract.cli.command import command, explicit_options
from distract.cli.inquiry import Inquiry, consult
from distract.cli.shared import echo_json, exit_with, warn
from distract.cli.terminal import terminal
from distract.core.printable import count
from distract.models.options import setting
from distract.models.ranges import COUNT, DATA_TEXT, PATH
from distract.studies.options import JsonOptions, JudgeOptions, ReferenceOptions, one_judge

if TYPE_CHECKING:
    from distract.core.records import Case, Role
    from distract.core.runs import LoadedRun
    from distract.judging.judge import Judge
    from distract.report.blocks import Block
    from distract.studies.attack.flips import Flip
    from distract.studies.explain.run import Explanation


@dataclass(frozen=True, kw_only=True)
class _Options(ReferenceOptions, JudgeOptions, JsonOptions):
    run: Path = setting(MISSING, "run folder", PATH, argument=True, metavar="RUN")
    case: str | None = setting(None, "case of the run", DATA_TEXT, argument=True, metavar="[CASE]")
    judge: str | None = one_judge(None, "judge of the run, if it runs code or is on another machine")
    protocols: tuple[str, ...] = setting(
        (), "only flips by this way of asking, or by a file; repeatable", flag="--protocol"
    )
    attacks: tuple[str, ...] = setting((), "only flips under this attack; repeatable", flag="--attack")
    clearest: int | None = setting(
        None, "the N clearest flips of the run, and the words they share", COUNT, metavar="N"
    )
    data: str | None = setting(None, "data of the run, if they have moved; as for `distract attack`")
    responses: tuple[str, ...] = setting((), "file of responses to add to --data; repeatable")


@command(_Options)
def explain(options: _Options) -> None:
    """Find the fewest words that flip a verdict.

    Takes the flips on a CASE of a RUN, the clearest first; without CASE, that of the clearest flip. Asks the judge of
    the run again, about parts of the rewrite. Stored replies are reused: name --store if the run had its own. The run
    may be a stranger's: name its judge and way of asking again if they run code, or reach other machines.
    """
    from distract.core import registry, runs
    from distract.core.errors import UsageError
    from distract.report.terminal import show
    from distract.studies.explain import rerun, run as explaining, view

    case, clearest = options.case, options.clearest
    if case is not None and clearest is not None:
        raise UsageError("--clearest takes the flips of all cases; omit it, or the CASE")
    loaded = runs.load(options.run)
    warn(loaded)
    protocols = rerun.load_protocols(loaded, options.protocols)
    flips = explaining.choose_flips(loaded, case, protocols, options.attacks, clearest)
    if not any(map(registry.is_own, options.protocols)):
        rerun.load_protocols(loaded, rerun.locate_protocols(loaded, flips))
    explanations: list[Explanation] = []
    cases = {
        case: rerun.reopen_case(loaded, case, options.data, options.responses)
        for case in dict.fromkeys(one.case for one in flips)
    }
    with _open_judge(loaded, flips, options) as judge:
        parts = explaining.explain_flips(loaded, flips, cases, judge)
        if options.as_json:
            explanations += parts
        else:
            show(_show_each(parts, explanations, cases, judge.name))
    smallest = [one.smallest for one in explanations if not isinstance(one.smallest, str)]
    if options.as_json:
        documents = [view.explanation_document(one) for one in explanations]
        first = next(iter(cases.values()))
        about = {"case": first.id, "prompt": list(first.prompt)} if clearest is None else {}
        words = {} if clearest is None else {"words": view.words_document(smallest)}
        echo_json({"judge": loaded.parameters["judge"], **about, "flips": documents, **words})
    elif clearest is not None and smallest:
        show([view.words_table(smallest)])
    if not smallest:
        exit_with("no flip could be explained (see the reasons above)", 3)


def _show_each(
    parts: Iterable[Explanation], explanations: list[Explanation], cases: Mapping[str, Case], judge: str
) -> Iterator[Block]:
    """Show each explanation as it arrives, and collect it."""
    from distract.studies.explain.view import explanation_parts, heading

    shown = None
    for explanation in parts:
        if (case := explanation.flip.case) != shown:
            yield from heading(cases[case], judge)
            shown = case
        explanations.append(explanation)
        yield from explanation_parts(explanation)


@contextmanager
def _open_judge(run: LoadedRun, flips: Sequence[Flip], options: _Options) -> Iterator[Judge]:
    """Open the judge of a run, which must be the same as in the run; with ``--dry-run``, show the plan instead."""
    from distract.core import registry
    from distract.core.store import DEFAULT_PATH
    from distract.models.opener import open_models
    from distract.models.options import Options, narrow
    from distract.studies.explain import rerun
    from distract.studies.explain.run import estimate_most

    # Models that a file sets for all commands may be those of other runs.
    models = {"judge": options.judge, "reference_model": options.reference_model}
    typed = {option: one for option, one in models.items() if one is not None and option in explicit_options()}
    manner = rerun.restore_manner(run)
    name = rerun.choose_model(run, "judge", run.parameters["judge"], typed, options.base_url)
    known = registry.protocols()  # a protocol that the judge brings needs no reference model
    needs_reference = any(flip.protocol in known and known[flip.protocol].reference for flip in flips)
    helper = rerun.reference_model(run) if needs_reference else None
    names: dict[Role, str | None] = {"judge": name, "reference": None}
    if helper:
        names["reference"] = rerun.choose_model(run, "reference_model", helper[0], typed, options.base_url)
    opened = open_models(names, narrow(options, Options))
    terminal().say(opened.notes)
    backend, reference = opened.models["judge"], opened.models.get("reference")
    rerun.check_same(run, name, run.parameters.get("identity"), backend.identity)
    if helper and reference:
        rerun.check_same(run, *helper, reference.identity)
    heading = f"judge {name} · {count(len(flips), 'flip')} to explain"
    about = {"judge": name, "cases": len({flip.case for flip in flips})}
    inquiry = Inquiry(opened.models, opened.prices, heading, about, lambda: estimate_most(run, flips))
    inquiry.preview(options.store or DEFAULT_PATH)
    with consult(name, backend, opened.prices, options, manner, reference) as judge:
        yield judge
