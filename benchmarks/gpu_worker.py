"""The process that runs the parts of ``gpu.py``, and its parts that use whole runs and the embedded model.

It takes its options as JSON and the parts to run as lines of JSON on standard input, and answers with lines of JSON.
"""

from __future__ import annotations

import gc
import json
import multiprocessing.context
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from gpu_parts import (
    FACTOR,
    Bench,
    LeftOut,
    compare_tweaks,
    copy_judge,
    correctness,
    largest_difference,
    margin,
    measure_answers,
    measure_rounding,
    measure_speed,
)
from reading import OneByOne, verdicts

from distract.__main__ import main as run_distract
from distract.models.transformers import embedded
from distract.models.transformers.backend import Transformers, embedded_judge

SAME = ("rows.jsonl", "summary.json")
"""Files of a run folder that a resumed run must write again byte for byte."""

Part = Callable[[Bench], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    err: str
    seconds: float


class Fork(multiprocessing.context.ForkProcess):
    """``python -m distract`` as a copy of this process, which has imported everything; not possible with a GPU."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        super().__init__(target=run_main, args=(arguments, log))
        self.start()

    def poll(self) -> int | None:
        """Return the exit code, or None as long as it runs."""
        return self.exitcode


def run_main(arguments: Sequence[str], log: Path) -> None:
    """Be the command from now on."""
    with log.open("wb") as err, open(os.devnull, "wb") as out:  # noqa: PTH123
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
    sys.argv = ["distract", *arguments]
    run_distract()


class Attack:
    """Runs of one ``distract attack``, each with a folder and a store of its own."""

    def __init__(self, bench: Bench, model: Path, limit: str) -> None:
        tokens = "512" if bench.is_tiny else "8192"  # fixed, since free memory decides otherwise
        options = {"judge": model, "dtype": bench.dtype, "limit": limit, "model-option": f"batch-tokens={tokens}"}
        options |= {"attack": "assertiveness", "protocol": "pairwise"}
        self._bench = bench
        self._options = [text for name, value in options.items() for text in (f"--{name}", str(value))]

    def store(self, name: str) -> Path:
        """The store of a run."""
        return self._bench.folder / f"{name}.sqlite"

    def run(self, name: str, *more: str, stop_after: int = 0) -> Ended:
        """Run it, and stop it once so many replies are stored."""
        arguments = ["attack", *self._options, *more]
        arguments += ["--out", str(self._bench.folder / name), "--store", str(self.store(name))]
        begin, log = time.time(), self._bench.folder / f"{name}.log"
        process: Fork | subprocess.Popen[bytes]
        if self._bench.is_tiny and self._bench.device == "cpu":
            process = Fork(arguments, log)
        else:
            command = [sys.executable, "-m", "distract", *arguments]
            with log.open("wb") as err:
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
        while (code := process.poll()) is None:
            if time.time() > self._bench.deadline:
                process.kill()
                raise LeftOut(f"cut off in the run {name!r} after {time.time() - begin:.0f} s")
            if stop_after and self.count_replies(name) >= stop_after:
                process.terminate()
                stop_after = 0
            time.sleep(0.01)
        return Ended(code, log.read_text(encoding="utf-8", errors="replace"), time.time() - begin)

    def count_replies(self, name: str) -> int:
        """Return the number of stored replies."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.store(name)}?mode=ro", uri=True)) as store:
            return int(store.execute("select count(*) from replies").fetchone()[0])
        return 0


