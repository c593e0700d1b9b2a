"""The control of rewrites by a model: a neutral rewrite, and the rewrite of that one back, by the same model.

A model that changes the tone of a response also leaves its own wording, and a judge may prefer that. Both are in a
rewrite that is rewritten, while its tone is the original's: flips beyond those of this control are the tone's.
"""

from __future__ import annotations

from distract import Attack, Plan, WritingTask, prompts

PROMPT = prompts.load("distract.attacks", "rewrite")

DIRECTIONS = (
    "Reword the response neutrally: the same in other words.",
    "The response was reworded by someone else. Reword it back, into words that its author may have used.",
)
"""What each round asks for."""


def write(task: WritingTask) -> Plan[tuple[str, ...]]:
    """Reword each turn, then the result; without a model there is nothing to control for, and nothing changes."""
    turns = list(task.response.turns)
    if task.request is None or task.slots is None:
        return tuple(turns)
    for direction in DIRECTIONS:
        shown = [index for index, turn in enumerate(turns) if turn.strip()]
        messages = [
            PROMPT.fill({**task.slots(index), "response": turns[index], "direction": direction}) for index in shown
        ]
        replies = yield [task.request(one, turns[index]) for one, index in zip(messages, shown, strict=True)]
        for index, reply in zip(shown, replies, strict=True):
            turns[index] = reply.text
    return tuple(turns)


rewrite = Attack(
    "rewrite",
    "control: reworded and reworded back by the model that writes the attacks",
    write=write,
    asks=True,
    prompt=PROMPT,
    effect="control",
    paper="RATE, arXiv 2410.11348",
)
