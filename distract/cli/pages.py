"""Files of a report beside the terminal: HTML and Markdown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.parameters import Option
from distract.cli.terminal import terminal
from distract.core import files
from distract.core.errors import UsageError

if TYPE_CHECKING:
    from distract.core.runs import LoadedRun
    from distract.core.shard import Shard
    from distract.report.blocks import Block
    from distract.studies.options import PageOptions


@dataclass(frozen=True)
class Pages:
    """The files to write a report to."""

    html: Path | None
    markdown: Path | None

    @property
    def any(self) -> bool:
        """Whether there is a file to write."""
        return self.html is not None or self.markdown is not None

    @classmethod
    def take(cls, options: PageOptions, shard: Shard | None = None) -> Pages:
        """Take the files from the options of a command and empty them: a run that fails must not leave an older report.

        Fails before anything is paid for if one cannot be written.
        """
        pages = cls(options.html, options.markdown)
        if pages.any and shard:
            raise UsageError("--html and --markdown show a whole run; give them to `distract merge`, not with --shard")
        for path, name in ((pages.html, "--html"), (pages.markdown, "--markdown")):
            if path is not None and not terminal().is_dry:
                check_free(path, protected_paths(click.get_current_context().params), name)
                if not files.is_stream(path):
                    files.write(path, "", name)
        return pages

    def write(
        self,
        blocks: Callable[[], Iterable[Block]],
        run: LoadedRun | None = None,
        data: Callable[[], dict[str, Any] | None] | None = None,
    ) -> None:
        """Write a report to each file; a page also shows how its run was made, and verdicts of it or of ``data``."""
        if self.html is not None:
            files.write(self.html, _render_html(blocks(), run, data() if data else None), "--html")
        if self.markdown is not None:
            from distract.report import markdown

            files.write(self.markdown, markdown.render(blocks()), "--markdown")


def _render_html(blocks: Iterable[Block], run: LoadedRun | None, data: dict[str, Any] | None) -> str:
    from distract.report import html

    if run is None:
        return html.render(blocks, "distract", data)
    from distract.core import registry
    from distract.studies.origin import origin_blocks
    from distract.studies.rewrite_view import example_blocks

    title = f"distract {run.command}: {run.parameters['judge']}"
    more = chain(example_blocks(run.rewrites), origin_blocks(run))
    return html.render(blocks, title, registry.get_study(run.command).page(run) if data is None else data, more)


def protected_paths(params: Mapping[str, Any]) -> Iterator[Path]:
    """List the files and folders that a command reads or keeps data in, from its parameters."""
    from distract.core.store import DEFAULT_PATH

    yield params.get("store") or DEFAULT_PATH
    command = click.get_current_context().command
    outputs = {one.name for one in command.params if isinstance(one, Option) and one.setting.writes == "file"}
    for name, value in params.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, str | Path) and name not in outputs:
                # What is no path itself may be FORMAT:PATH, or python:PATH:FUNCTION.
                # A name that is too long is no path; ``Path.exists`` raises for it.
                parts = [] if os.path.exists(one) else str(one).split(":")  # noqa: PTH110
                yield from (Path(part) for part in (str(one), *parts) if part)


def check_free(path: Path, needed: Iterable[Path], option: str) -> None:
    """Check that a user's file can be written without overwriting an input, before anything is paid for."""
    resolved, inputs = resolve_path(path), set(map(resolve_path, needed))
    if any(part in inputs for part in (resolved, *resolved.parents)):
        raise UsageError(f"{path}: is something that the command reads or keeps; name another file with {option}")
    files.check_writable(path, option)


def check_out(out: Path) -> None:
    """Check that a command can write its file, and that it is none of its inputs; a dry run writes none."""
    if not terminal().is_dry:
        check_free(out, protected_paths(click.get_current_context().params), "--out")


def resolve_path(path: Path) -> Path:
    """Resolve a path; unlike ``Path.resolve``, this handles circular links."""
    return Path(os.path.realpath(path))
