"""The command line: the group of commands, results to exit codes, every expected failure to one line.

It holds no logic of its own; the commands are in ``distract.commands``.
Exit codes: 0 fine, 1 the judge is too flippable, 2 wrong input, 3 inconclusive, 4 the run broke, 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import gc
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from distract.commands import EPILOG, stop
from distract.commands.attack import attack
from distract.commands.consistency import consistency
from distract.commands.explain import explain
from distract.commands.gating import compare, gate, plan_gate
from distract.commands.leaderboard import leaderboard
from distract.commands.meta import meta
from distract.commands.results import check, list_, report
from distract.commands.writing import make_pairs, make_tweakset, rewrite
from distract.errors import DistractError


@click.group(
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="distract")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure how easily an LLM judge is distracted by style."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    *(attack, meta, consistency, leaderboard, gate, compare, plan_gate, report, explain, check),
    *(rewrite, make_pairs, make_tweakset, list_),
):
    cli.add_command(command)


def collect_rarely() -> None:
    """Let the collector of circular garbage look less often: ours has none, and each look goes through every record.

    Otherwise an eighth of the time to import torch and transformers is its too.
    """
    gc.set_threshold(20_000)


def main() -> None:
    """Run the command line; every expected failure is one line on stderr and an exit code."""
    collect_rarely()
    run: Callable[..., Any] = cli.main
    try:
        run(standalone_mode=False)
    except click.Abort:
        stop("stopped; the same command resumes", 130)
    except KeyboardInterrupt:
        stop("stopped; the same command resumes", 130)
    except click.ClickException as error:
        stop(error.format_message(), 2)
    except DistractError as error:
        resumes = "; the same command resumes" if error.exit_code == 4 else ""
        stop(f"{error}{resumes}", error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away; python would complain again when it flushes at exit.
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if not isinstance(error, OSError):
            # A bug of ours: shown whole, but never with Python's exit code 1, which a gate reads as a verdict.
            traceback.print_exc()
            stop(f"this is a bug of distract: {type(error).__name__}: {error}", 4)
        # A path that cannot be is wrong input; a full disk is not.
        named = error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.EINVAL)
        stop(str(error), 2) if named else stop(f"{error}; the same command resumes", 4)


if __name__ == "__main__":
    main()
