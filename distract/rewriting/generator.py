"""A generator model as a writer: it rewrites each turn of a response with the attack's own prompt.

Each turn is a request of its own, which shows the conversation so far, so that the number and order of turns cannot
change. Fidelity inspects every reply.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from distract.core.attack import Attack, WritingTask
from distract.core.plan import PENDING, Plan, gather, tap
from distract.core.records import Case, Constraint, Message, Reply, Request, Response
from distract.data.constraints import check, describe
from distract.rewriting.attack_calls import guard_attack, write_turns
from distract.rewriting.generator_options import GeneratorOptions, flaws
from distract.rewriting.writers import Draft, Writer, build_response


def make_generator(name: str, options: GeneratorOptions) -> Writer:
    """Make a writer that asks a model."""

    def write(attack: Attack, task: WritingTask) -> Plan[list[Draft]]:
        original = task.response
        samples = range(task.attempt * options.best_of, (task.attempt + 1) * options.best_of)
        if attack.write is not None:
            drafts = [_write_own(name, options, attack, task, sample) for sample in samples]
            return (yield from gather(drafts))
        if attack.prompt is not None and "sentences" in attack.prompt.slots:
            return (yield from gather([_write_sentences(name, options, attack, task, one) for one in samples]))
        turns = [index for index, turn in enumerate(original.turns) if turn.strip()]
        messages = {index: _messages(attack, task, index) for index in turns}
        # Leave an empty turn unchanged: it has no tone.
        places = [(sample, index) for sample in samples for index in turns]
        replies = yield [
            options.request(messages[index], seed=task.run_seed, sample=sample, like=original.turns[index])
            for sample, index in places
        ]
        by_place = dict(zip(places, replies, strict=True))
        return [_draft(name, original, attack, sample, by_place) for sample in samples]

    return Writer(name, "a generator model", write, options.retries)


def _write_own(name: str, options: GeneratorOptions, attack: Attack, task: WritingTask, sample: int) -> Plan[Draft]:
    """Let the attack's own plan ask the model; clean the replies, and note those that are no complete text."""
    reasons = dict[str, None]()

    def request(messages: tuple[Message, ...], like: str) -> Request:
        return options.request(messages, seed=task.run_seed, sample=sample, like=like)

    def clean(_: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
        reasons.update(dict.fromkeys(flaw for reply in replies if reply is not PENDING for flaw in flaws(reply)))
        return [reply if reply is PENDING else replace(reply, text=_clean(reply)) for reply in replies]

    plan = write_turns(attack, replace(task, request=request, slots=partial(_list_slots, attack, task)))
    turns = yield from tap(plan, on_replies=clean)
    return Draft(build_response(task.response, attack, turns), name, tuple(reasons))


def _write_sentences(
    name: str, options: GeneratorOptions, attack: Attack, task: WritingTask, sample: int
) -> Plan[Draft]:
    from distract.rewriting.sentences import restyle

    shown = replace(task, slots=partial(_list_slots, attack, task))
    turns, reasons, evidence = yield from restyle(options, attack, shown, sample)
    return Draft(build_response(task.response, attack, turns), name, reasons, evidence)


def _draft(
    name: str, original: Response, attack: Attack, sample: int, replies: Mapping[tuple[int, int], Reply]
) -> Draft:
    turns, reasons = [], dict[str, None]()
    for index, turn in enumerate(original.turns):
        reply = replies.get((sample, index))
        turns.append(turn if reply is None else _clean(reply))
        reasons.update(dict.fromkeys(flaws(reply)) if reply else {})
    return Draft(build_response(original, attack, tuple(turns)), name, tuple(reasons))


def _clean(reply: Reply) -> str:
    # A lone surrogate cannot be written to a file.
    return reply.text.strip().encode(errors="replace").decode()


def _messages(attack: Attack, task: WritingTask, index: int) -> tuple[Message, ...]:
    prompt, values = attack.prompt, _list_slots(attack, task, index)
    assert prompt is not None
    with guard_attack(attack, f"case {task.case.id!r}"):
        return prompt.fill({name: text for name, text in values.items() if name in prompt.slots})


def _list_slots(attack: Attack, task: WritingTask, index: int) -> dict[str, str]:
    case, original = task.case, task.response
    return {
        "question": _conversation(case, original, index),
        "response": original.turns[index],
        "requirements": _requirements(case, original, attack, task.run_seed),
        "feedback": _feedback(task.feedback),
    }


def _conversation(case: Case, original: Response, index: int) -> str:
    """Format the conversation before a turn: the user's turns, and the response's own earlier ones."""
    if index == 0:
        return case.prompt[0]
    parts = []
    for number in range(index + 1):
        parts.append(f"## User, turn {number + 1}\n{case.prompt[number]}")
        if number < index:
            parts.append(f"## Assistant, turn {number + 1}\n{original.turns[number]}")
    return "\n\n".join(parts)


def _requirements(case: Case, original: Response, attack: Attack, seed: int) -> str:
    """List the format requirements to keep, met or not; for a severity, those to break."""
    held = [c for c in case.constraints if check(c, original.text)]
    broken = [c for c in case.constraints if c not in held]
    chosen: list[Constraint] = []
    if attack.severity:
        # Like a rule, the draw depends on seed, case and author only, not on a process's hash seed.
        order = random.Random(f"{seed}\x1e{case.id}\x1e{original.author}")
        chosen = order.sample(held, min(len(held), max(0, attack.severity - len(broken))))
    parts = []
    for title, constraints in (
        ("The rewritten text must still meet these format requirements:", [c for c in held if c not in chosen]),
        ("The rewritten text must break each of these format requirements:", chosen),
        ("The text does not meet these format requirements, and must not begin to:", broken),
    ):
        if constraints:
            parts.append("\n".join([title, *(f"- {describe(c)}" for c in constraints)]))
    return "\n\n".join(parts) or "The text has no format requirements; keep its layout."


def _feedback(reasons: Sequence[str]) -> str:
    if not reasons:
        return "Write the rewritten text now."
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return (
        f"An earlier attempt was rejected for these reasons:\n{listed}\n\nAvoid them, and write the rewritten text now."
    )
