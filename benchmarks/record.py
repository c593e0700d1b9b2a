"""Record what commands say of twelve kinds of runs, to show that a change of the code moves no byte.

    python benchmarks/record.py make before --data ../shared/data     # with the code before a change
    python benchmarks/record.py make after --data ../shared/data      # with the code after it
    python benchmarks/record.py compare before after                  # ends with 1 if a byte differs

`make` runs each command in an empty folder and keeps its exit code, standard output and errors, and the files it
writes; of a run folder, its rows, its summary, and its report as text, with all details, as JSON, Markdown and HTML.
It prints one hash for each kind of run. Judges are planted or functions, rewrites follow rules, and only published data
come from outside. `--effect NAME` is the name of the effect of unsupported claims, which older code calls differently.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

LINES = 12
"""Differing lines of a file to show."""

JUDGES = ("longer", "first", "bold", "gullible", "blind", "random")
PROTOCOLS = "--protocol pairwise --protocol absolute --protocol pointwise --protocol prepair --protocol base"
EFFECTS = "--attack all:same --attack all:{effect} --attack all:injection --attack all:hollow"
RULES = "--generator rules --control"
TALK = "--attack prolixity --attack plea --attack null-model --generator rules"
LIMITS = "--max-flip-rate 0.1 --max-gain-rate 0.1 --max-hollow-win-rate 0.1"
FILES = "--junit gate.xml --summary gate.md --github"
MODELS = "gpt-4,vicuna-13b-v1.3,alpaca-13b,llama-13b"

SCORER = """
import distract


@distract.judge(scale=(0, 10), pass_mark=5)
def score(prompt: str, response: str) -> float:
    return min(10.0, len(response) / 150 + response.count("!"))
