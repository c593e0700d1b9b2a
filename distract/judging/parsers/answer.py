"""Clean an answer: remove thoughts and invented turns, normalise white space."""

from __future__ import annotations

import re
import unicodedata

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
