"""Test how commands print hostile text: in encodings that lack its characters, and under a CI runner."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from loops import each

from distract.cli.streams import _SafeText

NASTY = "::add-mask::水 👩‍🔬 e\u0301 ﷽ Ünï"
LINES = f"{NASTY}\n  ::stop-commands::x\n\u00a0::set-output name=x::y\n##[error]z\na ##vso[task.complete]b\r::debug::d"

DRIVER = """
import json, os, sys
from distract.cli import main as cli
for line in open("commands.jsonl", encoding="utf-8"):
    sys.argv = ["distract", *(os.fsdecode(one.encode()) for one in json.loads(line))]
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code
    with open("codes", "a", encoding="utf-8") as file:
        file.write(f"{code}\\n")
"""
RULES = ("--generator", "rules", "--limit", "all", "--protocol", "pairwise", "--attack", "sycophancy")
JUDGE = ("--judge", "planted:longer", "--data", "d.jsonl")
COMMANDS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("list",), 0),
    (("--help",), 0),
    (("attack", *JUDGE, *RULES, "--control", "--out", "r"), 0),
    (("attack", *JUDGE, *RULES, "--control", "--out", "r", "--json"), 0),
    (("attack", "--judge", "planted:garbage", "--data", "d.jsonl", *RULES, "--out", "u"), 3),
    (("report", "r"), 0),
    (("report", "r", "--json"), 0),
    (("check", "r"), 0),
    (("check", "r", "--json"), 0),
    (("check", "a.txt", "b.txt", "--prompt", "a.txt"), 0),
    (("check", "a.txt", "b.txt", "--json"), 0),
    (("check", "--labelled", "l.jsonl"), 0),
    (("flips", "r", "--top", "all"), 0),
    (("flips", "r", "--verbose", "--csv", "f.csv", "--json"), 0),
    (("explain", "r"), 0),
    (("explain", "r", f"c0 {NASTY}"), 0),
    (("explain", "r", f"c0 {NASTY}", "--json"), 0),
    (("gate", "r", "--max-flip-rate", "0.1", "--junit", "j.xml", "--summary", "s.md"), 1),
    (("gate", *JUDGE, *RULES, "--max-flip-rate", "0.1", "--out", "g"), 1),
    (("compare", "r", "r"), 2),
    (("gate", "--plan", "--max-flip-rate", "0.1", "--true-rate", "0.02"), 0),
    (("rewrite", "--data", "d.jsonl", "--attack", "assertiveness", "--limit", "all", "--out", "w.jsonl"), 0),
    (("consistency", *JUDGE, "--limit", "all", "--out", "t"), 0),
    (("leaderboard", *JUDGE, *RULES, "--attack", "prolixity", "--lowest", "1", "--out", "b"), 0),
    (("meta", *JUDGE, "--limit", "all", "--out", "m"), 0),
    (("make-pairs", "--data", "d.jsonl", "--generator", "planted:longer", "--out", "p.jsonl"), 2),
    (("make-tweakset", "--data", "d.jsonl", "--generator", "planted:longer", "--out", "p.jsonl"), 2),
    *(((command, f"--{LINES}"), 2) for command in ("attack", "list", "check")),
    (("attack", "--data", LINES), 2),
    (("attack", "--attack", LINES), 2),
    (("attack", "--judge", LINES), 2),
    (("gate", LINES, "--max-flip-rate", "0.5"), 2),
    (("explain", "r", LINES), 2),
    (("report", LINES), 2),
)


def write(folder: Path) -> None:
    """Data whose every field is hostile, and the commands."""
    hedged = "I think it might be {} of the reasons, and perhaps it could be more. "
    cases: list[dict[str, Any]] = []
    for i in range(10):
        texts = [f"{LINES}\n{hedged.format(3 + i) * (place + 1)}\n{LINES}" for place in range(4)]
        authors = [f"{name}{NASTY}" for name in ("", "##[warning]", "w", "::")]
        responses = [{"author": author, "text": text} for author, text in zip(authors, texts, strict=True)]
        one = {"id": f"c{i} {NASTY}", "prompt": f"{LINES} {i}", "responses": responses, "preferred": authors[i % 2]}
        cases.append({**one, "criterion": LINES, "source": NASTY})
    labelled = {"prompt": LINES, "original": LINES, "rewrite": f"{LINES} 3", "style": "prolixity"}
    rows = [{**labelled, "label": label, "kind": NASTY} for label in ("faithful", "changed")]
    for name, lines in (("d", cases), ("l", rows), ("commands", [list(one) for one, _ in COMMANDS])):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "a.txt").write_text(LINES, encoding="utf-8")
    (folder / "b.txt").write_text(f"{LINES}\n::error::boom 水 7\n{LINES}", encoding="utf-8")


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENCODINGS = {
    "utf-8": {"PYTHONIOENCODING": "utf-8"},
    "cp1252": {"PYTHONIOENCODING": "cp1252:strict"},
    "latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
    "ascii": {"PYTHONIOENCODING": "ascii:strict", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "step.md"},
    "C": C_LOCALE,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_encoding_works_and_no_text_becomes_a_command(encoding: str, tmp_path: Path) -> None:
    write(tmp_path)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_", "GITHUB"))}
    environment = {**inherited, "COLUMNS": "80", "TERM": "dumb", **ENCODINGS[encoding]}
    ran = subprocess.run([sys.executable, "-c", DRIVER], cwd=tmp_path, env=environment, capture_output=True, check=True)
    codes = [int(code) for code in (tmp_path / "codes").read_text().split()]
    out, err = (text.decode("ascii" if encoding == "C" else encoding) for text in (ran.stdout, ran.stderr))
    assert "Traceback" not in err
    assert {one: code for (one, _), code in zip(COMMANDS, codes, strict=True)} == dict(COMMANDS)
    gate = re.compile(r"::([0-9a-f]{32}::|stop-commands::[0-9a-f]{32}$|(error|warning|notice) title=distract gate)")
    for line in re.split(r"[\r\n]+", out + err):
        assert not re.match(r"\s*::", line) or (encoding == "ascii" and gate.match(line)), line
        assert not re.search(r"##\w*\[", line) or gate.match(line), line
    # The encoding of the terminal does not affect files.
    assert "水" in "".join(ElementTree.parse(tmp_path / "j.xml").getroot().itertext())
    assert "水" in (tmp_path / "s.md").read_text(encoding="utf-8")
    if encoding == "ascii":
        assert "水" in (tmp_path / "step.md").read_text(encoding="utf-8")
        assert [one for one in out.splitlines() if one.startswith("::error title=distract gate")]
    written = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written[0]["prompt"] == f"{LINES} 0"
    starts = [place for place, line in enumerate(out.splitlines()) if line == "{"]
    documents = [json.JSONDecoder().raw_decode("\n".join(out.splitlines()[place:]))[0] for place in starts]
    assert (len(documents), documents[-1]["prompt"]) == (6, [f"{LINES} 0"])


def write_parts(*parts: str, encoding: str = "utf-8") -> str:
    buffer = io.BytesIO()
    stream = _SafeText(buffer, encoding=encoding, errors="distract")
    for part in parts:
        assert stream.write(part) == len(part)
    stream.flush()
    return buffer.getvalue().decode(encoding)


@each(
    "parts, expected",
    (("::a::b",), ":~:a::b"),
    (("x ::a::b\n ::a",), "x ::a::b\n :~:a"),
    ((":", ":a"), ":~:a"),
    (("  ", "\t", ":", "", ":a"), "  \t:~:a"),
    (("a", "::b"), "a::b"),
    (("a\r::b", "\r\n", "::c"), "a\r:~:b\r\n:~:c"),
    (("\x1b[1m::b",), "\x1b[1m:~:b"),
    (("x" * 999, "#", "#", "[y]"), "x" * 999 + "##~[y]"),
    (("### [x] ###[y] ##vso[z]",), "### [x] ###~[y] ##vso~[z]"),
    ((" " * 999, "::b"), " " * 999 + ":~:b"),
    (("a ", " " * 999, "::b"), "a " + " " * 999 + "::b"),
)
def test_runner_commands_are_defused_in_any_spelling(parts: tuple[str, ...], expected: str) -> None:
    assert write_parts(*parts).replace("\u2060", "~") == expected


def test_encodings_receive_what_they_can_express() -> None:
    text = "– █· → é 水 \ud800\n"
    assert write_parts(text, encoding="ascii") == "- #. > \\xe9 \\u6c34 \\ud800\n"
    assert write_parts(text, encoding="cp1252") == "– #· > é \\u6c34 \\ud800\n"
    assert write_parts(text, encoding="utf-8") == "– █· → é 水 \\ud800\n"
