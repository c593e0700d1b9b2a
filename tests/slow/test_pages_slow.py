"""Test that every console block of README and docs prints the quoted output.

``<!-- not run: REASON -->`` above a block exempts it; ``<!-- slow: TIME -->`` leaves it to ``DISTRACT_PAGES=all``.

By default the embedded judge's replies come from ``tests/data/page_replies.jsonl``, and no model is loaded. With
``DISTRACT_PAGES=ask`` or ``all`` the model answers everything again, and its replies must be those in the file; with
``record`` they replace the file.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from page_replies import LACKING, compare_replies, fill_store, make_key, read_replies, read_store, write_replies
from pages import Block, blocks, text_of

import distract
from distract.core import runs
from distract.core.store import DEFAULT_PATH

MODE = os.environ.get("DISTRACT_PAGES") or "replay"
assert MODE in ("replay", "ask", "all", "record"), f"DISTRACT_PAGES={MODE}: expected ask, all or record"

pytestmark = [] if MODE == "replay" else [pytest.mark.usefixtures("smollm2")]

SESSION = "distract attack --out run"
"""The run that several pages show, made once, because a second run would report stored replies."""

PRINTED = "session.txt"

VOLATILE = {r"runs/[0-9a-f]{12}": "runs/ID", r"\d{4}-\d{2}-\d{2} at \d{2}:\d{2} UTC": "DATE"}
"""Parts that differ between runs; each replacement has the same length, so that lines wrap alike."""

REPLAYED = {r"\d+ of them from the store": "N of them from the store"}
"""Parts that tell a stored reply from a new one, and so differ in a replay; a run that asks the model prints them."""


def is_due(block: Block) -> bool:
    is_slow = block.mark.startswith("slow: ") and MODE != "all"
    return not block.mark.startswith("not run: ") and not is_slow


def needs_model(block: Block) -> bool:
    own = ("check", "explain mine", "flips", "anchors check", "merge", "gate long.1-of-3")
    plain = ("planted:", "python:", "cat ", *(f"distract {name} " for name in own))
    return any(not any(part in command for part in plain) for command, _ in block.commands())


DUE = [block for block in blocks("console") if is_due(block)]
PLAIN = [block for block in DUE if not needs_model(block)]
REAL = [block for block in DUE if needs_model(block)]


def normalise(text: str) -> str:
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    for pattern, name in (VOLATILE | REPLAYED if MODE == "replay" else VOLATILE).items():
        text = re.sub(pattern, name, text)
    return text


def matches(printed: str, text: str) -> bool:
    """Whether the output of a command matches a page; a line with ``…`` alone stands for any lines or none."""
    pattern = "(?:.*\n)*?".join(re.escape(part) for part in re.split(r"^…\n", normalise(text), flags=re.MULTILINE))
    return re.fullmatch(pattern, normalise(printed)) is not None


def write_shown_files(command: str, output: str, folder: Path) -> None:
    """Write the file that a page shows with ``cat``, or several of one line each."""
    names = shlex.split(command)[1:]
    for name, text in [(names[0], output)] if len(names) == 1 else zip(names, output.splitlines(True), strict=True):
        (folder / name).write_text(text, encoding="utf-8")


def run(command: str, folder: Path, is_replay: bool = MODE == "replay") -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80"}
    if is_replay:
        environment["PYTHONPATH"] = str(write_refusal(folder))
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert LACKING not in done.stderr, f"{command}: {LACKING}"
    return done.stdout


def write_refusal(folder: Path) -> Path:
    """Write a torch that cannot be imported, so that a missing reply cannot come from the model."""
    place = folder / ".refusal"
    place.mkdir(exist_ok=True)
    code = f"import sys\nprint({LACKING!r}, file=sys.stderr)\nraise ImportError\n"
    (place / "torch.py").write_text(code, encoding="utf-8")
    return place


def check(block: Block, folder: Path) -> None:
    for command, output in block.commands():
        if command.startswith("cat "):
            write_shown_files(command, output, folder)
        printed = (folder / PRINTED).read_text(encoding="utf-8") if command == SESSION else run(command, folder)
        assert matches(printed, output), f"{block.name}: {command}\nprints\n{printed}\nand the page shows\n{output}"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run of the README and the stored replies of the embedded judge."""
    folder = tmp_path_factory.mktemp("session")
    if MODE == "replay":
        fill_store(folder / DEFAULT_PATH, read_replies())
    (folder / PRINTED).write_text(run(SESSION, folder), encoding="utf-8")
    return folder


