"""What every protocol shows of a case: the question, the primary criterion, the responses' turns.

It words the criterion once, so that protocols differ in how they ask and never in what they ask about.
"""

from __future__ import annotations

from distract.constraints import describe
from distract.prompts import Prompt, load
from distract.records import Case, Message, Response

CRITERION = (
    "how precisely a response follows the instruction, doing no more and no less than was asked, and how helpful "
    "and accurate it is."
)


def prompt_files(name: str) -> tuple[Prompt, Prompt]:
    """Both forms of a prompt: for cases without and with format constraints."""
    return load("distract.judges", name), load("distract.judges", f"{name}-format")


def prompt_for(case: Case, name: str) -> Prompt:
    """The prompt file ``name``, or its ``-format`` form for a case with format constraints."""
    return prompt_files(name)[bool(case.constraints)]


def fill(
    prompt: Prompt, case: Case, responses: dict[str, Response], others: dict[str, str] | None = None
) -> tuple[Message, ...]:
    """Fill a prompt with a case, responses by slot name, and other texts by slot name."""
    values = {"question": conversation("User", case.prompt)}
    if case.constraints:
        values["requirements"] = "\n".join(f"- {describe(c)}" for c in case.constraints)
    else:
        values["criterion"] = case.criterion or CRITERION
    values.update({slot: conversation("Assistant", r.turns) for slot, r in responses.items()})
    return prompt.fill({**values, **(others or {})})


def conversation(speaker: str, turns: tuple[str, ...]) -> str:
    """One turn as it is; several under a heading each, so that a judge can tell them apart."""
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"## {speaker}, turn {number}\n{turn}" for number, turn in enumerate(turns, 1))
