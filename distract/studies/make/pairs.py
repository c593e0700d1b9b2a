"""A better and a worse answer to the same prompt from a reference answer (CALM).

Both should be correct, complete and about equally long; the worse one lacks user satisfaction, coherence and clarity.
Rules check the form, the lengths, and that no fact of the reference is lost. They cannot check that the worse answer is
worse or that both are right; a verifier, if there is one, checks the latter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from distract.core.plan import Plan, gather
from distract.core.prompts import Prompt, load
from distract.core.records import Case, Evidence, Response, slug
from distract.data.good_responses import good_response
from distract.rewriting.fidelity import find_form_flaws
from distract.rewriting.fidelity.claims import find_remarks
from distract.rewriting.fidelity.facts import find_fact_changes, normalise_text
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.make.attempts import MakeResult, ask_generator

AUTHORS = ("better", "worse")
SOURCE = "make-pairs"
MOST_TIMES = 2.0
"""Maximum ratio between the word counts of the two answers."""

SLACK = 10
"""A difference of at most this many words is accepted: two short answers may well have three and seven."""

LEAST_ROOM = 400
"""Minimum number of bytes from which to derive the token limit: a reference of one word does not show how long answers
are."""

_SEPARATOR = re.compile(r"(?m)^[ \t]*\|\|\|[ \t\r]*$")
_LABEL = re.compile(
    r"\A\W*(?:the )?(?:(?:better|worse|good|bad|first|second) (?:answer|response|version|text)"
    r"|(?:answer|response|version|text) (?:1|2|one|two|a|b)|better|worse)[^\w\n]*(?::|\n|\Z)",
    re.IGNORECASE,
)
"""Fidelity's reasons that apply to answers too, apart from lost facts."""

AnswerPair = tuple[str, str]
PairResult = tuple[tuple[AnswerPair, Evidence], tuple[str, ...]]
Comparison = Callable[[Case, Response, Response], Plan[tuple[tuple[str, ...], Evidence]]]
"""Returns reasons to reject the second of two answers, and measurements."""


def prompt_file() -> Prompt:
    """Load the prompt."""
    return load("distract.studies.make", "pair")


def make_pair(
    case: Case, asking: GeneratorOptions, author: str, seed: int, compare: Comparison | None = None
) -> Plan[MakeResult]:
    """Make a case of a better and a worse answer from a case's good response (CALM, answers from a reference)."""
    reference = good_response(case)
    if len(case.prompt) > 1:
        return MakeResult(None, ("more than one turn",))
    if reference is None or not reference.text.strip():
        return MakeResult(None, ("no reference: no response is labelled better or known to meet the constraints",))
    known: Response = reference

    def read(text: str) -> Plan[PairResult]:
        return _read(case, known, text, compare)

    slots = {"question": case.prompt[0], "reference": known.text}
    like = (known.text * 2).ljust(LEAST_ROOM)
    answers, reasons, attempts = yield from ask_generator(prompt_file(), slots, read, asking, seed, like)
    evidence: Evidence = (
        ("attempts", attempts),
        ("generator", author),
        ("words_reference", _count_words(known.text)),
    )
    if answers is None:
        return MakeResult(None, reasons, evidence)
    texts, measured = answers
    responses = tuple(Response(name, (text,)) for name, text in zip(AUTHORS, texts, strict=True))
    pair = Case(case.id, case.prompt, responses, preferred=AUTHORS[0], criterion=case.criterion, source=SOURCE)
    return MakeResult(pair, (), (*evidence, *measured))


def _read(case: Case, reference: Response, text: str, compare: Comparison | None) -> Plan[PairResult]:
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    if len(parts) != 2:
        return (("", ""), ()), (f"separator: found {len(parts) - 1}, expected 1",)
    pair = parts[0], parts[1]
    if empty := [reason for reason, part in zip(_pair_reason("empty"), parts, strict=True) if not part]:
        return (pair, ()), tuple(empty)
    evidence: Evidence = tuple((f"words_{name}", _count_words(part)) for name, part in zip(AUTHORS, parts, strict=True))
    reasons = list(_find_faults(case, reference, pair))
    if compare is not None and not reasons:
        answers = [Response(name, (part,)) for name, part in zip(AUTHORS, parts, strict=True)]
        verdicts = yield from gather([compare(case, reference, answer) for answer in answers])
        for index, (faults, measured) in enumerate(verdicts):
            reasons += [_pair_reason(fault)[index] for fault in faults]
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
            # It would reveal to a judge which answer is better.
            yield _pair_reason("comment about the task: names the answer")[index]
        lost = (reason for reason in find_fact_changes(reference.text, answer) if slug(reason).endswith(" lost"))
        for reason in (*lost, *find_form_flaws(reference.text, answer), *find_remarks(reference.text, answer)):
            yield _pair_reason(reason)[index]


def _pair_reason(reason: str) -> AnswerPair:
    """Word a reason for the first answer, and for the second."""
    if ":" in reason:
        return f"{reason} (first answer)", f"{reason} (second answer)"
    return f"{reason}: first answer", f"{reason}: second answer"


def _count_words(text: str) -> int:
    return len(text.split())
