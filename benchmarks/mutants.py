"""Measure what the unit tests catch: branch coverage, and seeded faults in the package (mutants).

    python benchmarks/mutants.py draw --number 60 --out mutants.json      # before a change of the tests
    python benchmarks/mutants.py check mutants.json                       # after it

`draw` takes mutants at random from the lines that unit tests reach, one changed expression each, and keeps those that
the tests catch. `check` applies the same mutants again and ends with 1 if one survives. Each mutant runs only the files
of tests that reach its line, as a run with coverage has recorded, those that reach least first. The package is
installed into a scratch folder, so that the checkout never changes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROCESSES = 2
SECONDS = 90
"""Bound of a mutant's tests: one that survives so long counts as not caught."""

FILES = 12
"""Files of tests that `draw` runs for a mutant; `check` runs all that reach it, with more time."""

SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


PLUGIN = """
import coverage

last = ""

def pytest_runtest_setup(item):
    global last
    current = coverage.Coverage.current()
    if current and last != item.path.name:  # a switch takes long
        last = item.path.name
        current.switch_context(last)
"""
"""A plug-in of the run with coverage: it records the files of tests that reach a line."""


@dataclass(frozen=True)
class Mutant:
    """One line of a file, and what replaces it."""

    file: str
    line: int
    before: str
    after: str

    def apply(self, text: str) -> str | None:
        """Return the text with the fault; None if the line is gone."""
        lines = text.splitlines()
        at = [i for i, line in enumerate(lines) if line == self.before]
        place = self.line - 1 if self.line - 1 in at else at[0] if len(at) == 1 else None
        if place is None:
            return None
        return "\n".join([*lines[:place], self.after, *lines[place + 1 :], ""])


def mutate(node: ast.AST) -> ast.expr | None:
    """Return a changed copy of an expression, if there is a fault of its kind."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        swapped: Any = SWAPS[type(node.ops[0])]()
        return ast.Compare(node.left, [swapped], node.comparators)
    if isinstance(node, ast.BoolOp):
        operator: Any = SWAPS[type(node.op)]()
        return ast.BoolOp(operator, node.values)
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not isinstance(node.left, ast.Constant):
        other: Any = SWAPS[type(node.op)]()
        return ast.BinOp(node.left, other, node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ast.Constant(node.value + 1)
    return None


def find_mutants(file: str, text: str) -> Iterator[Mutant]:
    """Yield the mutants of a file: expressions on one line, in the bodies of functions."""
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = {node for function in functions for part in function.body for node in ast.walk(part)}
    for node in sorted((n for n in nodes if isinstance(n, ast.expr)), key=lambda n: (n.lineno, n.col_offset)):
        changed = mutate(node)
        line = lines[node.lineno - 1]
        if changed is None or node.lineno != node.end_lineno or not line.isascii():
            continue
        begin, end = node.col_offset, node.end_col_offset or 0
        if line[begin:end] != ast.get_source_segment(text, node):
            continue  # inside a formatted string
        yield Mutant(file, node.lineno, line, f"{line[:begin]}({ast.unparse(changed)}){line[end:]}")


def install(folder: Path) -> Path:
    """Install the package into a folder."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    return folder


def run_tests(site: Path, options: Sequence[str], seconds: float | None = None) -> int:
    """Run unit tests on the installed package; return pytest's exit code, 0 where they take too long."""
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    pytest = str(Path(sys.executable).with_name("pytest"))
    command = [pytest, "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci", *options]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return 0


@dataclass(frozen=True)
class Reach:
    """The files of tests that reach each line of the package, and how many lines each reaches."""

    tests: Mapping[str, Mapping[int, Sequence[str]]]
    sizes: Mapping[str, int]

    def of(self, mutant: Mutant) -> list[str]:
        """Return the files that reach a line, those that reach least first."""
        names = self.tests.get(mutant.file, {}).get(mutant.line, ())
        return [f"tests/unit/{name}" for name in sorted({*names} - {""}, key=lambda name: (self.sizes[name], name))]


