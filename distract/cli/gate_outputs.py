"""Where a gate says what it decided, beside the terminal: JUnit XML, annotations, a job summary.

The JUnit file is written before anything is judged, as an error: a gate that is killed must not leave an older one.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.shared import Command, group_options
from distract.core import files
from distract.core.errors import UsageError

if TYPE_CHECKING:
    from distract.core.records import Rewrite, Row
    from distract.studies.gate.evidence import ClearestFlips
    from distract.studies.gate.verdict import Verdict

output_options = group_options(
    click.option("--junit", type=click.Path(path_type=Path), help="JUnit XML to write, a test case for each check."),
    click.option(
        "--github/--no-github",
        default=lambda: os.environ.get("GITHUB_ACTIONS") == "true",
        help="Print annotations of GitHub Actions and write its job summary. Default: where it runs there.",
    ),
    click.option("--summary", type=click.Path(path_type=Path), help="Markdown to write: the job summary."),
)


@dataclass(frozen=True)
class Outputs:
    """The files and streams of one gate.

    Attributes:
        junit: a file, if one is wanted.
        github: whether GitHub Actions reads the log.
        summary: a file, if one is wanted.
        on_stderr: whether annotations leave stdout to a document.
        began: when, by the clock on the wall.
        clock: the same by one that nobody sets.
    """

    junit: Path | None
    github: bool
    summary: Path | None
    on_stderr: bool
    began: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)

    def begin(self, read: Iterable[Path]) -> None:
        """Say in the JUnit file that nothing is decided, until something is."""
        needed = set(map(_real_path, read))
        # First, so that whatever else is wrong finds no older one.
        if self.junit is not None:
            check_free(self.junit, needed, "--junit")
            if not files.is_stream(self.junit):  # which holds no older one
                self._write_junit(inconclusive_verdict("the gate did not end"), {}, "")
            needed.add(_real_path(self.junit))
        if self.summary is not None:
            check_free(self.summary, needed, "--summary")
            if not files.is_stream(self.summary):
                files.write(self.summary, "", "--summary")
        if self._job_summary_path is not None:
            files.check_writable(self._job_summary_path, "GITHUB_STEP_SUMMARY")

    @property
    def _job_summary_path(self) -> Path | None:
        """Where GitHub Actions wants the summary of a job, where it runs there."""
        place = os.environ.get("GITHUB_STEP_SUMMARY") if self.github else None
        return Path(place) if place else None

    @contextmanager
    def stop_commands(self) -> Iterator[None]:
        """Keep GitHub Actions from taking what is printed for commands: names in it are hostile text."""
        if not self.github:
            yield
            return
        word = secrets.token_hex(16)
        self._print_command(f"::stop-commands::{word}")
        try:
            yield
        finally:
            self._print_command(f"::{word}::")

    def _print_command(self, command: str) -> None:
        """Print a command for the runner; a stream that nobody has made safe takes it like any text."""
        stream = sys.stderr if self.on_stderr else sys.stdout
        getattr(stream, "write_command", stream.write)(f"{command}\n")
        stream.flush()

    def end(self, verdict: Verdict, judge: str, rows: Iterable[Row], rewrites: Iterable[Rewrite]) -> None:
        """Say what was decided."""
        from distract.studies.attack.flips import find_flips
        from distract.studies.gate import github

        failed = [check for check in verdict.checks if check.decision == "fail"]
        rows, rewrites = list(rows), list(rewrites)
        flips = {(c.protocol, c.attack): find_flips(rows, rewrites, c.protocol, c.rule, c.attack) for c in failed}
        text = github.summary(verdict, flips, judge=judge)
        if self.summary is not None:
            files.write(self.summary, text, "--summary")
        if self._job_summary_path is not None:
            files.append(self._job_summary_path, text, "GITHUB_STEP_SUMMARY")
        if self.github:
            for annotation in github.annotations(verdict, flips):
                self._print_command(annotation)
        # Last, so that what goes wrong before leaves an error there.
        self._write_junit(verdict, flips, judge)

    def _write_junit(self, verdict: Verdict, flips: ClearestFlips, judge: str) -> None:
        from datetime import UTC, datetime

        from distract.studies.gate.junit import format_junit

        if self.junit is not None:
            began = datetime.fromtimestamp(self.began, UTC)
            text = format_junit(verdict, flips, judge=judge, began=began, seconds=time.monotonic() - self.clock)
            files.write(self.junit, text, "--junit")


class GateCommand(Command):
    """A command whose JUnit file holds an error where its options are wrong, and not what an earlier one said."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """See ``Command``."""
        given = list(args)
        try:
            return super().parse_args(context, args)
        except click.UsageError as error:
            for option, value in zip(given, [*given[1:], ""], strict=True):
                name, equals, joined = option.partition("=")
                if name == "--junit" and _is_ours(path := Path(joined if equals else value)):
                    reason = inconclusive_verdict(f"the gate did not begin: {error.format_message()}")
                    Outputs(path, False, None, False)._write_junit(reason, {}, "")
            raise


def inconclusive_verdict(reason: str) -> Verdict:
    """The verdict of a gate that came to none."""
    from distract.studies.gate import verdict

    return verdict.undecided_verdict(reason)


def _is_ours(path: Path) -> bool:
    """Whether a file is the result of an earlier gate."""
    if files.is_stream(path):  # a pipe may have nothing to read
        return False
    try:
        with path.open("rb") as file:
            return b'<testsuite package="distract"' in file.read(500)
    except (OSError, ValueError):
        return False


def protected_paths(params: Mapping[str, Any]) -> Iterator[Path]:
    """The files and folders that a command reads, or keeps something in, from its parameters."""
    from distract.core.store import DEFAULT_PATH

    yield params.get("store") or DEFAULT_PATH
    given = [params.get(name) for name in ("run", "baseline", "catalogue", "out", "data", "config")]
    for value in (*given, *params.get("responses", ())):
        if value is not None:
            yield Path(value)
            # A data set may be given as FORMAT:PATH.
            yield Path(str(value).partition(":")[2] or value)


def check_free(path: Path, needed: Iterable[Path], option: str) -> None:
    """See that a user's file can be written, before anything is paid for, and over nothing that is needed."""
    place, kept = _real_path(path), set(map(_real_path, needed))
    if any(one in kept for one in (place, *place.parents)):
        raise UsageError(f"{path}: is something that the command reads or keeps; name another file with {option}")
    files.check_writable(path, option)


def _real_path(path: Path) -> Path:
    """Where a name leads; unlike ``Path.resolve``, it bears links that go in a circle."""
    return Path(os.path.realpath(path))
