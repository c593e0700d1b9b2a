"""The group of commands, which turns results into exit codes and every expected failure into one line.

Exit codes: 0 fine, 1 the judge is too flippable, 2 wrong input, 3 inconclusive, 4 the run failed, 130 Ctrl-C, 143
SIGTERM. Only a verdict sets 1 and 3, and 0 for a gate. Any other failure that is not wrong input is 4.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

import click

from distract.cli.shared import EPILOG, PARENT, CommandExit, echo, safe_line
from distract.cli.streams import guard_streams, output_fault
from distract.core.errors import DistractError, describe_error, describe_import_error
from distract.core.printable import hide_credentials
from distract.core.signals import GRACE, StopSignal, raise_signals

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Measure": {"attack": "attack", "consistency": "", "merge": "merge"},
    "Decide": {"gate": "gate", "compare": "gate", "anchors": "anchors"},
    "Look": {"flips": "flips", "report": "results", "explain": "explain", "check": "check", "card": "card"},
    "Leaderboards and people": {"leaderboard": "leaderboard", "meta": "meta"},
    "Make data": {"rewrite": "make", "make-pairs": "make", "make-tweakset": "make"},
    "Find out": {"demo": "demo", "try": "try_", "list": "list"},
}
"""The commands by purpose, and the module of ``distract.cli`` that holds each; none for a study as it is."""

COMMANDS = {name: module for section in SECTIONS.values() for name, module in section.items()}


class _CommandGroup(click.Group):
    """Imports the module of a command when it is named, so that no command loads another."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS and name not in self.commands:
            module = importlib.import_module(f"distract.cli.{COMMANDS[name] or 'run'}")
            commands = [value for value in vars(module).values() if isinstance(value, click.Command)]
            if COMMANDS[name]:
                self.add_command(next(command for command in commands if command.name == name))
            else:
                self.add_command(module.study_command(name))
        return super().get_command(context, name)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; name the nearest one, or what has taken its place."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from distract.studies.options import find_moved

            near = get_close_matches(name, COMMANDS, 1)
            hint = find_moved(name, ()) or (f"did you mean {near[0]!r}?" if near else "`distract --help` lists them")
            raise click.UsageError(f"no command {name!r}; {hint}", context)
        return super().resolve_command(context, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each purpose, with the whole summary of each command."""
        width = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", _read_summary(name)) for name in names])


def _read_summary(name: str) -> str:
    """Read the first sentence about a command from its module, which takes longer to import."""
    if not COMMANDS[name]:
        study = Path(__file__).parents[1] / "studies" / name
        text = (study / "options.py" if study.is_dir() else study.with_suffix(".py")).read_text(encoding="utf-8")
        (record,) = re.findall(r"^OPTIONS = (\w+)", text, re.MULTILINE)
        summary = re.search(rf'^class {record}\(.*?\):\n    """(.*?)\.?(?:"""|\n)', text, re.MULTILINE | re.DOTALL)
        assert summary is not None
        return summary[1]
    text = (Path(__file__).parent / f"{COMMANDS[name]}.py").read_text(encoding="utf-8")
    pattern = r'^@(?:command|click\.group)\((.*?)\)\ndef (\w+)\(.*?"""(.*?)\.?(?:"""|\n)'
    for arguments, function, sentence in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
        named = re.search(r'"(.*)"', arguments)
        if name == (named[1] if named else function.replace("_", "-")):
            return str(sentence)
    raise LookupError(name)


@click.group(
    cls=_CommandGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="distract")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure how easily an LLM judge is distracted by style."""
    if context.invoked_subcommand is None:
        echo(context.get_help())


def relax_gc() -> None:
    """Run the cyclic garbage collector less often: distract creates no cycles, and each pass scans every record.

    Otherwise it also takes an eighth of the time to import torch and transformers.
    """
    gc.set_threshold(20_000)


def main() -> None:
    """Run the command line; end the process with one of the exit codes above, whatever happens."""
    with guard_streams():
        relax_gc()
        report = None
        try:
            if PARENT in os.environ:
                report = importlib.import_module("distract.cli.apart").attach()
            code, message = _run_command()
        except BaseException as error:  # not even the message could be made
            code, message = 4, f"{type(error).__name__}, so nothing is decided"
        with suppress(Exception):  # a plug-in may have replaced the streams
            if lost := output_fault():
                _print_message(f"the output is not complete: {lost}")
            if message:
                _print_message(message)
        if report:
            report(code)
    if code:
        raise SystemExit(code)  # a plug-in may have replaced sys.exit


def _run_command() -> tuple[int, str]:
    """Run a command line; returns the exit code and a line for stderr."""
    try:
        # Not through click's own ``main``, which ends with 1 where a pipe broke.
        with raise_signals(_announce_wait), cli.make_context("distract", sys.argv[1:]) as context:
            cli.invoke(context)
        return 0, ""
    except CommandExit as conclusion:
        return conclusion.code, conclusion.message
    except click.exceptions.Exit as end:  # --help and --version
        return 4 if end.exit_code else 0, ""
    except StopSignal as stopped:
        why = f": {stopped.__context__}" if isinstance(stopped.__context__, DistractError) else ""
        return stopped.exit_code, f"stopped{why}{_resume_hint()}"
    except click.ClickException as error:
        return 2, error.format_message()
    except DistractError as error:
        return error.exit_code, f"{error}{_resume_hint() if error.resumes else ''}"
    except OSError as error:
        # An impossible path is wrong input; a full disk is not.
        is_bad_path = error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.EINVAL)
        return (2, str(error)) if is_bad_path else (4, f"{error}{_resume_hint()}")
    except MemoryError:
        return 4, f"there is not enough memory for this{_resume_hint()}"
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and error.encoding != "utf-8":
            return 2, f"a path has characters that this locale lacks ({error}); set PYTHONUTF8=1"
        if isinstance(error, ImportError) and not (error.name or "").startswith("distract"):
            return 4, describe_import_error(error)
        traceback.print_exc()
        return 4, f"this is a bug in distract: {describe_error(error)}"
    except BaseException as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        return 4, f"{last.filename}:{last.lineno} raised {type(error).__name__}, so nothing is decided"


def _resume_hint() -> str:
    """Say how to resume; --fresh again would ask everything once more."""
    return f"; the same command{' without --fresh' if '--fresh' in sys.argv else ''} resumes"


def _announce_wait() -> None:
    message = f"stopping: waiting up to {GRACE:.0f} s for pending requests; a second signal stops at once"
    try:
        _print_message(message)
    except Exception:  # the signal has interrupted a print on the same stream
        with suppress(OSError):
            os.write(2, f"distract: {message}\n".encode())


def _print_message(message: str) -> None:
    echo(f"distract: {hide_credentials(safe_line(message))}", err=True)


if __name__ == "__main__":
    main()
