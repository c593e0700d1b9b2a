"""Restyle a response by a model that is asked for little at a time: a few numbered sentences, and one change.

Each sentence that comes back is compared at once with the one that it replaces, and asked for again alone where it is
unchanged or doubtful. The least doubtful version stays, as far as the format requirements allow. All requests of a
round are one batch, whose prompts begin alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from distract.core.attack import Attack, WritingTask
from distract.core.plan import Plan
from distract.core.records import Constraint, Evidence, Message, Reply
from distract.data.constraints import check, describe
from distract.rewriting.attack_calls import guard_attack, guard_marker
from distract.rewriting.fidelity.claims import find_changes
from distract.rewriting.fidelity.units import Unit, join, split
from distract.rewriting.generator_options import GeneratorOptions, flaws

FEW = 4
"""Maximum sentences in one request."""

LEAST = 3
"""Minimum words of a sentence to restyle."""

BEFORE = 400
"""Maximum characters of what comes before the sentences."""

ROUNDS = 2
"""How often a sentence is asked for."""

CLEAR = 1.0
"""Largest doubt about a version that is not asked for again."""

_NUMBERED = re.compile(r"^\W{0,3}(\d{1,3})[.):][ \t]+(\S.*?)[ \t]*$", re.M)
_EVERY = ("punctuation:no_comma", "change_case:english_", "keywords:forbidden_words", "language:")
"""Beginnings of requirements that every sentence must meet."""
_PHRASES = ("keyword", "keywords", "end_phrase", "first_word")  # arguments of requirements that hold words to use
_MARKED = re.compile(r"\*[^*\n]+\*|\[[^\[\]\n]+\]|<<[^<>\n]+>>")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a turn."""

    turn: int
    place: int  # of its unit in the turn
    text: str


