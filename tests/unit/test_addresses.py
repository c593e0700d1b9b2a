"""Test server addresses: each has one normal form or fails in one line."""

import json
import re
import string
from pathlib import Path
from urllib.parse import quote

import pytest
from builders import error_line
from fakes import overwrite
from hypothesis import example, given, strategies as st
from loops import each

from distract.core.errors import DataError, UsageError
from distract.models import cache as module
from distract.models.cache import digest, digests, folder_digest, keep, recall
from distract.models.catalogue import catalogue
from distract.models.opener import resolve
from distract.models.options import Options
from distract.models.server.addresses import parse_address
from distract.models.server.backend import OpenAI
from distract.models.server.secrets import MARK, PART, scrub_values, scrubber

ODD = (
    *("http://[x/v1", "http://[v1.a]/v1", "http://[fe80::1%eth0]/v1", "http://ｅｘａｍｐｌｅ/v1", "http://a℀b/v1"),
    *("http://bücher.example/v1", "http://a..b/v1", "http://.a/v1", "http://-a/v1", f"http://{'a' * 64}/v1"),
    *(f"http://{'a.' * 150}b/v1", f"http://a/{'v' * 2000}", "http://a:0/v1", "http://a:65536/v1"),
    *("http://a:-1/v1", "http://a:１/v1", "http://999.1.1.1/v1", "http://a\tb/v1", "http://a\x00b/v1"),
    *("http://a\u202eb/v1", "http://a/\udcff", "http://a b/v1", "http:///v1", "http://", "ftp://a/v1", "a/v1"),
)


@each("address", *ODD)
def test_malformed_address_is_one_line_everywhere(address: str, tmp_path: Path) -> None:
    message = error_line(UsageError, parse_address, address)
    assert len(address) < 9 or address not in message
    with pytest.raises(UsageError):
        OpenAI("m", base_url=address)
    with pytest.raises(UsageError):
        resolve("openai:m", Options(base_url=address), {})
    if address.startswith("http"):
        with pytest.raises(UsageError):
            resolve(f"{address}#m", Options(), {})
    file = tmp_path / "own.toml"
    written = "".join(f"\\U{ord(one):08x}" if one != "\udcff" else "\\u0000" for one in address)
    file.write_text(f'[a]\nmodel = "x"\nengine = "openai"\nbase_url = "{written}"\n', encoding="utf-8")
    with pytest.raises(DataError, match="base_url"):
        catalogue(file)


@each(
    "address, form",
    (" HTTP://Example.COM:80/v1/ ", "http://example.com/v1"),
    ("https://h:443", "https://h"),
    ("https://h:80/", "https://h:80"),
    ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ("http://my_host-1.local./v1", "http://my_host-1.local./v1"),
    ("https://xn--bcher-kva.example/v1", "https://xn--bcher-kva.example/v1"),
)
def test_addresses_have_one_normal_form(address: str, form: str) -> None:
    assert (parse_address(address).geturl(), parse_address(form).geturl()) == (form, form)


hosts = st.text("ab.-_:[]%@#?/\\\u2100\uff41é0159 \x00", max_size=20)


@given(st.text() | hosts.map("http://{}/v1".format))
@example("http://[::ffff:1.2.3.4]/v1")
@example("http://xn--a/v1")
def test_accepted_addresses_work_in_the_client(address: str) -> None:
    try:
        form = parse_address(address).geturl()
    except UsageError:
        return
    assert parse_address(form).geturl() == form
    openai = pytest.importorskip("openai")
    if re.search(r"xn--", form):
        return  # name resolution raises it
    assert openai.AsyncOpenAI(api_key="none", base_url=form).base_url.host


def test_addresses_are_parsed_in_one_place() -> None:
    folder = Path(__file__).parents[2] / "distract"
    readers = [path.name for path in folder.rglob("*.py") if "urlsplit" in path.read_text(encoding="utf-8")]
    assert readers == ["addresses.py"]


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


