"""Where a verdict stands in an answer: in brackets, after a marker, in JSON, in the last line, in a sentence.

A place masks the verdicts that a judge only quotes, and finds the others. Only the last ``MOST_VERDICTS`` of an answer
count, and a regular expression has a second of processor time, so that no answer holds up a run.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import FrameType
from typing import Any

from distract.core.vocabulary import any_of
from distract.judging.parsers.answers import find_objects, line_start, normalise_letters, tighten_json
from distract.judging.parsers.quotations import MASK, Material, is_ended, mask_quotations
from distract.judging.parsers.statements import LONG, NEXT, Lead, Statement
from distract.judging.parsers.vocabulary import LONGEST, is_announcement, is_plain, is_wordless
from distract.judging.parsers.words import Absent, Unread, Words, fold, remove_markup

MOST_VERDICTS = 100
"""Verdicts at the end of an answer that count; one with more of them repeats itself."""
MOST_SECONDS = 1.0
"""Processor time of a regular expression; enforced in the main thread of systems with interval timers."""
MOST_LOOSE = 5_000
"""Characters at the end of an answer in which JSON that is not strict is read."""
Step = str | int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts in an answer.

    Attributes:
        text: the answer with quoted verdicts masked.
        statements: the verdicts outside quotations, in order.
        quoted: the verdicts that are only quoted.
        missing: why the answer has no verdict, if ``statements`` is empty.
    """

    text: str
    statements: Sequence[Statement]
    quoted: Sequence[str] = ()
    missing: str = "no verdict"


class Place:
    """Where a verdict stands.

    Attributes:
        is_lenient: whether a verdict alone is an answer in any form.
        is_raw: whether white space and full-width characters stay as they are.
    """

    is_lenient = True
    is_raw = False

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find all verdicts in an answer; ``cut`` says whether it reached its token limit."""
        raise NotImplementedError


def make_statement(words: Words, value: object, start: int, end: int, lead: Lead = "announced") -> Statement:
    """Read a verdict that stands between two positions."""
    meaning = words.read(value)
    if isinstance(meaning, Unread):
        return Statement(None, start, end, lead=lead, problem=str(meaning))
    label = str(value) if str(value).lower() == meaning else meaning if isinstance(meaning, str) else ""
    return Statement(meaning, start, end, label, lead)


def read_bare(text: str, words: Words, cut: bool) -> Statement | None:
    """Read an answer that holds nothing but a verdict and its announcement."""
    bare = _match_bare(text, words) or _match_json_value(text, words)
    # In brackets, a label is whole where no other begins like it.
    is_whole = not cut or (
        bare and text.startswith("[[") and sum(label.startswith(bare["verdict"]) for label in words.labels) < 2
    )
    return make_statement(words, bare["verdict"], *bare.span("verdict")) if bare and is_whole else None


def _match_bare(text: str, words: Words, announces: Callable[..., bool] = is_announcement) -> re.Match[str] | None:
    if len(text) > LONGEST:
        return None
    bare = re.fullmatch(rf"(?i)(?P<lead>[^\n\]]*?)(?<![-−.])(?<![^\W_]){words.pattern}(?:(?!\?)[\W_])*", text)
    is_led = bare and (is_wordless(bare["lead"]) or announces(bare["lead"], bare["verdict"]))
    return bare if is_led else None


def _match_json_value(text: str, words: Words) -> re.Match[str] | None:
    """Match the bracketed label in a JSON object, if its key announces it."""
    try:
        pairs = json.loads(re.sub(r"\A```\w*\n|\n```\Z", "", text), strict=False, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    pairs = pairs if text.lstrip("`json\n").startswith("{") else []
    values = {
        value
        for key, value in pairs
        if isinstance(value, str) and "[[" in value and is_announcement(key.replace("_", " "))
    }
    return _match_bare(values.pop(), words) if len(values) == 1 else None


def _mask(
    text: str, verdict: re.Pattern[str], material: Sequence[str], has_lines: bool = False
) -> tuple[str, list[re.Match[str]], list[str]]:
    """Mask quoted verdicts; return the text, the last verdicts that are left, and those masked."""
    own = mask_quotations(text, verdict, material, has_lines)
    sightings = deque(verdict.finditer(text), MOST_VERDICTS) if MASK in own else ()
    quoted = [match[0] for match in sightings if MASK in own[slice(*match.span())]]
    matches, end = deque[re.Match[str]](maxlen=MOST_VERDICTS), 0
    for match in verdict.finditer(own):
        # A judge that loops writes one verdict many times; the first of a row stands for all.
        if not matches or match[0] != matches[-1][0] or own[end : match.start()].strip(" \n.*"):
            matches.append(match)
        end = match.end()
    return own, list(matches), quoted


_ITEM_NUMBER = r"[-+−]?(?:\d++(?:[.,]\d++)?|[.,]\d++)"
_ITEM = rf"[*_\"'`]{{0,2}}(?:(?:response|assistant|rating|score)[:\s]\s*)?(?:[^\W\d_]|{_ITEM_NUMBER})[*_\"'`]{{0,2}}"
_BRACKETS = re.compile(
    rf"(?i)(?:(?<![A-Za-z0-9_)\]$])|(?<=\]\])|(?<=rating)|(?<=score)|(?<=verdict)|(?<=\bis)|(?<=answer)|(?<=choice))"
    rf"\[\[\s*({_ITEM}(?:\s*(?:[><=]{{1,2}}|[/|,&–-]|to|or|and|out of)\s*{_ITEM}){{0,20}}|tie|draw|none|neither|both|"
    rf"n/?a)\s*\]\](\s*(?:/|out of)\s*(?:\[\[)?\d+(?:\]\])?|\.\d+)?"
)
"""Labels on offer and anything that looks like one; other text in double brackets is not a verdict."""


class Brackets(Place):
    """In double brackets: ``[[A]]``, ``[[7]]``, ``[[A>>B]]``."""

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find labels in double brackets."""
        own, matches, quoted = _mask(text, _BRACKETS, material)
        statements = [
            make_statement(words, match[1] + re.sub(r"[\[\]]", "", match[2] or ""), *match.span()) for match in matches
        ]
        return Verdicts(own, statements, quoted)


