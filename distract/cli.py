"""The command line: options to calls, results to the terminal, errors to one line and an exit code.

It holds no logic of its own, and imports what a command needs inside the command, so that ``--help`` stays fast.
Exit codes: 0 fine, 1 the judge is too flippable, 2 wrong input, 3 inconclusive, 4 the run broke, 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from distract.errors import DataError, DistractError

if TYPE_CHECKING:
    from distract.runfolder import Loaded
    from distract.session import Prepared

EPILOG = "Exit codes: 0 fine, 1 too flippable, 2 wrong input, 3 inconclusive, 4 the run broke, 130 stopped."


class Limit(click.ParamType[int]):
    """A number of cases from 1, or ``all``."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """``all`` is 0, which no user can ask for otherwise."""
        if value == "all":
            return 0
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r}: expected a number of cases from 1, or 'all'", param, ctx)
        return number


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


@cli.command(epilog=EPILOG)
@click.option("--judge", default="smollm2-135m", show_default=True, help="Judge; `distract list` shows the forms.")
@click.option("--data", default="tweakset", show_default=True, help="Built-in name, path, or FORMAT:PATH.")
@click.option(
    "--responses", multiple=True, help="File of {prompt, response}, for data that hold prompts only; repeatable."
)
@click.option("--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable.")
@click.option("--protocol", "protocols", multiple=True, help="Way of asking; repeatable. Default: the basic ones.")
@click.option(
    "--measure", "measures", multiple=True, help="Measure, or fixed, flip, severity; repeatable. Default: all."
)
@click.option("--generator", help="Who rewrites: recorded or rules. Default: recorded if the data have any.")
@click.option("--limit", type=Limit(), default="8", show_default=True, help="Number of cases, drawn by --seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw and of the rewrites.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: under .distract/runs.")
@click.option("--store", type=click.Path(path_type=Path), help="Reply store. Default: .distract/replies.sqlite.")
@click.option("--dtype", default="auto", show_default=True, help="Of a local model: float32, bfloat16, float16.")
@click.option("--device-map", help="Of a local model: cpu, cuda, auto …")
@click.option("--quantization", help="Of a local model: bnb-8bit or bnb-4bit.")
@click.option("--revision", help="Of a local model: a commit, branch or tag of the hub.")
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Off unless asked.")
@click.option("--batch-tokens", type=click.IntRange(min=64), default=2048, show_default=True, help="Per forward.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
def attack(
    judge: str,
    data: str,
    responses: tuple[str, ...],
    attacks: tuple[str, ...],
    protocols: tuple[str, ...],
    measures: tuple[str, ...],
    generator: str | None,
    limit: int,
    seed: int,
    out: Path | None,
    store: Path | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Rewrite responses with distractors and measure how often the judge's verdict changes."""
    from distract import session
    from distract.backends.catalogue import Options, open_judge

    prepared = session.prepare(
        judge=judge,
        backend=open_judge(judge, Options(**loading)),
        data=data,
        attacks=attacks,
        protocols=protocols,
        measures=measures,
        generator=generator,
        limit=limit or None,
        seed=seed,
        out=out,
        responses=responses,
    )
    loaded = _finished(prepared) or _judge(prepared, store)
    if as_json:
        click.echo(loaded.summary, nl=False)
    else:
        _print_run(loaded)
        click.echo(f"\nrun folder: {_safe(str(prepared.out))}")
    if not any(row.judgments for row in loaded.rows):
        _stop("nothing was judged: every comparison is excluded (see the reasons above)", 3)
    if not any(row.judgments and not any(j.failure for j in row.judgments) for row in loaded.rows):
        _stop("no verdict was valid: nothing can be said about this judge", 3)


