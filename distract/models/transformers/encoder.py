"""Encode ordinary text as token ids without special tokens, and each text only once.

Texts are cut at starts of lines if that provably changes no id, and the ids of each line are cached, so that a
response in several prompts is encoded once. The rest is encoded in batches.
"""

from __future__ import annotations

import json
import random
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Tokens = tuple[int, ...]

_BATCH = 64  # the tokenizer's results take many times the memory of the ids

# Patterns that split text into words. In all of them, a word continues after a line break only with white space (in the
# last two also a slash), and no word looks behind, or looks ahead for more than white space.
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
"""Characters that may begin a line that is encoded by itself."""

_HOSTILE = (
    *("word", "Zwölf", " of", "1", "234", "½", ".", "?!", "'s", "/", "//", "#", "# ", "- ", "* ", "<|im_end|>", "<s>"),
    *(" ", "  ", "\t", "\n", "\n", "\n", "\n\n", " \n", "\n ", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\u3000"),
    *("é", "e\u0301", "\u0301", "中文", "。", "한", "\u1112", "👍🏽", "\u200d", "ß", "ﬁ", "\u00a0", "\x00", "\ufeff"),
    *("▁", "Ċ"),
)


class _Unit(NamedTuple):
    """A text for one call of the tokenizer, and the number of its ids that belong to neighbours."""

    text: str
    before: int
    behind: int


class Encoder:
    """Ids of ordinary text, the same as from a call of the tokenizer with each text."""

    def __init__(self, tokenizer: Any, unflagged: Sequence[str] = (), room: int = 2_000_000) -> None:
        self.tokenizer, self._room = tokenizer, room
        self._unflagged = alternatives(unflagged) if unflagged else None
        self._cache, self._size = OrderedDict[str, Tokens](), 0
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
        self._cache, self._size = OrderedDict(), 0

    def encode(self, texts: Iterable[str]) -> dict[str, Tokens]:
        """Ids of each text."""
        units = {text: self._units(text) for text in dict.fromkeys(texts)}
        ids_by_text = self._look_up(dict.fromkeys(unit.text for each in units.values() for unit in each))
        return {text: _join_ids(each, ids_by_text) for text, each in units.items()}

    def _units(self, text: str) -> list[_Unit]:
        units = []
        for part in self._parts(text):
            cuts = [match.end() for match in self._cut.finditer(part)] if self._cut else []
            for start, end in pairwise([0, *cuts, len(part)]):
                # Include the first character of the next line, since patterns for words look ahead.
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

    def _look_up(self, texts: Iterable[str]) -> dict[str, Tokens]:
        """Ids of each text from the tokenizer; encodes those not cached."""
        ids_by_text, missing = {}, []
        for text in texts:
            if text in self._cache:
                self._cache.move_to_end(text)
                ids_by_text[text] = self._cache[text]
            else:
                missing.append(text)
        for at in range(0, len(missing), _BATCH):
            batch = missing[at : at + _BATCH]
            for text, ids in zip(batch, self._encode_batch(batch), strict=True):
                ids_by_text[text] = self._cache[text] = ids
                self._size += len(text)
        while self._size > self._room:
            self._size -= len(self._cache.popitem(last=False)[0])
        return ids_by_text

    def _encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        if not self._backend:
            return [self._encode_one(text) for text in texts]
        # Set this each time, since other calls of the tokenizer may have changed it.
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        return [tuple(each.ids) for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]

    def _encode_one(self, text: str) -> Tokens:
        options = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        return tuple(self.tokenizer(text, **options)["input_ids"])

    def _encode_whole(self, text: str) -> Tokens:
        return tuple(index for part in self._parts(text) for index in self._encode_one(part))

    def _find_cuts(self) -> None:
        """Find the characters that may begin a unit: those that are a token of their own after a line break."""
        # Text next to an added token is split as if it began or ended there.
        added = _added_tokens(self._backend)
        openers = [opener for opener in _OPENERS if not any(token.content.startswith(opener) for token in added)]
        lead, *alone = self._encode_batch(["\n", *openers])
        both = self._encode_batch(["\n" + opener for opener in openers])
        whole = [o for o, ids in zip(openers, both, strict=True) if ids[:-1] == lead and len(ids) == len(lead) + 1]
        if [ids[len(lead) :] for ids in both] != alone:
            # The tokenizer puts a blank before a text; a leading line break absorbs it, unless it ends an added token.
            if any(token.rstrip or token.content.endswith("\n") for token in added):
                return
            self._lead, self._skip = "\n", len(lead)
        if lead and whole:
            self._cut = re.compile(r"\n(?=[" + re.escape("".join(whole)) + "])")


def alternatives(tokens: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the tokens, the longest first; without tokens it matches nothing."""
    longest_first = sorted(tokens, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + ")" if longest_first else r"((?!))")


def _join_ids(units: Sequence[_Unit], ids_by_text: dict[str, Tokens]) -> Tokens:
    ids: list[int] = []
    for unit in units:
        each = ids_by_text[unit.text]
        ids.extend(each[unit.before : len(each) - unit.behind])
    return tuple(ids)


def _is_separable(backend: Any) -> bool:
    """Whether no id depends on text beyond a line break that one of ``_OPENERS`` follows."""
    # Byte pairs are merged within words. Where words may hold line breaks, no merge crosses the place if no token of
    # the vocabulary does, and if no word is looked up whole.
    from tokenizers.models import BPE

    model, steps, added = backend.model, _steps(backend.pre_tokenizer), _added_tokens(backend)
    if not isinstance(model, BPE) or model.dropout or model.continuing_subword_prefix or model.end_of_word_suffix:
        return False
    if not all(map(_is_local, _steps(backend.normalizer))) or not all(map(_can_split, steps)):
        return False
    # The blank that a token absorbs on its left may be the line break.
    if any(token.lstrip or token.normalized for token in added):
        return False
    if any(step.get("use_regex") or (step["type"] == "Split" and "Regex" in step["pattern"]) for step in steps):
        tokens: Iterable[str] = (token.content for token in backend.get_added_tokens_decoder().values())
    elif model.ignore_merges:
        return False
    else:
        tokens = backend.get_vocab(with_added_tokens=True)
    # A vocabulary of bytes writes white space as letters; a normalizer may have joined an opener to the next character.
    by_bytes = any(step["type"] == "ByteLevel" for step in steps)
    crossing = re.compile(r"[\nĊ][^\sĊčĉĠ]" if by_bytes else r"\n[^\s▁]")
    return not any(map(crossing.search, tokens))


def _added_tokens(backend: Any) -> list[Any]:
    """Tokens that the tokenizer takes out of a text first; special ones are left out."""
    return [token for token in backend.get_added_tokens_decoder().values() if not token.special]


def _steps(component: Any) -> list[dict[str, Any]]:
    """Settings of each step of a normalizer or pre-tokenizer."""
    if component is None:
        return []
    settings: dict[str, Any] = json.loads(component.__getstate__())
    return list(settings.get("normalizers") or settings.get("pretokenizers") or [settings])


def _is_local(step: dict[str, Any]) -> bool:
    """Whether a normalizer changes each side of a line break independently, and not the line break."""
    if step["type"] == "Replace":
        pattern = step["pattern"].get("String", "\n")
        return "\n" not in pattern + step["content"]
    return step["type"] in {"NFC", "NFD", "NFKC", "NFKD", "Prepend"}


def _can_split(step: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer splits each side of a line break independently, but for the other's first character."""
    if step["type"] == "ByteLevel":
        return not step["add_prefix_space"]
    if step["type"] == "Split":
        known = step["pattern"].get("Regex") in _WORDS and step["behavior"] == "Isolated" and not step["invert"]
        return known or step["pattern"].get("String") == " "
    return step["type"] in {"Digits", "Metaspace"}
