"""The functions of ``import distract``: what the commands do, as calls that return values.

Keyword arguments are the options of the command, with underscores for hyphens and the same defaults; rows, summary and
run folder are the same bytes. Nothing is printed and no process ends. Errors are distract's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.keywords import describe_keywords, read_keywords, takes
from distract.core import registry, runs
from distract.core.errors import DataError, UsageError, import_library
from distract.core.job import FinishedRun, summarise
from distract.core.records import Case, Rewrite, Row
from distract.core.signals import raise_signals
from distract.data import datasets
from distract.models.options import describe, seed_option
from distract.models.ranges import PATH
from distract.report.phrases import data_lines
from distract.studies import execution
from distract.studies.attack.options import AttackOptions
from distract.studies.attack.study import STUDY as ATTACK
from distract.studies.gate.options import GateOptions
from distract.studies.listener import Listener
from distract.studies.options import DataOptions

if TYPE_CHECKING:
    import pandas

    from distract.studies.attack.flips import Flip
    from distract.studies.gate.verdict import Verdict

AnyPath = str | os.PathLike[str]
Names = AnyPath | Sequence[AnyPath]


class Run:
    """A run of ``distract attack`` or ``distract gate``, just finished or read back.

    Attributes:
        notes: warnings and remarks, one line each; the command prints them on stderr.
    """

    def __init__(self, finished: FinishedRun[Any], notes: Sequence[str] = ()) -> None:
        self._finished = finished
        run = finished.run
        self._path = run.path.absolute()  # a notebook may change its folder
        self.notes = (*notes, *(reservation for reservation in [run.flaw or run.gap] if reservation))

    @classmethod
    def read(cls, path: AnyPath) -> Run:
        """Read a run folder, without a model.

        Raises:
            DataError: the folder is not a run, or is damaged.
            UsageError: it is a run of another command.
        """
        try:
            loaded = runs.load(PATH.read(path))
        except ValueError as error:
            raise UsageError(f"path {error}") from None
        loaded.check_command("attack", "gate")
        return cls(summarise(registry.get_study(loaded.command), loaded))

    @property
    def path(self) -> Path:
        """The run folder, absolute."""
        return self._path

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that determines what is judged, as in ``run.json``."""
        return self._finished.run.parameters

    @property
    def flaw(self) -> str | None:
        """Why the run must not be relied on (unfinished, damaged, only a shard); None if it is complete and intact."""
        return self._finished.run.flaw

    @property
    def rows(self) -> Sequence[Row]:
        """Every judged comparison, as in ``rows.jsonl``: read from disk on each iteration."""
        self._check_folder()
        return self._finished.run.rows

    @property
    def rewrites(self) -> Sequence[Rewrite]:
        """Every rewrite with the evidence for or against it, as in ``rewrites.jsonl``; read like ``rows``."""
        self._check_folder()
        return self._finished.run.rewrites

    @property
    def summary(self) -> dict[str, Any]:
        """The document that ``--json`` prints and ``summary.json`` holds."""
        return self._finished.document

    @property
    def results(self) -> list[dict[str, Any]]:
        """The figures, a flat dict each, as ``--json`` prints them; for a gate, its checks.

        Shares are 0 to 1, rounded to four decimals, with ``k`` of ``n`` and the bounds of a 95% interval; None if ``n``
        is 0. Differences have ``against`` and no ``k``. The measures are those of Distracted evaluation, section 3.1;
        the README defines each.
        """
        results: list[dict[str, Any]] = self.summary["results" if "results" in self.summary else "checks"]
        return results

    def flips(self) -> tuple[Flip, ...]:
        """Find the comparisons whose verdict flipped: the losing response won after its rewrite.

        Controls do not count. Each flip has case, protocol, attack, and the strengths and texts of the response before
        and after. The clearest flips come first, the protocols taking turns. A protocol that scores is decided by its
        scores, as in its flip rate.
        """
        from distract.studies.attack.flips import find_run_flips

        self._check_folder()
        return find_run_flips(self._finished.run)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas table with a row for each comparison and each rule of its protocol.

        Columns: ``case``, ``prompt`` (cases that share one are not independent), ``data``, ``design``, ``attack``
        (``none`` before any rewrite), ``effect`` of the attack, ``protocol``, ``rule``; ``response`` (the author whose
        text the attack rewrote) and ``rival`` with their severities; ``before`` and ``after``: the verdicts
        ``response``, ``rival`` or ``tie``; ``flipped``; ``margin_before`` and ``margin_after`` (lead of the response
        over the rival, in points of the score or of probability); ``label``, ``failure``, ``excluded``;
        ``case_line`` and ``rewrite_line`` (where ``cases.jsonl`` and ``rewrites.jsonl`` hold the texts, from 1);
        ``calls``, ``tokens_in`` and ``tokens_out``. Out of the rows whose ``before`` is ``rival``, ``flipped`` adds up
        to the flip rate.

        Raises:
            UsageError: pandas is not installed; distract does not install it.
        """
        from distract.studies.attack.flips import COLUMNS, list_comparisons

        pandas = import_library("pandas", "pandas", "to_frame")
        self._check_folder()
        return pandas.DataFrame(list_comparisons(self._finished.run), columns=list(COLUMNS))

    def __repr__(self) -> str:
        p = self.parameters
        return f"<run of {p['judge']} on {p['limit']} cases: {self.path}>"

    def _check_folder(self) -> None:
        # Rows are read only when they are needed.
        if not (self.path / "run.json").exists():
            raise DataError("the run folder no longer exists", path=self.path)


@takes(AttackOptions)
def attack(options: AttackOptions) -> Run:
    """Rewrite responses with distractors and measure how often the judge's verdict changes: ``distract attack``.

    The measures are those of Distracted evaluation, section 3.1.

    Args:
        options: the options of the command.

    Returns:
        The run, read back if its folder already holds the same one, finished.

    Raises:
        UsageError: an option is wrong or fits no case, or the folder holds another run.
        PluginError: an attack or a protocol failed.
        BackendError: a model failed; the same call resumes, and pays for no reply twice.
    """
    listener = Listener()
    job = execution.prepare(ATTACK, options, listener)
    with raise_signals():  # Ctrl-C waits for pending replies, which are paid for
        finished = execution.run_job(job, options.store, listener, is_fresh=options.fresh)
    measured = any(figure.n for figure in finished.result.figures)
    why = execution.undecided_reason(finished.run.rows, measured)
    return Run(finished, [*data_lines(job.parameters), *listener.notes, *([why] if why else [])])


def gate(run: AnyPath | Run | None = None, **keywords: Any) -> Verdict:  # noqa: D417
    """Decide whether rewrites mislead a judge too often: ``distract gate``.

    Reads a finished run, or asks a judge only until the evidence suffices. Fails closed: without enough evidence the
    decision is ``inconclusive``. Thresholds come from the arguments, else from the table ``gate`` of the nearest
    ``distract.toml`` or ``pyproject.toml``; only the command takes its other settings, and only the command runs your
    code in a process of its own: here, code that ends the process ends the caller.

    Args:
        run: a finished run of ``attack``, or its folder.
        options: the options of the command.

    Returns:
        The verdict: ``decision`` (``pass``, ``fail`` or ``inconclusive``), ``reason``, ``checks`` for each protocol and
        attack, ``notes``, and the ``exit_code`` of the command.

    Raises:
        UsageError: there is no threshold, options conflict, or the run cannot be gated.
        PluginError: an attack or a protocol failed.
        BackendError: a model failed; the same call resumes.
    """
    from distract.studies.gate.request import decide

    place: Any = run.path if isinstance(run, Run) else run
    options = replace(read_keywords(GateOptions, keywords, ("run",)), run=place)
    _check_settings(options.config)
    listener = Listener()
    with raise_signals():
        verdict, _ = decide(options, {name: name for name, value in keywords.items() if value is not None}, listener)
    return replace(verdict, notes=(*listener.notes, *verdict.notes))


describe_keywords(gate, GateOptions, ("run",))


def _check_settings(path: Path | None) -> None:
    """Check a gate's file of settings as its command would: an ignored limit would let a bad judge pass."""
    import click

    from distract.cli.main import cli
    from distract.cli.settings import read_settings_file
    from distract.models.provider import known_settings

    parent = click.Context(cli)
    command = cli.get_command(parent, "gate")
    assert command is not None
    unused = {*describe(GateOptions), *known_settings()}  # a call takes nothing else from the file
    context = click.Context(command, parent=parent)
    read_settings_file(command, context, None if path is None else str(path), unused)


@dataclass(frozen=True, kw_only=True)
class LoadOptions(DataOptions):
    """The options of ``load``."""

    seed: int = seed_option()


def load(
    data: Any, *, responses: Names = (), columns: Mapping[str, str | float] | None = None, seed: int = 0
) -> tuple[Case, ...]:
    """Read the cases of a data set.

    Args:
        data: built-in name, path or ``hub:ORG/NAME[:CONFIG[:SPLIT]]``, where the latter two may follow ``FORMAT:``; or
            a table in memory: a frame of pandas or polars, a table of pyarrow or ``datasets``, a list of dicts.
        responses: files of responses, for formats that hold prompts only.
        columns: columns of a table by role, as ``{"prompt": "question", "label": "winner"}``; others are found by
            their usual names.
        seed: seed for the order of the two responses, where the data list the better one first.

    Returns:
        The cases, in the order of the data; at least one.

    Raises:
        UsageError: a file is missing or wrong (``DataError`` names file, line and field), or the format is unknown.
    """
    given: dict[str, Any] = {"data": data, "responses": responses, "columns": columns or (), "seed": seed}
    options = LoadOptions(**given)
    return datasets.load(options.data, options.responses, options.seed, options.columns).cases
