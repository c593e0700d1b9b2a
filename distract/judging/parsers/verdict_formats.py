"""The formats in which a verdict may be asked for: how each is written, and how it is read."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

from distract.judging.parsers.answer import cut_invented_turns, normalise_text, strip_thoughts
from distract.judging.parsers.own_words import Material, mask_quotations
from distract.judging.parsers.statements import Statement, final_verdict
from distract.judging.parsers.vocabulary import LONGEST, is_announcement, is_wordless

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing a verdict.

    Attributes:
        name: of the format.
        say: a label as a judge is asked to write it.
        bare: the pattern of an answer that is nothing but a label, whose one group is ``label``'s.
        label: which of the labels is written so.
        state: an answer with its quotations masked, and its verdicts; of its own words, the labels, what may be quoted,
            and whether it was cut.
    """

    name: str
    say: Callable[[str], str]
    bare: Callable[[Labels], str]
    label: Callable[[str, Labels], str | None]
    state: Callable[[str, Labels, Sequence[str], bool], tuple[str, list[Statement]]]

    def read(self, text: str, labels: Labels, material: Sequence[str] = (), cut: bool = False) -> str | None:
        """The final verdict in an answer.

        Args:
            text: the whole answer, with the given start of it.
            labels: what was on offer; for a ranking what is to be ranked.
            material: responses and prompt: what the judge may quote, and what then does not decide.
            cut: whether the answer ended for its length.

        Returns:
            One of the labels (for a ranking such as ``B>A=C``), or None where there is no such verdict.
        """
        own = cut_invented_turns(normalise_text(strip_thoughts(text)))
        bare = _read_bare(own, self.bare(labels)) or _read_json_value(own, self.bare(labels))
        if bare and (not cut or (own.startswith("[[") and sum(label.startswith(bare) for label in labels) < 2)):
            return self.label(bare, labels)
        return final_verdict(*self.state(own, labels, [_normalise_material(one) for one in material], cut))


_normalise_material = lru_cache(maxsize=1024)(normalise_text)
"""What may be quoted is the same of many answers."""


def _read_bare(text: str, pattern: str) -> str | None:
    """The label where nothing else is said."""
    if len(text) > LONGEST:
        return None
    bare = re.fullmatch(rf"(?i)([^\n\]]*?)(?<![-−.])(?<![^\W_]){pattern}(?:(?!\?)[\W_])*", text)
    return bare[2] if bare and (is_wordless(bare[1]) or is_announcement(bare[1], bare[2])) else None


