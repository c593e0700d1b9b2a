"""A judge card: what is known about one judge, from the folders of its runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import FinishedRun
from distract.core.printable import count, line
from distract.core.runs import LoadedRun
from distract.report.blocks import Block, Heading, Note, Sentence, Table, TableRow
from distract.report.phrases import FEW, join_names
from distract.studies.origin import describe_judge, describe_versions, list_data_sets, list_methods
from distract.studies.rewrite_counts import sum_reasons

DIGITS = 12
"""Characters of a checksum to show."""


def card_report(finished: Sequence[FinishedRun[Any]], gates: Sequence[Block] = ()) -> Iterator[Block]:
    """Show judge, data, findings and rates of each run, ``gates``, fidelity and limits.

    Raises:
        UsageError: the runs are of different judges.
    """
    runs = [one.run for one in finished]
    judges = dict.fromkeys(str(run.parameters["judge"]) for run in runs)
    identities = {str(run.parameters.get("identity")) for run in runs}
    if len(judges) > 1:
        raise UsageError(f"the runs are of different judges ({', '.join(judges)}): make a card for each")
    if len(identities) > 1:
        raise UsageError(f"the runs are of different versions of {next(iter(judges))}: make a card for each")
    yield Heading(f"Judge card: {line(next(iter(judges)))}")
    judge = describe_judge(runs[0]) | describe_versions(runs[0])
    yield Table("", ("", ""), [("", line(str(name)), line(str(value))) for name, value in judge.items()])
    yield Heading("Data, ways of asking and attacks", level=2)
    rows: list[TableRow] = []
    for number, run in enumerate(runs, 1):
        for data in list_data_sets(run):
            checksum = str(data.get("sha256", ""))[:DIGITS] or "–"
            cells = [
                line(run.command),
                line(str(data["name"])),
                f"{data['drawn']} of {data['cases']}",
                str(run.parameters["seed"]),
                checksum,
            ]
            rows.append(("", str(number), cells))
    yield Table("", ("run", "command", "data", "cases", "seed", "sha256"), rows)
    methods = {name: text for run in runs for name, text in list_methods(run.parameters).items()}
    yield Table("", ("", ""), [("", line(name), line(text)) for name, text in methods.items()])
    for number, one in enumerate(finished, 1):
        yield Heading(f"Run {number}: {line(one.run.command)}", level=2)
        yield Note(one.run.flaw or one.run.origin, apart=False)
        yield from (block for block in one.report if isinstance(block, Sentence | Note | Table))
    if gates:
        yield Heading("Gate", level=2)
        yield from gates
    yield Heading("Fidelity of the rewrites", level=2)
    yield from _describe_fidelity(runs)
    yield Heading("Limits", level=2)
    yield from (Sentence(text, apart=False) for text in _list_limits(runs))


def _describe_fidelity(runs: Sequence[LoadedRun]) -> Iterator[Block]:
    rows: list[TableRow] = []
    for number, run in enumerate(runs, 1):
        rewrites = list(run.rewrites)
        if not rewrites:
            continue
        rejected = sum(not rewrite.is_accepted for rewrite in rewrites)
        listed = ", ".join(f"{line(reason)} {n}" for reason, n in sum_reasons(rewrites).most_common(3)) or "–"
        checked = "rules and a model" if run.parameters.get("verifier") else "rules"
        cells = [str(len(rewrites)), str(rejected), listed, checked, line(str(run.parameters.get("generator", "–")))]
        rows.append(("", str(number), cells))
    if rows:
        yield Table("", ("run", "rewrites", "rejected", "most frequent reasons", "checked by", "written by"), rows)
    else:
        yield Sentence("No run has rewrites.", apart=False)


def _list_limits(runs: Sequence[LoadedRun]) -> Iterator[str]:
    parameters = [run.parameters for run in runs]
    data = dict.fromkeys(str(one["name"]) for run in runs for one in list_data_sets(run))
    yield f"The figures hold for {join_names(map(line, data))} and the ways of asking named above."
    attacks = {name for p in parameters for key in ("attacks", "degradations") for name in p.get(key) or ()}
    untested = [one for one in registry.attacks().values() if one.name not in attacks and not one.control]
    if not attacks:
        yield "No run attacks the judge: nothing here shows how style moves its verdicts."
    elif untested:
        begun = {one.family for one in registry.attacks().values() if one.name in attacks}
        names = {one.name if one.family in begun else f"family:{one.family}" for one in untested}
        yield f"Attacks not tested: {', '.join(map(line, sorted(names)))}."
    for number, run in enumerate(runs, 1):
        p = run.parameters
        if run.flaw or run.gap:
            yield f"Run {number}: {line(run.flaw or run.gap or '')}."
        drawn = sum(one["drawn"] for one in list_data_sets(run))
        if drawn < FEW:
            yield f"Run {number} has {count(drawn, 'case')}: too few to be sure of a rate."
        if p.get("attacks") and not p.get("controls"):
            yield f"Run {number} measured no noise: some of its flips may be chance."
        yield from (f"Run {number}: {line(note)}." for note in p["self_judging"])
    if any(p.get("attacks") and not p.get("verifier") for p in parameters):
        yield "Rewrites were checked by rules alone, which do not understand meaning."