_BEFORE_VALUE = r"(?:[\s:=*_`\"'“”‘’(\[{$|]|<\w{1,9}>)*(?:[\d(][\d .,+*×/()%–-]{0,80}=[^\S\n]*)?"
_AGAIN = (
    r"\b(?:capped at|minus|abgewertet auf|bzw\.|réduite? à|I (?:now )?give(?: it| this)?) (?:an? )?|扣|"
    r"\b(?:changed|reduced|lowered|raised|revised|rather|maybe|perhaps|instead|(?:could|might) be|no:)[^\w.\n]{1,3}"
    r"(?:to |a |be )?|\A\s*\((?=\w+\))|\A\s*(?:\([^()\d\n]{1,40}\)|for \w{1,40})[,;] "
)
"""Stands between two verdicts of which the second may be the one that is meant."""
_ARTICLE = re.compile(r" (?:response|answer|output|reply|text|close|tough|hard|clear|slight|narrow)\b")
_ALONE = r"(?![^\S\n]+\w)"
_GAP = r"(?:[^\S\n]|[*_`])*"
_JOINT = rf"{_GAP}(?:[/|&~]|\b(?:or(?: {any_of('hedged')})?|and|to)\b){_GAP}"
_PAUSE = rf"{_GAP}[,–-]?{_GAP}"