def check_loop(bench: Bench) -> None:
    """Run ``distract attack``, stop and resume it, and run out of memory."""
    bench.step("a model in a folder", 20)
    judge, model = bench.judge("1b", bench.dtype), bench.folder / "model"
    judge._loaded.save_pretrained(model)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bench.prepare() / name, model)
    check_memory(bench, judge)
    del judge
    release_memory()
    attack = Attack(bench, model, "12" if bench.is_tiny else "all")
    bench.step("a whole run", 30)
    whole = attack.run("whole", "--profile")
    bench.figure("a whole run: exit code", whole.code, 0, "equal to")
    bench.figure("a whole run: seconds", whole.seconds)
    parts = [line.split() for line in whole.err.partition("where the time went")[2].splitlines()[1:]]
    shares = {words[0]: float(words[1]) for words in parts if words[2:3] == ["s"]}
    for name in ("load", "tokenise", "forward", "store", "rest"):
        bench.figure(f"--profile, seconds: {name}", shares.get(name, -1.0), 0.0, "at least")
    bench.step("a stopped run", 1.2 * whole.seconds)
    total = attack.count_replies("whole")
    stopped = attack.run("stopped", stop_after=max(1, total // 8))
    kept = attack.count_replies("stopped")
    bench.figure("a stopped run: exit code", stopped.code, 143, "equal to")
    bench.figure(f"a stopped run: replies kept of {total}", kept, total - 1)
    bench.step("a resumed run", 1.2 * whole.seconds)
    resumed = attack.run("stopped")
    bench.figure("a resumed run: exit code", resumed.code, 0, "equal to")
    bench.figure("a resumed run: replies", attack.count_replies("stopped"), total, "equal to")
    for name in SAME:
        one, other = ((bench.folder / run / name).read_bytes() for run in ("whole", "stopped"))
        bench.figure(
            f"a resumed run: bytes of {name}", "the same" if one == other else "others", "the same", "equal to"
        )
    wrong = attack.run("wrong", "--limit", "none")
    bench.figure("a wrong option: exit code", wrong.code, 2, "equal to")


def check_memory(bench: Bench, judge: Transformers) -> None:
    """Read the same verdicts with so little memory that the first forward passes do not fit."""
    compared = compare_tweaks(4 if bench.is_tiny else 30)
    rounding, _, _, wide = measure_rounding(judge, compared[:2])
    del wide
    vars(judge)["batch_tokens"] = most = 1024 if bench.is_tiny else 16384
    verdicts(judge, compared[:1])  # sets up kernels
    release_memory()
    weights = torch.cuda.memory_allocated() if bench.device == "cuda" else 0
    _, _, before = verdicts(judge, compared)
    peak = torch.cuda.max_memory_allocated() if bench.device == "cuda" else 0
    release_memory()
    with limit_memory(bench, judge, weights + (peak - weights) // 3):
        _, judgments, after = verdicts(judge, compared)
    bench.figure("out of memory: tokens in a forward pass then", judge.batch_tokens, most // 2)
    bench.figure("out of memory: judgments without a verdict", sum(one.failure is not None for one in judgments), 0)
    bench.figure("out of memory: deviation", largest_difference(before, after), FACTOR * rounding["replies"])


@contextmanager
def limit_memory(bench: Bench, judge: Transformers, limit: int) -> Iterator[None]:
    """Let no more than so many bytes be in use on a GPU; on a CPU, refuse forward passes of many tokens."""
    if bench.device == "cuda":
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        return
    forward, most = judge._loaded.forward, judge.batch_tokens // 3

    def refuse(*given: Any, input_ids: Any, **options: Any) -> Any:
        if input_ids.numel() > most:
            raise torch.OutOfMemoryError("out of memory, as the benchmark pretends")
        return forward(*given, input_ids=input_ids, **options)

    with mock.patch.object(judge._loaded, "forward", refuse):
        yield


def check_embedded(bench: Bench) -> None:
    """Compare the embedded model's verdicts with those of the CPU, one prompt at a time."""
    if not (embedded.model_folder().is_dir() or embedded._find_installed()):
        raise LeftOut("left out: the weights of the embedded model are not here")
    compared = compare_tweaks(1 if bench.is_tiny else 6)
    judge = embedded_judge()
    _, exact, exact_shares = verdicts(OneByOne(copy_judge(judge, "cpu")), compared)
    seconds, own, shares = verdicts(judge, compared)
    bench.figure("prompts are read", judge.prompt_mode, "packed", "equal to")
    bench.figure("deviation from the CPU", largest_difference(shares, exact_shares), 1e-2)
    changed = [x for x, y in zip(exact, own, strict=True) if x.preferred != y.preferred]
    bench.figure(f"changed outcomes of {len(exact)}", len(changed))
    # Two numbers that each change by 0.01; scores from 1 to 7 change by at most six times as much.
    limits = [0.12 if one.scores else 0.02 for one in changed]
    clear = sum(margin(one) > limit for one, limit in zip(changed, limits, strict=True))
    bench.figure("changed outcomes beyond that deviation", clear, 0)
    bench.figure("judgments per second", len(shares) / seconds)


PARTS: Mapping[str, Part] = {
    "correctness": correctness,
    "speed-8b": lambda bench: measure_speed(bench, "8b"),
    "speed-1b": lambda bench: measure_speed(bench, "1b"),
    "loop": check_loop,
    "answers-1b": lambda bench: measure_answers(bench, "1b"),
    "embedded": check_embedded,
}


def release_memory() -> None:
    """Give memory that nothing uses back to the device, and start to measure its peak."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def describe_machine(device: str) -> dict[str, Any]:
    """Return what figures depend on."""
    machine: dict[str, Any] = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    machine |= {"torch": torch.__version__, "transformers": transformers.__version__}
    machine |= {"Python": platform.python_version(), "cores": os.cpu_count()}
    return machine


def main() -> None:
    """Run the parts that are ordered, until there are no more."""
    options = json.loads(sys.argv[1])
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print
    if options["device"] == "auto":
        options["device"] = "cuda" if torch.cuda.is_available() else "cpu"
    bench = Bench(options, channel)
    if options["device"] == "cuda" and not torch.cuda.is_available():
        bench.send(wrong="--device cuda: torch finds no GPU here")
        return
    transformers.utils.logging.disable_progress_bar()
    bench.send(machine=describe_machine(bench.device))
    for line in sys.stdin:
        order = json.loads(line)
        bench.deadline = order["deadline"]
        release_memory()
        try:
            PARTS[order["part"]](bench)
            bench.send(end=True)
        except LeftOut as error:
            bench.send(end=True, left_out=str(error))
        except Exception as error:
            traceback.print_exc()
            bench.send(end=True, error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


if __name__ == "__main__":
    main()
