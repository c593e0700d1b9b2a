"""Test reading data sets: valid data load, errors are one clear line."""

import importlib
import importlib.util
import json
import sys
from importlib import resources
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from builders import error_line
from fakes import Missing
from hypothesis import given, strategies as st
from loops import each

from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.records import Case, Response
from distract.data.constraints import parse
from distract.data.datasets import BUILT_IN, READERS, load, load_prompts
from distract.data.formats import native
from distract.data.tables import read_table

GOOD: dict[str, Any] = {
    "id": "c1",
    "prompt": "Name a colour.",
    "responses": [{"author": "x", "text": "Red."}, {"author": "y", "text": "Blue.", "severity": 1}],
    "preferred": "x",
    "constraints": [{"kind": "punctuation:no_comma"}],
}
NO_LABEL = {k: v for k, v in GOOD.items() if k != "preferred"}


def with_(**fields: Any) -> str:
    return json.dumps({**GOOD, **fields}) + "\n"


def without(field: str) -> str:
    return json.dumps({k: v for k, v in GOOD.items() if k != field}) + "\n"


def responses(*entries: Any) -> str:
    return json.dumps({**NO_LABEL, "responses": list(entries)}) + "\n"


X = {"author": "x", "text": "t"}


@each(
    "content, line, problem",
    ("", None, "is empty; expected cases"),
        (" \n\n", None, "is empty; expected cases"),
        (with_() + '{"id": "c2", "prompt": "What', 2, "not valid JSON"),
        (with_() + '{"id": "c2", "prompt": "What', 2, "truncated"),
        (with_() + "\n\n[1]\n", 4, "expected an object, found a list"),
        *((without(name), 1, f"field '{name}': missing") for name in ("id", "prompt", "responses")),
        (with_(id=3), 1, "field 'id': expected text, found a whole number"),
        (with_(prompt=None), 1, "field 'prompt': expected text, found null"),
        (with_(prompt=True), 1, "field 'prompt': expected text, found true or false"),
        (with_(prompt=[]), 1, "field 'prompt': is an empty list"),
        (with_(prompt=["a", None]), 1, "field 'prompt[1]': expected text, found null"),
        (with_(prompt=" "), 1, "field 'prompt': is blank"),
        (with_(prompt="\ud800"), 1, "field 'prompt': holds half of a surrogate pair"),
        (with_(responses="x"), 1, "field 'responses': expected a list"),
        (with_(responses=[]), 1, "at least one response"),
        (with_(colour="red"), 1, "field 'colour': unknown field"),
        (with_(preferred="z"), 1, "field 'preferred': 'z' is neither 'tie' nor an author"),
        *((with_(id=name), 1, "field 'id': looks like a path") for name in ("../../etc/passwd", "a/../b")),
        *((with_(id=name), 1, "field 'id': holds control characters") for name in ("a\x1b[31m", "a\nb", "a\u200f")),
        (with_(id="a" * 201), 1, "field 'id': has 201 characters"),
        (with_() + with_(), 2, "field 'id': 'c1' was used on line 1"),
        ('{"id": NaN}\n', 1, "field 'id': expected text, found null"),
        (with_().replace('"Red."', "NaN"), 1, "expected text, found null"),
        (with_().replace('"Red."', "-Infinity"), 1, "expected text, found null"),
        (responses({"author": "x"}), 1, "field 'responses[0].text': missing"),
        (responses({"text": "t"}), 1, "field 'responses[0].author': missing"),
        (responses({"author": "x", "text": None}), 1, "field 'responses[0].text': expected text, found null"),
        (responses({"author": "x", "text": 1.5}), 1, "field 'responses[0].text': expected text, found the number 1.5"),
        (responses(X, "y"), 1, "field 'responses[1]': expected an object, found text"),
        (responses(X, X), 1, "two responses by 'x'"),
        (responses(X, {**X, "attack": "null", "severity": 2}), 1, "rewrites a response by 'x' that does not exist"),
        (responses({**X, "attack": "null"}), 1, "at least one response without an attack"),
        (responses(X, {**X, "attack": "prolix"}), 1, "[1].attack': unknown attack 'prolix'; did you mean 'prolixity'?"),
        (responses(X, {**X, "attack": "severity-2"}), 1, "[1].attack': unknown attack 'severity-2'"),
        *((responses({**X, "severity": severity}), 1, "field 'responses[0].severity': expected 1, 2 or 3, found ")
          for severity in (4, True, "1")),
        (responses({**X, "text": ["a", "b"]}), 1, "has 2 turns, the prompt has 1"),
        (responses({**X, "author": "tie"}), 1, "'tie' is reserved for labels"),
        (with_(constraints=[{"kind": "punctuation:no_coma"}]), 1, "no_comma"),
        (with_(constraints=[{}]), 1, "constraints[0]."),
        (with_(constraints={}), 1, "field 'constraints': expected a list"),
        ('{"id": "a", "id": "b"}\n', 1, "duplicate field 'id'"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1},\n]', 2, "comma after the last item"),
        ("just some words\n", 1, "not valid JSON (begins with 'just some words')"),
        ('[{"output_1":' + "[" * 100_000, 1, "nested too deeply"),
        ("{" + '"a":{' * 100_000, 1, "c.jsonl:1: "),
        ('[1, "output_1"]', 1, "expected an object, found a whole number"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1}, 1]', 1, "expected an object"),
        ("[]", None, "a JSON array without rows; expected cases"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1}', 1, "truncated"),
        ('[\n{"input": "q", "output_1": "a", "output_2": "b", "label": 1},\n{"inp', 3, "not valid JSON"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1},\n{"input": ""}]', 2, "'label': missing"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 3}]', None, "column \'label\' holds 3, which may"),
        ('[{"input": "q", "output_1": "a", "output_2": null, "label": 2}]', 1, "field 'output_2': expected text"),
        ('[{"input": "q", "output_1": NaN, "output_2": "b", "label": 2}]', 1, "expected text, found null"),
)  # fmt: skip
def test_wrong_content_is_located_in_one_line(tmp_path: Path, content: str, line: int | None, problem: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(content, encoding="utf-8", errors="surrogatepass")
    message = error_line(DataError, load, str(path))
    assert problem in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_missing_folder_and_wrong_encoding_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no such file \(built-in data sets: tweakset"):
        load(str(tmp_path / "nothing.jsonl"))
    with pytest.raises(DataError, match="is a directory"):
        load(str(tmp_path))
    latin1 = with_(id="c2", prompt="x").replace("x", "é").encode("latin-1")
    (tmp_path / "latin1.jsonl").write_bytes(with_().encode() + latin1)
    with pytest.raises(DataError, match=r"latin1\.jsonl:2: not UTF-8"):
        load(str(tmp_path / "latin1.jsonl"))
    with pytest.raises(UnknownName, match=r"unknown data format 'lmbar'; did you mean 'llmbar'"):
        load(f"lmbar:{tmp_path / 'x'}")
    for name in ("x" * 5000, f"llmbar:{'x' * 5000}", "a\0b", "llmbar:a\0b"):
        with pytest.raises(DataError, match=r"no such file|cannot be read"):
            load(name)
    # A file may be named like a spec.
    (tmp_path / "reife:x.jsonl").write_text(with_())
    monkeypatch.chdir(tmp_path)
    assert load("reife:x.jsonl").format == "native"


def test_native_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    two_turns = {"author": "x", "text": ["One.", ""]}
    line = json.dumps({"id": "c2", "prompt": ["First?", "Second?"], "responses": [two_turns]})
    path.write_text(f"{with_(criterion='Be brief.', source='here')}{line}\n")
    for spec in (str(path), f"native:{path}"):
        first, second = load(spec).cases
        assert (first.preferred, first.criterion, first.source) == ("x", "Be brief.", "here")
        assert (first.responses[1].severity, first.constraints[0].kind) == (1, "punctuation:no_comma")
        assert (second.prompt, second.responses[0].turns) == (("First?", "Second?"), ("One.", ""))


def test_null_in_an_optional_field_means_absent(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    nothing = dict.fromkeys(("preferred", "criterion", "constraints", "source"))
    path.write_text(with_(**nothing, responses=[{**X, "attack": None, "severity": None}]))
    (case,) = load(str(path)).cases
    assert (case.preferred, case.criterion, case.constraints, case.source) == (None, None, (), None)
    assert (case.responses[0].attack, case.responses[0].severity) == (None, None)


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + with_().replace("\n", "\r\n").encode())
    assert load(str(path)).cases[0].id == "c1"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SAID = TEXTS.filter(lambda text: text.strip() != "")
NAMES = st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=9).filter(
    lambda name: name.strip() != "" and name != "tie"
)
ATTACKS = st.sampled_from(["assertiveness", "prolixity", "sycophancy", "null"])
KINDS: list[dict[str, Any]] = [
    {"kind": "punctuation:no_comma"},
    {"kind": "keywords:existence", "keywords": ["é", "a b"]},
    {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 9},
]


# Texts may hold line separators, which JSON allows inside strings; they must not break a line in two.
@st.composite
def cases(draw: st.DrawFn) -> Case:
    turns = draw(st.integers(1, 2))
    prompt = tuple(draw(SAID) for _ in range(turns))
    results = []
    for author in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        severity = draw(st.sampled_from([None, None, 1, 3]))
        for attack in (None, *draw(st.lists(ATTACKS, max_size=2, unique=True))):
            results.append(Response(author, tuple(draw(TEXTS) for _ in range(turns)), attack, severity))
    whole = [response.author for response in results if response.severity is None]
    preferred = draw(st.sampled_from([None, "tie", *whole]))
    constraints = tuple(parse(raw) for raw in draw(st.lists(st.sampled_from(KINDS), max_size=3)))
    criterion, source = draw(st.none() | SAID), draw(st.none() | NAMES)
    return Case(draw(NAMES), prompt, tuple(results), preferred, criterion, constraints, source)


@given(cases())
def test_written_case_reads_back_equal(case: Case) -> None:
    line = native.format_line(case)
    assert "\n" not in line
    assert list(native.read(read_table(f"{line}\n".encode(), "x"))) == [case]


def test_written_record_omits_defaults() -> None:
    case = Case("c", ("Why?",), (Response("x", ("é",)), Response("x", ("e",), "f")))
    rewrite = '{"author": "x", "text": "e", "attack": "f"}'
    expected = f'{{"id": "c", "prompt": "Why?", "responses": [{{"author": "x", "text": "é"}}, {rewrite}]}}'
    assert native.format_line(case) == expected
    built_in = (resources.files("distract.data") / "tweakset.jsonl").read_text(encoding="utf-8")
    for case, line in zip(load("tweakset").cases, built_in.splitlines(), strict=True):
        assert json.loads(native.format_line(case)) == json.loads(line)


@each("name", *BUILT_IN)
def test_built_in_sets_load(name: str) -> None:
    data = load(name)
    assert (len(data.cases) >= 12, data.name) == (True, name)


def test_every_reader_has_a_description() -> None:
    assert all(reader.summary for reader in READERS.values())


REIFE = {"instruction": "Name a sea.", "output_1": "Baltic", "output_2": "Alps", "winner": 1}


class Array:
    """The type that a table returns for a list of numbers."""

    def tolist(self) -> list[float]:
        return [1.0, float("nan")]


def test_hub_rows_are_read_like_a_file(hub_data: dict[str, Any], tmp_path: Path) -> None:
    rows = [{**REIFE, "more": [Array(), None, float("inf"), {"at": Path("x")}]}, {**REIFE, "winner": 2}]
    hub_data["holds"] = {
        ("org/one", None): {"test": rows},
        ("org/one", "small"): {"test": rows[:1], "train": rows},
        ("org/one", "odd"): {"test": [{**REIFE, "winner": float("nan")}]},
    }
    dataset = load("hub:org/one")
    (tmp_path / "same.jsonl").write_text("".join(json.dumps({**row, "more": None}) + "\n" for row in rows))
    assert dataset.cases == load(str(tmp_path / "same.jsonl")).cases
    assert (dataset.name, dataset.format) == ("org/one", "reife")
    for spec in ("hub:org/one::test", "reife:hub:org/one", "reife:hub:org/one::"):
        assert (load(spec).cases, load(spec).checksum) == (dataset.cases, dataset.checksum)
    assert len(load("hub:org/one:small:test").cases) == 1
    assert load("hub:org/one:small:train").cases == dataset.cases
    assert hub_data["asked"][0] == ("org/one", 10.0)
    with pytest.raises(DataError, match=r"^hub:org/one:odd:1: field 'winner': expected .*, found null"):
        load("hub:org/one:odd")
    with pytest.raises(DataError, match=r"^hub:org/one:1: field 'label': missing"):
        load("llmbar:hub:org/one")
    with pytest.raises(UsageError, match="hub:org/one: reife data hold no prompts"):
        load_prompts("hub:org/one")
    with pytest.raises(UsageError, match="hub:org/one: mt-bench is a folder of files; download it and name the folder"):
        load("mt-bench:hub:org/one")


@pytest.mark.parametrize(
    ("spec", "raised", "kind", "problem"),
    [
        ("hub:", {}, UsageError, "hub:: expected hub:ORG/NAME[:CONFIG[:SPLIT]]"),
        *((f"hub:{name}", {}, UsageError, "expected hub:ORG/NAME[:CONFIG[:SPLIT]]")
          for name in ("a/b/c", "../b", "org/a b", "a/b:c:d:e")),
        ("hub:a/b", {"reach": Missing()}, DataError, "hub:a/b: no such data set on the hub, or it is not public"),
        ("hub:a/b", {"reach": OSError("[Errno -2]\nno name")}, UsageError,
         "hub:a/b: the hub cannot be reached ([Errno -2] no name); download the data set elsewhere and name its file"),
        ("hub:a/b", {"load": ValueError("Config name is missing.\nPick one: ['x', 'y']")}, UsageError,
         "cannot be loaded: Config name is missing. Pick one: ['x', 'y'] (expected hub:ORG/NAME[:CONFIG[:SPLIT]])"),
        ("hub:a/b", {"load": RuntimeError()}, UsageError, "hub:a/b: cannot be loaded: RuntimeError"),
        ("hub:a/b", {}, UsageError, "hub:a/b: has several splits (known: gpt4, human); name one as a/b::SPLIT"),
        ("hub:a/b::x", {}, UsageError, "hub:a/b::x: has no split 'x' (known: gpt4, human); name one as a/b::SPLIT"),
        ("hub:a/b::gpt4", {}, DataError, "hub:a/b::gpt4: is empty; expected cases"),
        ("reife-hub:a/b", {}, UnknownName, "unknown data format 'reife-hub'"),
    ],
)  # fmt: skip
def test_hub_failure_is_one_line(
    spec: str, raised: dict[str, Exception], kind: type[UsageError], problem: str, hub_data: dict[str, Any]
) -> None:
    hub_data["holds"] = {("a/b", None): {"human": [REIFE], "gpt4": []}}
    hub_data.update(raised)
    assert problem in error_line(kind, load, spec)


def test_cached_set_needs_no_hub(hub_data: dict[str, Any]) -> None:
    hub_data.update(holds={("a/b", None): {"test": [REIFE]}}, reach=OSError("no network"))
    vars(sys.modules["huggingface_hub"])["constants"].HF_HUB_OFFLINE = True
    assert (len(load("hub:a/b").cases), hub_data["asked"]) == (1, [])


def test_missing_datasets_library_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for result in (None, ModuleSpec("datasets", None)):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, result=result: result)
        with pytest.raises(UsageError, match=r'not installed: pip install -c constraints.txt "\.\[hub\]"'):
            load("hub:org/name")
    broken = ModuleType("datasets")
    broken.__spec__ = ModuleSpec("datasets", None, origin="here")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "datasets", broken)
    monkeypatch.setitem(sys.modules, "huggingface_hub", ModuleType("huggingface_hub"))
    with pytest.raises(UsageError, match="the library datasets cannot be used: module 'datasets' has no attribute"):
        load("hub:org/name")
