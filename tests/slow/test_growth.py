"""Test that every rewriter and parser takes linear time on hostile texts: 100,000 characters against 10,000.

Only the time of the processor counts, and only the ratio of two sizes decides: a busy machine changes neither.
"""

import json
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from builders import case
from fuzzer import Fuzz
from test_constraints_break import HOSTILE

from distract.core import printable, registry
from distract.core.attack import Attack
from distract.core.errors import DistractError
from distract.core.records import Constraint, Reply, Response
from distract.data import formats, json_stream, prompt_parts
from distract.data.constraints import breaks, check, parse
from distract.data.formats import native
from distract.data.tables import open_table, read_table
from distract.judging import parsers
from distract.judging.verdict_spec import parse_spec
from distract.report import markdown, unread
from distract.rewriting.fidelity import inspect
from distract.rewriting.fidelity.facts import differences
from distract.studies.attack import flips
from distract.studies.check import audit
from distract.studies.differences import mark_difference
from distract.studies.explain.edits import describe_edits, find_edits
from distract.studies.explain.view import mark_edits
from distract.studies.gate import ci_reports
from distract.studies.make import pairs
from distract.testing.invariants import changes, failures

SMALL, MIDDLE, LARGE = 10_000, 20_000, 100_000
TOLERANCE = 4.0
"""The factor allowed beyond linear growth; a quadratic target exceeds linear growth tenfold."""
LEAST = 0.5
"""Processor seconds below which growth cannot be measured."""
MOST = 30.0
"""The limit in processor seconds for a text of 100,000 characters."""

TEXT = (
    "The train leaves at 9:30. You can buy a ticket, perhaps for 4 euros, at the station.\n\n"
    "- First, do not wait.\n- It may be late (5 min)."
)
PIECES = (
    " ", "\t", "\n", " \n", "\r\n", "\u00a0", "\u2028", "a", "A", "7", "_", ".", ",", ":", "-", "=", "'", '"', "“",
    "\\", "$", "a. ", "- ", "1. ", "* ", "> ", "\n> ", "# ", "#", "|", "**", "*a* ", "```", "```\n", "~~~", "~~~\n",
    "<b>", "![](", "(", "[", "[[", "[[A", "[[A]]", "[[A]] ", "[[A>B]] ", "[[7", "{", '{"', '{"a":',
    '{"choice": "A"} ', "output (a) ", "Output (b) is better ", "therefore, ", "<think>", "</think>",
    "<think></think>", "<|im_end|>", "http://", "www.", "a@", "a.", "a-", "a_", "1,000", "A ", "is ", "not ", "if ",
    "and ", "two ", "<<", "user: ", "in all the ", "hundred ", "it's ", "I think that ", "The cat may sit. ",
    "The cat may sit on it\n", "# user\n", "漢字", "😀", "👩\u200d", "e\u0301", "\u0301", "\u202e", "\ud800", "\x00",
    "İ", "Score: 7 ", "Score: [", "score=", "Winner: A or ", '{"score": 7} ', "{'score': 7,} ", "{'", "★", "\\boxed{",
    "<|channel|>final<|message|>", "Score: 3+", "~~7~~ ",
)  # fmt: skip
VERDICTS: dict[str, dict[str, Any]] = {
    "after a marker": {"marker": "Score:", "scale": [0, 10]},
    "by an expression": {"regex": r"score=(?P<score>\w+)", "scale": [0, 10]},
    "in JSON": {"json": "$.score", "scale": [0, 10]},
    "by criteria": {"criteria": {"accuracy": 2, "style": 1}, "scale": [0, 10]},
}
PLACES = ("alone", "beginning", "middle", "end")


class Late(BaseException):
    """A step takes too long; no target catches this exception."""


