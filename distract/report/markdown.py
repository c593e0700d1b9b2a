"""Blocks as GitHub's Markdown, for job summaries and files.

Every text is escaped: none opens a link, mentions anyone, begins a heading or breaks a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from distract.core.printable import clean_text, line
from distract.report import blocks

_MARKUP = re.compile(r"[!-$&*+:<-@\[-`{-~-]")
"""ASCII punctuation that is always markup; a bracket or a full stop is so only beside one of these."""

_MEANING = re.compile(r"(?i)[@#]|:(?=//)|www(?=\.)")
"""Text that GitHub recognises as a mention, reference or address; a zero-width word joiner prevents that.

Some are recognised after the Markdown is read, when an entity is a character again.
"""

_LIST = re.compile(r"^\s*\d+(?=[.)])")  # the beginning of a numbered list

_APART = "\\g<0>\u2060"

_TAGS = {"strong": "strong", "good": "strong", "bad": "strong", "removed": "del", "added": "ins"}


def render(parts: Iterable[blocks.Block]) -> str:
    """Return blocks as one Markdown text; details are folded."""
    return "\n\n".join(part for block in parts for part in _render(block)) + "\n"


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


def _render(block: blocks.Block) -> Iterator[str]:
    match block:
        case blocks.Heading(text, level):
            yield from (f"{'#' * min(level + 1, 6)} {escape_markup(one)}" for one in text.split("\n")[:1])
            yield from map(escape_markup, text.split("\n")[1:])
        case blocks.Sentence(text) | blocks.Note(text):
            yield "<br>\n".join(_LIST.sub(_APART, _format(spans)) for spans in _split(text))
        case blocks.Diff(spans, label):
            heading = f"{escape_markup(label)}<br>" if label else ""
            yield f"{heading}{_LIST.sub(_APART, _format(spans, keeps_lines=True))}"
        case blocks.Plot(title=title, description=description):
            yield f"*{escape_markup(title)}*: {escape_markup(description)}"
        case blocks.Table():
            yield from _render_table(block)
        case blocks.Detail(part, is_open=True):
            yield from _render(part)
        case blocks.Detail(part):
            yield "<details><summary>more</summary>"
            yield from _render(part)
            yield "</details>"
        case blocks.Browser(instead):
            for part in instead:
                yield from _render(part)


def _render_table(table: blocks.Table) -> Iterator[str]:
    if table.title:
        yield f"**{escape_markup(table.title)}**"
    size, rows, last = len(table.columns), list[list[str]](), ""
    for group, label, cells in table.rows:
        if group != last:
            rows.append([f"**{escape_markup(group)}**", *[""] * (size - 1)])
        last = group
        texts = [_format(blocks.list_spans(cell)) for cell in (label, *([cells] if isinstance(cells, str) else cells))]
        rows.append([*texts, *[""] * (size - len(texts))])
    head = [escape_markup(name) if name else "" for name in table.columns]
    yield lay_out_table(head, rows, [":--", *["--:"] * (size - 1)])
    if table.legend:
        yield escape_markup(table.legend)


def _split(text: blocks.Prose) -> list[tuple[blocks.Span, ...]]:
    """Split a text into its lines."""
    lines: list[list[blocks.Span]] = [[]]
    for span in blocks.list_spans(text):
        first, *rest = span.text.split("\n")
        lines[-1].append(blocks.Span(first, span.tone))
        lines += [[blocks.Span(one, span.tone)] for one in rest]
    return [tuple(one) for one in lines if any(span.text.strip() for span in one)]


def _format(spans: Sequence[blocks.Span], keeps_lines: bool = False) -> str:
    parts = []
    for span in spans:
        text = _escape(clean_text(span.text))
        text = text.replace("\n", "<br>") if keeps_lines else " ".join(text.split("\n"))
        tag = _TAGS.get(span.tone) if text.strip() else None
        parts.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return "".join(parts).strip()
