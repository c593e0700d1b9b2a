"""Blocks as GitHub's Markdown, for job summaries and files.

Every text is escaped: none opens a link, mentions anyone, begins a heading or breaks a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from distract.core.printable import clean_text, line
from distract.report.blocks import (
    Block,
    Browser,
    Detail,
    Diff,
    Heading,
    Note,
    Plot,
    Prose,
    Sentence,
    Span,
    Table,
    Tone,
    list_spans,
)

_MARKUP = re.compile(r"[!-$&*+:<-@\[-`{-~-]")
"""ASCII punctuation that is always markup; a bracket or a full stop is so only beside one of these."""

_MEANING = re.compile(r"(?i)[@#]|:(?=//)|www(?=\.)")
"""Text that GitHub recognises as a mention, reference or address; a zero-width word joiner prevents that.

Some are recognised after the Markdown is read, when an entity is a character again.
"""

_LIST = re.compile(r"^\s*\d+(?=[.)])")  # the beginning of a numbered list

_APART = "\\g<0>\u2060"

_TAGS: Mapping[Tone, str] = {"strong": "strong", "good": "strong", "bad": "strong", "removed": "del", "added": "ins"}


def render(blocks: Iterable[Block]) -> str:
    """Return blocks as one Markdown text; details are folded."""
    return "\n\n".join(part for block in blocks for part in _render(block)) + "\n"


def escape_markup(text: str) -> str:
    """Put a text on one line and turn anything that could be markup into numeric entities."""
    return _escape(_LIST.sub(_APART, line(text))) or "–"


def format_code(text: str) -> str:
    """Show a text as code."""
    return f"<code>{escape_markup(text)}</code>"


def lay_out_table(head: Sequence[str], rows: Iterable[Sequence[str]], align: Sequence[str]) -> str:
    """Lay out cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, align, *rows))


def _escape(text: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", _MEANING.sub(_APART, text))


def _render(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield from (f"{'#' * min(level + 1, 6)} {escape_markup(one)}" for one in text.split("\n")[:1])
            yield from map(escape_markup, text.split("\n")[1:])
        case Sentence(text) | Note(text):
            yield "<br>\n".join(map(_format_line, _split(text)))
        case Diff(spans, label):
            heading = f"{escape_markup(label)}<br>" if label else ""
            yield f"{heading}{_LIST.sub(_APART, _format(spans, keeps_lines=True))}"
        case Plot(title=title, description=description):
            yield f"*{escape_markup(title)}*: {escape_markup(description)}"
        case Table():
            yield from _render_table(block)
        case Detail(part, is_open=True):
            yield from _render(part)
        case Detail(part):
            yield "<details><summary>more</summary>"
            yield from _render(part)
            yield "</details>"
        case Browser(instead):
            for part in instead:
                yield from _render(part)


def _render_table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"**{escape_markup(table.title)}**"
    size, rows, last = len(table.columns), list[list[str]](), ""
    for group, label, cells in table.rows:
        if group != last:
            rows.append([f"**{escape_markup(group)}**", *[""] * (size - 1)])
        last = group
        texts = [_format((Span(cells),))] if isinstance(cells, str) else [_format(list_spans(cell)) for cell in cells]
        rows.append([_format(list_spans(label)), *texts, *[""] * (size - 1 - len(texts))])
    head = [escape_markup(name) if name else "" for name in table.columns]
    yield lay_out_table(head, rows, [":--", *["--:"] * (size - 1)])
    if table.legend:
        yield escape_markup(table.legend)


def _split(text: Prose) -> list[tuple[Span, ...]]:
    """Split a text into its lines."""
    lines: list[list[Span]] = [[]]
    for span in list_spans(text):
        first, *rest = span.text.split("\n")
        lines[-1].append(Span(first, span.tone))
        lines += [[Span(one, span.tone)] for one in rest]
    return [tuple(one) for one in lines if any(span.text.strip() for span in one)]


def _format(spans: Sequence[Span], keeps_lines: bool = False) -> str:
    parts = []
    for span in spans:
        text = _escape(clean_text(span.text))
        text = text.replace("\n", "<br>") if keeps_lines else " ".join(text.split("\n"))
        tag = _TAGS.get(span.tone) if text.strip() else None
        parts.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return "".join(parts).strip()


def _format_line(spans: Sequence[Span]) -> str:
    return _LIST.sub(_APART, _format(spans))
