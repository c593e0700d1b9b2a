"""What is compared with what: from a case to rows.

Three designs (DESIGN, Measures 1 to 3). ``fixed``: the good response against its own rewrite, where a tie is the
truth. ``flip``: two authors' responses; then the one that this protocol dis-preferred is rewritten and both are
judged again. ``severity``: the good response against one that breaks some of its format constraints, as it is or
rewritten. One plan per case covers all protocols and attacks, so that shared prompts and rewrites meet. It knows no
protocol, attack or backend by name, and counts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

from distract.constraints import check
from distract.errors import DistractError, PluginError
from distract.manner import DEFAULT, Manner, judged
from distract.plan import Attack, Comparison, Degradation, Plan, Protocol, gather
from distract.records import BASELINE, MIRROR, ORDINALS, Case, Response, Rewrite, Row, Side
from distract.verdicts import outcome
from distract.writers import Verifier, Writer, rewrite

Design = Literal["fixed", "flip", "severity"]
SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")

Memory = dict[tuple[Response, str], Rewrite | None]
"""What became of each response under each attack, within one case."""


@dataclass(frozen=True)
class Audit:
    """The parameters of a run that say what is judged.

    ``degradations`` are those of the severity design; ``helped`` says whether there is a reference model.
    """

    judge: str
    protocols: tuple[Protocol, ...]
    attacks: tuple[Attack, ...]
    writer: Writer
    designs: frozenset[Design] = frozenset(("fixed", "flip"))
    seed: int = 0
    degradations: tuple[Degradation, ...] = ()
    verifier: Verifier | None = None
    manner: Manner = DEFAULT
    helped: bool = False


@dataclass(frozen=True)
class Audited:
    """What came of one case: its rows and every rewrite that was looked at."""

    rows: list[Row] = field(default_factory=list)
    rewrites: list[Rewrite] = field(default_factory=list)


def good_response(case: Case) -> Response | None:
    """The labelled better response, else the one that meets the constraints, else the only one there is."""
    originals = [r for r in case.originals if r.severity is None]
    labelled = [r for r in originals if r.author == case.preferred]
    if labelled:
        return labelled[0]
    if case.constraints:
        return next((r for r in originals if all(check(c, r.text) for c in case.constraints)), None)
    return originals[0] if len(originals) == 1 else None


def compliant_response(case: Case) -> Response | None:
    """The good response of a case with format constraints, if it meets them all."""
    good = good_response(case)
    return good if good and case.constraints and all(check(c, good.text) for c in case.constraints) else None


def pairs(case: Case) -> list[tuple[Response, Response]]:
    """The pairs whose verdict may flip: originals of different authors.

    A case with severities pairs its unbroken responses with those of severity 1 only; lower ones are far apart
    in quality and belong to another measure.
    """
    whole = [r for r in case.originals if r.severity is None]
    authors = {r.author for r in whole}
    # A worse version of somebody's own response is no second response.
    if broken := [r for r in case.originals if r.severity == 1 and r.author not in authors]:
        return [(r, s) for r in whole for s in broken]
    return [(r, s) for r, s in combinations(whole, 2) if r.author != s.author]


def audit(case: Case, parameters: Audit) -> Plan[Audited]:
    """Judge everything that the parameters ask of one case."""
    memory: Memory = {}
    jobs = [job for protocol in parameters.protocols for job in _jobs(case, protocol, parameters, memory)]
    parts = yield from gather(jobs)
    rows = [row for part in parts for row in part]
    return Audited(rows, in_order(case, memory))


def in_order(case: Case, memory: Memory) -> list[Rewrite]:
    """What was written, in an order that does not depend on how long each took to write."""
    authors = [response.author for response in case.originals]
    return sorted(
        (made for made in memory.values() if made is not None),
        key=lambda made: (
            authors.index(made.response.author),
            made.response.severity or 0,
            made.response.attack or "",
        ),
    )


def _jobs(case: Case, protocol: Protocol, p: Audit, memory: Memory) -> list[Plan[list[Row]]]:
    jobs: list[Plan[list[Row]]] = []
    if "fixed" in p.designs:
        jobs += [_fixed(case, protocol, attack, p, memory) for attack in p.attacks]
    if "flip" in p.designs:
        found = pairs(case)
        jobs += [_flip(case, protocol, pair, p, memory) for pair in found]
        if not found:
            jobs.append(_no_pair(case, protocol, p))
    if "severity" in p.designs:
        jobs += [_severity(case, protocol, degradation, p, memory) for degradation in p.degradations]
    return jobs


def _no_pair(case: Case, protocol: Protocol, p: Audit) -> Plan[list[Row]]:
    yield from ()
    side = _side(case.originals[0])
    row = Row(case.id, case.cluster, "flip", protocol.name, p.judge, BASELINE, side, side)
    return [replace(row, excluded="no two responses by different authors")]


def _fixed(case: Case, protocol: Protocol, attack: Attack, p: Audit, memory: Memory) -> Plan[list[Row]]:
    """A good response against its rewrite."""
    good = good_response(case)
    side = _side(good or case.originals[0])
    row = Row(case.id, case.cluster, "fixed", protocol.name, p.judge, attack.name, side, side, "b")
    if good is None:
        return [replace(row, excluded="no response is labelled better or known to meet the constraints")]
    made = yield from rewritten(case, good, attack, p, memory)
    if isinstance(made, str):
        return [replace(row, excluded=made)]
    return [(yield from _judged(replace(row, b=_side(made)), protocol, Comparison(case, good, made), p))]


def _severity(case: Case, protocol: Protocol, d: Degradation, p: Audit, memory: Memory) -> Plan[list[Row]]:
    """A good response against a worse one; the distractor goes into the worse one only."""
    good = compliant_response(case)
    side = _side(good or case.originals[0])
    attack = d.distractor.name if d.distractor else BASELINE
    worse = Side(side.author, attack if d.distractor else None, d.severity)
    row = Row(case.id, case.cluster, "severity", protocol.name, p.judge, attack, side, worse, "b")
    if good is None:
        return [replace(row, excluded="no good response is known to meet all the constraints")]
    if len(case.constraints) < d.severity:
        return [replace(row, excluded=f"fewer than {d.severity} constraints to break")]
    made = yield from rewritten(case, good, d.lower, p, memory)
    if d.distractor and not isinstance(made, str):
        made = yield from rewritten(case, made, d.distractor, p, memory)
    if isinstance(made, str):
        return [replace(row, excluded=made)]
    return [(yield from _judged(replace(row, b=_side(made)), protocol, Comparison(case, good, made), p))]


def _flip(case: Case, protocol: Protocol, pair: tuple[Response, Response], p: Audit, memory: Memory) -> Plan[list[Row]]:
    """Baseline, then each attack on the response that lost it (under any of the protocol's rules)."""
    a, b = pair
    row = Row(case.id, case.cluster, "flip", protocol.name, p.judge, BASELINE, _side(a), _side(b))
    before = yield from _judged(row, protocol, Comparison(case, a, b), p)
    outcomes = {outcome(before.judgments, rule) for rule in protocol.rules or (None,)}
    after = yield from gather(
        [
            _attacked(case, protocol, pair, target, attack, p, memory)
            for target in SIDES
            if MIRROR[target] in outcomes
            for attack in p.attacks
        ]
    )
    return [before, *after]


def _attacked(
    case: Case,
    protocol: Protocol,
    pair: tuple[Response, Response],
    target: Literal["a", "b"],
    attack: Attack,
    p: Audit,
    memory: Memory,
) -> Plan[Row]:
    a, b = pair
    row = Row(case.id, case.cluster, "flip", protocol.name, p.judge, attack.name, _side(a), _side(b), target)
    made = yield from rewritten(case, a if target == "a" else b, attack, p, memory)
    if isinstance(made, str):
        return replace(row, excluded=made)
    a, b = (made, b) if target == "a" else (a, made)
    return (yield from _judged(replace(row, a=_side(a), b=_side(b)), protocol, Comparison(case, a, b), p))


def rewritten(case: Case, original: Response, attack: Attack, p: Audit, memory: Memory) -> Plan[Response | str]:
    """An accepted rewrite, or why there is none; each is made once per case."""
    key = (original, attack.name)
    if key not in memory:
        memory[key] = yield from rewrite(p.writer, case, original, attack, p.seed, p.verifier)
    made = memory[key]
    if made is None:
        return f"no {p.writer.name} " + (f"response of severity {attack.severity}" if attack.severity else "rewrite")
    return made.response if made.accepted else "rewrite rejected"


def unfit(protocol: Protocol, case: Case, helped: bool, only_pairs: bool = False) -> str | None:
    """Why a case cannot be judged by a protocol; ``helped`` by a reference model, ``only_pairs`` without a rewrite."""
    if protocol.reference == "required" and not (helped or case.reference):
        return "no reference in the data"
    # A rewrite stands beside its original: one response less is needed then.
    if len(case.originals) + (not only_pairs) < (protocol.shows or 2):
        return _too_few(protocol)
    return None


def _too_few(protocol: Protocol) -> str:
    return f"fewer than {protocol.shows} responses"


def _judged(row: Row, protocol: Protocol, comparison: Comparison, p: Audit) -> Plan[Row]:
    if why := unfit(protocol, comparison.case, p.helped):
        return replace(row, excluded=why)
    if protocol.shows != 2:
        comparison = replace(comparison, others=others(comparison, protocol.shows))
        if len(comparison.shown) < (protocol.shows or 2):
            return replace(row, excluded=_too_few(protocol))
    plan, used = judged(protocol, comparison, p.manner), dict[str, tuple[int, int]]()
    try:
        requests = next(plan)
        while True:
            # As a plain list, which is answered as a whole: the keys are then the same however replies come.
            replies = yield list(requests)
            found = zip(requests, replies, strict=True)
            used.update((request.key, (reply.tokens_in, reply.tokens_out)) for request, reply in found)
            requests = plan.send(replies)
    except StopIteration as done:
        return replace(row, judgments=done.value, keys=tuple(used), tokens=tuple(used.values()))
    except (DistractError, GeneratorExit):
        raise
    except Exception as error:  # somebody else's code: it may raise anything
        where = f"protocol {protocol.name!r} failed on case {row.case!r}"
        raise PluginError(f"{where}: {type(error).__name__}: {error}") from error


def others(comparison: Comparison, shows: int | None) -> tuple[Response, ...]:
    """The case's other original responses, in its order, up to as many as are shown together."""
    pair = {(one.author, one.severity) for one in (comparison.first, comparison.second)}
    more = [one for one in comparison.case.originals if (one.author, one.severity) not in pair]
    return tuple(more[: (shows or len(ORDINALS)) - 2])


def _side(response: Response) -> Side:
    return Side(response.author, response.attack, response.severity)
