"""The formats in which a verdict may be asked for: how each is written, and how it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from distract.reading.own_words import Material, masked
from distract.reading.sentences import LEAD, SEP, announced
from distract.reading.statements import Statement, final
from distract.reading.text import ended, even, thoughtless

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing a verdict.

    Attributes:
        name: of the format.
        say: a label as a judge is asked to write it.
        find: the label in an answer: of its own words, the labels, what may be quoted, and whether it was cut.
    """

    name: str
    say: Callable[[str], str]
    find: Callable[[str, Labels, Sequence[str], bool], str | None]

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
        own = ended(even(thoughtless(text)))
        return self.find(own, labels, [_evened(one) for one in material], cut) if own else None


_evened = lru_cache(maxsize=1024)(even)
"""What may be quoted is the same of many answers."""


def _bare(text: str, pattern: str) -> str | None:
    """The label where nothing else is said."""
    if len(text) > _SHORT:
        return None
    found = re.fullmatch(rf"(?i){SEP}*?(?:{LEAD})?(?<![-−.\d])(?:{pattern})(?:(?!\?)[\W_])*", text)
    return next((group for group in found.groups() if group), None) if found else None


_SHORT = 200
"""No longer is an answer that says nothing but a label."""


def _known(label: str, labels: Labels) -> str | None:
    label = re.sub(r"(?i)\A(?:response|assistant)\s+", "", label.strip(" *_\"'`"))
    return next((one for one in labels if one.lower() == label.lower()), None)


_ITEM = r"[*_\"'`]{0,2}(?:(?:response|assistant|rating|score)[:\s]\s*)?(?:[^\W\d_]|[-+−]?\d*[.,]?\d+)[*_\"'`]{0,2}"
_BRACKETS = re.compile(
    rf"(?i)(?:(?<![A-Za-z0-9_)\]$])|(?<=\]\])|(?<=rating)|(?<=score)|(?<=verdict)|(?<=\bis)|(?<=answer)|(?<=choice))"
    rf"\[\[\s*({_ITEM}(?:\s*(?:[><=]{{1,2}}|[/|,&–-]|to|or|and|out of)\s*{_ITEM}){{0,20}}|tie|draw|none|neither|both|"
    rf"n/?a)\s*\]\](\s*(?:/|out of)\s*\d+|\.\d+)?"
)
"""Labels on offer and what looks like one; other text between such brackets is no verdict."""


def _stated(
    label: Callable[[str, Labels], str | None], text: str, labels: Labels, material: Sequence[str], cut: bool
) -> str | None:
    own = masked(text, _BRACKETS, material)
    found = []
    for one in _BRACKETS.finditer(own):
        on_offer = not one[2] or re.fullmatch(rf"\s*(?:/|out of)\s*{labels[-1]}", one[2])
        found.append(Statement(label(one[1], labels) if on_offer else None, one.start(), one.end()))
    return final(own, found)


