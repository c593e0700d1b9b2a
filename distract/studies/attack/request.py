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
    """What an audit is about, who judges and how."""
    setup, asking = set_up(judge, more, listener)
    limit = more.pop("limit") or None
    return session.select(asking=asking, models=setup.helpers, limit=limit, **more), setup


def attack_job(judge: str, more: dict[str, Any], store: Path | None, listener: Listener) -> Job[Any]:
    """The job of ``distract attack``."""
    minimal, fresh = more.pop("minimal", 0), more.pop("fresh", False)
    job = session.prepare(*select(judge, more, listener), minimal)
    if fresh:
        renew([job.models["judge"]], store)
    return job
