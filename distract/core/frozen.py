"""Frozen verdicts: whether the judge that answers now is the one that gave them.

They come from a file (anchors), the store (the canary of a gate), the first of several servers, or another run. A
server does not say which weights answer, and one that batches does not repeat a text letter by letter, nor a
probability digit by digit. So only verdicts count, and moves of probabilities too large for noise.

The servers of a model are compared before they share its requests, and once more at the end of a run: each answers the
probes, and then the same few requests, the first that a run sends. These replies are not stored.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, Literal, TypeVar

from distract.core.backend import Backend, PooledBackend, ProbingBackend
from distract.core.errors import BackendError, JudgeChanged, UsageError
from distract.core.printable import count, line
from distract.core.records import NO_REPLY, Reply, Request, Role
from distract.core.store import Answerer
from distract.core.usage import Tally

Q = TypeVar("Q")
T = TypeVar("T")

ASKED, CHECKS = 8, 2  # requests to ask each server, and how often in a run
DIFFERING = 2  # this many changes are no noise
MOVE = 0.1  # a verdict changes if it differs, or if a probability moves by more than this
# Share of differing verdicts from which the answers are another judge's: as likely if it changed a tenth of them as if
# it differs in two fifths.
REPLACED = 0.22
FALSE_ALARM = 0.01  # largest chance that the flickering of an unchanged judge counts as a drift

Status = Literal["unchanged", "drifted", "replaced"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A verdict as read, and the shares behind it: probabilities, or scores as places on their scale (0 to 1)."""

    outcome: object
    shares: tuple[float, ...] | None = None

    @property
    def lead(self) -> float | None:
        """The lead of the largest share over the next; None without shares."""
        largest = sorted(self.shares or (), reverse=True)[:2]
        return largest[0] - largest[1] if largest else None

    @property
    def document(self) -> dict[str, Any]:
        return {"verdict": self.outcome, "shares": self.shares and [round(share, 4) for share in self.shares]}


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How a judge answered the same requests twice, when its verdicts were frozen; all 0 if its weights are known."""

    asked: int = 0  # comparisons asked twice
    flickering: int = 0  # those with two different verdicts, which are not frozen
    largest_move: float | None = None  # largest move of a share among the others

    def __post_init__(self) -> None:
        if not 0 <= self.flickering <= self.asked <= 10**6 or not 0 <= (self.largest_move or 0) <= 1:
            raise ValueError("its steadiness is no count of verdicts")


Asker = Callable[[Sequence[Q]], Sequence[Reading]]
Frozen = tuple[Q, Reading]  # a question, and the verdict that a judge gave on it


@dataclass(frozen=True, slots=True)
class Change(Generic[Q]):
    """A verdict then and now."""

    question: Q
    before: Reading
    now: Reading

    @property
    def is_turned(self) -> bool:
        return self.before.outcome != self.now.outcome

    @property
    def move(self) -> float | None:
        """The largest distance between shares; None if a verdict has none, or others."""
        before, now = self.before.shares, self.now.shares
        if not before or not now or len(before) != len(now):
            return None
        return max(abs(one - two) for one, two in zip(before, now, strict=True))

    @property
    def document(self) -> dict[str, Any]:
        return {"before": self.before.document, "now": self.now.document}


@dataclass(frozen=True, slots=True)
class Recheck(Generic[Q]):
    """What became of the judge of frozen verdicts."""

    status: Status
    asked: int  # repeats included
    answers: tuple[Change[Q], ...]  # every verdict, as first asked for
    changes: tuple[Change[Q], ...]  # those that are no noise

    @property
    def turned(self) -> list[Change[Q]]:
        return [change for change in self.changes if change.is_turned]

    @property
    def document(self) -> dict[str, Any]:
        """The check as a run records it."""
        counts = {"asked": self.asked, "differing": len(self.turned), "moved": len(self.changes) - len(self.turned)}
        return {"status": self.status, **counts, "largest_move": find_largest_move(self.answers)}

    def describe(self, share: str = "") -> str:
        """State the result; ``share`` follows the number of differing verdicts."""
        total, moves = len(self.answers), [change.move or 0.0 for change in self.changes if not change.is_turned]
        if not self.changes:
            return f"{self.status}: all {total} verdicts are as frozen"
        away = f"probabilities up to {max(moves, default=0):.2f} away"
        kept = f"; {count(len(moves), 'other')} kept the verdict with {away}" if moves else ""
        return f"{self.status}: {len(self.turned)} of {count(total, 'verdict')} differ{share}{kept}"


def find_largest_move(changes: Sequence[Change[Any]]) -> float | None:
    """The largest move of any share; None if no verdict has shares."""
    moves = [change.move for change in changes if change.move is not None]
    return round(max(moves), 4) if moves else None


def compare(
    frozen: Sequence[Frozen[Q]], ask: Asker[Q], steadiness: Steadiness | None = None, repeats: int = 0
) -> Recheck[Q]:
    """Ask for frozen verdicts again, and ``repeats`` times more for those that change each time.

    Without ``steadiness``, the judge's noise is unknown.
    """
    noise = MOVE + ((steadiness and steadiness.largest_move) or 0.0)

    def is_changed(change: Change[Q]) -> bool:
        return change.is_turned or (change.move or 0.0) > noise

    answers = [Change(*one, now) for one, now in zip(frozen, ask([question for question, _ in frozen]), strict=True)]
    changes, asked = list(filter(is_changed, answers)), len(answers)
    for _ in range(repeats):
        asked += len(changes)
        again = ask([change.question for change in changes]) if changes else ()
        changes = [one for one, now in zip(changes, again, strict=True) if is_changed(replace(one, now=now))]
    status: Status = "unchanged"
    # Where nothing was asked twice, a move too large for noise tells by itself.
    has_moved = steadiness is None and any((change.move or 0.0) > noise for change in changes)
    needed = 1 if has_moved else count_needed(len(frozen), steadiness)
    if len(changes) >= needed:
        is_other = sum(change.is_turned for change in changes) >= count_replaced(len(frozen), needed)
        status = "replaced" if is_other else "drifted"
    return Recheck(status, asked, tuple(answers), tuple(changes))


def count_needed(total: int, steadiness: Steadiness | None = None) -> int:
    """The number of changes, among ``total`` verdicts, from which a judge has drifted.

    No change of a judge whose weights are known is noise. Else, a prompt whose verdict flickers with chance q is seen
    to do so with chance 2q(1 - q) when it is asked twice, and passes as changed three times with q²(1 - q)², which is
    at most an eighth of that.
    """
    if steadiness is None:
        return DIFFERING
    if not steadiness.asked:
        return 1
    steady = steadiness.asked - steadiness.flickering
    mean = steadiness.flickering / 8 * total / steady if steady else 0.0
    needed, below, term = 0, 0.0, math.exp(-mean)  # of Poisson's distribution
    while needed < DIFFERING or (1 - below > FALSE_ALARM and needed <= total):
        needed, below, term = needed + 1, below + term, term * mean / (needed + 1)
    return needed


def count_replaced(total: int, needed: int) -> int:
    """The number of differing verdicts from which the answers are another judge's."""
    return max(math.ceil(REPLACED * total), needed)