@contextmanager
def limit_time(most: float) -> Iterator[None]:
    """Stop a call after a number of processor seconds."""

    def late(number: int, frame: object) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def grow_text(piece: str, size: int, place: str) -> str:
    """A text with this many characters of a piece, or of a mix of pieces if none is named."""
    if piece:
        run = (piece * (size // len(piece) + 1))[:size]
    else:
        draw = Random(place)
        parts = (draw.choice(PIECES) * draw.choice((1, 1, 2, 9)) for _ in range(size))
        run = "".join(parts)[:size]
    middle = TEXT.index("You")
    texts = {"alone": run, "beginning": run + TEXT, "middle": TEXT[:middle] + run + TEXT[middle:], "end": TEXT + run}
    return texts[place]


def _targets(folder: Path) -> Iterator[tuple[str, Callable[[str], object]]]:
    """Every function that accepts arbitrary text, by name."""
    few = tuple(parse({"kind": kind}) for kind in ("detectable_format:title", "punctuation:no_comma"))
    every = [parse(raw) for raw in HOSTILE if "language" not in raw["kind"]]
    for name, attack in registry.attacks().items():
        yield name, partial(_rewrite, attack, ())
        yield f"{name}, with a format", partial(_rewrite, attack, few)
        if attack.marker:
            yield f"marker of {name}", attack.marker
    for constraint in every:
        yield f"check {constraint}", partial(check, constraint)
        yield f"break {constraint}", partial(_break, constraint)
    marker = registry.get_attack("assertiveness").marker
    yield "inspect one that grew", lambda text: inspect(("Why?",), (text,), (f"really {text}.",), few, marker)
    yield "inspect one that shrank", lambda text: inspect(("Why?",), (f"{text} So.",), (text,), (), marker)
    yield "inspect as a rewrite", lambda text: inspect(("Why?",), (TEXT,), (text,), (), marker, needs="restyled")
    yield "inspect as an original", lambda text: inspect(("Why?",), (text,), (TEXT,), (), marker)
    yield "facts", lambda text: differences(TEXT, text, text)
    for form in (parsers.BRACKETS, parsers.GRADED, parsers.JSON, parsers.LETTER, parsers.OUTPUT, parsers.RANKING):
        for name in ("alone", "before it", "behind it", "in quotation marks"):
            yield f"read {form.name}: {name}", partial(_read, form, name)
    for kind, table in VERDICTS.items():
        for name in ("alone", "before it"):
            yield f"read {kind}: {name}", partial(_read_own, table, name)
    yield "restyle", lambda text: changes.restyle_response(case(), Response("x", (text,)))
    yield (
        "restyle, with a format",
        lambda text: changes.restyle_response(replace(case(), constraints=few), Response("x", (text,))),
    )
    yield "edits", lambda text: describe_edits(find_edits((text,), (f"so {text.upper()}",)))
    yield "edits of a plain text", lambda text: describe_edits(find_edits((TEXT,), (text,)))
    yield "marked edits", lambda text: list(mark_edits((text,), find_edits((text,), (f"so {text}.",))))
    yield "difference of two", lambda text: mark_difference(text, f"so {text}.")
    yield "first difference", lambda text: flips.excerpt_difference(text, f"{text}.", 80)
    yield (
        "printed",
        lambda text: (
            printable.clean_text(text),
            printable.line(text),
            failures.mark_spaces(text),
            unread._escape(text),
        ),
    )
    yield (
        "for GitHub and JUnit",
        lambda text: (markdown.format_code(text), markdown.escape_markup(text), ci_reports._escape(text)),
    )
    yield "answers of a pair", lambda text: list(pairs._find_faults(case(), Response("x", (TEXT,)), (text, TEXT)))
    yield "separator of a pair", lambda text: pairs._SEPARATOR.split(text)
    yield (
        "question",
        lambda text: prompt_parts.split_prompt(f"Add two different responses. Use no commas. {text}", every[5:8]),
    )
    yield (
        "cases",
        lambda text: _cases(json.dumps({"id": "c", "prompt": text, "responses": [{"author": "x", "text": text}]})),
    )
    yield "cases, as they are", _cases
    yield "cases that break off", lambda text: _cases(f'{{"id": "{text}')
    yield "rows", lambda text: _cases(json.dumps([{"input": text, "output_1": text, "output_2": TEXT, "label": 1}]))
    yield "votes", lambda text: _read_votes(folder / "votes", text)
    yield "checked files", lambda text: _check(folder, text)


def _rewrite(attack: Attack, constraints: tuple[Constraint, ...], text: str) -> str:
    return attack.rewrite(text, constraints, 0)


def _break(constraint: Constraint, text: str) -> list[str]:
    return list(islice(breaks(constraint, text), 6))


def _read(form: parsers.Format, where: str, text: str) -> None:
    labels = {"output": "ab", "ranking": "ABC"}.get(form.name, "AB")
    verdict = form.say("B>A=C" if form.name == "ranking" else labels[0])
    answers = {
        "alone": text,
        "before it": f"{text}\n{verdict}",
        "behind it": f"I choose {verdict}{text}",
        "in quotation marks": f'"{text}{verdict}" {verdict}',
    }
    form.read(answers[where], list(labels), (text, TEXT, text + verdict), where == "behind it")


def _read_own(table: dict[str, Any], where: str, text: str) -> None:
    spec = parse_spec(table, False, _refuse)
    (_, verdict), *_ = spec.outcomes()
    spec.read(Reply(text if where == "alone" else f"{text}\n{verdict}"), "", (text, TEXT, text + verdict))


def _refuse(problem: str, field: str) -> NoReturn:
    raise ValueError(f"{field}: {problem}")


def _cases(text: str) -> None:
    table = read_table(text.encode(errors="replace"), "cases.jsonl")
    formats.detect_format(table)
    for reader in formats.READERS.values():
        for read in (reader.read, reader.prompts):
            with suppress(DistractError):
                for one in read(table) if read else ():
                    if not hasattr(one, "why") and reader.read is native.read:
                        native.format_line(one)  # type: ignore[arg-type]


def _read_votes(path: Path, text: str) -> None:
    for suffix, content in ((".csv", f"model_a,model_b,winner\n{text}"), (".json", f"[{text}"), (".jsonl", text)):
        file = path.with_suffix(suffix)
        file.write_text(content, encoding="utf-8", errors="replace")
        with suppress(DistractError):
            table = open_table(file)
            list(table.select(table.fields))
        for read in (json_stream.stream_lines, json_stream.stream_array):
            with suppress(DistractError), file.open("rb") as opened:
                list(read(opened, str(file)))


def _check(folder: Path, text: str) -> None:
    original, rewrite = folder / "original", folder / "rewrite"
    original.write_text(text, encoding="utf-8", errors="replace")
    rewrite.write_text(f"{text} So.", encoding="utf-8", errors="replace")
    audit.pair_document(audit.check_files(original, rewrite))


def cost(target: Callable[[str], object], text: str) -> float:
    """Processor seconds; infinite if the limit is exceeded."""
    begun = time.process_time()
    try:
        with limit_time(MOST), suppress(DistractError):  # no text: half of a surrogate pair
            target(text)
    except Late:
        return math.inf
    return time.process_time() - begun


def grows(target: Callable[[str], object], piece: str, place: str) -> str | None:
    """A description of superlinear growth, or None."""
    # Most cases end here: a quadratic target takes 25 times longer for the large text.
    if cost(target, grow_text(piece, MIDDLE, place)) < LEAST / 30:
        return None
    large = cost(target, grow_text(piece, LARGE, place))
    if large < LEAST:
        return None
    # Results are cached, so the second measurement uses another text.
    small = max(cost(target, grow_text(piece, SMALL, place)), cost(target, f"{grow_text(piece, SMALL, place)}x"))
    if large > TOLERANCE * LARGE / SMALL * small:
        large = min(large, cost(target, f"{grow_text(piece, LARGE, place)}x"))
    is_worse = large > TOLERANCE * LARGE / SMALL * max(small, LEAST / 100) or large > MOST
    return f"{SMALL} characters {small:.3f} s, {LARGE} characters {large:.3f} s" if is_worse else None


def test_long_texts_take_linear_time(tmp_path: Path, fuzz: Fuzz) -> None:
    targets = dict(_targets(tmp_path))
    cases = [(name, piece, place) for name in targets for piece in (*PIECES, "") for place in PLACES]
    Random(fuzz.seed).shuffle(cases)
    # Blanks at the beginning, a known pitfall, come first.
    cases.sort(key=lambda one: one[1:] != (" ", "beginning"))
    problems = list[str]()
    for name, piece, place in cases:
        if fuzz.is_over:
            break
        if growth := grows(targets[name], piece, place):
            problems.append(f"{name}, {piece!r} {place}: {growth}")
            print(problems[-1])
        fuzz.spent += 1
    assert not problems, "\n".join(problems)