def record_reach(site: Path, folder: Path) -> Reach:
    """Run all unit tests with coverage; print the coverage by branch."""
    sys.path.remove(str(Path(__file__).parent))  # where coverage.py is another benchmark
    coverage: Any = importlib.import_module("coverage")
    (site / "reach_plugin.py").write_text(PLUGIN, encoding="utf-8")
    os.environ["COVERAGE_FILE"] = str(folder / "coverage")
    options = ["-p", "reach_plugin", "--cov=distract", "--cov-branch", "--cov-report=", "-n", str(PROCESSES)]
    if not (folder / "coverage").exists():
        run_tests(site, ["tests/unit", "--dist", "loadfile", "--no-loadscope-reorder", *options])
    measured = coverage.Coverage(data_file=str(folder / "coverage"))
    measured.load()
    with (folder / "report").open("w") as report:
        total = measured.report(file=report, precision=2, include=[f"{site}/distract/*"])
    print(f"coverage by branch: {total:.2f}%", flush=True)
    data = measured.get_data()
    files = {str(Path(file).relative_to(site)): file for file in data.measured_files() if site in Path(file).parents}
    tests = {name: data.contexts_by_lineno(file) for name, file in files.items()}
    sizes = Counter(name for lines in tests.values() for names in lines.values() for name in names)
    return Reach(tests, sizes)


def is_caught(mutant: Mutant, site: Path, files: Sequence[str], seconds: float, number: int) -> bool:
    """Whether a test of these files fails with the fault."""
    path = site / mutant.file
    text = path.read_text(encoding="utf-8")
    changed = mutant.apply(text)
    if changed is None or not files:
        return False
    try:
        path.write_text(changed, encoding="utf-8")
        # Python compiles a file again if its time differs.
        os.utime(path, (number, number))
        return run_tests(site, ["-x", *files], seconds) != 0
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Draw or check mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw")
    draw.add_argument("--number", type=int, default=60)
    draw.add_argument("--seed", type=int, default=0)
    draw.add_argument("--out", type=Path, required=True)
    commands.add_parser("check").add_argument("mutants", type=Path)
    for command in commands.choices.values():
        command.add_argument("--scratch", type=Path, help="a folder to keep, whose record of coverage is used again")
    given = parser.parse_args()
    is_drawing = given.command == "draw"
    with tempfile.TemporaryDirectory() as temporary:
        scratch = (given.scratch or Path(temporary)).resolve()
        sites = [install(scratch / str(number)) for number in range(PROCESSES)]
        reach = record_reach(sites[0], scratch)
        if is_drawing:
            candidates = [
                mutant
                for file in sorted(reach.tests)
                for mutant in find_mutants(file, (sites[0] / file).read_text(encoding="utf-8"))
                if reach.of(mutant)
            ]
            Random(given.seed).shuffle(candidates)
        else:
            candidates = [Mutant(**one) for one in json.loads(given.mutants.read_text(encoding="utf-8"))]
        number = given.number if is_drawing else len(candidates)
        caught: list[Mutant] = []
        survivors: list[Mutant] = []
        for start in range(0, len(candidates), PROCESSES):
            batch = candidates[start : start + PROCESSES]
            files = [reach.of(mutant)[: FILES if is_drawing else None] for mutant in batch]
            seconds = [SECONDS if is_drawing else 4 * SECONDS] * len(batch)
            with ThreadPoolExecutor(PROCESSES) as pool:
                hits = list(pool.map(is_caught, batch, sites, files, seconds, range(1 + start, 1 + start + len(batch))))
            for mutant, is_hit in zip(batch, hits, strict=True):
                (caught if is_hit else survivors).append(mutant)
                mark = "caught  " if is_hit else "SURVIVES"
                print(f"{mark} {mutant.file}:{mutant.line}: {mutant.after.strip()}", flush=True)
            if is_drawing:
                given.out.write_text(json.dumps([asdict(one) for one in caught[:number]], indent=1) + "\n")
                if len(caught) >= number:
                    break
    print(f"{len(caught)} caught, {len(survivors)} not")
    sys.exit(not is_drawing and bool(survivors))


if __name__ == "__main__":
    main()
