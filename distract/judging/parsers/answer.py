"""An answer made even, and without what was thought before it. It knows no verdict."""

from __future__ import annotations

import re
import unicodedata

_TAG = re.compile(r"(?i)(?:<|(?<!\[)\[)(/?)((?:seed:)?(?:think|thinking|thought|reasoning))(?:>|\](?!\]))")
# A tag that is only talked about: between quotation marks, or in the middle of a sentence.
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
"""Ends an answer, or begins what somebody else says."""
_LINES = re.compile(r" ?\n\s*")


def strip_thoughts(text: str) -> str:
    """An answer without what was thought before it; what is thought and never ended is all thought."""
    if text.startswith("analysis") and "assistantfinal" in text:
        # The channels of gpt-oss, whose marks a server has left out.
        text = text.partition("assistantfinal")[2]
    tags = list(_TAG.finditer(text))
    last = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    kept, start, thinking, begun, before = [], 0, "", False, 0
    for tag in tags:
        name, end = tag[2].lower(), tag.end()
        # A tag before it on its line is no white space, so that what stands before that one need not be looked at.
        line, before = text.rfind("\n", before, tag.start()) + 1 or before, tag.start()
        if thinking:
            if tag[1] and name == thinking:
                thinking, start = "", end
        elif not tag[1]:
            is_fresh = not text[line : tag.start()].strip()
            if not _is_quoted(text, tag) and (is_fresh or last.get(name, -1) > end):
                kept.append(text[start : tag.start()])
                thinking, begun = name, True
        elif not begun and not _is_quoted(text, tag) and not _MENTIONED_AFTER.match(text, end):
            # Some servers leave out where thinking begins.
            kept, start = [], end
    return " ".join(kept if thinking else [*kept, text[start:]])


def cut_invented_turns(text: str) -> str:
    """An answer as far as it is one: without the next turn that a model goes on to invent."""
    turns = _TURN.finditer(text)
    found = next(
        (one for one in turns if re.search(r"\w", text[: one.start()]) or "# instruction" in one[0].lower()), None
    )
    return text[: found.start()].rstrip() if found else text


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    return _MENTIONED_BEFORE.search(text, max(0, tag.start() - 1), tag.start()) is not None


def normalise_text(text: str) -> str:
    """A text with each run of white space as one space or new line, and what is indented as code quoted with ``>``."""
    text = unicodedata.normalize("NFKC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _CODE.sub(lambda found: re.sub(r"(?m)^(?: {4}|\t)", "> ", found[0]), _UNSEEN.sub("", text))
    return _LINES.sub("\n", _SPACE.sub(" ", _ESCAPED.sub("", text))).strip()
