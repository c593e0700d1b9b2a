"""Servers of one model are compared before they share its requests, for each role on its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from distract.core.backend import Batch
from distract.core.errors import BackendError, UsageError
from distract.core.exchange import settle
from distract.core.records import Message, Reply, Request, Role
from distract.core.store import Store
from distract.core.usage import Tally

PROBE = Request((Message("user", "probe"),))


@dataclass
class Member:
    """A server that prefers A, or does not answer."""

    share: float = 0.9
    form: str = "plain"
    is_down: bool = False
    identity: Mapping[str, str] = field(default_factory=lambda: {"model": "m"})
    name: str = "m"
    reads_slots: bool = False
    probes: tuple[Request, ...] = (PROBE,)

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        if self.is_down:
            raise BackendError("it does not answer")
        for index in wanted:
            probabilities = None if requests[index] == PROBE else (self.share, 1 - self.share)
            yield [(index, Reply(text=self.form, probabilities=probabilities, tokens_in=1))]

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        return {"form": reply.text}


class Pool(Member):
    """Servers that share requests; the pool itself answers as the first."""

    def __init__(self, *members: Member) -> None:
        super().__init__(members[0].share, members[0].form)
        self.all = {f"s{number}": member for number, member in enumerate(members)}

    @property
    def members(self) -> Mapping[str, Member]:
        return self.all

    def leave_out(self, member: str) -> None:
        del self.all[member]


def settle_pool(pool: Pool, role: Role, tally: Tally, folder: Path, choices: tuple[str, ...] = ("A", "B")) -> bool:
    request = Request((Message("user", "which?"),), choices=choices, to=role)
    with Store(folder / "s", pool.identity) as store, store.claims() as claims:
        return settle(role, (pool, store), [request], tally, claims)


def test_each_role_checks_its_own_servers(tmp_path: Path) -> None:
    """A verifier's servers that agree say nothing about the judge's."""
    tally = Tally()
    assert settle_pool(Pool(Member(), Member()), "verifier", tally, tmp_path)
    with pytest.raises(UsageError, match="the servers disagree: s1 answers 1 of 1 request"):
        settle_pool(Pool(Member(), Member(0.1)), "judge", tally, tmp_path)
    assert [*tally.checks] == ["servers of the verifier"]


def test_forms_are_compared_although_no_reply_is_comparable(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        settle_pool(Pool(Member(), Member(form="odd")), "judge", Tally(), tmp_path, choices=())
    assert 's1 takes requests in another form than s0 (form "odd" instead of "plain")' in str(error.value)


def test_members_that_are_down_are_left_out_and_not_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, tally = Pool(Member(), Member(is_down=True), Member()), Tally()
    assert not settle_pool(pool, "judge", tally, tmp_path, choices=())
    assert settle_pool(pool, "judge", tally, tmp_path)
    assert capsys.readouterr().err == "distract: it does not answer; this run goes on without s1\n"
    assert tally.checks["servers"] == {"asked": 2, "differing": 0, "largest_move": 0.0, "servers": ["s0", "s2"]}
    # The pool's own probe, one of each of two servers, and one comparison of each.
    assert tally.tokens == {"judge": (5, 0)}


def test_a_pool_without_an_answering_member_ends(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="it does not answer"):
        settle_pool(Pool(Member(is_down=True), Member(is_down=True)), "judge", Tally(), tmp_path)