def _read_json_value(text: str, pattern: str) -> str | None:
    """The label in brackets that is a value of an answer which is a JSON object, under keys that announce it."""
    try:
        pairs = json.loads(re.sub(r"\A```\w*\n|\n```\Z", "", text), strict=False, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    pairs = pairs if text.lstrip("`json\n").startswith("{") else []
    said = {
        value
        for key, value in pairs
        if isinstance(value, str) and "[[" in value and is_announcement(key.replace("_", " "))
    }
    return _read_bare(said.pop(), pattern) if len(said) == 1 else None


def _match_label(label: str, labels: Labels) -> str | None:
    label = re.sub(r"(?i)\A(?:response|assistant)\s+", "", label.strip(" *_\"'`"))
    return next((one for one in labels if one.lower() == label.lower()), None)


_NUMBER = r"[-+−]?(?:\d++(?:[.,]\d++)?|[.,]\d++)"
_ITEM = rf"[*_\"'`]{{0,2}}(?:(?:response|assistant|rating|score)[:\s]\s*)?(?:[^\W\d_]|{_NUMBER})[*_\"'`]{{0,2}}"
_BRACKETS = re.compile(
    rf"(?i)(?:(?<![A-Za-z0-9_)\]$])|(?<=\]\])|(?<=rating)|(?<=score)|(?<=verdict)|(?<=\bis)|(?<=answer)|(?<=choice))"
    rf"\[\[\s*({_ITEM}(?:\s*(?:[><=]{{1,2}}|[/|,&–-]|to|or|and|out of)\s*{_ITEM}){{0,20}}|tie|draw|none|neither|both|"
    rf"n/?a)\s*\]\](\s*(?:/|out of)\s*\d+|\.\d+)?"
)
"""Labels on offer and what looks like one; other text between such brackets is no verdict."""


def _find_bracketed(
    label: Callable[[str, Labels], str | None], text: str, labels: Labels, material: Sequence[str], _: bool
) -> tuple[str, list[Statement]]:
    own = mask_quotations(text, _BRACKETS, material)
    statements = []
    for one in _BRACKETS.finditer(own):
        on_offer = not one[2] or re.fullmatch(rf"\s*(?:/|out of)\s*{labels[-1]}", one[2])
        statements.append(Statement(label(one[1], labels) if on_offer else None, one.start(), one.end()))
    return own, statements


def _label_pattern(labels: Labels) -> str:
    if labels[0].isdigit():
        return rf"(\d+)(?:\s*(?:/|out of)\s*{labels[-1]})?"
    return r"(?:response |assistant )?([a-z])"


def _read_bracketed(said: str, labels: Labels) -> str | None:
    of = re.fullmatch(r"(?:(?:rating|score)[:\s]\s*)?(\d+)(?:\.0+)?(?:\s*(?:/|out of)\s*(\d+))?", said, re.IGNORECASE)
    return _match_label(of[1] if of and of[2] in (None, labels[-1]) else said, labels)


_MARK = r"[*_\"'`]{0,3}"
_OUTPUT = re.compile(
    rf"(?i)\boutput\s*\(\s*{_MARK}([ab]){_MARK}\s*\)(?P<said>{_MARK}\s+is\s+{_MARK}(?:\w+\s+){{0,2}}better\b{_MARK})?"
)
_LINE = re.compile(
    rf"(?im)^{_MARK}output\s*\(\s*([ab])\s*\){_MARK}[.!]?{_MARK}"
    r"(?: ?\((?!\W*[ab]\W*\)|.*\b(?:output|wrong|incorrect|wors\w+)\b).*\)[.!]?)?$"
)
_ASKED = re.compile(r"(?i)\btherefore\b")
_STOP = re.compile(r"[.!?\n]")
_BEGUN = re.compile(rf"(?i)\btherefore,?\s+{_MARK}output\s*\(\s*([ab])\s*\){_MARK}\Z")


def _find_outputs(text: str, labels: Labels, material: Sequence[str], cut: bool) -> tuple[str, list[Statement]]:
    own = mask_quotations(text, _OUTPUT, material)
    lines = list(_LINE.finditer(own))
    # An output that stands alone counts in the first or last line, where no other stands alone in any.
    ends = [one for one in lines if one.start() == 0 or (one.end() == len(own) and not cut)]
    is_alone = len({one[1].lower() for one in lines}) == 1
    statements = [Statement(_match_label(one[1], labels), one.start(), one.end(1) + 1) for one in ends[:is_alone]]
    begun = _BEGUN.search(own[-60:]) if cut else None
    alone = {one.label for one in statements}
    stops, asked = (
        [-1, *(found.start() for found in _STOP.finditer(own))],
        [-1, *(found.end() for found in _ASKED.finditer(own))],
    )
    for one in _OUTPUT.finditer(own):
        if not re.search(r"\b(?:better|best|winner)\b", own[max(0, one.start() - 60) : one.end(1) + 100]):
            continue
        # Of a cut answer the asked-for sentence counts; or another, where that one had begun and names the same, or
        # that speaks against one that stands alone.
        is_begun = asked[bisect_right(asked, one.start()) - 1] > stops[bisect_left(stops, one.start()) - 1]
        following = bisect_left(stops, one.end())
        is_asked = is_begun and following < len(stops) and own[stops[following]] in ".!"
        is_against = bool(alone - {_match_label(one[1], labels)})
        if not cut or is_asked or is_against or (begun and begun[1].lower() == one[1].lower()):
            end = one.start("said") if one["said"] else one.end()
            statements.append(Statement(_match_label(one[1], labels), one.start(), end, named=True))
    return own, sorted(statements, key=attrgetter("start"))


def _read_grade(said: str, labels: Labels) -> str | None:
    sides = re.fullmatch(r"([A-Za-z])\s*([<>]{1,2})\s*([A-Za-z])", said)
    if not sides or len(set(sides[2])) > 1:
        return None
    better, worse = (sides[1], sides[3]) if sides[2][0] == ">" else (sides[3], sides[1])
    return _match_label(better, labels) if {better.upper(), worse.upper()} == {one.upper() for one in labels} else None


def read_ranking(text: str, labels: Labels) -> str | None:
    """An order such as ``b > A = C`` as ``B>A=C``; None where it is none of all the labels, each once."""
    tiers = [[part.strip().upper() for part in tier.split("=")] for tier in text.split(">")]
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return None
    return ">".join("=".join(sorted(tier)) for tier in tiers)


def _find_objects(text: str) -> Iterator[tuple[int, int, list[tuple[str, Any]]]]:
    """The outermost JSON objects in a text: where each begins and ends, and its pairs."""
    at = text.find("{")
    while at >= 0:
        value, end = _decode_object(text, at)
        if value is not None:
            yield at, end, value
        at = text.find("{", end)


def _decode_object(text: str, at: int) -> tuple[list[tuple[str, Any]] | None, int]:
    """The JSON object that begins at a place, None where there is none, and where to look on.

    An error counts the lines before it, so that no more of the text is shown to the decoder than it has use for.
    """
    size = 500
    while True:
        part = text[at : at + size]
        try:
            value, end = _DECODER.raw_decode(part)
            return value, at + end
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or error.pos > len(part) - _NEAR
            if not is_cut or at + size >= len(text):
                return None, at + 1
        except (ValueError, RecursionError):
            return None, at + 1
        size *= 8


# Not strict: models write long texts with bare line ends.
_DECODER = json.JSONDecoder(object_pairs_hook=list, strict=False)
_NEAR = 12
"""Characters before the end of a part in which an error may only mean that the rest is missing."""
_GOES_ON = re.compile(r"[\w\"'”’»]")
_TEMPLATE = re.compile(r"(?i)\bor\b|[/|<…]|\.\.")


def _find_choices(text: str, labels: Labels, material: Sequence[str], _: bool) -> tuple[str, list[Statement]]:
    quoted = Material(material, _BRACKETS)
    statements = []
    for start, end, pairs in _find_objects(text):
        choices = [value for name, value in pairs if isinstance(name, str) and name.strip().lower() == "choice"]
        if not choices or (isinstance(choices[0], str) and _TEMPLATE.search(choices[0])):
            continue
        if quoted.has(text[start:end]) and not _is_closing(text, start, end):
            continue
        same = isinstance(choices[0], str) and all(one == choices[0] for one in choices)
        statements.append(Statement(_match_label(choices[0], labels) if same else None, start, end))
    return text, statements


def _is_closing(text: str, start: int, end: int) -> bool:
    """Whether a part of an answer ends it, in lines of its own or announced as the verdict."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return not _GOES_ON.search(text, end) and (not re.search(r"\w", line) or is_announcement(line))


def _letter_pattern(labels: Labels) -> str:
    return "([a-z])"


def _format_brackets(label: str) -> str:
    return f"[[{label}]]"


OUTPUT = Format(
    "output",
    "Therefore, Output ({}) is better.".format,
    lambda labels: r"(?:output\s*)?\(?\s*([ab])\s*\)?",
    _match_label,
    _find_outputs,
)
BRACKETS = Format(
    "brackets", _format_brackets, _label_pattern, _read_bracketed, partial(_find_bracketed, _read_bracketed)
)
GRADED = Format(
    "graded",
    lambda label: f"My final verdict is: [[{label}>{'B' if label == 'A' else 'A'}]]",
    lambda labels: r"([a-z]\s*>{1,2}\s*[a-z])",
    _read_grade,
    partial(_find_bracketed, _read_grade),
)
JSON = Format("json", lambda label: json.dumps({"choice": label}), _letter_pattern, _match_label, _find_choices)
LETTER = Format(
    "letter",
    str,
    _letter_pattern,
    lambda said, labels: said if said in labels else None,
    lambda text, labels, material, cut: (text, []),
)
RANKING = Format(
    "ranking",
    _format_brackets,
    lambda labels: r"([a-z](?:\s*[>=]\s*[a-z])+)",
    read_ranking,
    partial(_find_bracketed, read_ranking),
)
