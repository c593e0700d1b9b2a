"""One ``distract attack``: from what the user asked for to a run folder.

It puts the parts together (data, writer, attacks, protocols, judge, store, folder) and says what does not fit
before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract import audit, datasets, metrics, registry, runfolder, scope, writers
from distract.backends import Backend, Batch
from distract.backends.scripted import planted
from distract.plan import Protocol
from distract.records import Case, Request
from distract.report.document import document
from distract.run import Tally, execute
from distract.store import Store

CHARACTERS_PER_TOKEN = 4.2
"""Of English text in current tokenizers; only the plan's estimate rests on it."""


@dataclass(frozen=True)
class Prepared:
    """A run that can start.

    Attributes:
        cases: the drawn cases, in the order of the data.
        parameters: everything that decides what is judged.
        notes: what was left out of the defaults, and why; one line each.
    """

    judge: str
    backend: Backend
    cases: tuple[Case, ...]
    audit: audit.Audit
    parameters: Mapping[str, Any]
    out: Path
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what a run asks for: comparisons, rewrites, requests per protocol, tokens of the prompts."""

    comparisons: int
    rewrites: int
    requests: Mapping[str, int]
    tokens: int


def prepare(
    *,
    judge: str,
    backend: Backend,
    data: str,
    attacks: Sequence[str] = (),
    protocols: Sequence[str] = (),
    measures: Sequence[str] = (),
    generator: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    responses: Sequence[str] = (),
) -> Prepared:
    """Check that what is asked for fits together.

    Args:
        judge: its name, for the record.
        backend: answers for it.
        data: as ``datasets.load`` takes it.
        attacks: names, also of severities and of both joined by ``+``; the default distractors when empty.
        protocols: names; the default protocols when empty.
        measures: names of measures or designs; all that the attacks are for, as far as they fit, when empty.
        generator: name of a writer; None takes recorded rewrites where the data have them, else rules.
        limit: number of cases to draw, None for all.
        seed: of the draw and of the rewrites.
        out: the run folder; None names one by the hash of the parameters.
        responses: files of responses to the prompts of the data, for formats that hold prompts only.

    Raises:
        UsageError: something named does not exist or fits no case.
    """
    asked = _protocols(protocols)
    loaded = datasets.load(data, responses)
    found = scope.scope(attacks, measures, loaded.cases)
    writer = writers.writer(generator or ("recorded" if scope.holds_any(found, loaded.cases) else "rules"))
    if writer.name == "recorded":
        found = scope.on_record(found, attacks, loaded.cases)
    cases, left_out = scope.draw(found, loaded.cases, limit, seed)
    left_out += loaded.left_out
    parameters = {
        "command": "attack",
        "judge": judge,
        "identity": dict(backend.identity),
        "data": {
            "name": loaded.name,
            "format": loaded.format,
            "sha256": loaded.checksum,
            "cases": loaded.size,
        },
        "left_out": dict(sorted(left_out.items())),
        "limit": len(cases),
        "seed": seed,
        "attacks": [attack.name for attack in found.attacks],
        "degradations": [degradation.name for degradation in found.degradations],
        "protocols": {protocol.name: list(protocol.rules) for protocol in asked},
        "designs": sorted(found.designs),
        "generator": writer.name,
        "controls": [attack.name for attack in found.attacks if attack.control],
        "writing": writers.checksum(found.writing),
        "prompts": {prompt.name: prompt.checksum for protocol in asked for prompt in protocol.prompts},
    }
    out = out or runfolder.default_path(parameters)
    runfolder.check(out, parameters)
    return Prepared(
        judge=judge,
        backend=backend,
        cases=cases,
        audit=audit.Audit(judge, asked, found.attacks, writer, found.designs, seed, found.degradations),
        parameters=parameters,
        out=out,
        notes=found.notes,
    )


def estimate(prepared: Prepared, sample: int = 12) -> Estimate:
    """Count about what the run asks for, by stepping the plans of a few cases with a fake judge.

    The fake judge never ties two authors, so that every pair is attacked; a real one asks for a little less, or for a
    little more where its score and its rating name different losers.
    """
    fake = planted("fair")
    part = prepared.cases[:sample]
    scale = len(prepared.cases) / len(part)
    comparisons = rewrites = characters = 0
    requests: dict[str, int] = {}
    with Store(Path(":memory:"), fake.identity, fake.reads_slots) as store:
        for protocol in prepared.audit.protocols:
            # The same requests in two cases are paid for once, but a sample must not assume that.
            alone = replace(prepared.audit, protocols=(protocol,))
            seen: set[str] = set()
            for case in part:
                (done,) = execute([audit.audit(case, alone)], _Noting(fake, seen), store)
                comparisons += sum(bool(row.judgments) for row in done.rows)
                rewrites += len(done.rewrites) if protocol is prepared.audit.protocols[0] else 0
            requests[protocol.name] = round(len(seen) * scale)
            characters += sum(int(key.partition(" ")[2]) for key in seen)
    tokens = round(characters / CHARACTERS_PER_TOKEN * scale)
    return Estimate(round(comparisons * scale), round(rewrites * scale), requests, tokens)


def run(
    prepared: Prepared, store: Store, tally: Tally, progress: Callable[[Tally], None] | None = None
) -> runfolder.Loaded:
    """Judge everything and write the run folder.

    Args:
        prepared: what to run.
        store: of the judge's replies.
        tally: counts what is used.
        progress: called after every batch of replies.

    Returns:
        The finished run, as ``runfolder.load`` would read it back.

    Raises:
        BackendError: the judge failed; the run can be resumed.
        UsageError: the folder belongs to a different run.
    """
    rows, rewrites, begin = [], [], time.time()
    with runfolder.Recorder(prepared.out, prepared.parameters) as recorder:
        plans = (audit.audit(case, prepared.audit) for case in prepared.cases)
        for audited in execute(plans, prepared.backend, store, tally=tally, progress=progress):
            recorder.add(audited.rows, audited.rewrites)
            rows += audited.rows
            rewrites += audited.rewrites
        rules = prepared.parameters["protocols"]
        found = metrics.figures(rows, rewrites, rules, prepared.parameters["attacks"])
        times = {"began": round(begin, 3), "seconds": round(time.time() - begin, 3)}
        numbers = {"replies": {"stored": tally.stored, "made": tally.made}, "times": times}
        text = recorder.finish(document(prepared.parameters, found), numbers)
    return runfolder.Loaded(prepared.out, prepared.parameters, tuple(rows), tuple(rewrites), None, text)


class _Noting:
    """A backend that notes each request it is asked, with its length, and lets another answer."""

    def __init__(self, inner: Backend, seen: set[str]) -> None:
        self.identity, self.reads_slots = inner.identity, inner.reads_slots
        self._inner, self._seen = inner, seen

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in wanted:
            length = sum(len(message.content) for message in requests[index].messages)
            self._seen.add(f"{requests[index].key} {length}")
        return self._inner.reply(requests, wanted)


def _protocols(names: Sequence[str]) -> tuple[Protocol, ...]:
    """What was named, else the defaults; by name, so that the order of the options is no part of a run."""
    known = registry.protocols().values()
    return tuple(map(registry.protocol, sorted(set(names)))) or tuple(p for p in known if p.default)