def list_served_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say what a server reported about its judge, where none of it is what it reported before."""
    for name, title in (("reported", "the server named the model"), ("fingerprints", "it named its configuration")):
        named = [one.get("judge") if isinstance(one := side.get(name), Mapping) else None for side in (before, now)]
        then, today = (sorted(line(str(x)) for x in one) if isinstance(one, list | tuple) else [] for one in named)
        if then and today and not {*then} & {*today}:
            yield f"{title} {', '.join(then)}, then {', '.join(today)}"


def probe_members(backend: PooledBackend, role: Role, tally: Tally) -> None:
    """Let every server answer the probes; raises if they take requests in different forms.

    Verdicts that are read in different ways would mix, and an address without the model would show only as failures.
    """

    def probe(member: Backend) -> Mapping[str, Any]:
        manner: Mapping[str, Any] = {}
        if isinstance(member, ProbingBackend):
            for one in member.probes:
                manner = member.learn(*ask_member(member, [replace(one, to=role)], tally))
        return manner

    (first, reference), *others = poll_members(backend, probe).items()
    for name, manner in others:
        pairs = [(key, json.dumps(manner[key]), json.dumps(usual)) for key, usual in reference.items()]
        if forms := ", ".join(f"{key} {own} instead of {usual}" for key, own, usual in pairs if own != usual):
            raise UsageError(
                f"the servers disagree: {name} takes requests in another form than {first} ({forms}); name servers "
                "that run the same model on the same engine"
            )


def check_members(backend: PooledBackend, role: Role, requests: Sequence[Request], tally: Tally) -> bool:
    """Ask every server the same, once in a run; raises if they disagree.

    Returns whether that is done, or waits for requests whose replies can be compared.
    """
    comparable = [one for one in requests if one.choices and not one.temperature][:ASKED]
    if comparable and role not in tally.frozen:
        verdicts = ask_members(backend, comparable, _read_choice, tally)
        tally.frozen[role] = [*zip(comparable, next(iter(verdicts.values())), strict=True)]
        compare_members(tally.frozen[role], verdicts, tally, _name_check(role))
    return role in tally.frozen


def check_members_again(models: Mapping[Role, Answerer], tally: Tally) -> None:
    """Ask every server for the first verdicts of a run, at its end; raises if one has changed."""
    for role, frozen in tally.frozen.items():
        name, other = f"{_name_check(role)} at the end", "the first server at the start"
        try:
            verdicts = ask_members(models[role][0], [request for request, _ in frozen], _read_choice, tally)
            compare_members(frozen, verdicts, tally, name, other)
        except BackendError as error:
            print(f"distract: {error}; its servers are not compared at the end", file=sys.stderr, flush=True)


def _name_check(role: Role) -> str:
    return "servers" if role == "judge" else f"servers of the {role}"


def _read_choice(_: Request, reply: Reply) -> Reading:
    """Read the choice of a reply: the most likely one, or its words if the server gives no probabilities."""
    shares = reply.probabilities
    return Reading(shares.index(max(shares)), shares) if shares else Reading(reply.text.strip())


def compare_members(
    frozen: Sequence[Frozen[Request]],
    verdicts: Mapping[str, Sequence[Reading]],
    tally: Tally,
    name: str,
    other: str = "the first server",
    advice: str = "name servers that run the same model",
) -> None:
    """Compare the verdicts of every server with those that ``other`` gave; raises if any has changed.

    The record, under ``name``, is of the server that differs most.
    """

    def check(now: Sequence[Reading]) -> Recheck[Request]:
        return compare(frozen, lambda _: now)

    checks = {member: check(now) for member, now in verdicts.items()}
    worst = max(checks, key=lambda member: (checks[member].status != "unchanged", len(checks[member].turned)))
    tally.checks[name] = {
        **checks[worst].document,
        "asked": sum(one.asked for one in checks.values()),
        "servers": [*checks],
        "answers": [{"key": one.question.key, **one.document} for one in checks[worst].answers],
    }
    if checks[worst].status != "unchanged":
        is_alone = any(one.status == "unchanged" for one in checks.values())
        problem = "the servers disagree" if is_alone else "the judge has changed"
        raise JudgeChanged(f"{problem}: {worst} beside {other}: {checks[worst].describe()}; {advice}")


def ask_members(
    backend: Backend, requests: Sequence[Request], read: Callable[[Request, Reply], Reading], tally: Tally
) -> dict[str, list[Reading]]:
    """Ask every server of a model, or a model of another kind, the same, and read the verdicts."""
    return poll_members(backend, lambda member: [*map(read, requests, ask_member(member, requests, tally))])


def poll_members(backend: Backend, poll: Callable[[Backend], T]) -> dict[str, T]:
    """Poll every server of a model, or a model of another kind; leaves out servers of several that do not answer."""
    members = backend.members if isinstance(backend, PooledBackend) else {"the model": backend}
    results: dict[str, T] = {}
    faults: dict[str, BackendError] = {}
    # A server that hangs must not hold up the others for long; where none answers, each gets its time.
    for is_hasty in (True, False) if len(members) > 1 else (False,):
        for name, member in members.items() if not results else ():
            try:
                results[name] = poll(member.hurry() if is_hasty and isinstance(member, PooledBackend) else member)
            except BackendError as error:
                faults[name] = error
    if not results:
        raise next(iter(faults.values()))
    for name, fault in faults.items():
        if name not in results and isinstance(backend, PooledBackend):
            backend.leave_out(name)
            print(f"distract: {fault}; this run goes on without {name}", file=sys.stderr, flush=True)
    return results


def ask_member(member: Backend, requests: Sequence[Request], tally: Tally) -> list[Reply]:
    """Ask one server; its replies are not stored."""
    replies = dict.fromkeys(range(len(requests)), Reply(failure=NO_REPLY))
    for _ in range(2):  # as a run asks again for what was not answered
        if missing := frozenset(index for index, reply in replies.items() if not reply.answered):
            arrivals = dict(chain.from_iterable(member.reply(requests, missing)))
            tally.count_tokens(requests[0].to, [*arrivals.values()])
            replies |= arrivals
    if silent := [reply.failure for reply in replies.values() if not reply.answered]:
        many = f"{len(silent)} of {count(len(requests), 'request')}"
        raise BackendError(f"{many} to check the judge got {silent[0]}")
    return [*replies.values()]