def _bracketed(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    numbers = labels[0].isdigit()
    said = rf"(\d+)(?:\s*(?:/|out of)\s*{labels[-1]})?" if numbers else r"(?:response |assistant )?([a-z])"
    bare = _bare(text.replace("[[", "", 1) if text.count("[[") > text.count("]]") else text, said)
    begun = text.startswith("[[") and bare and sum(label.startswith(bare) for label in labels) < 2
    return _known(bare, labels) if bare and (begun or not cut) else _stated(_in_brackets, text, labels, material, cut)


def _in_brackets(said: str, labels: Labels) -> str | None:
    of = re.fullmatch(r"(?:(?:rating|score)[:\s]\s*)?(\d+)(?:\.0+)?(?:\s*(?:/|out of)\s*(\d+))?", said, re.IGNORECASE)
    return _known(of[1] if of and of[2] in (None, labels[-1]) else said, labels)


_MARK = r"[*_\"'`]{0,3}"
_OUTPUT = re.compile(
    rf"(?i)((?:\btherefore,?\s+(?:overall,?\s+)?)?){_MARK}\boutput\s*"
    rf"\(\s*{_MARK}([ab]){_MARK}\s*\){_MARK},?\s+"
    r"(?:is|follows the (?:format )?(?:requirements|instructions?|format))\s+[*_]{0,3}"
    r"(?:(?:(?!only|mere|hard|bare|near|possib|probab|arguab|potential|suppos|apparent|superfic|styl)\w+ly|much|far|"
    r"somewhat|overall|the|still|indeed|by far|a bit|a little)\s+){0,4}better\b[*_]{0,3}"
    r"(?:\s+overall\b)?[.!]?"
)
_LINE = re.compile(rf"(?im)^{_MARK}output\s*\(\s*([ab])\s*\){_MARK}[.!]?{_MARK}(?: ?\(.*)?$")
_BEGUN = re.compile(rf"(?i)\btherefore,?\s+{_MARK}output\s*\(\s*([ab])\s*\){_MARK}\Z")
_ASPECT = re.compile(
    r"(?i)\A[*_]{0,3} (?:(?:only|just|merely|purely|solely)\s+)?"
    r"(?!(?:at|in|in terms of|for|when it comes to)\s+(?:following|meeting|executing|adhering|fulfilling)\b)"
    r"(?!(?:because|as|since|than|and|but|given|overall|here|due|by|while|although|though|even|so|when|which|it|this|"
    r"output|therefore|thus|all|considering|based|on balance|if|unless|despite|with|both|of the two|to|in (?:my|this|"
    r"the end|every|all|general)|for (?:the|these|this|several|two|three|one|a|its))\b)\w"
    r"|\A[*_,]{0,3} (?:than [^,.;\n]{1,30} )?[,(]{0,2}(?:but )?(?:only |just |merely |purely |solely |\(?)"
    r"(?:in terms of|when it comes to|with (?:respect|regard) to|as far as|regarding|in style|for the (?:first|second|"
    r"third|last) \w+)"
)
"""What goes on with another word is about one aspect: better written, better at grammar, better in style."""


def _outputs(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    if not cut and (bare := _bare(text, r"(?:output\s*)?\(?\s*([ab])\s*\)?")):
        return _known(bare, labels)
    own = masked(text, _OUTPUT, material)
    begun = _BEGUN.search(own[-60:]) if cut else None
    found = _alone(own, labels, cut)
    for one in _OUTPUT.finditer(own):
        asked, ended = one[0].lower().startswith("therefore"), one[0][-1] in ".!"
        # Of a cut answer the asked-for sentence counts; or another, where that one had begun and names the same.
        if (cut and not ((asked and ended) or (begun and begun[1].lower() == one[2].lower()))) or (
            not ended and _ASPECT.search(own[one.end() : one.end() + 100])
        ):
            continue
        found.append(Statement(_known(one[2], labels), one.end(1), one.end(), asserted=True))
    return final(own, found)


def _alone(text: str, labels: Labels, cut: bool) -> list[Statement]:
    """An output that alone stands in the first or last line, where no other stands alone in any."""
    found = list(_LINE.finditer(text))
    if len({one[1].lower() for one in found}) > 1:
        return []
    ends = [one for one in found if one.start() == 0 or (one.end() == len(text) and not cut)]
    return [Statement(_known(one[1], labels), one.start(), one.end(1) + 1) for one in ends[:1]]


def _grade(said: str, labels: Labels) -> str | None:
    sides = re.fullmatch(r"([A-Za-z])\s*([<>]{1,2})\s*([A-Za-z])", said)
    if not sides or len(set(sides[2])) > 1:
        return None
    better, worse = (sides[1], sides[3]) if sides[2][0] == ">" else (sides[3], sides[1])
    return _known(better, labels) if {better.upper(), worse.upper()} == {one.upper() for one in labels} else None


def _graded(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    a, b = labels
    bare = None if cut else _bare(text, rf"({a}\s*>{{1,2}}\s*{b}|{b}\s*>{{1,2}}\s*{a})")
    return _known(bare[0], labels) if bare else _stated(_grade, text, labels, material, cut)


def ranking(text: str, labels: Labels) -> str | None:
    """An order such as ``b > A = C`` as ``B>A=C``; None where it is none of all the labels, each once."""
    tiers = [[part.strip().upper() for part in tier.split("=")] for tier in text.split(">")]
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return None
    return ">".join("=".join(sorted(tier)) for tier in tiers)


def _ranked(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    bare = None if cut else _bare(text, r"([a-z](?:\s*[>=]\s*[a-z])+)")
    return ranking(bare, labels) if bare else _stated(ranking, text, labels, material, cut)


def _letter(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    if len(text) > _SHORT or cut:
        return None
    found = re.fullmatch(rf"{SEP}*?(?i:{LEAD})?([^\W_]+)(?:(?!\?){SEP})*", text)
    return found[1] if found and found[1] in labels else None


def _objects(text: str) -> Iterator[tuple[int, int, list[tuple[str, Any]]]]:
    """The outermost JSON objects in a text: where each begins and ends, and its pairs."""
    # Not strict: models write long texts with bare line ends.
    decoder = json.JSONDecoder(object_pairs_hook=list, strict=False)
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Whatever is inside of what cannot be read is no object of its own either.
            end = _closing(text, at)
        else:
            yield at, end, value
        at = text.find("{", max(end, at + 1))


def _closing(text: str, at: int) -> int:
    """Where braces opened at a place are closed; those of code in a sentence may never be, and end with the line."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[at:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return at + brace.end()
    line = text.find("\n{", at) if at and text[at - 1] != "\n" else -1
    return line if line >= 0 else len(text)


_TEMPLATE = re.compile(r"(?i)\bor\b|[/|<…]|\.\.")


def _json(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    if not cut and (bare := _bare(text, r"([a-z])")):
        return _known(bare, labels)
    quoted = Material(material, _BRACKETS)
    found = []
    for start, end, pairs in _objects(text):
        choices = [value for name, value in pairs if isinstance(name, str) and name.strip().lower() == "choice"]
        if not choices or (isinstance(choices[0], str) and _TEMPLATE.search(choices[0])):
            continue
        if quoted.has(text[start:end]) and not _closes(text, start, end):
            continue
        same = isinstance(choices[0], str) and all(one == choices[0] for one in choices)
        # Whatever stands above it, an object is about the whole.
        found.append(Statement(_known(choices[0], labels) if same else None, start, end, asserted=True))
    return final(text, found)


def _closes(text: str, start: int, end: int) -> bool:
    """Whether a part of an answer ends it, in lines of its own or announced as the verdict."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return not re.search(r"[\w\"'”’»]", text[end:]) and (not re.search(r"\w", line) or announced(line))


def _brackets(label: str) -> str:
    return f"[[{label}]]"


OUTPUT = Format("output", "Therefore, Output ({}) is better.".format, _outputs)
BRACKETS = Format("brackets", _brackets, _bracketed)
GRADED = Format("graded", lambda label: f"My final verdict is: [[{label}>{'B' if label == 'A' else 'A'}]]", _graded)
JSON = Format("json", lambda label: json.dumps({"choice": label}), _json)
LETTER = Format("letter", str, _letter)
RANKING = Format("ranking", _brackets, _ranked)