CONFIG = "config.json"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model files that count as old."""
    monkeypatch.setattr(module, "SETTLE_TIME", -(10**12))
    folder = tmp_path / "model"
    folder.mkdir()
    for name in (CONFIG, "model.safetensors", "tokenizer.json"):
        (folder / name).write_text(name)
    return folder


def test_each_file_is_read_once(model: Path, tmp_path: Path) -> None:
    first, read = folder_digest(model, tmp_path / "cache")
    assert read == sum(file.stat().st_size for file in model.iterdir())
    assert folder_digest(model, tmp_path / "cache") == (first, 0)
    assert folder_digest(model, tmp_path / "other") == (first, read)


def test_file_overwritten_in_place_is_read_again(model: Path, tmp_path: Path) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    overwrite(model / "model.safetensors", b"MODEL.safetensors")
    second, read = folder_digest(model, tmp_path / "cache")
    assert (second != first, read) == (True, len("model.safetensors"))
    overwrite(model / "model.safetensors", b"model.safetensors")
    assert folder_digest(model, tmp_path / "cache")[0] == first


def test_just_written_file_is_not_remembered(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_TIME", 10**12)
    first, read = folder_digest(model, tmp_path / "cache")
    assert folder_digest(model, tmp_path / "cache") == (first, read)


RELEVANT = (
    "model-00002-of-00002.safetensors pytorch_model.bin model.gguf generation_config.json chat_template.jinja "
    "additional_chat_templates/tool.jinja merges.txt tokenizer.model modeling_own.py"
)
IRRELEVANT = (
    "README.md LICENSE .gitattributes training_args.bin optimizer.pt checkpoint-500/model.safetensors "
    "original/consolidated.00.pth"
)


@pytest.mark.parametrize(
    ("name", "is_relevant"), [*((n, True) for n in RELEVANT.split()), *((n, False) for n in IRRELEVANT.split())]
)
def test_digest_covers_what_decides_replies(model: Path, tmp_path: Path, name: str, is_relevant: bool) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).write_text("x")
    assert (folder_digest(model, tmp_path / "cache")[0] != first) == is_relevant


def test_digest_covers_file_names(model: Path, tmp_path: Path) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    (model / CONFIG).rename(model / "other.json")
    assert folder_digest(model, tmp_path / "cache")[0] != first


def test_links_are_followed(model: Path, tmp_path: Path) -> None:
    linked = tmp_path / "snapshot"
    linked.mkdir()
    for file in model.iterdir():
        (linked / file.name).symlink_to(file)
    assert folder_digest(linked, tmp_path / "cache")[0] == folder_digest(model, tmp_path / "cache")[0]


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"PATH": 3}', '{"PATH": []}', '{"PATH": [1, 2, 3, 4, "no"]}'])
def test_damaged_memory_is_recomputed(model: Path, tmp_path: Path, content: str) -> None:
    file = model / CONFIG
    (tmp_path / module.CACHE_FILE).write_text(content.replace("PATH", str(file)))
    assert digests([file], tmp_path) == ({file: digest(file)}, len(CONFIG))
    assert digests([file], tmp_path) == ({file: digest(file)}, 0)


def test_deleted_files_are_forgotten(model: Path, tmp_path: Path) -> None:
    digests([model / CONFIG], tmp_path)
    (model / CONFIG).unlink()
    digests([model / "tokenizer.json"], tmp_path)
    assert list(json.loads((tmp_path / module.CACHE_FILE).read_text())) == [str(model / "tokenizer.json")]


def test_unwritable_folder_remembers_nothing(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    first, read = folder_digest(model, tmp_path / "file")
    assert folder_digest(model, tmp_path / "file") == (first, read)


def test_facts_are_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    keep(tmp_path / "new" / "facts.json", {"a": 1})
    keep(tmp_path / "new" / "facts.json", {"b": 2})
    assert recall(tmp_path / "new" / "facts.json") == {"b": 2}
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["facts.json"]
