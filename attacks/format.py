"""Format: the same words in Markdown, lists, bold, headings, separate lines, emoji or JSON, and in plain text again.

Every edit adds or removes marks around words; a format requirement that one would break or repair leaves it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from distract import Attack, Constraint, constraints, facts

from .rules import Candidate, Text, apply, order_options

NAMES, MORE = ("Answer", "Overview", "Response"), ("Details", "More")
"""Headings above a text, and above its third paragraph."""

PAPERS = "arXiv 2604.23178; BITE, arXiv 2605.26156"
EMOJI = ("✅", "🌟", "💡", "🎉", "👍", "🚀", "📌", "🔑")

# "million" in "65 million", or "February" in "February 29", is half of a figure.
_TERM = re.compile(r"(?<!\d )(?<![\w*_`-])[A-Za-z]{6,30}(?![\w*_`-]| \d)")
_HEADING = re.compile(r"(?m)^(?:#|<<)")
_PARAGRAPH = re.compile(r"\n\n(?=[^\s<>|])(?=[^\n]{0,200}[ ][^\n]{0,200}[.!?:])")
_LINK = re.compile(
    r"\w+ly|perhaps|because|however|although|though|through|throughout|without|within|between|another|whether|instead|"
    r"therefore|moreover|sometimes|together|already|against|towards?|beneath|despite|usually|someone|anyone|everyone|"
    r"something|anything|everything|nothing|whatever|whenever|wherever|yourself|themselves|"
    r"should|would|could|before|around|others|really|rather|please|myself|himself|herself|itself|always|hundred|thousand|"
    r"[mb]illion|eleven|twelve|\w+teen|\w+ty",
    re.I,
)
_MARKS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\*\*(?=\S)([^*\n]{1,300})(?<=\S)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300})(?<=[^\s*])\*(?![\w*])"), r"\1"),
    (re.compile(r"(?m)^#{1,6}[ \t]+(?=\S)"), ""),
    (re.compile(r"(?m)^[ \t]{0,3}[-*+•][ \t]+(?=[^\s\d])"), ""),
    (re.compile(r"(?m)^>[ \t]?(?=\S)"), ""),
)

Change = Callable[[Text, int], list[Candidate]]


def _paragraphs(text: Text) -> list[list[tuple[int, int]]]:
    """Group the plain sentences that fill a line, at least two of them."""
    groups: list[list[tuple[int, int]]] = []
    for start, end in text.plain:
        is_next = groups and text.text[groups[-1][-1][1] : start] == " "
        groups[-1:] = [[*groups[-1], (start, end)]] if is_next else [*groups[-1:], [(start, end)]]
    return [
        group
        for group in groups
        if len(group) > 1
        and text.text[: group[0][0]].endswith(("", "\n")[group[0][0] > 0])
        and text.text[group[-1][1] : group[-1][1] + 1] in ("", "\n")
    ]


def _split(text: Text, mark: str, between: str) -> list[Candidate]:
    """Put each sentence of a paragraph on a line of its own, after a mark."""
    return [
        ((group[0][0], group[-1][1], between.join(mark + text.text[start:end] for start, end in group)),)
        for group in _paragraphs(text)
    ]


def _list_sentences(text: Text, seed: int) -> list[Candidate]:
    return _split(text, "- ", "\n")


def _break_lines(text: Text, seed: int) -> list[Candidate]:
    return _split(text, "", "\n\n")


def _embolden(text: Text, seed: int) -> list[Candidate]:
    """Put the longest word of each sentence in bold, each word once, and no adverb or conjunction."""
    candidates, words = list[Candidate](), set[str]()
    for start, end in text.sentences:
        terms = [match for match in _TERM.finditer(text.text, start, end) if text.free(*match.span())]
        fresh = [match for match in terms if match[0].casefold() not in words and not _LINK.fullmatch(match[0])]
        if fresh:
            term = max(fresh, key=lambda match: len(match[0]))
            words.add(term[0].casefold())
            candidates.append(((*term.span(), f"**{term[0]}**"),))
    return candidates


def _add_headings(text: Text, seed: int) -> list[Candidate]:
    """Put a heading above the text and above its third paragraph, unless it has any or is a quotation."""
    low, _ = facts.core(text.text)
    if text.text[:low].strip() or _HEADING.search(text.text):
        return []
    names = text.adapt_all(order_options(NAMES, seed, "heading"))
    first: Candidate = tuple((low, low, f"## {name}\n\n") for name in names)
    breaks = [match.end() for match in _PARAGRAPH.finditer(text.text) if text.free(match.end(), match.end())]
    more = [tuple((at, at, f"## {name}\n\n") for name in text.adapt_all(MORE)) for at in breaks[1:2]]
    return [first, *more]


def _add_emoji(text: Text, seed: int) -> list[Candidate]:
    emoji = order_options(EMOJI, seed, "emoji")
    ends = [end for _, end in text.sentences] or [facts.core(text.text)[1]]
    return [((end, end, f" {emoji[at % len(emoji)]}"),) for at, end in enumerate(ends) if text.free(end, end)]


def _remove_marks(text: Text, seed: int) -> list[Candidate]:
    code = facts.code_spans(text.text)
    return [
        ((*match.span(), match.expand(new)),)
        for pattern, new in _MARKS
        for match in pattern.finditer(text.text)
        if not any(start < match.end() and match.start() < end for start, end in code)
    ]


def make_format(name: str, summary: str, *changes: Change, **declared: Any) -> Attack:
    """Make an attack of these changes, one after the other."""

    def rewrite(turn: str, required: tuple[Constraint, ...], seed: int) -> str:
        for change in changes if turn.strip() else ():
            turn = apply(turn, change(Text(turn), seed), required)
        return turn

    headings = [f"## {name}" for name in (*NAMES, *MORE)]
    settings: dict[str, Any] = {"paper": PAPERS, **declared}
    return Attack(name, summary, rewrite, keeps="words", family="format", adds=tuple(headings), **settings)


def _wrap_in_json(turn: str, required: tuple[Constraint, ...], seed: int) -> str:
    wrapped = json.dumps({"answer": turn}, ensure_ascii=False, indent=2)
    is_kept = all(constraints.check(one, turn) == constraints.check(one, wrapped) for one in required)
    return wrapped if is_kept and turn.strip() else turn


def _unwrap_json(turn: str) -> str:
    return str(json.loads(turn)["answer"])


bullets = make_format("bullets", "the sentences of a paragraph as a bullet list", _list_sentences)
bold = make_format("bold", "key terms in bold", _embolden)
headings = make_format("headings", "neutral headings", _add_headings)
newlines = make_format("newlines", "each sentence in a paragraph of its own", _break_lines)
emoji = make_format("emoji", "emoji after sentences", _add_emoji)
markdown = make_format("markdown", "headings, bullet lists and bold terms", _list_sentences, _embolden, _add_headings)
prose = make_format("prose", "Markdown back to plain text", _remove_marks)
json_ = Attack(
    "json",
    "the answer inside a JSON object",
    _wrap_in_json,
    keeps="text",
    restore=_unwrap_json,
    family="format",
    paper=PAPERS,
)
