"""The verdict formats: how a judge is asked to write a verdict, and how its answer is read."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from distract.judging.parsers.vocabulary import LONGEST, is_announcement, is_wordless

_TAG = re.compile(r"(?i)(?:<|(?<!\[)\[)(/?)((?:seed:)?(?:think|thinking|thought|reasoning))(?:>|\](?!\]))")
# A tag that is only mentioned: between quotation marks, or in the middle of a sentence.
_MENTIONED_BEFORE = re.compile(r"[\"'`“‘«]\Z")
_MENTIONED_AFTER = re.compile(r"[\"'`”’»]|\s?[,;:.)]|[ ]+[a-z]")
_CODE = re.compile(r"(?<=\n\n)(?:(?: {4}|\t)(?![ ]*(?:[-*+#]|\d+[.)])\s).*(?:\n|\Z))+")
_ESCAPED = re.compile(r"\\(?=[\[\]<>=])")
_UNSEEN = re.compile(r"[\u200b-\u200d\u2060\ufeff\x00]")
_SPACE = re.compile(r"[^\S\n]+")
_TURN = re.compile(
    r"(?im)<\|(?:im_end|im_start|eot_id|end|endoftext|user|start_header_id)\b|</s>|^[^\w\n]*+(?:(?<=<)(?:user|human)>|"
    r"(?:(?<=\[)|(?<=\[/))(?:INST|user|system|question|instruction|the start of)\b|(?:human|user)\W*:|"
    r"(?:(?<=#)|(?<=# ))(?:instructions?|input|response|question|user|human|assistant|system)\W*$)"
)
"""The end of an answer, or the start of another speaker's turn."""
_LINES = re.compile(r" ?\n\s*")


def strip_thoughts(text: str) -> str:
    """Remove thoughts from an answer; thoughts that never end run to the end of the text."""
    if text.startswith("analysis") and "assistantfinal" in text:
        # Remove the channels of gpt-oss, without their marks, which some servers leave out.
        text = text.partition("assistantfinal")[2]
    tags = list(_TAG.finditer(text))
    last = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    parts, start, thinking, has_thoughts, before = [], 0, "", False, 0
    for tag in tags:
        name, end = tag[2].lower(), tag.end()
        # An earlier tag on the line is not white space, so the text before it does not have to be searched again.
        line, before = text.rfind("\n", before, tag.start()) + 1 or before, tag.start()
        if thinking:
            if tag[1] and name == thinking:
                thinking, start = "", end
        elif not tag[1]:
            is_fresh = not text[line : tag.start()].strip()
            if not _is_quoted(text, tag) and (is_fresh or last.get(name, -1) > end):
                parts.append(text[start : tag.start()])
                thinking, has_thoughts = name, True
        elif not has_thoughts and not _is_quoted(text, tag) and not _MENTIONED_AFTER.match(text, end):
            # Some servers leave out the opening tag.
            parts, start = [], end
    return " ".join(parts if thinking else [*parts, text[start:]])


def cut_invented_turns(text: str) -> str:
    """Cut an answer before the next turn that a model invents."""
    for turn in _TURN.finditer(text):
        if re.search(r"\w", text[: turn.start()]) or "# instruction" in turn[0].lower():
            return text[: turn.start()].rstrip()
    return text


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    return _MENTIONED_BEFORE.search(text, max(0, tag.start() - 1), tag.start()) is not None


