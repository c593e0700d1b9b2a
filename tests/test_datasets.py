"""Reading data sets: what is right is read, what is wrong is one clear line."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.constraints import parse
from distract.datasets import BUILT_IN, READERS, load, native
from distract.errors import DataError, UnknownName
from distract.records import Case, Response

SHARED = Path(__file__).parents[2] / "shared" / "data"
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


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("", None, "is empty"),
        (" \n\n", None, "is empty"),
        (with_() + '{"id": "c2", "prompt": "What', 2, "not valid JSON"),
        (with_() + '{"id": "c2", "prompt": "What', 2, "truncated"),
        (with_() + "\n\n[1]\n", 4, "expected an object, found a list"),
        (without("id"), 1, "field 'id': missing"),
        (without("prompt"), 1, "field 'prompt': missing"),
        (without("responses"), 1, "field 'responses': missing"),
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
        (with_(id="../../etc/passwd"), 1, "field 'id': looks like a path"),
        (with_(id="a/../b"), 1, "field 'id': looks like a path"),
        (with_(id="a\x1b[31m"), 1, "field 'id': holds control characters"),
        (with_(id="a\nb"), 1, "field 'id': holds control characters"),
        (with_(id="a" * 201), 1, "field 'id': has 201 characters"),
        (with_() + with_(), 2, "field 'id': 'c1' was used on line 1"),
        ('{"id": NaN}\n', 1, "NaN is not a JSON value"),
        (with_().replace('"Red."', "NaN"), 1, "NaN is not a JSON value"),
        (with_().replace('"Red."', "Infinity"), 1, "Infinity is not a JSON value"),
        (responses({"author": "x"}), 1, "field 'responses[0].text': missing"),
        (responses({"text": "t"}), 1, "field 'responses[0].author': missing"),
        (responses({"author": "x", "text": None}), 1, "field 'responses[0].text': expected text, found null"),
        (responses({"author": "x", "text": 1.5}), 1, "field 'responses[0].text': expected text, found the number 1.5"),
        (responses(X, "y"), 1, "field 'responses[1]': expected an object, found text"),
        (responses(X, X), 1, "two responses by 'x'"),
        (responses(X, {**X, "attack": "f", "severity": 2}), 1, "rewrites a response of 'x' that is not there"),
        (responses({**X, "attack": "f"}), 1, "at least one response without an attack"),
        (responses({**X, "severity": 4}), 1, "field 'responses[0].severity': expected 1, 2 or 3"),
        (responses({**X, "severity": True}), 1, "field 'responses[0].severity': expected 1, 2 or 3"),
        (responses({**X, "severity": "1"}), 1, "field 'responses[0].severity': expected 1, 2 or 3, found "),
        (responses({**X, "text": ["a", "b"]}), 1, "has 2 turns, the prompt has 1"),
        (responses({**X, "author": "tie"}), 1, "'tie' is what a label says"),
        (with_(constraints=[{"kind": "punctuation:no_coma"}]), 1, "no_comma"),
        (with_(constraints=[{}]), 1, "constraints[0]."),
        (with_(constraints={}), 1, "field 'constraints': expected a list"),
        ('{"id": "a", "id": "b"}\n', 1, "field 'id' is there twice"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1},\n]', 2, "a comma after the last item"),
        (with_(id="a\u200f"), 1, "field 'id': holds control characters"),
        ("just some words\n", None, "in no format that distract knows"),
        ('[{"output_1":' + "[" * 100_000, 1, "nested too deeply"),
        ("{" + '"a":{' * 100_000, 1, "c.jsonl:1: "),
        ('[1, "output_1"]', 1, "item 1: expected an object"),
        ("[" + with_() + "]", None, "in no format that distract knows (native: JSON Lines"),
        ("[]", None, "in no format that distract knows"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 1}', 1, "truncated"),
        ('[\n{"input": "q", "output_1": "a", "output_2": "b", "label": 1},\n{"inp', 3, "item 2: not valid JSON"),
        ('[\n{"input": "q", "output_1": "a", "output_2": "b"}]', 2, "field 'label': missing"),
        ('[{"input": "q", "output_1": "a", "output_2": "b", "label": 3}]', 1, "expected 1 or 2, found 3"),
        ('[{"input": "q", "output_1": "a", "output_2": null, "label": 2}]', 1, "field 'output_2': expected text"),
        ('[{"input": "q", "output_1": NaN, "output_2": "b", "label": 2}]', 1, "NaN is not a JSON value"),
    ],
)  # fmt: skip
def test_wrong_content_is_one_line_with_the_place(tmp_path: Path, content: str, line: int | None, problem: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(content, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(DataError) as error:
        load(str(path))
    message = str(error.value)
    assert problem in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert "\n" not in message


def test_missing_directory_and_wrong_encoding(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file \(built-in data sets: tweakset"):
        load(str(tmp_path / "nothing.jsonl"))
    with pytest.raises(DataError, match="is a directory"):
        load(str(tmp_path))
    (tmp_path / "latin1.jsonl").write_bytes(
        with_().encode() + with_(id="c2", prompt="x").replace("x", "é").encode("latin-1")
    )
    with pytest.raises(DataError, match=r"latin1\.jsonl:2: not UTF-8"):
        load(str(tmp_path / "latin1.jsonl"))
    with pytest.raises(UnknownName, match=r"unknown data format 'lmbar'; did you mean 'llmbar'"):
        load(f"lmbar:{tmp_path / 'x'}")


def test_native_fields_arrive(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    two_turns = {"author": "x", "text": ["One.", ""]}
    path.write_text(
        with_(criterion="Be brief.", source="here")
        + json.dumps({"id": "c2", "prompt": ["First?", "Second?"], "responses": [two_turns]})
        + "\n"
    )
    for spec in (str(path), f"native:{path}"):
        first, second = load(spec).cases
        assert (first.preferred, first.criterion, first.source) == ("x", "Be brief.", "here")
        assert first.responses[1].severity == 1
        assert first.constraints[0].kind == "punctuation:no_comma"
        assert (second.prompt, second.responses[0].turns) == (("First?", "Second?"), ("One.", ""))


def test_null_in_an_optional_field_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    nothing = dict.fromkeys(("preferred", "criterion", "constraints", "source"))
    path.write_text(with_(**nothing, responses=[{**X, "attack": None, "severity": None}]))
    (case,) = load(str(path)).cases
    assert (case.preferred, case.criterion, case.constraints, case.source) == (None, None, (), None)
    assert (case.responses[0].attack, case.responses[0].severity) == (None, None)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + with_().replace("\n", "\r\n").encode())
    assert load(str(path)).cases[0].id == "c1"


# Line separators that JSON allows inside strings must not break a line in two.
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: t.strip() != ""))
def test_any_text_comes_back_verbatim(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("d") / "cases.jsonl"
    case = {**NO_LABEL, "prompt": text, "responses": [{"author": "x", "text": text}]}
    path.write_text(json.dumps(case, ensure_ascii=False) + "\n", encoding="utf-8", newline="")
    (read,) = load(str(path)).cases
    assert read.prompt == (text,)
    assert read.responses[0].turns == (text,)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SAID = TEXTS.filter(lambda text: text.strip() != "")
NAMES = st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=9).filter(
    lambda name: name.strip() != "" and name != "tie"
)
KINDS = st.sampled_from(
    [
        parse(raw)
        for raw in (
            {"kind": "punctuation:no_comma"},
            {"kind": "keywords:existence", "keywords": ["é", "a b"]},
            {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 9},
        )
    ]
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    turns = draw(st.integers(1, 2))
    prompt = tuple(draw(SAID) for _ in range(turns))
    found = []
    for author in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        severity = draw(st.sampled_from([None, None, 1, 3]))
        for attack in (None, *draw(st.lists(NAMES, max_size=2, unique=True))):
            found.append(Response(author, tuple(draw(TEXTS) for _ in range(turns)), attack, severity))
    whole = [response.author for response in found if response.severity is None]
    preferred = draw(st.sampled_from([None, "tie", *whole]))
    constraints = tuple(draw(st.lists(KINDS, max_size=3)))
    criterion, source = draw(st.none() | SAID), draw(st.none() | NAMES)
    return Case(draw(NAMES), prompt, tuple(found), preferred, criterion, constraints, source)


@given(cases())
def test_a_case_that_is_written_is_read_as_it_was(case: Case) -> None:
    line = native.line(case)
    assert "\n" not in line
    assert list(native.read(f"{line}\n", "x")) == [case]


def test_what_is_written_says_no_more_than_it_must() -> None:
    case = Case("c", ("Why?",), (Response("x", ("é",)), Response("x", ("e",), "f")))
    rewrite = '{"author": "x", "text": "e", "attack": "f"}'
    assert (
        native.line(case)
        == f'{{"id": "c", "prompt": "Why?", "responses": [{{"author": "x", "text": "é"}}, {rewrite}]}}'
    )
    built_in = (resources.files("distract.datasets") / "tweakset.jsonl").read_text(encoding="utf-8")
    for case, line in zip(load("tweakset").cases, built_in.splitlines(), strict=True):
        assert json.loads(native.line(case)) == json.loads(line)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets_load(name: str) -> None:
    data = load(name)
    assert len(data.cases) >= 12
    assert data.name == name


@pytest.mark.parametrize(
    ("folder", "rows"),
    [("Natural", 100), ("Adversarial/GPTInst", 92), ("Adversarial/GPTOut", 47), ("Adversarial/Manual", 46),
     ("Adversarial/Neighbor", 134), ("MT-Bench", 200)],
)  # fmt: skip
def test_llmbar_as_published(folder: str, rows: int) -> None:
    path = SHARED / "llmbar" / folder / "dataset.json"
    if not path.exists():
        pytest.skip(f"needs {SHARED / 'llmbar'}")
    cases = load(str(path)).cases
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert len(cases) == rows
    assert [c.preferred for c in cases] == [f"output_{r['label']}" for r in raw]
    assert [c.responses[1].turns for c in cases] == [(r["output_2"],) for r in raw]
    if folder == "MT-Bench":
        assert len({c.cluster for c in cases}) == 75


def test_every_reader_says_what_it_reads() -> None:
    assert all(reader.summary for reader in READERS.values())
