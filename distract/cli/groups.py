"""Options about the output of commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distract.models.options import OptionGroup
from distract.models.ranges import PATH
from distract.studies.options import json_option, output


@dataclass(frozen=True, kw_only=True)
class JsonOptions(OptionGroup):
    """A document for machines."""

    as_json: bool = json_option()


@dataclass(frozen=True, kw_only=True)
class ViewOptions(JsonOptions):
    """A report for people, or a document for machines."""

    verbose: bool = output(False, "show all tables and notes")


@dataclass(frozen=True, kw_only=True)
class PageOptions(OptionGroup):
    """Files of a report beside the terminal."""

    html: Path | None = output(
        None, "HTML file to write: one page to open from disk, its verdicts included", PATH, writes=True
    )
    markdown: Path | None = output(None, "Markdown file to write: the report with its details", PATH, writes=True)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(PageOptions, ViewOptions):
    """The output of a study."""

    profile: bool = output(False, "report on stderr where the time went")
