"""A judge's answer as text: without its thoughts, the turns that it invents and invisible characters; its JSON objects.

All functions take linear time, whatever the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

_TAG = re.compile(
    r"(?i)(?:[<◁]|(?<!\[)\[)(/?)((?:seed:)?(?:think|thinking|thought|reasoning)|(?<=[<◁/])(?:scratchpad|reflection))"
    r"(?:[>▷]|\](?!\]))"
)
_TOKEN = re.compile(r"(?i)<\|(?:(begin|start)|end)_(?:of_thought|thinking)\|>")
# A tag that is only mentioned: between quotation marks, or in the middle of a sentence.
_MENTIONED_BEFORE = re.compile(r"[\"'`“‘«]\Z")
_MENTIONED_AFTER = re.compile(r"[\"'`”’»]|\s?[,;:.)]|[ ]+[a-z]")
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(\w+)(?:[^<\n]|<\|constrain\|>){0,80}<\|message\|>")
_CODE = re.compile(r"(?<=\n\n)(?:(?: {4}|\t)(?![ ]*(?:[-*+#]|\d+[.)])\s).*(?:\n|\Z))+")
_ESCAPED = re.compile(r"\\(?=[\[\]<>=])")
_FORMULA = re.compile(r"\$*\\(?:boxed|text|mathbf|textbf)\{(?:\\(?:text|mathbf|textbf)\{)?([^{}\n]{1,80})\}{1,2}\$*")
_STRUCK = re.compile(r"(?<!~)~~(?!~)[^~\n]{1,200}~~(?!~)")
_UNSEEN = re.compile(r"[\u200b-\u200f\u2060\ufe0f\ufeff\x00]")
_SPACE = re.compile(r"[^\S\n]+")
_TURN = re.compile(
    r"(?im)<\|(?:im_end|im_start|eot_id|end|endoftext|return|user|start_header_id)\b|</s>|^[^\w\n]*+(?:(?<=<)(?:user|"
    r"human)>|(?:(?<=\[)|(?<=\[/))(?:INST|user|system|question|instruction|the start of)\b|(?:human|user)\W*:|"
    r"(?:(?<=#)|(?<=# ))(?:instructions?|input|response|question|user|human|assistant|system)\W*$)"
)
"""The end of an answer, or the start of another speaker's turn."""
_SPEAKER = re.compile(r"(?i)\A[^\w\n]*(?:assistant|judge|ai)[*_]*:(?=\W*\S)")
_LINES = re.compile(r" ?\n\s*")


MOST_READ = 2_000_000
"""Characters at the end of an answer in which thoughts are recognised; what comes before is not read."""


def strip_thoughts(text: str) -> str:
    """Remove thoughts from an answer; thoughts that never end run to the end of the text."""
    if channels := [mark for mark in _CHANNEL.finditer(text) if not _is_quoted(text, mark)]:  # of gpt-oss
        return text[channels[-1].end() :] if channels[-1][1] == "final" else ""
    if text.startswith("analysis") and "assistantfinal" in text:
        # Some servers leave out the marks of the channels.
        text = text.partition("assistantfinal")[2]
    text = _TOKEN.sub(lambda token: "<think>" if token[1] else "</think>", text)
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
            is_closed = last.get(name, -1) > end
            # A word in square brackets may be a heading.
            if not _is_quoted(text, tag) and (is_closed or (is_fresh and tag[0][0] != "[")):
                parts.append(text[start : tag.start()])
                thinking, has_thoughts = name, True
        elif not has_thoughts and not _is_quoted(text, tag) and not _MENTIONED_AFTER.match(text, end):
            # Some servers leave out the opening tag.
            parts, start = [], end
    return " ".join(parts if thinking else [*parts, text[start:]])


def join_prefill(prefill: str, answer: str) -> str:
    """Join an answer, without its thoughts, to its prefill; thoughts begin after it, unless the prefill opens them."""
    is_thinking = strip_thoughts(prefill) != prefill
    return strip_thoughts(prefill + answer) if is_thinking else prefill + strip_thoughts(answer)


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    return _MENTIONED_BEFORE.search(text, max(0, mark.start() - 1), mark.start()) is not None