@dataclass(frozen=True, slots=True)
class Version:
    """A sentence as the model restyled it."""

    text: str
    doubt: float
    is_marked: bool  # whether it has more of the attack's feature than the sentence

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sort the best version first."""
        return self.doubt > CLEAR, not self.is_marked, self.doubt


def restyle(
    options: GeneratorOptions, attack: Attack, task: WritingTask, sample: int
) -> Plan[tuple[tuple[str, ...], tuple[str, ...], Evidence]]:
    """Restyle the sentences of a response; returns its turns, flaws of the replies and measurements."""
    turns, known = [split(turn)[0] for turn in task.response.turns], "\n".join((*task.case.prompt, task.response.text))
    sentences = [
        Sentence(turn, place, unit.body)
        for turn, units in enumerate(turns)
        for place, unit in enumerate(units)
        if not unit.is_fixed and len(_list_words(unit.body)) >= LEAST
    ]
    marker = guard_marker(attack, f"case {task.case.id!r}") or (lambda text: 0.0)
    versions, problems = dict[Sentence, Version](), dict[str, None]()
    for number in range(ROUNDS):
        # If no sentence has the feature, all are asked for again.
        is_marked = attack.marker is None or any(version.is_marked for version in versions.values())
        again = [[one] for one in sentences if not is_marked or one not in versions or versions[one].doubt > CLEAR]
        groups = again if number else list(_group(sentences))
        if not groups:
            break
        replies = yield [
            options.request(
                # Requirements keep a small model from changing anything, and the whole text is checked for them.
                _fill(attack, task, turns, group, is_bound=not number or group[0] in versions),
                seed=task.run_seed,
                sample=ROUNDS * sample + number,
                like="\n".join(one.text for one in group),
                stop=f"\n{len(group) + 1}.",
            )
            for group in groups
        ]
        for group, reply in zip(groups, replies, strict=True):
            problems |= dict.fromkeys(flaw for flaw in flaws(reply) if flaw.startswith("no text"))
            for one, text in _read(reply, group):
                doubt = sum(change.doubt for change in find_changes(one.text, text, known))
                version = Version(text, doubt, marker(text) > marker(one.text))
                versions[one] = min(versions.get(one, version), version, key=lambda version: version.rank)
    texts = _choose(turns, task, versions)
    changed = sum(
        a.body != b.body for old, new in zip(turns, texts, strict=True) for a, b in zip(old, new, strict=True)
    )
    written = tuple(join(units, split(turn)[1]) for units, turn in zip(texts, task.response.turns, strict=True))
    return written, tuple(problems), (("sentences", len(sentences)), ("sentences_changed", changed))


def _group(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    """Yield a few sentences of one turn at a time."""
    for turn in sorted({one.turn for one in sentences}):
        own = [one for one in sentences if one.turn == turn]
        yield from (own[at : at + FEW] for at in range(0, len(own), FEW))


def _fill(
    attack: Attack, task: WritingTask, turns: Sequence[Sequence[Unit]], group: Sequence[Sentence], is_bound: bool
) -> tuple[Message, ...]:
    assert attack.prompt is not None
    assert task.slots is not None
    first = group[0]
    requirements = "; ".join(_list_requirements(task, group)) if is_bound else ""
    values: Mapping[str, str] = {
        **task.slots(first.turn),
        "before": join(turns[first.turn][: first.place]).strip()[-BEFORE:],
        "sentences": "\n".join(f"{number}. {_flatten(one.text)}" for number, one in enumerate(group, 1)),
        "requirements": f", and keep to this: {requirements}" if requirements else "",
    }
    with guard_attack(attack, f"case {task.case.id!r}"):
        return attack.prompt.fill({name: text for name, text in values.items() if name in attack.prompt.slots})


def _flatten(text: str) -> str:
    return " ".join(text.split())


def _list_requirements(task: WritingTask, group: Sequence[Sentence]) -> Iterator[str]:
    """Yield what each of these sentences must meet, and what they hold that the response needs.

    A model asked for a number of words or letters tries to reach it in every sentence.
    """
    text = " ".join(one.text for one in group)
    if _MARKED.search(text):
        # Quoted here, words of the response would stand among the instructions.
        yield "Keep *marks*, [placeholders] and <<titles>> as they are"
    for constraint in task.case.constraints:
        if not check(constraint, task.response.text):
            continue
        if constraint.kind.startswith(_EVERY):
            yield describe(constraint).rstrip(".")
        elif constraint.kind == "change_case:capital_word_frequency" and re.search(r"\b[A-Z]{2}", text):
            yield "Keep words in capital letters"
        words = (value for name, value in constraint.arguments if name in _PHRASES)
        phrases = (one for value in words for one in (value if isinstance(value, tuple) else (str(value),)))
        if kept := [f'"{phrase}"' for phrase in phrases if phrase.casefold() in text.casefold()]:
            yield f"Keep {', '.join(kept)}"


def _read(reply: Reply, group: Sequence[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Yield the sentences that a reply restyles; a single one needs no number."""
    text = reply.text.strip().encode(errors="replace").decode()  # a lone surrogate cannot be written to a file
    numbered = {int(number): line for number, line in _NUMBERED.findall(text)}
    if not numbered and len(group) == 1 and "\n" not in text:
        numbered = {1: text}
    for number, one in enumerate(group, 1):
        line = _unwrap(numbered.get(number, ""), one.text)
        if line and _list_words(line) != _list_words(one.text):
            yield one, line


def _list_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _unwrap(line: str, original: str) -> str:
    """Remove quotation marks around a sentence that had none."""
    line = _flatten(line)
    if len(line) > 2 and line[0] in '"“' and line[-1] in '"”' and original[:1] not in '"“':
        line = line[1:-1].strip()
    return line


def _choose(
    turns: Sequence[Sequence[Unit]], task: WritingTask, versions: Mapping[Sentence, Version]
) -> list[list[Unit]]:
    """Take the versions, the least doubtful first, as long as no requirement changes from met to broken or back."""
    texts = [list(units) for units in turns]
    rests = [split(turn)[1] for turn in task.response.turns]
    constraints: Sequence[Constraint] = task.case.constraints
    states = [check(one, task.response.text) for one in constraints]

    def take(batch: Sequence[Sentence]) -> None:
        """Try a batch as a whole and halve it if it fails: few sentences break a requirement."""
        before = [texts[one.turn][one.place] for one in batch]
        for one, unit in zip(batch, before, strict=True):
            texts[one.turn][one.place] = Unit(unit.lead, versions[one].text, unit.kind)
        text = "\n\n".join(join(units, rest) for units, rest in zip(texts, rests, strict=True))
        if [check(one, text) for one in constraints] == states:
            return
        for one, unit in zip(batch, before, strict=True):
            texts[one.turn][one.place] = unit
        if len(batch) > 1:
            take(batch[: len(batch) // 2])
            take(batch[len(batch) // 2 :])

    if versions:
        take(sorted(versions, key=lambda one: (versions[one].doubt, one.turn, one.place)))
    return texts
