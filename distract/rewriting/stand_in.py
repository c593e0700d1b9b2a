"""Writers for estimates: they request all that a model may be asked, and let the rules write."""

from __future__ import annotations

from dataclasses import replace

from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.rewriting.fidelity.units import join, split
from distract.rewriting.writers import WRITERS, Draft, Writer


def stand_in(writer: Writer) -> Writer:
    """Return the writer itself if it needs no model, else one that succeeds in its last attempt."""
    if not writer.is_model:
        return writer

    def write(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
        expected = yield from writer.write(attack, task)
        (draft,) = yield from WRITERS["rules"].write(attack, task)
        # Invisible changes in the model's name, in each sentence that it may restyle: no two drafts are the same.
        marks = ["\u200b" * (task.attempt * len(expected) + place + 1) for place in range(len(expected))]
        texts = [tuple(_mark(turn, mark) for turn in draft.response.turns) for mark in marks]
        flaws = () if task.attempt == writer.retries else ("rejected",)
        return [Draft(replace(draft.response, turns=turns), writer.name, flaws, is_assumed=True) for turns in texts]

    return replace(writer, write=write)


def _mark(turn: str, mark: str) -> str:
    units, rest = split(turn)
    return join([unit if unit.is_fixed else replace(unit, body=unit.body + mark) for unit in units], rest)