"""


@dataclass(frozen=True, slots=True)
class Session:
    """A kind of run: its commands in order, the run folders whose reports are recorded, and the data that it needs."""

    name: str
    commands: tuple[str, ...]
    runs: tuple[str, ...] = ("run",)
    needs: str = ""


def attack(judge: str, options: str, out: str = "run") -> str:
    """Return the command of an audit."""
    return f"attack --judge {judge} {options} --out {out}"


SESSIONS = (
    Session(
        "effects",
        tuple(attack(f"planted:{judge}", f"{PROTOCOLS} {EFFECTS} {RULES} --limit 6", judge) for judge in JUDGES),
        JUDGES,
    ),
    Session("single", (attack("planted:longer", f"{EFFECTS} {RULES} --data single.jsonl"),)),
    Session("severity", (attack("planted:longer", f"{PROTOCOLS} --measure severity --limit 24"),)),
    Session(
        "scorer",
        (
            attack("python:scorer.py:score", f"{EFFECTS} {RULES} --measure fixed --measure exchange_rate --limit 24"),
            "gate run --max-shift 0.3 --max-exchange-rate 1 --max-crossing 0.2 --max-win-rate 0.3",
        ),
    ),
    Session("net", (attack("planted:bold", f"--attack all:same --measure net --measure flip {RULES} --limit 24"),)),
    Session("margin", (attack("planted:longer=0.4", f"{TALK} --measure indifference_margin --limit 24"),)),
    Session(
        "live",
        (
            f"gate --judge planted:gullible=0.3 {TALK} {LIMITS} {FILES} --out run",
            f"gate --judge planted:longer {TALK} {LIMITS} --control --json --limit 40 --out noise",
            f"gate --judge planted:fair {TALK} {LIMITS} --json --out fair",
        ),
        ("run", "noise", "fair"),
    ),
    Session(
        "finished",
        (
            attack("planted:longer=0.5", f"{TALK} --control --limit all"),
            f"gate run {LIMITS} {FILES}",
            f"gate run {LIMITS} --json",
            f"gate run {LIMITS} --control --margin 0.1",
            "gate run --max-flip-rate 0.3 --config limits.toml",
            "gate run --max-win-rate 0.3 --json",
        ),
    ),
    Session(
        "baseline",
        (
            attack("planted:longer=0.2", f"{TALK} --limit all", "before"),
            attack("planted:longer=0.8", f"{TALK} --limit all", "now"),
            f"gate now --baseline before {FILES}",
            f"gate now --baseline before {LIMITS} --json",
            "compare before now",
            "compare before now --json",
            f"gate --judge planted:longer=0.8 {TALK} --baseline before --out live",
        ),
        ("before", "now", "live"),
    ),
    Session(
        "leaderboard",
        (
            f"leaderboard --judge planted:longer --data mt-bench:{{data}}/mt_bench --models {MODELS} "
            "--attack assertiveness --generator rules --lowest 2 --limit 6 --out run",
        ),
        needs="mt_bench",
    ),
    Session(
        "meta",
        (
            "meta --judge replay:{data}/llmbar/Natural --verbose",
            "meta --judge replay:{data}/llmbar/Natural --json",
            "meta --judge planted:longer --data llmbar:{data}/llmbar/Natural/dataset.json --limit 30 "
            "--control --out run",
            "meta --judge replay:{data}/mtbench_judges6 --verbose",
        ),
        needs="llmbar",
    ),
    Session(
        "consistency",
        ("consistency --judge planted:random --data mt-bench:{data}/mt_bench --limit 12 --out run",),
        needs="mt_bench",
    ),
)

VIEWS = (
    "report {run}",
    "report {run} --verbose --paper",
    "report {run} --json",
    "report {run} --markdown {run}.md --html {run}.html",
)
"""The commands that show each run folder."""

VARYING = (
    (r"(judged|put together) on \S+ at \S+ UTC", r"\1 on DATE"),
    (r"timestamp=\S+|(?<= )time=\"[0-9.]+\"", "TIME"),
    (r"^::(stop-commands::)?[0-9a-f]{32}(::)?$", "MARK"),
    (r"^([\d,]+/[\d,]+ replies|after [\d,]+ of [\d,]+ cases).*\n", ""),
)
"""What differs between two recordings of the same code: dates, seconds, marks drawn at random, and progress."""

KEPT = ("rows.jsonl", "rewrites.jsonl", "summary.json")
"""Files of a run folder to record."""

LIMITS_FILE = """
[tool.distract.gate]
max-gain-rate = 0.2
max-hollow-win-rate = 0.2
[tool.distract.gate.max-flip-rates]
"pairwise/prolixity" = 0.25
"all:hollow" = 0.15
"""


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="record all sessions")
    make.add_argument("out", type=Path)
    make.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of published data")
    make.add_argument("--effect", default="unearned", help="name of the effect of unsupported claims")
    make.add_argument("--only", action="append", default=[], help="session to record; repeatable")
    compare = commands.add_parser("compare", help="show what differs")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument(
        "--renamed", action="append", default=[], metavar="OLD=NEW", help="regular expression to replace in BEFORE"
    )
    compare.add_argument("--loose", action="store_true", help="ignore the order of lines, widths and hashes")
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(1 if show_differences(options.before, options.after, options.renamed, options.loose) else 0)
    sessions = [session for session in SESSIONS if not options.only or session.name in options.only]
    with ThreadPoolExecutor(2) as pool:
        folders = [options.out.resolve() / session.name for session in sessions]
        jobs = [
            pool.submit(record, session, folder, options.data.resolve(), options.effect)
            for session, folder in zip(sessions, folders, strict=True)
        ]
        for session, folder, job in zip(sessions, folders, jobs, strict=True):
            job.result()
            print(f"| {session.name} | {len([*list_files(folder)])} files | {hash_folder(folder)} |", flush=True)


def record(session: Session, out: Path, data: Path, effect: str) -> None:
    """Run the commands of a session in a scratch folder, and keep what they say and write."""
    if session.needs and not (data / session.needs).exists():
        raise SystemExit(f"{session.name} needs {data / session.needs}; name the folder of published data (--data)")
    work = out / "work"
    work.mkdir(parents=True)
    (work / "scorer.py").write_text(SCORER, encoding="utf-8")
    (work / "limits.toml").write_text(LIMITS_FILE, encoding="utf-8")
    write_single(work / "single.jsonl")
    commands = [command.format(data=data, effect=effect) for command in session.commands]
    commands += [view.format(run=run) for run in session.runs for view in VIEWS]
    environment = {**os.environ, "COLUMNS": "100", "SOURCE_DATE_EPOCH": "0"}
    environment.pop("GITHUB_STEP_SUMMARY", None)
    for number, command in enumerate(commands):
        done = subprocess.run(
            [sys.executable, "-m", "distract", *shlex.split(command)],
            cwd=work, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = f"$ distract {command}\nexit {done.returncode}\n{done.stdout}\n---\n{done.stderr}"
        (out / f"{number:02}.txt").write_text(said.replace(str(data), "DATA"), encoding="utf-8")
    written = [path for path in work.iterdir() if path.suffix in (".md", ".html", ".xml")]
    for path in [*written, *(work / run / name for run in session.runs for name in KEPT)]:
        if path.exists():
            (out / "-".join(path.relative_to(work).parts)).write_bytes(path.read_bytes())
    shutil.rmtree(work)


def write_single(path: Path) -> None:
    """Write data with one response to each prompt, from the built-in ones."""
    import distract.data

    lines = (Path(distract.data.__file__).parent / "tweakset.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:24]]
    single = ({"prompt": row["prompt"], "response": row["responses"][0]["text"]} for row in rows)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in single), encoding="utf-8")


def list_files(folder: Path) -> Iterator[Path]:
    """List the recorded files of a session, in order."""
    yield from sorted(path for path in folder.iterdir() if path.is_file())


def hash_folder(folder: Path) -> str:
    """Hash the names and contents of a session's files."""
    digest = hashlib.sha256()
    for path in list_files(folder):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(read_steady(path).encode()).digest())
    return digest.hexdigest()[:16]


def read_steady(path: Path) -> str:
    """Read a recorded file without what varies; empty if there is none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def loosen(text: str) -> str:
    """Sort the lines of a text, without hashes, rules and the spaces that align columns."""
    text = re.sub(r"[0-9a-f]{64}", "HASH", re.sub(r"─+|:?-{3,}:?", "─", text))
    return "\n".join(sorted(" ".join(line.split()).rstrip(",") for line in text.splitlines()))


def show_differences(before: Path, after: Path, renamed: Sequence[str], is_loose: bool) -> int:
    """Print what differs between two recordings, and return the number of files that do."""
    rules = [rule.partition("=")[::2] for rule in renamed]
    names = sorted({path.relative_to(root) for root in (before, after) for path in root.glob("*/*")})
    moved = 0
    for name in names:
        texts = [read_steady(root / name) for root in (before, after)]
        for old, new in rules:
            texts[0] = re.sub(old, new, texts[0])
        texts = [loosen(text) for text in texts] if is_loose else texts
        if texts[0] == texts[1]:
            continue
        moved += 1
        first, second = (text.splitlines() for text in texts)
        lines = difflib.unified_diff(first, second, "before", "after", lineterm="", n=0)
        print(f"{name} differs", *(f"  {line[:200]}" for line in islice(lines, LINES)), sep="\n")
    print(f"{moved} of {len(names)} files differ")
    return moved


if __name__ == "__main__":
    main()
