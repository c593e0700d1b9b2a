"""Ordinary text as token ids: nothing in it is a special token, and what was encoded once is not encoded again.

Texts are cut where a line begins, as far as the cut provably changes no id, and the ids of each line are kept: a
response that stands in several prompts is encoded once. What is not kept is encoded in batches.

It knows tokenizers, but no roles, no templates and no requests.
"""

from __future__ import annotations

import json
import random
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Ids = tuple[int, ...]

_BATCH = 64  # what the tokenizer returns weighs many times the ids

# Ways to split text into words of which none goes on behind a line break with anything but white space (or, the last
# two, a slash), looks behind, or looks ahead for more than white space.
_SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_WORDS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2
    _SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _WHITE,  # GPT-4, Llama 3
    _SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _WHITE,  # Qwen 2
    _SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _WHITE,  # Qwen 3.5
    f"{_UPPER}|{_LOWER}" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _WHITE,  # Mistral
    f"{_UPPER}{_SHORT}?|{_LOWER}{_SHORT}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _WHITE,  # GPT-4o
}
_OPENERS = "".join(chr(code) for code in range(33, 127) if chr(code) != "/")
"""What may begin a line that is encoded by itself."""

_HOSTILE = (
    *("word", "Zwölf", " of", "1", "234", "½", ".", "?!", "'s", "/", "//", "#", "# ", "- ", "* ", "<|im_end|>", "<s>"),
    *(" ", "  ", "\t", "\n", "\n", "\n", "\n\n", " \n", "\n ", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\u3000"),
    *("é", "e\u0301", "\u0301", "中文", "。", "한", "\u1112", "👍🏽", "\u200d", "ß", "ﬁ", "\u00a0", "\x00", "\ufeff"),
    *("▁", "Ċ"),
)


class _Unit(NamedTuple):
    """What a tokenizer is handed at once, and how many of the ids it gives belong to neighbours."""

    text: str
    before: int
    behind: int


class Encoder:
    """Ids of ordinary text, the same as if the tokenizer were called with each text."""

    def __init__(self, tokenizer: Any, unflagged: Sequence[str] = (), room: int = 2_000_000) -> None:
        self.tokenizer, self._room = tokenizer, room
        self._unflagged = alternatives(unflagged) if unflagged else None
        self._kept, self._size = OrderedDict[str, Ids](), 0
        self._backend = tokenizer.backend_tokenizer if getattr(tokenizer, "is_fast", False) else None
        self._lead, self._skip = "", 0
        self._cut: re.Pattern[str] | None = None
        battery = "".join(random.Random(0).choices(_HOSTILE, k=1000))
        expected = self._encode_one(battery)
        if self._backend and self._encode_batch([battery]) != [expected]:
            self._backend = None
        if self._backend and _is_separable(self._backend):
            self._find_cuts()
            if self.encode([battery])[battery] != self._encode_whole(battery):
                self._cut = None
        self._kept, self._size = OrderedDict(), 0

    def encode(self, texts: Iterable[str]) -> dict[str, Ids]:
        """The ids of each text."""
        units = {text: self._units(text) for text in dict.fromkeys(texts)}
        found = self._look_up(dict.fromkeys(unit.text for each in units.values() for unit in each))
        return {text: _join_ids(each, found) for text, each in units.items()}

    def _units(self, text: str) -> list[_Unit]:
        units = []
        for part in self._parts(text):
            cuts = [match.end() for match in self._cut.finditer(part)] if self._cut else []
            for start, end in pairwise([0, *cuts, len(part)]):
                # With the first character of the next line, since words are told apart by looking ahead.
                lead, behind = (self._lead if start else ""), int(end < len(part))
                units.append(_Unit(lead + part[start : end + behind], self._skip if start else 0, behind))
        return units

    def _parts(self, text: str) -> list[str]:
        """The text, cut after the first character of each structure token that the tokenizer does not flag."""
        if not self._unflagged:
            return [text] if text else []
        parts, start = [], 0
        while match := self._unflagged.search(text, start):
            parts.append(text[start : match.start() + 1])
            start = match.start() + 1
        return [part for part in (*parts, text[start:]) if part]

    def _look_up(self, texts: Iterable[str]) -> dict[str, Ids]:
        """The ids of each text as the tokenizer gives them; those not kept are encoded, and kept."""
        found, missing = {}, []
        for text in texts:
            if text in self._kept:
                self._kept.move_to_end(text)
                found[text] = self._kept[text]
            else:
                missing.append(text)
        for at in range(0, len(missing), _BATCH):
            batch = missing[at : at + _BATCH]
            for text, ids in zip(batch, self._encode_batch(batch), strict=True):
                found[text] = self._kept[text] = ids
                self._size += len(text)
        while self._size > self._room:
            self._size -= len(self._kept.popitem(last=False)[0])
        return found

    def _encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        if not self._backend:
            return [self._encode_one(text) for text in texts]
        # As a call of the tokenizer sets them; anybody may have called it in another way since.
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        return [tuple(each.ids) for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]

    def _encode_one(self, text: str) -> Ids:
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        return tuple(self.tokenizer(text, **options)["input_ids"])

    def _encode_whole(self, text: str) -> Ids:
        return tuple(index for part in self._parts(text) for index in self._encode_one(part))

    def _find_cuts(self) -> None:
        """Settle which characters begin a line of its own: those that are a token of their own behind a line break."""
        # What stands beside an added token is split as if the text began or ended there.
        added = _added_tokens(self._backend)
        openers = [opener for opener in _OPENERS if not any(token.content.startswith(opener) for token in added)]
        lead, *alone = self._encode_batch(["\n", *openers])
        both = self._encode_batch(["\n" + opener for opener in openers])
        whole = [o for o, ids in zip(openers, both, strict=True) if ids[:-1] == lead and len(ids) == len(lead) + 1]
        if [ids[len(lead) :] for ids in both] != alone:
            # It puts a blank before a text; the line break takes that upon itself, unless it ends an added token.
            if any(token.rstrip or token.content.endswith("\n") for token in added):
                return
            self._lead, self._skip = "\n", len(lead)
        if lead and whole:
            self._cut = re.compile(r"\n(?=[" + re.escape("".join(whole)) + "])")


def alternatives(tokens: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the tokens, the longest first; nothing when there are none."""
    found = sorted(tokens, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, found)) + ")" if found else r"((?!))")


def _join_ids(units: Sequence[_Unit], found: dict[str, Ids]) -> Ids:
    ids: list[int] = []
    for unit in units:
        each = found[unit.text]
        ids.extend(each[unit.before : len(each) - unit.behind])
    return tuple(ids)


def _is_separable(backend: Any) -> bool:
    """Whether no id depends on what lies beyond a line break that one of ``_OPENERS`` follows.

    Byte pairs are merged within words. Where words may hold line breaks, no merge crosses the place if no token of the
    vocabulary does, and no word is taken whole from it instead.
    """
    from tokenizers.models import BPE

    model, steps, added = backend.model, _steps(backend.pre_tokenizer), _added_tokens(backend)
    if not isinstance(model, BPE) or model.dropout or model.continuing_subword_prefix or model.end_of_word_suffix:
        return False
    if not all(map(_is_local, _steps(backend.normalizer))) or not all(map(_can_split, steps)):
        return False
    # The blank that a token swallows on its left may be the line break.
    if any(token.lstrip or token.normalized for token in added):
        return False
    if any(step.get("use_regex") or (step["type"] == "Split" and "Regex" in step["pattern"]) for step in steps):
        tokens: Iterable[str] = (token.content for token in backend.get_added_tokens_decoder().values())
    elif model.ignore_merges:
        return False
    else:
        tokens = backend.get_vocab(with_added_tokens=True)
    # A vocabulary of bytes writes white space as letters; a normalizer may have joined an opener with what follows.
    by_bytes = any(step["type"] == "ByteLevel" for step in steps)
    crossing = re.compile(r"[\nĊ][^\sĊčĉĠ]" if by_bytes else r"\n[^\s▁]")
    return not any(map(crossing.search, tokens))


def _added_tokens(backend: Any) -> list[Any]:
    """Tokens that are taken out of a text before anything else; special ones are not, as text is encoded here."""
    return [token for token in backend.get_added_tokens_decoder().values() if not token.special]


def _steps(component: Any) -> list[dict[str, Any]]:
    """A normalizer or pre-tokenizer as its settings, one for each step."""
    if component is None:
        return []
    settings: dict[str, Any] = json.loads(component.__getstate__())
    return list(settings.get("normalizers") or settings.get("pretokenizers") or [settings])


def _is_local(step: dict[str, Any]) -> bool:
    """Whether a normalizer changes each side of a line break by itself, and not the line break."""
    if step["type"] == "Replace":
        pattern = step["pattern"].get("String", "\n")
        return "\n" not in pattern + step["content"]
    return step["type"] in {"NFC", "NFD", "NFKC", "NFKD", "Prepend"}


def _can_split(step: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer splits each side of a line break by itself, the other's first character given."""
    if step["type"] == "ByteLevel":
        return not step["add_prefix_space"]
    if step["type"] == "Split":
        known = step["pattern"].get("Regex") in _WORDS and step["behavior"] == "Isolated" and not step["invert"]
        return known or step["pattern"].get("String") == " "
    return step["type"] in {"Digits", "Metaspace"}