@cli.command(epilog=EPILOG)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--max-flip-rate", type=click.FloatRange(0, 1, min_open=True, max_open=True), required=True)
@click.option("--confidence", type=click.FloatRange(0.5, 1, max_open=True), default=0.95, show_default=True)
@click.option("--certify", is_flag=True, help="Inconclusive counts as a failure (exit 1).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
def gate(run: Path, max_flip_rate: float, confidence: float, certify: bool, as_json: bool) -> None:
    """Decide whether the flip rates of a finished RUN are below a threshold; fails closed."""
    from distract import metrics, runfolder
    from distract.gate import EXIT, decide
    from distract.report.terminal import gate_report, show

    loaded = runfolder.load(run)
    p = loaded.parameters
    whole = (loaded.rows, loaded.rewrites) if loaded.flaw is None else ((), ())
    figures = metrics.figures(*whole, p["protocols"], p["attacks"])
    verdict = decide(figures, p["protocols"], frozenset(p["controls"]), max_flip_rate, confidence, loaded.flaw)
    if as_json:
        _echo_json(verdict.document())
    else:
        show(gate_report(verdict))
    code = EXIT[verdict.decision]
    sys.exit(1 if certify and code == 3 else code)


@cli.command(epilog=EPILOG)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
def report(run: Path, as_json: bool) -> None:
    """Print the tables of a RUN again, without a model."""
    from distract import metrics, runfolder
    from distract.report.document import document

    loaded = runfolder.load(run)
    _warn(loaded)
    if as_json and loaded.summary and not loaded.flaw:
        click.echo(loaded.summary, nl=False)
    elif as_json:
        p = loaded.parameters
        figures = metrics.figures(loaded.rows, loaded.rewrites, p["protocols"], p["attacks"])
        _echo_json(document(p, figures))
    else:
        _print_run(loaded)


@cli.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="ORIGINAL REWRITE | RUN")
@click.option(
    "--labelled", type=click.Path(path_type=Path), help="JSON Lines of rewrites labelled faithful or changed."
)
@click.option("--attack", "name", help="What the rewrite is meant to be: its marker and limit are checked too.")
@click.option("--prompt", type=click.Path(path_type=Path), help="File of the prompt that both texts answer.")
@click.option("--constraint", "constraints", multiple=True, help='Format to keep, as {"kind": ...}; repeatable.')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
def check(
    paths: tuple[Path, ...],
    labelled: Path | None,
    name: str | None,
    prompt: Path | None,
    constraints: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say whether a rewrite still says the same: a text and its REWRITE, a RUN's rewrites, or a labelled set.

    A labelled set is JSON Lines of {prompt, original, rewrite, style, label, kind, constraints?}: style is an attack,
    label faithful or changed, kind what was changed. Ends with 0 whatever it finds.
    """
    from distract import checking, runfolder
    from distract.report import checks
    from distract.report.terminal import colour, show

    if len(paths) not in ((0,) if labelled else (1, 2)):
        raise click.UsageError("check takes two text files, or one run folder, or --labelled FILE")
    if (name or prompt or constraints) and len(paths) != 2:
        raise click.UsageError("--attack, --prompt and --constraint go with two text files")
    if labelled:
        found = checking.check_labelled(labelled)
        document, parts = checking.labelled_document(found), checks.labelled_report(checking.error_rates(found))
    elif len(paths) == 1:
        loaded = runfolder.load(paths[0])
        _warn(loaded)
        rewrites = loaded.rewrites
        document, parts = checking.run_document(rewrites), checks.run_report(rewrites, colour())
    else:
        one = checking.check_files(paths[0], paths[1], prompt, name, constraints)
        document, parts = checking.pair_document(one), checks.pair_report(one, colour())
    _echo_json(document) if as_json else show(parts)


@cli.command("list", epilog=EPILOG)
def list_() -> None:
    """Show judges, protocols, attacks, data sets, formats and generators, one line each."""
    from distract import datasets, registry, writers
    from distract.backends import catalogue

    sections = {
        "judges": catalogue.known(),
        "protocols": {p.name: p.summary for p in registry.protocols().values()},
        "attacks": {a.name: a.summary for a in registry.attacks().values()},
        "data sets": {name: line for name, (_, line) in datasets.BUILT_IN.items()},
        "data formats": {name: reader.summary for name, reader in datasets.READERS.items()},
        "generators": {w.name: w.summary for w in writers.WRITERS.values()},
    }
    for title, entries in sections.items():
        click.echo(f"{title}:")
        width = max(map(len, entries), default=0)
        for name, line in entries.items():
            click.echo(f"  {_safe(name):<{width}}  {_safe(line)}")
    for problem in registry.problems():
        click.echo(f"warning: {_safe(problem)}", err=True)


def _warn(loaded: Loaded) -> None:
    if loaded.flaw:
        click.echo(f"warning: {loaded.flaw}", err=True)


def _echo_json(document: object) -> None:
    """One document, in ASCII: it goes to terminals too, and names in it are hostile text."""
    import json

    click.echo(json.dumps(document, sort_keys=True, indent=1))


def _finished(prepared: Prepared) -> Loaded | None:
    """The run as it is on disk, when the same command has finished there already."""
    from distract import runfolder

    if not (prepared.out / "manifest.json").exists():
        return None
    try:
        loaded = runfolder.load(prepared.out)
    except DataError:
        return None  # damaged: it is begun anew, from the stored replies
    if loaded.flaw or loaded.parameters != prepared.parameters:
        return None
    click.echo(f"this run is complete in {_safe(str(prepared.out))}: no call is made", err=True)
    return loaded


def _judge(prepared: Prepared, path: Path | None) -> Loaded:
    from distract import session, store
    from distract.report.progress import Progress, plan_lines
    from distract.run import Tally

    estimate = session.estimate(prepared)
    with store.Store(path or store.DEFAULT, prepared.backend.identity, prepared.backend.reads_slots) as replies:
        for line in plan_lines(prepared, estimate, stored=len(replies)):
            click.echo(line, err=True)
        tally = Tally()
        with Progress(total=sum(estimate.requests.values())) as progress:
            loaded = session.run(prepared, replies, tally, progress.update)
    click.echo(f"replies: {tally.stored} were stored, {tally.made} made", err=True)
    return loaded


def _print_run(loaded: Loaded) -> None:
    from distract import metrics
    from distract.report.terminal import run_report, show

    p = loaded.parameters
    figures = metrics.figures(loaded.rows, loaded.rewrites, p["protocols"], p["attacks"])
    show(run_report(p, figures, loaded.rows, loaded.rewrites))


def _safe(text: str) -> str:
    from distract.report.text import line

    return line(text)


def _stop(message: str, code: int) -> NoReturn:
    click.echo(f"distract: {_safe(message)}", err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line; every expected failure is one line on stderr and an exit code."""
    run: Callable[..., Any] = cli.main
    try:
        run(standalone_mode=False)
    except click.Abort:
        _stop("stopped; the same command resumes", 130)
    except KeyboardInterrupt:
        _stop("stopped; the same command resumes", 130)
    except click.ClickException as error:
        _stop(error.format_message(), 2)
    except DistractError as error:
        resumes = "; the same command resumes" if error.exit_code == 4 else ""
        _stop(f"{error}{resumes}", error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away; python would complain again when it flushes at exit.
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if not isinstance(error, OSError):
            # A bug of ours: shown whole, but never with Python's exit code 1, which a gate reads as a verdict.
            traceback.print_exc()
            _stop(f"this is a bug of distract: {type(error).__name__}: {error}", 4)
        # A path that cannot be is wrong input; a full disk is not.
        named = error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.EINVAL)
        _stop(str(error), 2) if named else _stop(f"{error}; the same command resumes", 4)


if __name__ == "__main__":
    main()