@dataclass(frozen=True)
class Marker(Place):
    """After a text, on its line or alone on the next one."""

    marker: str
    is_lenient = False

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find what follows each marker."""
        begin = mark_pattern(self.marker)
        own, matches, quoted = _mask(text, _compile(f"{begin}(?:{_BEFORE_VALUE}{words.pattern})?"), material, True)
        if cut and matches and matches[-1].end() >= len(own.rstrip(" .,\n")):
            return Verdicts(own, (), quoted, "truncated")
        statements, missing = [], f"no {self.marker!r} in the answer"
        joint = _compile(f"{_JOINT}{words.pattern}")
        pause = _compile(f"{_PAUSE}{words.pattern}{_ALONE if words.labels else ''}")
        again = _compile(rf"(?:{_AGAIN}){words.pattern}")
        equation = _compile(rf"{_GAP}={_GAP}{words.pattern}")
        for match in matches:
            rest = own[match.end() : match.end() + LONGEST].partition("\n")[0]
            is_below = "\n" in own[match.start() : match.start("verdict")]
            is_article = match["verdict"] == "A" and _ARTICLE.match(rest)
            if match["verdict"] is None or is_article or (is_below and re.match(r"(?!\s*[(–—]).*\w", rest)):
                problem = words.read(f"{match['verdict'] or ''}{rest}"[:LONGEST])
                missing = str(problem) if isinstance(problem, Unread) else "the verdict does not stand alone"
                continue
            statement = make_statement(words, match["verdict"], match.start(), match.end("verdict"), "plain")
            if "=" in words.labels and (equal := equation.match(own, match.end())):
                statement = make_statement(words, "=", match.start(), equal.end(), "plain")
            other = joint.match(own, match.end()) or pause.match(own, match.end())
            if other and words.read(other["verdict"]) not in (statement.value, statement.problem):
                missing = "ambiguous: it names two verdicts"
                statement = replace(statement, value=None, problem=missing)
                if re.search(r"[{<|]", own[match.start() : other.end()].removeprefix(self.marker)):
                    continue  # the form that was asked for, repeated
            if any(words.read(second["verdict"]) != statement.value for second in again.finditer(rest)):
                statement = replace(statement, value=None, problem="ambiguous: it names two verdicts")
            statements.append(statement)
        return Verdicts(own, statements, quoted, "truncated" if cut else missing)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(f"(?i){pattern}")


def mark_pattern(marker: str) -> str:
    """Make the expression of a marker: case, white space and markup aside, and never inside a word."""
    parts = re.findall(r"\w+|[^\w\s]+|\s+", remove_markup(normalise_letters(marker)).strip())
    begin, end = (r"(?<![^\W_])" if parts[0][0].isalnum() else ""), (r"(?![^\W_])" if parts[-1][-1].isalnum() else "")
    # French sets a space before a colon.
    parts = [r"[\s*_`]+" if part.isspace() else rf"[\s*_`]*{re.escape(part)}" for part in parts]
    return begin + "".join(parts).removeprefix(r"[\s*_`]*") + end


@dataclass(frozen=True)
class Pattern(Place):
    """Where a regular expression of the user's matches."""

    expression: re.Pattern[str]
    group: str
    is_lenient = False
    is_raw = True

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find all matches."""
        try:
            with limit_time():
                matches = list(deque(self.expression.finditer(text), MOST_VERDICTS))
        except TimeoutError:
            return Verdicts(text, (), missing="the regular expression takes too long on this answer")
        except RecursionError:
            return Verdicts(text, (), missing="the regular expression fails on this answer")
        if cut and (not matches or matches[-1].end() == len(text)):
            return Verdicts(text, (), missing="truncated")
        matches = [match for match in matches if match[self.group] is not None and match[0]]
        quotable = Material(material, _BRACKETS)
        literal = _compile(
            "|".join(sorted({re.escape(match[0][:LONGEST]) for match in matches}, key=len, reverse=True)) or "(?!)"
        )
        own, _, quoted = _mask(text, literal, material, has_lines=True)
        statements = [
            make_statement(words, match[self.group], *match.span(), lead="any")
            for match in matches
            if MASK not in own[slice(*match.span())]
            and (not quotable.has(match[0]) or _is_closing(text, *match.span()) or _begins_line(text, match.start()))
        ]
        # What holds neither a word of the list nor a number is the form that was asked for, repeated.
        whole = [one for one in statements if not one.problem or re.search(r"\d", own[one.start : one.end])]
        return Verdicts(own, whole or statements, quoted, "the regular expression does not match")


@dataclass(frozen=True)
class Path(Place):
    """At a path in a JSON object: keys of objects and places in arrays; the whole object or array without any."""

    steps: tuple[Step, ...]
    is_lenient: bool = False

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find the value in each object; one that is not strict JSON replaces the strict ones inside of it."""
        quotable = Material(material, _BRACKETS)
        objects = list(_list_objects(text, not self.steps))
        if not cut:
            loose = " " * max(0, len(text) - MOST_LOOSE) + tighten_json(text[-MOST_LOOSE:])
            others = list(_list_objects(loose, not self.steps))
            starts = [-1, *(start for start, *_ in others)]
            ends = [-1, *(end for _, end, _ in others)]
            objects = [one for one in objects if one[0] >= ends[bisect_right(starts, one[0]) - 1]]
            objects = sorted(objects + others, key=itemgetter(0))
        values = [(start, end, self._values(pairs)) for start, end, pairs in objects]
        statements, quoted = [], []
        for start, end, meanings in values[-MOST_VERDICTS:]:
            if not meanings or isinstance(words.read(meanings[0]), Absent):
                continue
            if quotable.has(text[start:end]) and not _is_closing(text, start, end):
                quoted.append(text[start:end])
                continue
            statement = make_statement(words, meanings[0], start, end, "object")
            if statement.problem and isinstance(meanings[0], str) and _TEMPLATE.search(meanings[0]):
                continue  # the schema
            if len({*map(_describe, meanings)}) > 1:
                statement = replace(statement, value=None, problem="ambiguous: its JSON object has two values there")
            statements.append(statement)
        last = max((end for _, end, _ in values), default=0)
        if cut and "{" in text[last:] and not NEXT.search(text, last):
            return Verdicts(text, (), quoted, "truncated")
        missing = "its last JSON object has no value there" if values else "no JSON object in the answer"
        if not values and "{" in text:
            missing = "its JSON is not valid"
        return Verdicts(text, statements, quoted, "truncated" if cut else missing)

    def _values(self, value: object) -> list[object]:
        """List the values at the path: an object is a list of pairs, and a key may occur twice."""
        values = [value]
        for step in self.steps:
            values = [inner for one in values if isinstance(one, list) for inner in _step(one, step)]
        return values


