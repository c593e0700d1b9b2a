"""A better and a worse answer to the same prompt from a reference answer (CALM).

Both are correct and complete and of about equal length; the worse one lacks user satisfaction, coherence and clarity.
Rules check what they can: the form, the lengths, and that no fact of the reference is lost. They do not know whether
the worse answer is worse, nor whether both are right; a verifier, where there is one, is asked the latter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from distract.core.plan import Plan, gather
from distract.core.prompts import Prompt, load
from distract.core.records import Case, Evidence, Message, Response, slug
from distract.data.good_responses import good_response
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.facts import normalise_text
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writers import Verifier
from distract.studies.make.attempts import MakeResult, ask_generator, feedback

AUTHORS = ("better", "worse")
SOURCE = "make-pairs"
MOST_TIMES = 2.0
"""How many times as many words one answer may have as the other."""

SLACK = 10
"""A difference of this many words is none: two short answers may well have three and seven."""

LEAST_ROOM = 400
"""Bytes that the room for both answers is reckoned from at least: a reference of one word says little about them."""

_SEPARATOR = re.compile(r"(?m)^[ \t]*\|\|\|[ \t\r]*$")
_LABEL = re.compile(
    r"\A\W*(?:the )?(?:(?:better|worse|good|bad|first|second) (?:answer|response|version|text)"
    r"|(?:answer|response|version|text) (?:1|2|one|two|a|b)|better|worse)[^\w\n]*(?::|\n|\Z)",
    re.IGNORECASE,
)
_KEPT = (
    "script changed",
    "language changed",
    "refusal",
    "comment about the task",
    "transcript",
    "repetition",
    "not a rewrite",
)
"""What fidelity says of a rewrite that matters here too, apart from facts that are lost."""

AnswerPair = tuple[str, str]
PairResult = tuple[tuple[AnswerPair, Evidence], tuple[str, ...]]


def prompt_file() -> Prompt:
    """The prompt file that is used."""
    return load("distract.studies.make", "pair")


def make_pair(
    case: Case, asking: GeneratorOptions, author: str, seed: int, verifier: Verifier | None = None
) -> Plan[MakeResult]:
    """Make a case of a better and a worse answer from a case's good response (CALM, answers from a reference)."""
    reference = good_response(case)
    if len(case.prompt) > 1:
        return MakeResult(None, ("more than one turn",))
    if reference is None or not reference.text.strip():
        return MakeResult(None, ("no reference: no response is labelled better or known to meet the constraints",))
    known: Response = reference

    def fill(reasons: tuple[str, ...]) -> tuple[Message, ...]:
        slots = {"question": case.prompt[0], "reference": known.text, "feedback": feedback(reasons)}
        return prompt_file().fill(slots)

    def read(text: str) -> Plan[PairResult]:
        return _read(case, known, text, verifier)

    asked = yield from ask_generator(fill, read, asking, seed, like=(known.text * 2).ljust(LEAST_ROOM))
    evidence: Evidence = (
        ("attempts", asked.attempts),
        ("generator", author),
        ("words_reference", _count_words(known.text)),
    )
    if asked.value is None:
        return MakeResult(None, asked.reasons, evidence)
    texts, measured = asked.value
    made = tuple(Response(name, (text,)) for name, text in zip(AUTHORS, texts, strict=True))
    pair = Case(
        case.id,
        case.prompt,
        made,
        preferred=AUTHORS[0],
        criterion=case.criterion,
        source=SOURCE,
    )
    return MakeResult(pair, (), (*evidence, *measured))


def _read(case: Case, reference: Response, text: str, verifier: Verifier | None) -> Plan[PairResult]:
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    if len(parts) != 2:
        return (("", ""), ()), (f"separator: found {len(parts) - 1}, expected 1",)
    pair = parts[0], parts[1]
    if empty := [reason for reason, part in zip(_pair_reason("empty"), parts, strict=True) if not part]:
        return (pair, ()), tuple(empty)
    counts = [_count_words(part) for part in parts]
    evidence: Evidence = tuple((f"words_{name}", count) for name, count in zip(AUTHORS, counts, strict=True))
    reasons = list(_find_faults(case, reference, pair))
    if verifier is not None and not reasons:
        answers = [Response(name, (part,)) for name, part in zip(AUTHORS, parts, strict=True)]
        verdicts = yield from gather([verifier.verify(case, reference, answer) for answer in answers])
        for index, (found, measured) in enumerate(verdicts):
            reasons += [_pair_reason(reason)[index] for reason in found]
            evidence += tuple((f"{AUTHORS[index]}_{name}", value) for name, value in measured)
    return (pair, evidence), tuple(reasons)


def _find_faults(case: Case, reference: Response, pair: AnswerPair) -> Iterator[str]:
    if normalise_text(pair[0]) == normalise_text(pair[1]):
        yield "same text"
    shorter, longer = sorted(map(_count_words, pair))
    if longer - shorter > SLACK and longer > MOST_TIMES * shorter:
        times = _count_words(pair[1]) / max(_count_words(pair[0]), 1)
        yield f"length: the second answer is {times:.2g} times as long as the first"
    for index, answer in enumerate(pair):
        if normalise_text(answer) == normalise_text(reference.text):
            yield _pair_reason("copies the reference")[index]
        if _LABEL.match(answer) and not _LABEL.match(reference.text):
            # It would tell a judge which one is which.
            yield _pair_reason("comment about the task: names the answer")[index]
        for reason in inspect(case.prompt, reference.turns, (answer,))[0]:
            if slug(reason) in _KEPT or slug(reason).endswith(" lost"):
                yield _pair_reason(reason)[index]


def _pair_reason(reason: str) -> AnswerPair:
    """A reason about the first answer, and about the second."""
    if ":" in reason:
        return f"{reason} (first answer)", f"{reason} (second answer)"
    return f"{reason}: first answer", f"{reason}: second answer"


def _count_words(text: str) -> int:
    return len(text.split())
