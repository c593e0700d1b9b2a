"""Plots as SVG: drawn here, so that the page needs no library and shows the same everywhere.

Series differ in shape and dashes as well as in colour, which the style sheet of the page chooses. Every text is
escaped, and every plot has a title and a description for those who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from distract.core.printable import line
from distract.report.blocks import Axis, Mark, Plot

WIDTH = 720
LABELS = 220  # width of the names left of a forest plot
VALUES = 190  # width of the numbers right of a forest plot
HEIGHT = 300
TOP = 28  # room above a plot for the title of its values
MARGIN = 56
STEP = 15  # height of one mark of a forest plot
APART = 6  # distance between series at one name
LONGEST = 34  # characters of a name to show; its title has all of it
FEW = 6  # whole numbers along x that are all named
SERIES = 6  # shapes and colours, which repeat after that

_SHAPES = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
    "M-3.6,-3.6h7.2v7.2h-7.2z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,-5L4.6,3.4H-4.6z",
    "M0,5L4.6,-3.4H-4.6z",
    "M-4.5,-1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",
)


@dataclass(frozen=True)
class Scale:
    """Places numbers between two ends of the drawing."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return the place of a number in the drawing; one outside is at the nearer end."""
        low, high, at = (self._project(number) for number in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.start + min(max(share, 0), 1) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round numbers between the ends."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
            return [tick for tick in ticks if self.low <= tick <= self.high] or [self.low, self.high]
        rough = (self.high - self.low) / 5 or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [round(number * step, 12) for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _project(self, value: float) -> float:
        return math.log(max(value, 1e-12)) if self.is_log else value


def draw(plot: Plot, name: str) -> str:
    """Draw a plot as an SVG element; ``name`` is unique in the page."""
    parts, height = _draw_forest(plot) if plot.kind == "forest" else _draw_upright(plot)
    legend, extra = _draw_legend(_list_series(plot.marks) if plot.kind in ("line", "slope") else [], height)
    heading = (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height + extra}" role="img" '
        f'aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{_text(plot.title)}</title><desc id="{name}-text">{_text(plot.description)}</desc>'
    )
    return f"{heading}{''.join(parts)}{legend}</svg>"


def _draw_forest(plot: Plot) -> tuple[list[str], int]:
    names, series = list(dict.fromkeys(str(mark.at) for mark in plot.marks)), _list_series(plot.marks)
    rows = {name: [mark for mark in plot.marks if str(mark.at) == name] for name in names}
    scale = _scale(plot.values, plot.marks, LABELS, WIDTH - VALUES)
    parts, y = list[str](), 8
    for name in names:
        y += 8 + STEP
        parts.append(_label(name, 0, y - 3))
        for mark in rows[name]:
            y += STEP
            number = series.index(mark.series)
            parts += [*_draw_mark(mark, number, scale, y - STEP / 2 + 1, plot.values)]
    bottom = y + 8
    axis = []
    for tick in scale.ticks():
        x = scale.place(tick)
        axis.append(f'<path class="grid" d="M{x},8V{bottom}"/>')
        axis.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{_format(tick, plot.values)}</text>')
    for title, value in (plot.values.lines or {}).items():
        x = scale.place(value)
        axis.append(f'<path class="rule" d="M{x},4V{bottom}"><title>{_text(title)}</title></path>')
    middle = (LABELS + WIDTH - VALUES) / 2
    axis.append(f'<text x="{middle}" y="{bottom + 32}" text-anchor="middle">{_text(plot.values.title)}</text>')
    return [*axis, *parts], bottom + 40


def _draw_mark(mark: Mark, number: int, scale: Scale, y: float, axis: Axis) -> Iterator[str]:
    """Draw one row: its name, its interval, its value, and both in numbers."""
    numbers = _format(mark.value, axis)
    if mark.low is not None and mark.high is not None:
        numbers += f" ({_format(mark.low, axis)} to {_format(mark.high, axis)})"
        yield f'<path class="range s{number % SERIES}" d="M{scale.place(mark.low)},{y}H{scale.place(mark.high)}"/>'
    yield _point(scale.place(mark.value), y, number, f"{mark.series}, {mark.at}: {numbers} {mark.text}")
    yield _label(mark.series, 14, y + 4)
    yield f'<text class="numbers" x="{WIDTH}" y="{y + 4}" text-anchor="end">{numbers}</text>'


def _draw_upright(plot: Plot) -> tuple[list[str], int]:
    """Draw values up y over places along x."""
    series = _list_series(plot.marks)
    right = WIDTH - (150 if plot.kind == "slope" else 24)
    up = _scale(plot.values, plot.marks, HEIGHT, TOP)
    names = list(dict.fromkeys(str(mark.at) for mark in plot.marks)) if plot.places.unit == "names" else []
    numbers = [float(mark.at) for mark in plot.marks if not isinstance(mark.at, str)]
    along = Scale(min(numbers, default=0.0), max(numbers, default=1.0), MARGIN + 24, right - 24, plot.places.is_log)
    xs = {name: MARGIN + 60 + at * (right - MARGIN - 90) / max(1, len(names) - 1) for at, name in enumerate(names)}
    parts = [
        f'<path class="grid" d="M{MARGIN},{up.place(tick)}H{right}"/>'
        f'<text x="{MARGIN - 6}" y="{up.place(tick) + 4}" text-anchor="end">{_format(tick, plot.values)}</text>'
        for tick in up.ticks()
    ]
    ticks = {name: (x, _shorten(name)) for name, x in xs.items()}
    # Few whole numbers, such as severities, have no values between them.
    distinct = sorted({*numbers})
    are_whole = len(distinct) <= FEW and all(number.is_integer() for number in distinct)
    ticks_along = distinct if are_whole else along.ticks()
    ticks |= {str(tick): (along.place(tick), _format(tick, plot.places)) for tick in ticks_along if not names}
    for x, label in ticks.values():
        parts.append(f'<path class="grid" d="M{x:.1f},{TOP}V{HEIGHT}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{_text(label)}</text>')
    for title, value in (plot.places.lines or {}).items():
        x = along.place(value)
        parts.append(f'<path class="rule" d="M{x},4V{HEIGHT}"/><text x="{x + 4}" y="14">{_text(title)}</text>')
    for number, name in enumerate(series):
        own = [mark for mark in plot.marks if mark.series == name]
        # Side by side, so that intervals at one name do not hide each other.
        aside = APART * (number - (len(series) - 1) / 2)
        places = [xs[str(mark.at)] + aside if names else along.place(float(mark.at)) for mark in own]
        if plot.kind in ("line", "slope") and len(own) > 1:
            path = "L".join(f"{x:.1f},{up.place(mark.value)}" for x, mark in zip(places, own, strict=True))
            parts.append(f'<path class="join s{number % SERIES}" d="M{path}"/>')
        for x, mark in zip(places, own, strict=True):
            if mark.low is not None and mark.high is not None:
                ends = f"M{x:.1f},{up.place(mark.low)}V{up.place(mark.high)}"
                parts.append(f'<path class="range s{number % SERIES}" d="{ends}"/>')
            place = f"{name}, {mark.at if names else _format(float(mark.at), plot.places)}"
            text = f"{place}: {_format(mark.value, plot.values)} {mark.text}".rstrip()
            parts.append(_point(x, up.place(mark.value), number, text))
        if plot.kind == "scatter":
            parts.append(_label(name, places[0] + 9, up.place(own[0].value) - 6))
    title = f'<text x="{(MARGIN + right) / 2}" y="{HEIGHT + 36}" text-anchor="middle">{_text(plot.places.title)}</text>'
    return [*parts, title, f'<text x="0" y="14">{_text(plot.values.title)}</text>'], HEIGHT + 44


def _draw_legend(series: Sequence[str], top: float) -> tuple[str, int]:
    if len(series) < 2:
        return "", 0
    parts, x, y = list[str](), 8.0, top + 14
    for number, name in enumerate(series):
        width = 26 + 7.2 * len(_shorten(name))
        if x + width > WIDTH:
            x, y = 8.0, y + 20
        parts.append(_point(x, y - 4, number, name) + _label(name, x + 10, y))
        x += width
    return "".join(parts), int(y - top + 8)


def _list_series(marks: Sequence[Mark]) -> list[str]:
    return list(dict.fromkeys(mark.series for mark in marks))


def _scale(axis: Axis, marks: Sequence[Mark], start: float, end: float) -> Scale:
    """Span all values and intervals; a share begins at 0 unless one is negative."""
    numbers = [number for mark in marks for number in (mark.value, mark.low, mark.high) if number is not None]
    numbers += list((axis.lines or {}).values())
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    if axis.unit == "share":
        low, high = min(low, 0.0), max(high, 0.05)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Scale(low, high, start, end, axis.is_log)


def _point(x: float, y: float, number: int, text: str) -> str:
    shape = _SHAPES[number % len(_SHAPES)]
    return (
        f'<path class="point s{number % SERIES}" transform="translate({x:.1f},{y:.1f})" d="{shape}">'
        f"<title>{_text(text)}</title></path>"
    )


def _label(name: str, x: float, y: float) -> str:
    whole = f"<title>{_text(name)}</title>" if _shorten(name) != name else ""
    return f'<text x="{x:.1f}" y="{y:.1f}">{_text(_shorten(name))}{whole}</text>'


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _format(value: float, axis: Axis) -> str:
    if axis.unit == "share":
        return f"{100 * value:z.1f}%" if round(100 * value, 1) % 1 else f"{100 * value:z.0f}%"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _text(text: str) -> str:
    return escape(line(text))
