"""The formats in which a verdict may be asked for: how each is written, and how it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distract.reading.own_words import even, masked, quoted, thoughtless
from distract.reading.statements import Statement, final

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
        own = even(thoughtless(text))
        return self.find(own, labels, [even(one) for one in material], cut) if own else None


_BEFORE = r"\W*(?:(?:my |the )?(?:final |overall )?(?:verdict|rating|score|answer|choice|decision|ranking)(?: is)?\W+)?"


def _bare(text: str, pattern: str) -> str | None:
    """The label where nothing else is said."""
    found = re.fullmatch(rf"(?i){_BEFORE}(?:{pattern})\W*", text)
    return next((group for group in found.groups() if group), None) if found else None


def _known(label: str, labels: Labels) -> str | None:
    return next((one for one in labels if one.lower() == label.strip().lower()), None)


_BRACKETS = re.compile(r"\[\[\s*([^\[\]\n\x00]{1,80}?)\s*\]\]")


def _stated(
    pattern: re.Pattern[str],
    label: Callable[[re.Match[str], Labels], str | None],
    text: str,
    labels: Labels,
    material: Sequence[str],
) -> str | None:
    own = masked(text, pattern, material)
    return final(own, [Statement(label(found, labels), *found.span()) for found in pattern.finditer(own)])


def _bracketed(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    numbers = labels[0].isdigit()
    said = rf"(\d+)(?:\s*(?:/|out of)\s*{labels[-1]})?" if numbers else r"(?:response |assistant )?([a-z])"
    bare = _bare(text.replace("[[", "", 1) if text.count("[[") > text.count("]]") else text, said)
    return _known(bare, labels) if bare and not cut else _stated(_BRACKETS, _in_brackets, text, labels, material)


def _in_brackets(found: re.Match[str], labels: Labels) -> str | None:
    of = re.fullmatch(r"(\d+)\s*(?:/|out of)\s*(\d+)", found[1])
    return _known(of[1] if of and of[2] == labels[-1] else found[1], labels)


_MORE = (
    r"(?:(?:clearly|slightly|much|far|significantly|marginally|definitely|somewhat|overall|certainly|simply|"
    r"considerably|the|decidedly|undoubtedly|still|indeed|plainly|actually|therefore|by far|a bit|a little)\s+)*"
)
_OUTPUT = re.compile(
    rf"(?i)(?:\btherefore,?\s+)?[*_]*\boutput\s*\(\s*([ab])\s*\)[*_]*,?\s+is\s+[*_]*{_MORE}better\b[*_]*(?:\s+overall\b)?[.!]?"
)
_BEGUN = re.compile(r"(?i)\btherefore,?\s+[*_]*output\s*\(\s*([ab])\s*\)[*_]*\Z")
_ASPECT = re.compile(
    r"(?i)\A[*_]*,?\s*(?:(?:only|just|merely|purely|solely)\s+)?(?!(?:because|as|since|than|and|but|given|overall|here|"
    r"due|by|while|although|though|so|when|which|it|this|output|therefore|thus|all|considering|based|on balance|"
    r"in (?:my|this|the end)|for (?:the|these|this|several|two|three|one|a))\b)\w"
)
"""What goes on with another word is about one aspect: better written, better at grammar, better in style."""


def _outputs(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    if not cut and (bare := _bare(text, r"(?:output\s*)?\(?\s*([ab])\s*\)?")):
        return _known(bare, labels)
    own = masked(text, _OUTPUT, material)
    begun = _BEGUN.search(own) if cut else None
    found = []
    for one in _OUTPUT.finditer(own):
        marked = one[0].lower().startswith("therefore")
        ended = one[0][-1] in ".!"
        # Of a cut answer the asked-for sentence counts; or another, where that one had begun and names the same.
        if (cut and not ((marked and ended) or (begun and begun[1].lower() == one[1].lower()))) or (
            not ended and _aspect(own[one.end() :])
        ):
            continue
        start = one.start() + (len("therefore") if marked else 0)
        found.append(Statement(_known(one[1], labels), start, one.end(), marked))
    return final(own, found)


def _aspect(rest: str) -> bool:
    return not rest[:1].startswith("\n") and bool(_ASPECT.search(rest))


_GRADED = re.compile(r"(?i)\[\[\s*([^\[\]\n\x00]{1,20}?)\s*\]\]")


def _grade(found: re.Match[str], labels: Labels) -> str | None:
    sides = re.fullmatch(r"([A-Za-z])\s*([<>]{1,2})\s*([A-Za-z])", found[1])
    if not sides or len(set(sides[2])) > 1:
        return None
    better, worse = (sides[1], sides[3]) if sides[2][0] == ">" else (sides[3], sides[1])
    return _known(better, labels) if {better.upper(), worse.upper()} == {one.upper() for one in labels} else None


def _graded(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    a, b = labels
    bare = None if cut else _bare(text, rf"({a}\s*>{{1,2}}\s*{b}|{b}\s*>{{1,2}}\s*{a})")
    return _known(bare[0], labels) if bare else _stated(_GRADED, _grade, text, labels, material)


def _order(found: re.Match[str], labels: Labels) -> str | None:
    return ranking(found[1], labels)


def ranking(text: str, labels: Labels) -> str | None:
    """An order such as ``b > A = C`` as ``B>A=C``; None where it is none of all the labels, each once."""
    tiers = [[part.strip().upper() for part in tier.split("=")] for tier in text.split(">")]
    if sorted(label for tier in tiers for label in tier) != sorted(labels):
        return None
    return ">".join("=".join(sorted(tier)) for tier in tiers)


def _ranked(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    bare = None if cut else _bare(text, r"([a-z](?:\s*[>=]\s*[a-z])+)")
    return ranking(bare, labels) if bare else _stated(_BRACKETS, _order, text, labels, material)


def _letter(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    found = re.fullmatch(rf"{_BEFORE.replace('(?:', '(?i:', 1)}(\w+)\W*", text)
    return found[1] if found and found[1] in labels and not cut else None


def _objects(text: str) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The outermost JSON objects in a text, as pairs, each with its own text."""
    decoder = json.JSONDecoder(object_pairs_hook=list)
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Whatever is inside of what cannot be read is no object of its own either.
            end = _closing(text, at)
        else:
            yield text[at:end], value
        at = text.find("{", max(end, at + 1))


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def _json(text: str, labels: Labels, material: Sequence[str], cut: bool) -> str | None:
    if not cut and (bare := _bare(text, r"([a-z])")):
        return _known(bare, labels)
    found = []
    for written, pairs in _objects(text):
        choices = [value for name, value in pairs if isinstance(name, str) and name.strip().lower() == "choice"]
        if choices and not quoted(written, material):
            label = _known(choices[0], labels) if len(choices) == 1 and isinstance(choices[0], str) else None
            start = text.index(written)
            found.append(Statement(label, start, start + len(written)))
    return final(text, found, lines=False)


def _brackets(label: str) -> str:
    return f"[[{label}]]"


OUTPUT = Format("output", "Therefore, Output ({}) is better.".format, _outputs)
BRACKETS = Format("brackets", _brackets, _bracketed)
GRADED = Format("graded", lambda label: f"My final verdict is: [[{label}>{'B' if label == 'A' else 'A'}]]", _graded)
JSON = Format("json", lambda label: json.dumps({"choice": label}), _json)
LETTER = Format("letter", str, _letter)
RANKING = Format("ranking", _brackets, _ranked)
