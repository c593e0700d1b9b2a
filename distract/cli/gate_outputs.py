"""Reports of a gate beside the terminal: JUnit XML, annotations and a job summary.

The JUnit file first records an error, before anything is judged: a gate that is killed must not leave an older result.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distract.cli.command import Command
from distract.cli.pages import check_free, resolve_path
from distract.core import files
from distract.core.errors import DistractError, PluginError, UsageError
from distract.models.options import OptionGroup, describe
from distract.models.ranges import FLAG, PATH
from distract.studies.options import output
from distract.studies.project import find_hazard, find_project, read_project

if TYPE_CHECKING:
    from distract.core.records import Rewrite, Row
    from distract.studies.gate.verdict import Verdict
    from distract.studies.gate.view import ClearestFlips


@dataclass(frozen=True, kw_only=True)
class OutputOptions(OptionGroup):
    """Reports of a gate beside the terminal."""

    junit: Path | None = output(None, "JUnit XML to write, a test case for each check", PATH, writes="file")
    github: bool | None = output(
        None, "print GitHub Actions annotations and write its job summary. Default: on in GitHub Actions", FLAG
    )
    summary: Path | None = output(None, "Markdown to write: the job summary", PATH, writes="file")


@dataclass(frozen=True)
class Outputs:
    """The files and streams of one gate; annotations go to stderr if stdout holds a document (``on_stderr``)."""

    junit: Path | None
    github: bool
    summary: Path | None
    on_stderr: bool
    began: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, options: OutputOptions, on_stderr: bool) -> Outputs:
        """Take the files and streams of a command."""
        github = os.environ.get("GITHUB_ACTIONS") == "true" if options.github is None else options.github
        return cls(options.junit, github, options.summary, on_stderr)

    def begin(self, inputs: Iterable[Path]) -> None:
        """Record in the JUnit file that nothing is decided yet."""
        needed = set(map(resolve_path, inputs))
        # First, so that no later error leaves an older result.
        if self.junit is not None:
            check_free(self.junit, needed, "--junit")
            if not files.is_stream(self.junit):  # a stream holds no older result
                self._write_junit(inconclusive_verdict("the gate did not finish"), {}, "")
            needed.add(resolve_path(self.junit))
        if self.summary is not None:
            check_free(self.summary, needed, "--summary")
            if not files.is_stream(self.summary):
                files.write(self.summary, "", "--summary")
        if self._job_summary_path is not None:
            files.check_writable(self._job_summary_path, "GITHUB_STEP_SUMMARY")

    @property
    def _job_summary_path(self) -> Path | None:
        place = os.environ.get("GITHUB_STEP_SUMMARY") if self.github else None
        return Path(place) if place else None

    @contextmanager
    def stop_commands(self) -> Iterator[None]:
        """Keep GitHub Actions from executing commands in what is printed: names are hostile text."""
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
        """Print a command for the runner, past the filter of a safe stream."""
        stream = sys.stderr if self.on_stderr else sys.stdout
        getattr(stream, "write_command", stream.write)(f"{command}\n")
        stream.flush()

    def end(self, verdict: Verdict, judge: str, rows: Iterable[Row], rewrites: Iterable[Rewrite]) -> None:
        """Write the decision to every output."""
        from distract.studies.attack.flips import find_flips
        from distract.studies.gate import ci_reports

        # Only a rate of pairs has flips to show.
        failed = [check for check in verdict.checks if check.decision == "fail" and check.row.is_paired]
        rows, rewrites = list(rows), list(rewrites)
        flips = {}
        for c in failed:
            place = rows, rewrites, c.protocol, c.rule, c.attack
            flips[c.protocol, c.attack, c.measure] = find_flips(*place, margin=verdict.margin, rate=c.row.name)
        text = ci_reports.summary(verdict, flips, judge=judge)
        if self.summary is not None:
            files.write(self.summary, text, "--summary")
        if self._job_summary_path is not None:
            files.append(self._job_summary_path, text, "GITHUB_STEP_SUMMARY")
        if self.github:
            for annotation in ci_reports.annotations(verdict, flips):
                self._print_command(annotation)
        # Last, so that an earlier failure leaves the error there.
        self._write_junit(verdict, flips, judge)

    def _write_junit(self, verdict: Verdict, flips: ClearestFlips, judge: str) -> None:
        from datetime import UTC, datetime

        from distract.studies.gate.ci_reports import format_junit

        if self.junit is not None:
            began = datetime.fromtimestamp(self.began, UTC)
            text = format_junit(verdict, flips, judge=judge, began=began, seconds=time.monotonic() - self.clock)
            files.write(self.junit, text, "--junit")


class GateCommand(Command):
    """A command that records wrong options in its JUnit file, so that it holds no older result."""

    @property
    def limits(self) -> tuple[str, ...]:  # type: ignore[override]  # only gates have any
        """Names of the limits, which a gate reads from the file by itself."""
        from distract.studies.gate.limits import FIELDS

        return tuple(FIELDS)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Run user code in a process of its own, and record in the JUnit file why nothing was decided."""
        arguments = list(args)
        try:
            if {*args}.isdisjoint(context.help_option_names):
                from distract.cli import apart

                if apart.can_start() and (code := apart.find_user_code(arguments)):
                    apart.run(code)
            return super().parse_args(context, args)
        except (click.UsageError, DistractError) as error:
            why = error.format_message() if isinstance(error, click.UsageError) else str(error)
            paths = []
            for argument, value in zip(arguments, [*arguments[1:], ""], strict=True):
                name, equals, joined = argument.partition("=")
                paths += [Path(joined if equals else value)] if name == "--junit" else []
            with suppress(UsageError, OSError, LookupError, TypeError):
                project = read_project(find_project() or Path())  # not all its settings, which may need a plug-in
                path = project.path.parent / {**project.table, **(project.command("gate") or {})}["junit"]
                paths += [] if find_hazard(project.path, describe(OutputOptions)["junit"], str(path)) else [path]
            stage = "finish" if isinstance(error, PluginError) else "begin"
            for path in filter(_is_ours, paths):
                verdict = inconclusive_verdict(f"the gate did not {stage}: {why}")
                Outputs(path, False, None, False)._write_junit(verdict, {}, "")
            raise


def inconclusive_verdict(reason: str) -> Verdict:
    """Return the verdict of a gate that reached no decision."""
    from distract.studies.gate import verdict

    return verdict.undecided_verdict(reason)


def _is_ours(path: Path) -> bool:
    """Whether an earlier gate wrote the file."""
    if files.is_stream(path):  # a pipe may have nothing to read
        return False
    try:
        with path.open("rb") as file:
            return b'<testsuite package="distract"' in file.read(500)
    except (OSError, ValueError):
        return False
