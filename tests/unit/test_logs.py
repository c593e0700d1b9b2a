"""Test logs of other tools: the kinds that the real tools write as data, damaged ones, and archives without end."""

import json
import math
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click
import pytest
import zstandard
from builders import error_line
from command_result import check_refusal
from hypothesis import given, strategies as st
from loops import each

from distract.cli.main import COMMANDS, cli
from distract.cli.parameters import KindType
from distract.core.errors import DataError, DistractError, UsageError
from distract.data import archives
from distract.data.datasets import load
from distract.data.tables import open_table
from distract.judging import published as replay
from distract.models.provider import known_settings
from distract.models.ranges import INNER_SHARE, LIMIT, PRICE, SEED, NumberRange, Range, WholeRange
from distract.studies.gate.limits import Limits, load_settings

LOGS = Path(__file__).parents[1] / "data" / "logs"
SAMPLE: dict[str, Any] = {
    "id": 1,
    "epoch": 1,
    "input": "Name a sea.",
    "target": "Baltic",
    "output": {"model": "m", "choices": [{}], "completion": "The Baltic."},
}
REPEATED = "a second answer of the same model to the same prompt"
NO_TEXT = "no text was generated"


def problem(path: Path) -> str:
    message = error_line(DataError, load, str(path))
    assert len(message) < 240 + len(str(path))
    return message


def write_archive(path: Path, members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def write_zstandard(path: Path, text: bytes, frames: int = 1, size: int | None = None) -> Path:
    """Write a sample compressed by Zstandard, as inspect_ai does, in several frames if it is large."""
    step = -(-len(text) // frames)
    parts = [text[start : start + step] for start in range(0, len(text), step)]
    content = b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)
    write_archive(path, {"samples/1.json": content, "samples/2.json": content}, zipfile.ZIP_STORED)
    raw = bytearray(path.read_bytes())
    for mark, method, length in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        at = -1
        while (at := raw.find(mark, at + 1)) >= 0:
            raw[at + method : at + method + 2] = struct.pack("<H", 93)
            raw[at + length : at + length + 4] = struct.pack("<I", len(text) if size is None else size)
    path.write_bytes(raw)
    return path


# lm_eval 0.4.13 wrote the files with a dummy model, and the chat with a local server.
@each(
    "name, prompts, left_out",
    ("repeats", ["Question: Which sea lies north of Poland?\nAnswer:"], {REPEATED: 9}),
    ("chat", ["Be brief.\n\nQuestion: Which sea lies north of Poland?\nAnswer:"], {REPEATED: 3}),
    *((name, [], {NO_TEXT: 3}) for name in ("likelihood", "choice")),
)
def test_samples_of_lm_eval(name: str, prompts: list[str], left_out: dict[str, int]) -> None:
    path = LOGS / f"lm-eval-{name}.jsonl"
    if not prompts:
        assert f"holds no cases: {NO_TEXT} (3)" in problem(path)
        return
    dataset = load(str(path))
    assert (dataset.format, [case.prompt[0] for case in dataset.cases][:1]) == ("lm-eval", prompts)
    assert (len(dataset.cases), dataset.left_out) == (3, left_out)
    assert [case.reference for case in dataset.cases] == [("The Baltic Sea",), ("Jane Austen",), ("56",)]


def test_results_of_lm_eval_name_the_samples(tmp_path: Path) -> None:
    value = {"results": {"t": {"acc": 1}}, "configs": {"t": {}}, "versions": {"t": 1}, "n-shot": {"t": 0}, "date": 1.5}
    (tmp_path / "results.json").write_text(json.dumps(value, indent=2), encoding="utf-8")
    assert "are results of lm-evaluation-harness without samples; name samples_" in problem(tmp_path / "results.json")


@each(
    "text, form",
    ("evalId: eval-x\nresults:\n  version: 3\n", "r.yaml"),
    ("<promptfoo>\n  <evalId>eval-x</evalId>\n", "r.xml"),
    ('question,"[plain] A {{question}}\nin two lines",Status,Score,Named Scores,Grader Reason\n', "r.csv"),
)
def test_other_forms_of_promptfoo_name_its_json(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / form).write_text(text, encoding="utf-8")
    assert "is no JSON of promptfoo; write it: promptfoo eval -o results.json" in problem(tmp_path / form)


@each(
    "change, prompt",
    ({"choices": ["Black", "Baltic"]}, "Name a sea.\n\nA) Black\nB) Baltic"),
        ({"choices": []}, "Name a sea."),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "Name"}, {"type": "text", "text": "it."}]}]},
         "Name\n\nit."),
        ({"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
            {"type": "reasoning", "reasoning": "Greet."}, {"type": "text", "text": "Yes?"}]},
            {"role": "user", "content": "Name a sea."}]}, "Hi"),
        ({"scores": {"s": {"value": float("nan")}}}, "Name a sea."),
)  # fmt: skip
def test_sample_of_inspect_ai(tmp_path: Path, change: dict[str, Any], prompt: str) -> None:
    path = write_archive(tmp_path / "l.eval", {"samples/1.json": json.dumps({**SAMPLE, **change}).encode()})
    (case,) = load(str(path)).cases
    assert (case.id, case.prompt[0], case.responses[0].turns[-1]) == ("item-1", prompt, "The Baltic.")
    assert case.responses[0].turns[:-1] == (("Yes?",) if prompt == "Hi" else ())