@pytest.mark.parametrize("block", PLAIN, ids=lambda block: block.name)
def test_block_without_a_model_prints_the_quoted_output(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path)


@pytest.mark.parametrize("block", REAL, ids=lambda block: block.name)
def test_block_with_the_embedded_judge_prints_the_quoted_output(block: Block, session: Path, tmp_path: Path) -> None:
    # The replies of a slow block are not shipped, so they stay out of the session's store.
    check(block, tmp_path if block.mark else session)


def test_sessions_use_the_shipped_replies(session: Path) -> None:
    """The model says what the file says, to all of the requests in the file and no other; needs all tests above."""
    replies = read_store(session / DEFAULT_PATH)
    if MODE == "record":
        write_replies(replies)
    assert not list(compare_replies(read_replies(), replies))


def find_reply(session: Path) -> str:
    """Return the key of a reply behind the flip that the README shows."""
    place = ("tweak-160", "pointwise", "sycophancy", "flip")
    rows = runs.load(session / "run").rows
    rewrites = (row for row in rows if (row.case, row.protocol, row.attack, row.design) == place)
    (row,) = (row for row in rewrites if (row.a if row.target == "a" else row.b).severity)  # not of the good response
    return make_key(row.keys[-1])


def test_missing_reply_ends_a_session_with_the_command_that_adds_it(session: Path, tmp_path: Path) -> None:
    replies = read_replies()
    del replies[find_reply(session)]
    fill_store(tmp_path / DEFAULT_PATH, replies)
    with pytest.raises(AssertionError, match="lacks a reply; make it again: DISTRACT_PAGES=record pytest"):
        run(SESSION, tmp_path, is_replay=True)


def test_another_reply_changes_what_a_page_shows(session: Path, tmp_path: Path) -> None:
    replies, key = read_replies(), find_reply(session)
    replies[key] = replace(replies[key], probabilities=(replies[key].probabilities or ())[::-1])
    fill_store(tmp_path / DEFAULT_PATH, replies)
    printed = run(SESSION, tmp_path, is_replay=True)
    assert not any(
        matches(printed, output) for block in REAL for command, output in block.commands() if command == SESSION
    )


def test_readme_flip_comes_from_the_session(session: Path) -> None:
    flips = distract.Run.read(session / "run").flips()
    place = ("tweak-160", "pointwise", "sycophancy")
    (flip,) = (flip for flip in flips if (flip.case, flip.protocol, flip.attack) == place)
    readme = text_of("README.md")
    assert f"| before | {flip.before[1]:.2f} | {flip.before[0]:.2f} | the good one |" in readme
    assert f"| after | {flip.after[1]:.2f} | **{flip.after[0]:.2f}** | **the worse one** |" in readme
    (diff,) = blocks("diff")
    for text, left_out in ((flip.original, "+"), (flip.rewrite, "-")):
        lines = (line[1:] for line in diff.text.splitlines() if not line.startswith(left_out))
        assert " ".join(lines).split() == text.split()
    words = " ".join(readme.replace("\n> ", " ").split())
    (case,) = (case for case in distract.load("tweakset") if case.id == flip.case)
    for text in (case.prompt[0], case.responses[0].turns[0]):
        assert " ".join(text.split()) in words
