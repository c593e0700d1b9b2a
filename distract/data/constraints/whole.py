"""Kinds about the answer as a whole: its start and end, fixed phrases, repeated or doubled answers, its language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from distract.core.records import Constraint
from distract.data.constraints import spans, text_edits as editing
from distract.data.constraints.kind import TEXT, ConstraintKind
from distract.data.constraints.language import LANGUAGE, NAMES, detect
from distract.data.constraints.text_edits import NEUTRAL, core_span, styler, subsets, substitute


def _break_repeat_prompt(c: Constraint, text: str) -> Iterator[str]:
    """Change the repeated request slightly, or move it behind other words or to the end."""
    low, put = len(text) - len(text.lstrip()), styler(text)
    size = len(c["prompt_to_repeat"].strip())
    request, rest = text[low : low + size], text[low + size :]
    at = low + len(re.match(r"\W{0,99}", request)[0])  # type: ignore[index]
    for opening in ("Please", "So", "Once more:"):
        first = text[at : at + 1].lower() + text[at + 1 :] if re.match(r"[A-Z][a-z]", text[at : at + 2]) else text[at:]
        yield f"{text[:at]}{put(opening)} {first}"
    space = re.search(r"\s", request)
    if space:
        for word in ("now", "please"):
            yield f"{text[: low + space.start()]} {put(word)}{text[low + space.start() :]}"
    yield f"{put('Your request:')} {text}"
    yield f"{rest.strip()}\n\n{request}"
    if rest.strip():
        yield rest.strip()


def _break_two_responses(c: Constraint, text: str) -> Iterator[str]:
    parts = [part for part in text.split("******") if part.strip()]
    for joint in ("", "\n=====\n", "\n***\n", "\nOr:\n"):
        yield f"{parts[0].rstrip()}\n{styler(text)(joint)}\n{parts[-1].lstrip()}"
    yield text.replace("*", "")


def _break_postscript(c: Constraint, text: str) -> Iterator[str]:
    """Remove the marker, but not its text."""
    marker, put = c["postscript_marker"], styler(text)
    pattern = {"P.P.S": r"p\.\s?p\.\s?s\.?", "P.S.": r"p\.\s?s\."}.get(marker, re.escape(marker))
    markers = list(re.finditer(rf"{pattern}:?[^\S\n]*", text, re.I))
    for new in ("", "Also: ", "One more thing: ", "– "):
        yield substitute(text, [(*match.span(), put(new)) for match in markers])
    yield re.sub(pattern, "–", text.lower())


def _break_answer(c: Constraint, text: str) -> Iterator[str]:
    answers = list(re.finditer(r"My answer is (yes|no|maybe)\.", text))
    for opening in ("I would say", "The answer is", "My reply is", ""):
        edits = [
            (*match.span(), f"{opening} {match[1]}." if opening else f"{match[1].capitalize()}.") for match in answers
        ]
        yield substitute(text, edits)
    yield text.replace("My answer", "My reply")


def _break_language(c: Constraint, text: str) -> Iterator[str]:
    """Yield nothing: only a translation would break it."""
    yield from ()


def _break_end_phrase(c: Constraint, text: str) -> Iterator[str]:
    """Add a sentence after the phrase, move the phrase, or change its last mark."""
    (low, high), put = core_span(text), styler(text)
    phrase = c["end_phrase"].strip()
    last = text[low:high].rstrip(' "')
    start = low + len(last) - len(phrase)
    before, final = text[low:start], last[len(last) - len(phrase) :]
    for sentence in NEUTRAL[:3]:
        yield f"{text[:high]} {put(sentence)}{text[high:]}"
    ends = spans.sentence_ends(before)
    for end in ends[:-3:-1]:
        yield f"{text[:low]}{before[:end]} {final}{before[end:].rstrip()}{text[high:]}"
    for (end,) in subsets(ends, 1):
        yield f"{text[:low]}{before[:end]} {final}{before[end:].rstrip()}{text[high:]}"
    if before.strip():
        yield f"{text[:low]}{final} {before.strip()}{text[high:]}"
    for mark in ("!", ".", " …"):
        yield f"{text[: low + len(last)].rstrip('.!?')}{mark}{text[high:]}"
    for clause in ("as it were", "in short"):
        yield from editing.add_clause(text, clause)
    if before.strip():
        yield f"{text[:low]}{before.rstrip()}{text[high:]}"


def _break_quotation(c: Constraint, text: str) -> Iterator[str]:
    """Remove one or both outer marks, but not their text."""
    low, high = len(text) - len(text.lstrip()), len(text.rstrip())
    inner = text[low + 1 : high - 1]
    yield inner
    yield f"“{inner}”"
    yield f"{text[: high - 1]}"
    yield inner + '"'
    yield text.strip().strip('"')
    yield f"{text.rstrip()} {styler(text)(NEUTRAL[0])}"


ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _is_quoted(c: Constraint, text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _describe_repeat(c: Constraint) -> str:
    # A description is one line, even of a request of several lines.
    return f'Begin by repeating this request: "{" ".join(c["prompt_to_repeat"].split())}"'


KINDS: Mapping[str, ConstraintKind] = {
    "combination:repeat_prompt": ConstraintKind(
        lambda c, text: text.strip().lower().startswith(c["prompt_to_repeat"].strip().lower()),
        _describe_repeat,
        _break_repeat_prompt,
        {"prompt_to_repeat": TEXT},
    ),
    "combination:two_responses": ConstraintKind(
        lambda c, text: bool(spans.split_responses(text)),
        lambda c: "Give exactly two different responses, separated by six asterisks: ******.",
        _break_two_responses,
    ),
    "detectable_content:postscript": ConstraintKind(
        lambda c, text: spans.has_postscript(text, c["postscript_marker"]),
        lambda c: f'Add a postscript introduced by "{c["postscript_marker"]}" at the end.',
        _break_postscript,
        {"postscript_marker": TEXT},
    ),
    "detectable_format:constrained_response": ConstraintKind(
        lambda c, text: any(answer in text for answer in ANSWERS),
        lambda c: 'Include one of the sentences "My answer is yes.", "My answer is no." or "My answer is maybe."',
        _break_answer,
    ),
    "language:response_language": ConstraintKind(
        lambda c, text: detect(text) in (c["language"], None),
        lambda c: f"Write the whole answer in {NAMES[c['language']]}.",
        _break_language,
        {"language": LANGUAGE},
    ),
    "startend:end_checker": ConstraintKind(
        lambda c, text: text.strip().strip('"').lower().endswith(c["end_phrase"].strip().lower()),
        lambda c: f'End the answer with the exact phrase "{c["end_phrase"]}" and write nothing after it.',
        _break_end_phrase,
        {"end_phrase": TEXT},
    ),
    "startend:quotation": ConstraintKind(
        _is_quoted, lambda c: "Wrap the whole answer in double quotation marks.", _break_quotation
    ),
}