def _describe(value: object) -> str:
    """Describe a value for comparison: NaN differs from itself, and two objects are not the same verdict."""
    return str(id(value)) if isinstance(value, list) else repr(value)


def _step(items: list[object], step: Step) -> list[object]:
    pairs = [item for item in items if isinstance(item, tuple)]
    if isinstance(step, int):
        return [] if pairs else items[step : step + 1]
    return [value for key, value in pairs if fold(key) == fold(step)]


def _list_objects(text: str, has_arrays: bool) -> Iterator[tuple[int, int, list[tuple[str, Any]]]]:
    """List the outermost objects; none inside braces that never close, which are an object that is not valid."""
    depth = last = 0
    for start, end, pairs in find_objects(text, has_arrays):
        depth += text.count("{", last, start) - text.count("}", last, start)
        if depth <= 0 or ("}" not in text[end:] and _begins_line(text, start)):
            yield start, end, pairs
        last = end


_GOES_ON = re.compile(r"[\w\"'”’»]")
_TEMPLATE = re.compile(r"(?i)\bor\b|[/|<…]|\.\.|\d\s?[–-]\s?\d")


def _begins_line(text: str, start: int) -> bool:
    return is_wordless(text[line_start(text, start) : start])


def _is_closing(text: str, start: int, end: int) -> bool:
    """Whether a part ends the answer, on lines of its own or announced as the verdict."""
    line = text[line_start(text, start) : start]
    is_led = is_announcement(line) or (is_wordless(line) and is_ended(text, line_start(text, start)))
    return not _GOES_ON.search(text, end) and is_led


