"""Test the scrubber: it removes keys and leaves every other text unchanged."""

from __future__ import annotations

import json
import re
import string
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st
from loops import each

from distract.models.server.secrets import MARK, PART, scrub_values, scrubber

KEY = "sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1-WXYZ"
PRINTABLE = "".join(sorted(set(string.printable) - set(string.whitespace)))

keys = st.text(PRINTABLE, min_size=5, max_size=200)
long_keys = st.text(string.ascii_letters + string.digits + "-_", min_size=PART, max_size=200)
gaps = st.one_of(st.sampled_from(["...", "…", "*" * 40, " ... ", "•••", "[…]", "xxxx", "XXXXXXXX", "-***-"]))
around = st.text(max_size=40)


def holds(text: str, key: str) -> bool:
    """Whether a text contains forbidden parts of a key; independent of the scrubber."""
    if len(key) < PART:
        return key in text
    if any(key[start : start + PART] in text for start in range(len(key) - PART + 1)):
        return True
    ends = rf"(?=({re.escape(key[:8])}(?:[\W_]|[xX]){{1,1000}}?{re.escape(key[-4:])}))"
    return re.search(ends, text) is not None


@given(keys, around, around)
@example("sk-ab", "a", "b")
@example("****-*****", "*", "*")
@example("aaaaaaaaaaaaaaaaaaaa", "aaaaaaa", "aaaa")
def test_key_is_removed_whatever_surrounds_it(key: str, before: str, after: str) -> None:
    clean = scrubber([key])(before + key + after)
    assert not holds(clean, key)
    assert MARK in clean


@given(long_keys, st.data(), around, around)
def test_long_parts_of_a_key_are_removed_and_short_ones_stay(
    key: str, data: st.DataObject, before: str, after: str
) -> None:
    start = data.draw(st.integers(0, len(key) - PART))
    end = data.draw(st.integers(start + PART, len(key)))
    clean = scrubber([key])(before + key[start:end] + after)
    assert not holds(clean, key)
    few = f"é{key[start : start + PART - 1]}é"
    assert scrubber([key])(few) == few


@given(long_keys, gaps, around, around)
@example("X" * 20, "xxxx", "X", "X")
def test_both_ends_of_a_key_with_dots_between_are_removed(key: str, gap: str, before: str, after: str) -> None:
    clean = scrubber([key])(before + key[:8] + gap + key[-4:] + after)
    assert not holds(clean, key)
    for end in (f"é{key[:8]}{gap}é", f"é{gap}{key[-4:]}é", f"é{key[-4:]}é"):
        assert holds(end, key) or scrubber([key])(end) == end


@given(st.lists(keys, min_size=1, max_size=3), st.data())
def test_overlapping_keys_are_all_removed(held: list[str], data: st.DataObject) -> None:
    cuts = [key[: data.draw(st.integers(0, len(key)))] for key in held] + [key[-4:] for key in held]
    text = "".join(data.draw(st.lists(st.one_of(st.sampled_from([*held, *cuts, "...", "***"]), st.text(max_size=5)))))
    clean = scrubber(held)(text)
    assert not any(holds(clean, key) for key in held)
    assert scrubber(held)(clean) == clean


@given(st.lists(keys, max_size=3), st.text())
@example([KEY], "sk-proj- is how keys begin; mine ends in WXYZ ... sk-proj-Ab3\ud800")
def test_text_without_a_key_is_unchanged(held: list[str], text: str) -> None:
    forms = {form for key in held for form in (key, json.dumps(key)[1:-1], quote(key, safe=""))}
    forms |= {form.replace("/", "\\/") for form in forms}
    if not any(holds(text, form) for form in forms):
        assert scrubber(held)(text) == text


@each("key", "none", "EMPTY", "", "abcd")
def test_non_secrets_are_unchanged(key: str) -> None:
    assert scrubber([key])(f"A {key} b {key * 3}") == f"A {key} b {key * 3}"


def test_key_is_removed_in_json_and_url_encoding() -> None:
    key = 'k/+="\\' * 4
    scrub = scrubber([key])
    for text in (key, json.dumps(key), json.dumps(key).replace("/", "\\/"), quote(key, safe="")):
        assert scrub(f"key {text}.").count(MARK) == 1
        assert len(scrub(text)) < 12


def test_server_mask_and_surrounding_words_are_handled() -> None:
    scrub = scrubber([KEY, "other-key-0123456789"])
    assert scrub(f"Incorrect API key provided: {KEY[:8]}{'*' * 28}WXYZ.") == f"Incorrect API key provided: {MARK}."
    assert scrub(f"{KEY[:8]}other-key-0123456789WXYZ") == f"sk-proj-{MARK}WXYZ"


def test_json_names_and_texts_are_scrubbed_and_other_values_stay() -> None:
    data = {KEY: [KEY, 1, None, True, 0.5, {"a": f"x{KEY}"}], "b": "c"}
    assert scrub_values(data, scrubber([KEY])) == {MARK: [MARK, 1, None, True, 0.5, {"a": f"x{MARK}"}], "b": "c"}


@each("between", " ", ", ", "-", ". ", ": ")
def test_two_words_at_the_ends_of_a_key_are_not_a_key(between: str) -> None:
    text = f"Response{between}good. Therefore, Output (a) is better."
    assert scrubber({"Response0123456789good"})(text) == text


@each("text", "a" * 11 + "b", KEY[:11], KEY[:8] + "...", KEY, "*", "x", f"{KEY[:8]}*")
def test_scrubbing_takes_linear_time(text: str) -> None:
    """A megabyte of near matches with keys of 200 characters takes seconds; quadratic time would be hours."""
    held = [(KEY * 5)[:200], (text * 200)[:200]]
    whole = (text * (1_000_000 // len(text) + 1))[:1_000_000]
    clean = scrubber(held)(whole)
    assert len(clean) <= len(whole)