def cut_invented_turns(text: str) -> str:
    """Cut an answer before the next turn that a model invents."""
    for turn in _TURN.finditer(text):
        if re.match(r"\W*[\"'`“‘«]|> ", turn[0]):
            continue  # only quoted
        if re.search(r"\w", text[: turn.start()]) or "# instruction" in turn[0].lower():
            return text[: turn.start()].rstrip()
    return text


def normalise_letters(text: str) -> str:
    """Remove invisible characters, and write full-width ones and ligatures as usual."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def normalise_text(text: str) -> str:
    """Replace each run of white space by one space or new line, and quote indented code with ``>``."""
    text = normalise_letters(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _CODE.sub(lambda code: re.sub(r"(?m)^(?: {4}|\t)", "> ", code[0]), text)
    text = _FORMULA.sub(r"\1", _ESCAPED.sub("", text)) if "\\" in text else text
    text = _STRUCK.sub("", text)
    return _SPEAKER.sub("", _LINES.sub("\n", _SPACE.sub(" ", text)).strip(), count=1).strip()


def clean(answer: str) -> str:
    """Return the judge's own words in one form: without thoughts and invented turns, with plain white space."""
    return cut_invented_turns(normalise_text(strip_thoughts(answer)))


def line_start(text: str, position: int) -> int:
    """Return the start of the line of a position."""
    return text.rfind("\n", 0, position) + 1


def find_line(text: str, own: str, line: int) -> int:
    """Find a line of the judge's own words in the text that ends with them; 0 if none does."""
    is_end = text.endswith(own.lstrip(" "))  # a space replaces thoughts
    return line + text.count("\n") - own.count("\n") if line and is_end else 0


def find_normalised_line(text: str, line: int) -> int:
    """Find a line of the normalised text in the text itself; 0 if more than empty lines is missing."""
    lines = [at for at, one in enumerate(text.split("\n"), 1) for _ in normalise_text(one).splitlines()]
    return lines[line - 1] if line and len(lines) == len(normalise_text(text).splitlines()) else 0


_OBJECT = r"\{(?=\s*[\"}])"


def find_objects(text: str, has_arrays: bool = False) -> Iterator[tuple[int, int, list[Any]]]:
    """Find the outermost JSON objects in a text, with arrays of them if need be.

    Yields:
        The start and end of each, and its pairs, in which a key may occur twice.
    """
    opening = re.compile(rf"\[\s?{_OBJECT}|{_OBJECT}" if has_arrays else _OBJECT)
    match = opening.search(text)
    while match:
        value, end = _decode_object(text, match.start())
        if value is not None:
            yield match.start(), end, value
        match = opening.search(text, end)


def _decode_object(text: str, at: int) -> tuple[list[Any] | None, int]:
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
        except RecursionError:
            return None, at + size  # nested too deep for a verdict, and so are the objects inside
        except ValueError:
            return None, at + 1
        size *= 8


# The decoder is not strict: models write long texts with bare line ends.
_DECODER = json.JSONDecoder(object_pairs_hook=list, strict=False)
_NEAR = 12
"""An error this close to the end of a part may only mean that the rest is missing."""

_LOOSE = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|“(?P<curly>[^”\n]{0,1000}+)”|"
    r"(?<=[\[{,:\s])'(?P<text>(?:[^'\\\n]|\\.|'(?!\s*[,:}\]])){0,1000}+)'(?=\s*[,:}\]])|"
    r"\b(?P<word>True|False|None)\b|(?P<blank>,(?=\s*[}\]])|//[^\n]*|#[^\n]*|/\*[^*]*\*/)",
    re.DOTALL,
)
_STRICT = {"True": "true", "False": "false", "None": "null"}


def tighten_json(text: str) -> str:
    """Turn Python's constants, other quotation marks, comments and trailing commas into JSON; positions stay."""

    def tighten(match: re.Match[str]) -> str:
        if match["word"]:
            return _STRICT[match[0]]
        if match["blank"]:
            return " " * len(match[0])
        quoted = match["text"] if match["curly"] is None else match["curly"]
        return match[0] if quoted is None else f'"{quoted.replace(chr(34), chr(39)).replace(chr(92), "/")}"'

    return _LOOSE.sub(tighten, text)