def _is_line_lead(text: str, label: str) -> bool:
    """Whether words before the verdict of a last line only announce it, or name what it is about."""
    return is_announcement(text, label) or (text.rstrip().endswith(":") and is_plain(text))


class LastLine(Place):
    """Alone in the last line."""

    is_lenient = False

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Read the last line that has a word, a number or a star."""
        if cut:
            return Verdicts(text, (), missing="truncated")
        *_, line = [part for part in text.split("\n") if re.search(r"[\w★⭐]", part)] or [""]
        start = text.rfind(line)
        end = start + len(line)
        bare = _match_bare(remove_markup(line), words, _is_line_lead)
        if bare is None:
            return Verdicts(text, (), missing="its last line holds something else than the verdict")
        own, _, quoted = _mask(text, _compile(re.escape(line)), material, has_lines=True)
        start += len(line) - len(line.lstrip("*_` "))
        statements = [] if MASK in own[start:end] else [make_statement(words, bare["verdict"], start, end, lead="any")]
        return Verdicts(own, statements, quoted, "it only mentions, quotes or denies a verdict")


_MARK = r"[*_\"'`]{0,3}"
_OUTPUT = re.compile(
    rf"(?i)\boutput\s*\(\s*{_MARK}([ab]){_MARK}\s*\)(?P<better>{_MARK}\s+is\s+{_MARK}(?:\w+\s+){{0,2}}better\b{_MARK})?"
)
_LINE = re.compile(
    rf"(?im)^{_MARK}output\s*\(\s*([ab])\s*\){_MARK}[.!]?{_MARK}"
    r"(?: ?\((?!\W*[ab]\W*\)|.*\b(?:output|wrong|incorrect|wors\w+)\b).*\)[.!]?)?$"
)
_THEREFORE = re.compile(r"(?i)\btherefore\b[^.!?\n]*\Z")
_STOPPED = re.compile(r"[^.!?\n]*[.!]")
_BEGUN = re.compile(rf"(?i)\btherefore,?\s+{_MARK}output\s*\(\s*([ab])\s*\){_MARK}\Z")


class Sentence(Place):
    """In a sentence that says which output is better."""

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find the sentences that say which output is better, and an output alone on the first or last line."""
        own, outputs, quoted = _mask(text, _OUTPUT, material)
        lines = list(_LINE.finditer(own))
        # An output alone on a line counts in the first or last line, unless there is another output alone on a line.
        ends = [line for line in lines if line.start() == 0 or (line.end() == len(own) and not cut)]
        is_alone = len({line[1].lower() for line in lines}) == 1
        statements = [make_statement(words, line[1], line.start(), line.end(1) + 1) for line in ends[:is_alone]]
        alone = {statement.value for statement in statements}
        begun = _BEGUN.search(own[-60:]) if cut else None
        for match in outputs:
            start, end = match.span()
            if not re.search(r"\b(?:better|best|winner)\b", own[max(0, start - 60) : match.end(1) + 100]):
                continue
            output_end = match.start("better") if match["better"] else end
            statement = make_statement(words, match[1], start, output_end, "name")
            # In a cut answer only the requested sentence counts, with two exceptions: a sentence with the same output
            # as a requested one that had begun, and a sentence that contradicts an output alone on its line.
            is_requested = _THEREFORE.search(own[max(0, start - LONG) : start]) and _STOPPED.match(own, end, end + LONG)
            is_begun = begun and begun[1].lower() == match[1].lower()
            if not cut or is_requested or alone - {statement.value} or is_begun:
                statements.append(statement)
        return Verdicts(own, sorted(statements, key=attrgetter("start")), quoted)


class Nowhere(Place):
    """Nowhere but in an answer that holds nothing else."""

    def find(self, text: str, words: Words, material: Sequence[str], cut: bool) -> Verdicts:
        """Find nothing."""
        return Verdicts(text, ())


@contextmanager
def limit_time() -> Iterator[None]:
    """Raise ``TimeoutError`` after ``MOST_SECONDS`` of processor time."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
