"""Writers for estimates: they request all that a model may be asked, and let the rules write."""

from __future__ import annotations

from dataclasses import replace

from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.rewriting.writers import WRITERS, Draft, Writer


def stand_in(writer: Writer) -> Writer:
    """Return the writer itself if it needs no model, else one that succeeds in its last attempt."""
    if not writer.is_model:
        return writer

    def write(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
        expected = yield from writer.write(attack, task)
        (draft,) = yield from WRITERS["rules"].write(attack, task)
        # Invisible changes in the model's name: no two drafts are the same, even where the rules change nothing.
        *others, last = draft.response.turns
        texts = [(*others, last + " " * (task.attempt * len(expected) + place + 1)) for place in range(len(expected))]
        flaws = () if task.attempt == writer.retries else ("rejected",)
        return [Draft(replace(draft.response, turns=turns), writer.name, flaws, is_assumed=True) for turns in texts]

    return replace(writer, write=write)
