"""An attack from what its user asked for: names and options to a job. It prints nothing and ends no process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distract.core.job import Job
from distract.core.listener import Listener
from distract.studies.attack import session
from distract.studies.attack.session import AttackSelection
from distract.studies.execution import renew, set_up
from distract.studies.setup import Setup


def select(judge: str, more: dict[str, Any], listener: Listener) -> tuple[AttackSelection, Setup]:
    """What an audit is about, who judges and how.

    Args:
        judge: as for ``set_up``, like the others.
        more: the options of an audit, of models and of the draw, by name.
        listener: is told.

    Raises:
        UsageError: as there, or something named fits no case.
    """
    setup, asking = set_up(judge, more, listener)
    limit = more.pop("limit") or None
    return session.select(asking=asking, models=setup.helpers, limit=limit, **more), setup


def attack_job(judge: str, more: dict[str, Any], store: Path | None, listener: Listener) -> Job[Any]:
    """The job of ``distract attack``.

    Args:
        judge: as for ``set_up``.
        more: the options of the command by name, like there.
        store: the reply store, in which the judge begins a new epoch where ``more`` says ``fresh``.
        listener: is told.

    Raises:
        UsageError: something named does not exist or fits no case, or the folder belongs to another run.
    """
    minimal, fresh = more.pop("minimal", 0), more.pop("fresh", False)
    job = session.prepare(*select(judge, more, listener), minimal)
    if fresh:
        renew([job.models["judge"]], store)
    return job