@each(
    "change, reason",
    ({"error": {"message": "x"}}, "the sample failed"),
    ({"output": {"model": "m", "choices": [], "completion": ""}}, "the sample failed"),
    ({"input": [{"role": "user", "content": [{"type": "image", "image": "x"}]}]}, "a message with parts that are"),
    ({"input": [{"role": "tool", "content": "x"}, {"role": "user", "content": "y"}]}, "a conversation with tools"),
)
def test_sample_that_is_no_case_is_counted(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    members = {"samples/1.json": json.dumps({**SAMPLE, **change}).encode()}
    assert reason in problem(write_archive(tmp_path / "l.eval", members))
    members["samples/2.json"] = json.dumps({**SAMPLE, "id": 2}).encode()
    dataset = load(str(write_archive(tmp_path / "l.eval", members)))
    assert ([case.id for case in dataset.cases], [*dataset.left_out.values()]) == (["item-2"], [1])


@each("member", "header.json", "_journal/start.json")
def test_log_without_samples_says_so(tmp_path: Path, member: str) -> None:
    header = {"version": 2, "status": "success", "eval": {"task": "t"}, "plan": {}}
    message = "is a log of inspect_ai without samples; evaluate with --log-samples"
    assert message in problem(write_archive(tmp_path / "l.eval", {member: json.dumps(header).encode()}))
    (tmp_path / "l.json").write_text(json.dumps(header, indent=2), encoding="utf-8")
    assert message in problem(tmp_path / "l.json")


def test_last_member_of_one_name_counts(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, of a duplicate name
        with zipfile.ZipFile(tmp_path / "l.eval", "w") as archive:
            for text in ("Old.", "New."):
                output = {**SAMPLE["output"], "completion": text}
                archive.writestr("samples/1.json", json.dumps({**SAMPLE, "output": output}))
    (case,) = load(str(tmp_path / "l.eval")).cases
    assert case.responses[0].text == "New."


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zstandard(tmp_path / "l.eval", json.dumps(SAMPLE).encode())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"l\.eval: needs zstandard, which is not installed: pip install"):
        load(str(path))


@each("frames", 1, 3)
def test_sample_in_several_frames_is_read(tmp_path: Path, frames: int) -> None:
    text = json.dumps({**SAMPLE, "metadata": {"padding": "x" * 5000}}).encode()
    path = write_zstandard(tmp_path / "l.eval", text, frames)
    log = archives.open_log(lambda: path.open("rb"), "l")
    assert log is not None
    rows = [*log[0]()]
    assert rows == [(1, json.loads(text)), (2, json.loads(text))]


@each("form", "deflate", "zstandard", "zstandard, small in its header")
def test_sample_that_inflates_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(archives, "_MOST", 1 << 20)
    text = b'{"id": "' + b" " * (3 << 20)
    path = tmp_path / "l.eval"
    if form == "deflate":
        write_archive(path, {"samples/1.json": text})
    else:
        write_zstandard(path, text, size=10 if "small" in form else None)
    assert path.stat().st_size < 10_000
    assert "samples/1.json: has more than 1 MB; leave this sample out" in problem(path)


@each(
    "cut, message",
    (lambda raw: raw[:-30], "is a damaged ZIP archive; if it is a log of inspect_ai, `inspect log recover` may help"),
    (lambda raw: raw.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe", 1), "samples/1.json: damaged ("),
    (lambda raw: raw.replace(struct.pack("<I", 200), struct.pack("<I", 900)), "samples/1.json: damaged (it ends"),
)
def test_damaged_archive_is_refused(tmp_path: Path, cut: Any, message: str) -> None:
    text = json.dumps(SAMPLE).encode().ljust(200)
    path = write_zstandard(tmp_path / "l.eval", text)
    path.write_bytes(cut(path.read_bytes()))
    assert message in problem(path)


JUNK: tuple[Any, ...] = (
    *(None, 1, 1e999, float("nan"), "", "x", "\ud800", "a\x1b[2J", "../x", True),
    *([], {}, [1], [None], [{}], {"value": {}}),
)


def list_paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from list_paths(child, (*path, key))


def read_documents() -> list[tuple[str, Any]]:
    """A small document of each tool."""
    table = open_table(LOGS / "inspect.eval")
    samples = [{**value, "events": [], "messages": [], "attachments": {}} for _, value in islice(table.read(), 2)]
    header = {name: table.header[name] for name in ("version", "status", "eval", "plan")}
    lines = {
        name: [json.loads(line) for line in (LOGS / name).read_text(encoding="utf-8").splitlines()[:2]]
        for name in ("promptfoo.jsonl", "lm-eval-chat.jsonl")
    }
    return [("l.json", {**header, "samples": samples}), *lines.items()]


DOCUMENTS = read_documents()


@given(st.data())
def test_no_damage_of_a_log_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name, document = data.draw(st.sampled_from(DOCUMENTS))
    changed = json.loads(json.dumps(document))
    *outer, last = data.draw(st.sampled_from([*list_paths(changed)]))
    holder = changed
    for key in outer:
        holder = holder[key]
    holder[last] = data.draw(st.sampled_from(JUNK))
    path = tmp_path_factory.mktemp("log") / name
    text = json.dumps(changed, indent=1) if name == "l.json" else "\n".join(json.dumps(row) for row in changed)
    path.write_text(text, encoding="utf-8")
    for read in (load, replay.load):
        assert "\n" not in find_error(read, path)


def find_error(read: Callable[[str], object], path: Path) -> str:
    try:
        assert read(str(path))
    except DistractError as error:
        return str(error)
    return ""


HOSTILE = (
    *("nan", "NaN", "inf", "-inf", "infinity", "1e304", "1e999", "-1e304", "1_000", "99999999999999999999", "9" * 5000),
    *("-0", "0x10", "", " ", "٣", "５", "1e", "1,5", "1.5.", "--1", "one", "\ud800", "1\x00", "10%", "1/2", "+-1"),
)


def numeric() -> Iterator[tuple[click.Command, click.Parameter]]:
    """The numeric options of each command, by type or by meaning."""
    for name in sorted(COMMANDS):
        command = cli.get_command(click.Context(cli), name)
        assert command
        for option in command.params:
            default = option.default() if callable(option.default) else option.default
            is_number = isinstance(getattr(option.type, "kind", option.type), Range | click.types.IntParamType)
            if is_number or (isinstance(default, int | float) and not isinstance(default, bool)):
                yield command, option


def refusal(command: click.Command, *arguments: str) -> str:
    """The error message for the options of a command, which does not start; missing options are reported later."""
    try:
        command.make_context(command.name, [*arguments])
    except click.MissingParameter:
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def test_all_commands_are_covered() -> None:
    options = [f"{command.name} {option.opts[0]}" for command, option in numeric()]
    assert len(options) > 70
    assert {"attack --price-in", "gate --max-flip-rate", "gate --power", "leaderboard --draws"} <= {*options}


@pytest.mark.parametrize(("command", "option"), [*numeric()])
@pytest.mark.usefixtures("run")
def test_hostile_number_is_one_line_or_within_bounds(command: click.Command, option: click.Option) -> None:
    assert isinstance(option.type, KindType), "a plain number has no bounds"
    kind = option.type.kind
    assert isinstance(kind, Range)
    assert math.isfinite(kind.least)
    assert math.isfinite(kind.most)
    for text in HOSTILE:
        refused = refusal(command, f"{option.opts[-1]}={text}")
        if text == "-0" and kind.least <= 0 and not getattr(kind, "_above", False):
            assert (refused, str(kind.read(text)) in ("0", "0.0")) == ("", True)
        else:
            assert f"'{option.opts[-1]}'" in refused
            assert "expected a" in refused
            assert (len(refused.splitlines()), len(refused) < 200) == (1, True)


@pytest.mark.parametrize("key", [name for name, setting in known_settings().items() if isinstance(setting.kind, Range)])
def test_hostile_number_of_an_engine_setting_is_one_line(key: str, run: Any) -> None:
    for text in HOSTILE:
        check_refusal(run("attack", "--model-option", f"{key}={text}"), f"{key.replace('_', '-')} ", "expected a")


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_text_is_a_number_within_bounds_or_refused(text: str) -> None:
    for kind in (WholeRange(1, 1000), SEED, LIMIT, PRICE, INNER_SHARE):
        try:
            value = kind.read(text)
        except ValueError:
            continue
        assert value in (None, 0) or kind.least <= value <= kind.most
        assert value == (None if text == "all" else float(text) if isinstance(kind, NumberRange) else int(text))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gate", "--plan", "--max-flip-rate", "10", "--true-rate", "0.02"), "write 0.10 for 10%"),
        (("gate", "--plan", "--max-flip-rate", "10%", "--true-rate", "0.02"), "write 0.10 for 10%"),
        (("gate", "--plan", "--max-flip-rate", "0.5%", "--true-rate", "0.02"), "write 0.005 for 0.5%"),
        (("gate", "--plan", "--max-flip-rate", "0.1", "--true-rate", "5"), "write 0.05 for 5%"),
        (("gate", "r", "--confidence", "95"), "write 0.95 for 95%"),
        (("compare", "a", "b", "--max-rise", "2.5"), "write 0.025 for 2.5%"),
        (("attack", "--model-option", "gpu-memory=90"), "write 0.90 for 90%"),
        (("attack", "--price-in", "nan"), "expected a number from 0 to 1e+06"),
        (("attack", "--seed", "99999999999999999999"), "expected a whole number from -9223372036854775808 to "),
        (("attack", "--limit", "99999999999999999999"), "expected a number of cases from 1 to 1000000000, or 'all'"),
        (("attack", "--model-option", "timeout=inf"), "expected a number from 0.001 to 86400"),
    ],
)
def test_refused_number_has_a_suggestion(run: Any, arguments: tuple[str, ...], message: str) -> None:
    check_refusal(run(*arguments), message)


def test_share_in_percent_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.distract.gate]\nmax-flip-rate = 10\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"max-flip-rate: '10': expected .*; write 0\.10 for 10%$"):
        load_settings(file)


def test_limits_explain_shares_in_percent() -> None:
    with pytest.raises(UsageError, match=r"--max-flip-rate 10: .*; write 0\.10 for 10%$"):
        Limits.of(max_flip_rate=10)
    with pytest.raises(UsageError, match=r"from 0\.000001 to below 1$"):
        Limits.of(max_flip_rate=1e-9)
