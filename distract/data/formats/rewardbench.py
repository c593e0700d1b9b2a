"""RewardBench and sets like it: rows of ``{prompt, chosen, rejected, subset?, id?}``.

Swap convention: the better response always comes first. ``read`` keeps that order, and the loader swaps about half of
the cases (``Reader.better_first``), because otherwise a judge that always takes the first slot would look perfect. The
author names denote positions, since ``chosen`` would reveal the label. A text may also be a list of ``{role,
content}``; conversations of several turns are left out, and other fields such as the models' names are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.formats.reader import Omission, Reader
from distract.data.rows import has_any, make_ids, read_rows

AUTHORS = ("response_1", "response_2")
SEVERAL_TURNS = "a conversation of several turns"


def read(text: str, path: str) -> Iterator[Case | Omission]:
    """The cases of a file, the better response first; ``subset`` becomes the source."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items, "id"), items, strict=True):
        prompt = _read_message(item, "prompt", "user")
        chosen, rejected = (_read_message(item, field, "assistant") for field in ("chosen", "rejected"))
        source = item.optional_name("subset") or "rewardbench"
        if prompt is None or chosen is None or rejected is None:
            yield Omission(SEVERAL_TURNS)
            continue
        responses = (Response(AUTHORS[0], (chosen,)), Response(AUTHORS[1], (rejected,)))
        yield Case(name, (prompt,), responses, AUTHORS[0], source=source)


def _read_message(item: Item, field: str, role: str) -> str | None:
    """A text, or the only message of a role; None if there are several turns."""
    blank = role == "assistant"
    if not isinstance(item.value.get(field), list):
        return item.text(field, empty=blank)
    spoken = []
    for message in item.items(field):
        speaker = message.text("role")
        if speaker not in ("user", "assistant", "system"):
            message.fail(f"expected 'user', 'assistant' or 'system', found {speaker[:40]!r}", "role")
        spoken.append((speaker, message.text("content", empty=blank or speaker == "assistant")))
    speakers = [speaker for speaker, _ in spoken]
    if not spoken or speakers[-1] != role:
        item.fail(f"expected its last message from the {role}", field)
    # A list of messages for a response may start with the prompt.
    alone = speakers in (["assistant"], ["user", "assistant"]) if blank else speakers == ["user"]
    return spoken[-1][1] if alone else None


READER = Reader("rows of {prompt, chosen, rejected, subset?}", has_any("chosen", "rejected"), read, better_first=True)
