"""Kinds about the answer as a whole: its start and end, fixed phrases, repeated or doubled answers, its language."""

from __future__ import annotations

from collections.abc import Mapping

from distract.core.records import Constraint
from distract.data.constraints import break_whole, spans
from distract.data.constraints.kind import TEXT, ConstraintKind
from distract.data.constraints.language import LANGUAGE, NAMES, detect

ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _has_end_phrase(c: Constraint, text: str) -> bool:
    return text.strip().strip('"').lower().endswith(c["end_phrase"].strip().lower())


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
        break_whole.repeat_prompt,
        {"prompt_to_repeat": TEXT},
    ),
    "combination:two_responses": ConstraintKind(
        lambda c, text: bool(spans.split_responses(text)),
        lambda c: "Give exactly two different responses, separated by six asterisks: ******.",
        break_whole.two_responses,
    ),
    "detectable_content:postscript": ConstraintKind(
        lambda c, text: spans.has_postscript(text, c["postscript_marker"]),
        lambda c: f'Add a postscript introduced by "{c["postscript_marker"]}" at the end.',
        break_whole.postscript,
        {"postscript_marker": TEXT},
    ),
    "detectable_format:constrained_response": ConstraintKind(
        lambda c, text: any(answer in text for answer in ANSWERS),
        lambda c: 'Include one of the sentences "My answer is yes.", "My answer is no." or "My answer is maybe."',
        break_whole.answer,
    ),
    "language:response_language": ConstraintKind(
        lambda c, text: detect(text) in (c["language"], None),
        lambda c: f"Write the whole answer in {NAMES[c['language']]}.",
        break_whole.language,
        {"language": LANGUAGE},
    ),
    "startend:end_checker": ConstraintKind(
        _has_end_phrase,
        lambda c: f'End the answer with the exact phrase "{c["end_phrase"]}" and write nothing after it.',
        break_whole.end_phrase,
        {"end_phrase": TEXT},
    ),
    "startend:quotation": ConstraintKind(
        _is_quoted, lambda c: "Wrap the whole answer in double quotation marks.", break_whole.quotation
    ),
}
