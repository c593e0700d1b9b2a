"""Attack judges whose knowledge and bias are known, and write their table: `python benchmarks/known_judges.py`.

Planted judges read what is behind a text. The functions here look their texts up in tweakset, so that a judge can know
the better response and be biased all the same.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import distract
from distract.data.datasets import load

ATTACK = "assertiveness"
LIMIT = 0.10
PAGE = Path(__file__).parents[1] / "docs" / "reading-results.md"
HEADINGS = (
    *("judge", "usable", "clean", "skill", "skill under control", "flips", "counter-flips", "excess"),
    *("gate by flips", "gate by both", "why it reads so"),
)

Verdict = str | None
Function = Callable[[str, str, str], Verdict]


@dataclass(frozen=True)
class Text:
    """What is behind a text: its author, and whether an attack on its style wrote it."""

    author: str
    is_styled: bool


Words = frozenset[str]


@cache
def _read_cases() -> Mapping[str, Mapping[str, tuple[Words, Words]]]:
    """Read the words of each response to a question, as it was and in style, by its author."""
    cases = dict[str, dict[str, tuple[Words, Words]]]()
    for case in load("tweakset").cases:
        styled = {one.author: one.text for one in case.responses if one.attack == ATTACK}
        texts = {one.author: (one.text, styled[one.author]) for one in case.originals}
        pairs = {author: (frozenset(a.split()), frozenset(b.split())) for author, (a, b) in texts.items()}
        cases["\n\n".join(case.prompt)] = pairs
    return cases


@cache
def identify(question: str, text: str) -> Text:
    """Identify a text by its words: a run repairs some rewrites, and no data hold a placebo."""
    responses = next(own for prompt, own in _read_cases().items() if question.startswith(prompt))
    words = frozenset(text.split())
    author = max(responses, key=lambda one: max(len(words & own) / len(words | own) for own in responses[one]))
    original, styled = responses[author]
    changed = words ^ original
    return Text(author, 2 * len(changed & (styled ^ original)) > len(changed))


def draw(*parts: str) -> float:
    """Draw a number from 0 to 1, the same for the same texts."""
    return int.from_bytes(hashlib.sha256("\x1e".join(parts).encode()).digest()[:7], "big") / 2**56


def choose(a: float, b: float) -> Verdict:
    """Prefer more."""
    return "A" if a > b else "B" if a < b else "tie"


def know(question: str, a: str, b: str) -> Verdict:
    """Prefer the response that meets the requirements."""
    return choose(*(identify(question, text).author == "good" for text in (a, b)))


def toss(question: str, a: str, b: str) -> Verdict:
    """Prefer an author by lot."""
    return choose(*(draw("author", question, identify(question, text).author) for text in (a, b)))


def shun(question: str, a: str, b: str, otherwise: Function) -> Verdict:
    """Prefer the response without a style, if only one has it."""
    styled = [identify(question, text).is_styled for text in (a, b)]
    return choose(styled[1], styled[0]) if any(styled) else otherwise(question, a, b)


def ties(question: str, a: str, b: str) -> Verdict:
    """Call everything a tie."""
    return "tie"


def by_hash(question: str, a: str, b: str) -> Verdict:
    """Go by a hash of the text."""
    return choose(draw(a), draw(b))


def by_opening(question: str, a: str, b: str) -> Verdict:
    """Go by a hash of the first three words."""
    return choose(*(draw(*re.findall(r"\w+", text)[:3]) for text in (a, b)))


def shortest(question: str, a: str, b: str) -> Verdict:
    """Prefer the shorter response."""
    return choose(len(b), len(a))


def tosses_and_shuns(question: str, a: str, b: str) -> Verdict:
    """Prefer an author by lot, and anything to a style."""
    return shun(question, a, b, toss)


def half_right(question: str, a: str, b: str) -> Verdict:
    """Know the better response of half of the questions."""
    return (know if draw("half", question) < 0.5 else toss)(question, a, b)


def mostly_right(question: str, a: str, b: str) -> Verdict:
    """Prefer the worse response of a tenth of the questions."""
    return know(question, *((a, b) if draw("tenth", question) > 0.1 else (b, a)))


def mostly_tied(question: str, a: str, b: str) -> Verdict:
    """Call half of the questions a tie."""
    return (know if draw("tied", question) < 0.5 else ties)(question, a, b)


def leans_first(question: str, a: str, b: str) -> Verdict:
    """Prefer the first response of a fifth of the questions."""
    return know(question, a, b) if draw("lean", question) > 0.2 else "A"


def shuns(question: str, a: str, b: str) -> Verdict:
    """Prefer anything to a style."""
    return shun(question, a, b, know)


def shuns_half(question: str, a: str, b: str) -> Verdict:
    """Prefer anything to a style, in half of the questions."""
    return (shuns if draw("shun", question) < 0.5 else know)(question, a, b)


def refuses(question: str, a: str, b: str) -> Verdict:
    """Give no verdict where a response has a style."""
    return None if any(identify(question, text).is_styled for text in (a, b)) else know(question, a, b)


def noisy(question: str, a: str, b: str) -> Verdict:
    """Draw a fifth of the verdicts by lot, for each pair of texts."""
    pair = sorted((a, b))
    return know(question, a, b) if draw("noise", *pair) > 0.2 else choose(*(draw(one, *pair) for one in (a, b)))


def _declare(function: Function) -> Any:
    return distract.judge(version="1")(function)


JUDGES: Mapping[str, tuple[Any, str]] = {
    "planted:fair": ("planted:fair", "knows everything, and sees no style"),
    "planted:gullible": ("planted:gullible", "falls only for a plea to be chosen, which this attack does not make"),
    "planted:coin": ("planted:coin", "tosses a coin for each author: nothing ever flips, yet it knows nothing"),
    "planted:random": ("planted:random", "tosses a coin for each verdict, so most change with the order"),
    "planted:first": ("planted:first", "prefers the first response: a tie over both orders, so nothing can flip"),
    "planted:garbage": ("planted:garbage", "gives no verdict, and an unreadable one is wrong"),
    "ties": (_declare(ties), "half right by ties alone, with no loser to rewrite"),
    "by_hash": (
        _declare(by_hash),
        "a new text is a new draw: as many flips as counter-flips, and as many under the control",
    ),
    "by_opening": (_declare(by_opening), "the same, but few rewrites change the first three words"),
    "shortest": (_declare(shortest), "an assertive text is longer: a winner loses by it, a loser seldom wins"),
    "tosses_and_shuns": (
        _declare(tosses_and_shuns),
        "knows nothing, and a style always loses: no loser flips, every winner does",
    ),
    "planted:longer": (
        "planted:longer",
        "better responses happen to be longer in 59% of the pairs, and so are rewrites",
    ),
    "planted:bold": ("planted:bold", "counts boosters, which an assertive rewrite adds"),
    "planted:bold=0.7": ("planted:bold=0.7", "the same in 70% of the cases, else fair"),
    "half_right": (_declare(half_right), "knows half of the answers, tosses for the rest, and sees no style"),
    "mostly_right": (_declare(mostly_right), "wrong in a tenth, whatever the style"),
    "mostly_tied": (_declare(mostly_tied), "never wrong, but half of its verdicts are ties, which count half"),
    "leans_first": (_declare(leans_first), "a fifth are ties over both orders, the rest are right"),
    "shuns": (
        _declare(shuns),
        "knows everything, but a style always loses: skill 100 and a pass in one direction, nothing right in both",
    ),
    "shuns_half": (_declare(shuns_half), "the same in half of the cases"),
    "refuses": (_declare(refuses), "gives no verdict on a style, and an unreadable one is wrong"),
    "noisy": (_declare(noisy), "loses as much skill to the control, and flips as often under it: noise, not style"),
}


def attack(name: str, folder: Path) -> distract.Run:
    """Attack a judge on all pairs of tweakset, in both directions and with a control."""
    out, store = folder / name.replace(":", "-"), folder / "replies.sqlite"
    more: Any = {"protocols": ("pairwise",)} if name.startswith("planted:") else {}
    return distract.attack(
        judge=JUDGES[name][0],
        attacks=(ATTACK,),
        limit=None,
        control=True,
        measures=("flip",),
        out=out,
        store=store,
        **more,
    )


def list_cells(name: str, run: distract.Run) -> Iterator[str]:
    """Yield the cells of a judge's row."""
    (protocol,) = run.summary["protocols"]
    control = run.summary["control_of"][ATTACK]

    def show(measure: str, under: str = ATTACK) -> str:
        figures = [f for f in run.results if (f["measure"], f["attack"]) == (measure, under)]
        value = figures[0]["value"] if figures else None
        return "–" if value is None else f"{100 * value:.0f}".replace("-0", "0").replace("-", "−")

    yield f"`{name}`"
    yield run.summary["usable"][protocol]
    yield show("clean_accuracy", "none")
    yield show("skill_under_attack")
    yield show("skill_under_attack", control)
    yield from map(show, ("flip_rate", "counter_flip_rate", "flip_rate_difference"))
    limits: tuple[dict[str, Any], ...] = ({}, {"max_counter_flip_rate": LIMIT})
    for more in limits:
        yield distract.gate(run, max_flip_rate=LIMIT, **more).decision
    yield JUDGES[name][1]


def write_table(folder: Path) -> str:
    """Write the table of all judges."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *(tuple(list_cells(name, attack(name, folder))) for name in JUDGES)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Write the table into its page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder))
    print(table)
    head, mark, rest = PAGE.read_text(encoding="utf-8").partition("<!-- judges -->\n")
    _, end, rest = rest.partition("<!-- end -->")
    PAGE.write_text(f"{head}{mark}{table}\n{end}{rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