def normalise_text(text: str) -> str:
    """Replace each run of white space by one space or new line, and quote indented code with ``>``."""
    text = unicodedata.normalize("NFKC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _CODE.sub(lambda code: re.sub(r"(?m)^(?: {4}|\t)", "> ", code[0]), _UNSEEN.sub("", text))
    return _LINES.sub("\n", _SPACE.sub(" ", _ESCAPED.sub("", text))).strip()


if TYPE_CHECKING:
    from distract.judging.parsers.statements import Statement

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing a verdict.

    Attributes:
        name: Name of the format.
        say: Writes a label as a judge is asked to.
        bare: Makes the pattern of an answer that is only a label; its one group is the input of ``label``.
        label: Finds the label that is written in this way.
        state: Masks the quotations of an answer and finds its verdicts, from the answer, the labels, the texts that it
            may quote and whether it was cut.
    """

    name: str
    say: Callable[[str], str]
    bare: Callable[[Labels], str]
    label: Callable[[str, Labels], str | None]
    state: Callable[[str, Labels, Sequence[str], bool], tuple[str, list[Statement]]]

    def read(self, text: str, labels: Labels, material: Sequence[str] = (), cut: bool = False) -> str | None:
        """Read the final verdict in an answer.

        Args:
            text: Whole answer, including its prefill.
            labels: Possible labels; for a ranking, the items to rank.
            material: Responses and prompt, which the judge may quote. A quoted verdict does not count.
            cut: Whether the answer reached its token limit.

        Returns:
            One of the labels (for a ranking, an order such as ``B>A=C``), or None for no verdict.
        """
        own = cut_invented_turns(normalise_text(strip_thoughts(text)))
        bare = _read_bare(own, self.bare(labels)) or _read_json_value(own, self.bare(labels))
        if bare and (not cut or (own.startswith("[[") and sum(label.startswith(bare) for label in labels) < 2)):
            return self.label(bare, labels)
        from distract.judging.parsers.statements import final_verdict

        return final_verdict(*self.state(own, labels, [_normalise_material(quotable) for quotable in material], cut))


_normalise_material = lru_cache(maxsize=1024)(normalise_text)
"""Size of the cache: many answers may quote the same texts."""


def _read_bare(text: str, pattern: str) -> str | None:
    """Return the label of an answer that says nothing else."""
    if len(text) > LONGEST:
        return None
    bare = re.fullmatch(rf"(?i)([^\n\]]*?)(?<![-−.])(?<![^\W_]){pattern}(?:(?!\?)[\W_])*", text)
    return bare[2] if bare and (is_wordless(bare[1]) or is_announcement(bare[1], bare[2])) else None


def _read_json_value(text: str, pattern: str) -> str | None:
    """Return the bracketed label in a JSON object, if its key announces it."""
    try:
        pairs = json.loads(re.sub(r"\A```\w*\n|\n```\Z", "", text), strict=False, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    pairs = pairs if text.lstrip("`json\n").startswith("{") else []
    values = {
        value
        for key, value in pairs
        if isinstance(value, str) and "[[" in value and is_announcement(key.replace("_", " "))
    }
    return _read_bare(values.pop(), pattern) if len(values) == 1 else None


def _match_label(label: str, labels: Labels) -> str | None:
    label = re.sub(r"(?i)\A(?:response|assistant)\s+", "", label.strip(" *_\"'`"))
    return next((known for known in labels if known.lower() == label.lower()), None)


_NUMBER = r"[-+−]?(?:\d++(?:[.,]\d++)?|[.,]\d++)"
_ITEM = rf"[*_\"'`]{{0,2}}(?:(?:response|assistant|rating|score)[:\s]\s*)?(?:[^\W\d_]|{_NUMBER})[*_\"'`]{{0,2}}"
_BRACKETS = re.compile(
    rf"(?i)(?:(?<![A-Za-z0-9_)\]$])|(?<=\]\])|(?<=rating)|(?<=score)|(?<=verdict)|(?<=\bis)|(?<=answer)|(?<=choice))"
    rf"\[\[\s*({_ITEM}(?:\s*(?:[><=]{{1,2}}|[/|,&–-]|to|or|and|out of)\s*{_ITEM}){{0,20}}|tie|draw|none|neither|both|"
    rf"n/?a)\s*\]\](\s*(?:/|out of)\s*\d+|\.\d+)?"
)
"""Labels on offer and anything that looks like one; other text in double brackets is not a verdict."""


def _find_bracketed(
    label: Callable[[str, Labels], str | None], text: str, labels: Labels, material: Sequence[str], _: bool
) -> tuple[str, list[Statement]]:
    from distract.judging.parsers.own_words import mask_quotations
    from distract.judging.parsers.statements import Statement

    own = mask_quotations(text, _BRACKETS, material)
    statements = []
    for match in _BRACKETS.finditer(own):
        is_on_offer = not match[2] or re.fullmatch(rf"\s*(?:/|out of)\s*{labels[-1]}", match[2])
        statements.append(Statement(label(match[1], labels) if is_on_offer else None, match.start(), match.end()))
    return own, statements


def _label_pattern(labels: Labels) -> str:
    if labels[0].isdigit():
        return rf"(\d+)(?:\s*(?:/|out of)\s*{labels[-1]})?"
    return r"(?:response |assistant )?([a-z])"


def _read_bracketed(text: str, labels: Labels) -> str | None:
    rating = re.fullmatch(
        r"(?:(?:rating|score)[:\s]\s*)?(\d+)(?:\.0+)?(?:\s*(?:/|out of)\s*(\d+))?", text, re.IGNORECASE
    )
    return _match_label(rating[1] if rating and rating[2] in (None, labels[-1]) else text, labels)


_MARK = r"[*_\"'`]{0,3}"
_OUTPUT = re.compile(
    rf"(?i)\boutput\s*\(\s*{_MARK}([ab]){_MARK}\s*\)(?P<better>{_MARK}\s+is\s+{_MARK}(?:\w+\s+){{0,2}}better\b{_MARK})?"
)
_LINE = re.compile(
    rf"(?im)^{_MARK}output\s*\(\s*([ab])\s*\){_MARK}[.!]?{_MARK}"
    r"(?: ?\((?!\W*[ab]\W*\)|.*\b(?:output|wrong|incorrect|wors\w+)\b).*\)[.!]?)?$"
)
_THEREFORE = re.compile(r"(?i)\btherefore\b")
_STOP = re.compile(r"[.!?\n]")
_BEGUN = re.compile(rf"(?i)\btherefore,?\s+{_MARK}output\s*\(\s*([ab])\s*\){_MARK}\Z")


def _find_outputs(text: str, labels: Labels, material: Sequence[str], cut: bool) -> tuple[str, list[Statement]]:
    from distract.judging.parsers.own_words import mask_quotations
    from distract.judging.parsers.statements import Statement

    own = mask_quotations(text, _OUTPUT, material)
    lines = list(_LINE.finditer(own))
    # An output alone on a line counts in the first or last line, unless there is another output alone on a line.
    ends = [line for line in lines if line.start() == 0 or (line.end() == len(own) and not cut)]
    is_alone = len({line[1].lower() for line in lines}) == 1
    statements = [Statement(_match_label(line[1], labels), line.start(), line.end(1) + 1) for line in ends[:is_alone]]
    alone = {statement.label for statement in statements}
    # The requested sentence is "Therefore, Output (a) is better."
    begun = _BEGUN.search(own[-60:]) if cut else None
    stops = [-1, *(stop.start() for stop in _STOP.finditer(own))]
    therefores = [-1, *(word.end() for word in _THEREFORE.finditer(own))]
    for match in _OUTPUT.finditer(own):
        start, label = match.start(), _match_label(match[1], labels)
        if not re.search(r"\b(?:better|best|winner)\b", own[max(0, start - 60) : match.end(1) + 100]):
            continue
        # In a cut answer only the requested sentence counts, with two exceptions: a sentence with the same output as a
        # requested one that had begun, and a sentence that contradicts an output alone on its line.
        has_therefore = therefores[bisect_right(therefores, start) - 1] > stops[bisect_left(stops, start) - 1]
        following = bisect_left(stops, match.end())
        is_requested = has_therefore and following < len(stops) and own[stops[following]] in ".!"
        if not cut or is_requested or alone - {label} or (begun and begun[1].lower() == match[1].lower()):
            end = match.start("better") if match["better"] else match.end()
            statements.append(Statement(label, start, end, is_name=True))
    return own, sorted(statements, key=attrgetter("start"))


def _read_grade(text: str, labels: Labels) -> str | None:
    sides = re.fullmatch(r"([A-Za-z])\s*([<>]{1,2})\s*([A-Za-z])", text)
    if not sides or len(set(sides[2])) > 1:
        return None
    better, worse = (sides[1], sides[3]) if sides[2][0] == ">" else (sides[3], sides[1])
    return (
        _match_label(better, labels) if {better.upper(), worse.upper()} == {label.upper() for label in labels} else None
    )


def read_ranking(text: str, labels: Labels) -> str | None:
    """Read an order such as ``b > A = C`` as ``B>A=C``; None unless it has every label once."""
    tiers = [[part.strip().upper() for part in tier.split("=")] for tier in text.split(">")]
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return None
    return ">".join("=".join(sorted(tier)) for tier in tiers)


def find_objects(text: str) -> Iterator[tuple[int, int, list[tuple[str, Any]]]]:
    """Find the outermost JSON objects in a text, each with its start, end and pairs."""
    at = text.find("{")
    while at >= 0:
        value, end = _decode_object(text, at)
        if value is not None:
            yield at, end, value
        at = text.find("{", end)


def _decode_object(text: str, at: int) -> tuple[list[tuple[str, Any]] | None, int]:
    """Return the JSON object at a position, or None, and the position to continue from.

    The decoder gets a small part first: an error makes it count all lines before, which is slow in a long text.
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


# The decoder is not strict: models write long texts with bare line ends.
_DECODER = json.JSONDecoder(object_pairs_hook=list, strict=False)
_NEAR = 12
"""An error this close to the end of a part may only mean that the rest is missing."""
_GOES_ON = re.compile(r"[\w\"'”’»]")
_TEMPLATE = re.compile(r"(?i)\bor\b|[/|<…]|\.\.")


def _find_choices(text: str, labels: Labels, material: Sequence[str], _: bool) -> tuple[str, list[Statement]]:
    from distract.judging.parsers.own_words import Material
    from distract.judging.parsers.statements import Statement

    quoted = Material(material, _BRACKETS)
    statements = []
    for start, end, pairs in find_objects(text):
        choices = [value for name, value in pairs if isinstance(name, str) and name.strip().lower() == "choice"]
        if not choices or (isinstance(choices[0], str) and _TEMPLATE.search(choices[0])):
            continue
        if quoted.has(text[start:end]) and not _is_closing(text, start, end):
            continue
        is_same = isinstance(choices[0], str) and all(choice == choices[0] for choice in choices)
        statements.append(Statement(_match_label(choices[0], labels) if is_same else None, start, end))
    return text, statements


def _is_closing(text: str, start: int, end: int) -> bool:
    """Whether a part ends the answer, on lines of its own or announced as the verdict."""
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
    lambda text, labels: text if text in labels else None,
    lambda text, labels, material, cut: (text, []),
)
RANKING = Format(
    "ranking",
    _format_brackets,
    lambda labels: r"([a-z](?:\s*[>=]\s*[a-z])+)",
    read_ranking,
    partial(_find_bracketed, read_ranking),
)
