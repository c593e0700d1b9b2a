"""Stand-ins for models and for the hub, as fixtures and as classes; a plug-in of pytest."""

import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from distract.core.backend import Batch
from distract.core.errors import BackendError
from distract.core.records import Request
from distract.models import opener, scripted
from distract.models.provider import Target
from distract.models.scripted import ScriptedBackend


class Counted:
    """A backend that answers one request at a time, counts its requests and may fail after some of them."""

    def __init__(
        self, inner: ScriptedBackend, breaks_after: int | None = None, error: BaseException | None = None
    ) -> None:
        self.identity, self.reads_slots = inner.identity, inner.reads_slots
        self.asked = 0
        self._inner, self._breaks_after = inner, breaks_after
        self._error = error or BackendError("the model broke")

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in sorted(wanted):
            if self.asked == self._breaks_after:
                raise self._error
            self.asked += 1
            yield from self._inner.reply(requests, frozenset([index]))


Watch = Callable[..., list[Counted]]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Opens planted judges, or a given one, with their calls counted and an optional failure after some of them."""

    def install(
        breaks_after: int | None = None, error: BaseException | None = None, judge: ScriptedBackend | None = None
    ) -> list[Counted]:
        opened: list[Counted] = []

        def open_one(target: Target, *_: object) -> Counted:
            writes = ScriptedBackend(
                lambda request: f"At great length and in other words: {request.key}", reads_slots=False
            )
            inner = (judge or scripted.make_planted(target.model)) if target.engine == "planted" else writes
            opened.append(Counted(inner, breaks_after, error))
            return opened[-1]

        monkeypatch.setattr(opener, "open_target", open_one)
        return opened

    return install


class Missing(Exception):
    """The error that the hub's client raises for a missing data set."""


@pytest.fixture
def hub_data(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A fake hub: its data by (name, config), and the errors of its two calls."""
    state: dict[str, Any] = {"holds": {}, "reach": None, "load": None, "asked": []}

    def dataset_info(name: str, timeout: float) -> None:
        state["asked"].append((name, timeout))
        if state["reach"]:
            raise state["reach"]

    def load_dataset(name: str, config: str | None) -> Any:
        if state["load"]:
            raise state["load"]
        return state["holds"][name, config]

    library, client = ModuleType("datasets"), ModuleType("huggingface_hub")
    library.__spec__ = ModuleSpec("datasets", None, origin="here")
    vars(library).update(load_dataset=load_dataset, disable_progress_bars=lambda: None)
    vars(client).update(
        HfApi=lambda: SimpleNamespace(dataset_info=dataset_info),
        errors=SimpleNamespace(RepositoryNotFoundError=Missing),
        constants=SimpleNamespace(HF_HUB_OFFLINE=False),
    )
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    return state


def overwrite(file: Path, content: bytes) -> None:
    """Change a file in place and restore its times, at a later tick of the file system's clock.

    Args:
        file: the file to change.
        content: the new content, of the same size.
    """
    before, probe = file.stat(), file.with_name(".probe")
    probe.touch()
    while probe.stat().st_ctime_ns <= before.st_ctime_ns:
        probe.touch()
    probe.unlink()
    with file.open("r+b") as handle:
        handle.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


T = TypeVar("T")
few = settings(suppress_health_check=[HealthCheck.too_slow])


def simplest(strategy: SearchStrategy[T], predicate: Callable[[T], bool] = lambda _: True) -> T:
    # Leave out the explain phase: its examples are no simpler.
    phases = [Phase.generate, Phase.shrink]
    plain = settings(max_examples=1000, database=None, deadline=None, phases=phases)
    return find(strategy, predicate, settings=plain, random=random.Random(0))


def draw_examples(strategy: SearchStrategy[T], number: int = 40) -> list[T]:
    examples: list[T] = []

    @settings(few, max_examples=number, database=None, derandomize=True)
    @given(strategy)
    def draw(one: T) -> None:
        examples.append(one)

    draw()
    return examples
