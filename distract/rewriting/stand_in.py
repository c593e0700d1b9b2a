"""Writers for estimates: they request what a model would be asked, and let the rules write."""

from __future__ import annotations

from dataclasses import replace

from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.rewriting.writers import WRITERS, Draft, Writer


def stand_in(writer: Writer) -> Writer:
    """Return the writer itself if it needs no model, else one that makes its requests but ignores the replies."""
    if not writer.is_model:
        return writer

    def write(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
        yield from writer.write(attack, task)
        drafts = yield from WRITERS["rules"].write(attack, task)
        return [_change(draft, writer.name) for draft in drafts] if attack.asks else drafts

    return replace(writer, write=write, retries=0)


def _change(draft: Draft, name: str) -> Draft:
    """Change a draft invisibly, in the model's name: where only a model can write, the rules change nothing."""
    *others, last = draft.response.turns
    return replace(draft, response=replace(draft.response, turns=(*others, f"{last} ")), writer=name)
