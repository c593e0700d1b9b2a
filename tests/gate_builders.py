"""Verdicts of a gate for tests of its messages; one of their texts is hostile."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import row, scored, verdict as verdict_of
from hypothesis import strategies as st

from distract.core.records import MIRROR, Case, Response, Row
from distract.core.runs import LoadedRun
from distract.studies.attack.flips import Flip
from distract.studies.gate.limits import Decision
from distract.studies.gate.verdict import Check, Effort, Verdict

GOLDEN = Path(__file__).parent / "golden"

FLIP = Flip(
    case="c7", protocol="pairwise", rule=None, attack="prolixity", rewritten="weak-model", other="good-model",
    before=(0.125, 0.875), after=(0.75, 0.2), margin=1.3, original="Paris is the capital of France.",
    rewrite="Paris, that most venerable of cities, is the capital of France.",
)  # fmt: skip

A, B, TIE = verdict_of("a"), verdict_of("b"), verdict_of("tie")
SCORED = [[scored(scores, (5, 5))] for scores in ((5.2, 5.1), (5.1, 5.2), (5.0, 5.0))]
"""Judgments that prefer the first response, the second, and neither."""


def rows(pairs: str, *, attack: str = "f", protocol: str = "pairwise", prompts: int | None = None) -> list[Row]:
    """A pair for each sign: 1 flips, 0 holds, ? has no valid verdict, ! had none, t was a tie, x is excluded."""
    row_list = []
    good, bad, tie = SCORED if protocol == "absolute" else ([A, A], [B, B], [TIE, TIE])
    nothing = [verdict_of(None)] * len(good)
    before, after = {"t": tie, "!": nothing}, {"1": bad, "0": good, "?": nothing}
    for index, sign in enumerate(pairs):
        name = f"c{index}"
        place: dict[str, Any] = {"protocol": protocol, "cluster": f"p{index % prompts}" if prompts else None}
        row_list.append(row(name, before.get(sign, good), **place))
        message, left_out = after.get(sign, []), None if sign in after else "rewrite rejected"
        if sign not in before:
            row_list.append(row(name, message, attack=attack, target="b", excluded=left_out, **place))
    return row_list


def place_rows(places: Iterable[Any], choose: Callable[..., Any] = lambda better, first: first) -> list[Row]:
    """A pair for each two letters, the response labelled better and the one shown first, which a judge prefers."""
    row_list = []
    for at, (better, first) in enumerate(map(tuple, places)):
        chosen = choose(better, first)
        pair = row(f"c{at}", [verdict_of(chosen)], label=better)
        after = row(f"c{at}", [verdict_of(chosen)], attack="f", target=MIRROR[chosen])
        row_list += [replace(one, shown=(first,)) for one in (pair, after)]
    return row_list


def make_run(rows: Sequence[Row], name: str = "now", flaw: str | None = None, **parameters: Any) -> LoadedRun:
    attacks = list(dict.fromkeys(one.attack for one in rows if one.attack != "none"))
    protocols = {one.protocol: ["score", "rating"] if one.protocol == "absolute" else [] for one in rows}
    usual: dict[str, Any] = {
        "judge": "j", "data": {"name": "d.jsonl", "sha256": "0" * 64, "cases": 9}, "limit": 9, "seed": 0,
        "attacks": attacks or ["f"], "controls": [], "protocols": protocols or {"pairwise": []}, "generator": "rules",
    }  # fmt: skip
    # The judge of unlabelled rows reads the question, so that they may pass.
    is_labelled = any(one.label for one in rows)
    usual |= parameters
    exchanged = (
        []
        if is_labelled
        else [one for name, own in usual["protocols"].items() for one in exchange_rows(name, bool(own))]
    )
    usual |= {} if is_labelled else {"exchange": dict.fromkeys(usual["protocols"], EXCHANGES)}
    every, authors = (*rows, *exchanged), dict[str, str | None]()
    for one in every:
        own = {"a": one.a.author, "b": one.b.author}.get(one.label or "", one.label)
        authors[one.case] = authors.get(one.case) or (None if one.design == "exchange" else own)
    cases = [Case(name, (name,), tuple(Response(at, (at,)) for at in "xy"), own) for name, own in authors.items()]
    return LoadedRun(Path(name), usual, every, (), flaw, None, cases=cases)


EXCHANGES = 6


def exchange_rows(protocol: str, is_scored: bool = False, right: str = "aa" * EXCHANGES) -> list[Row]:
    """Exchanges of pairs of prompts, by the verdicts about their questions; ``a`` is right."""
    judgments = dict(zip("abt", SCORED if is_scored else ([A, A], [B, B], [TIE, TIE]), strict=True))
    judgments["?"] = [verdict_of(None)] * len(judgments["a"])
    return [
        row(f"x{at // 2}", judgments[sign], design="exchange", protocol=protocol, label="a")
        for at, sign in enumerate(right)
    ]


def check(decision: Decision, **more: Any) -> Check:
    figures: dict[str, Any] = {
        "protocol": "pairwise", "rule": None, "attack": "prolixity", "reason": f"it is a {decision}",
        "threshold": 0.1, "k": 12, "n": 40, "invalid": 1, "excluded": 2, "value": 0.3, "lower": 0.1830, "upper": 0.4413,
        "p_value": 0.0004, "p_adjusted": 0.0012,
    }  # fmt: skip
    return Check(decision=decision, **{**figures, **more})


def skipped(**more: Any) -> Check:
    none = dict.fromkeys(("value", "lower", "upper", "p_value", "p_adjusted"))
    return check(
        "inconclusive", **{"reason": "another check had failed", "skipped": True, "k": 0, "n": 0, **none, **more}
    )


def verdict(decision: Decision, *checks: Check, **more: Any) -> Verdict:
    whole: dict[str, Any] = {"reason": f"the gate is a {decision}", "threshold": 0.1, "confidence": 0.95}
    return Verdict(**{**whole, "decision": decision, "certify": False, "checks": checks, **more})


MIXED = verdict(
    "fail",
    check("fail", reason="lower bound 0.183 is above 0.1"),
    check("pass", protocol="absolute", rule="score", k=0, value=0.0, lower=0.0, upper=0.0722, reason="below 0.1"),
    check("inconclusive", attack="sycophancy", reason="the bounds do not settle 0.1", needed=120),
    check("fail", protocol="base", measure="excess_flip_rate", reference=0.05, only_here=10, only_there=0,
          reason="it exceeds the judge's noise"),
    skipped(protocol="prepair"),
    reason="pairwise under prolixity: lower bound 0.183 is above 0.1 (and 1 more)",
    effort=Effort(cases=40, of=300, calls=320, saved=2080, budget=None, stopped="no verdict that is left changes it"),
    notes=("judged in a drawn order, seed 0",),
)  # fmt: skip

FLIPS = {("pairwise", "prolixity", "flip_rate"): (FLIP,)}

NASTY = (
    "]]>", "<a href='https://x.example'>x</a>", "</testcase>", "&lt;", "a|b", "\n::error::x", "%0A::set-env::", "@team",
    "#12", "www.x.example", "https://x.example", "[x](y)", "**x**", "`", "\x1b[31m", "\x00", "\ud800", "\ufffe",
    "\uffff", "- x", "\r\n", "\u2028", "\x85", "##[error]x", "-->", "x@x.example", "<!--", "</details>", "1. x", "",
    " ", "title=x,y:z", "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", '" onload="alert(1)',
    "<!--<script>", "{{ 7 * 7 }}{% raw %}", "&lt;b&gt;",
)  # fmt: skip
HOSTILE = st.one_of(st.text(st.characters(), max_size=20), st.lists(st.sampled_from(NASTY), max_size=4).map("".join))

DECISIONS: tuple[Decision, ...] = ("pass", "fail", "inconclusive")


Drawn = tuple[Verdict, dict[tuple[str, str, str], tuple[Flip, ...]], str]
"""A verdict, its flips and a judge's name."""


@st.composite
def hostile(draw: st.DrawFn) -> Drawn:
    """A gate with arbitrary texts."""
    checks, flips = list[Check](), dict[tuple[str, str, str], tuple[Flip, ...]]()
    for decision in draw(st.lists(st.none() | st.sampled_from(DECISIONS), max_size=4)):
        texts = {name: draw(HOSTILE) for name in ("protocol", "attack", "reason")}
        rule = draw(st.none() | HOSTILE)
        checks.append(check(decision, rule=rule, **texts) if decision else skipped(**texts))
        case, author, original, rewrite = (draw(HOSTILE) for _ in range(4))
        flip = Flip(case, "p", None, "f", author, author, (0.0, 1.0), (1.0, 0.0), 2.0, original, rewrite)
        flips[texts["protocol"], texts["attack"], "flip_rate"] = (flip,)
    whole = {
        "reason": draw(HOSTILE), "notes": tuple(draw(st.lists(HOSTILE, max_size=2))), "certify": draw(st.booleans()),
        "effort": Effort(1, 2, 3, 4, None, draw(HOSTILE)),
    }  # fmt: skip
    return verdict(draw(st.sampled_from(DECISIONS)), *checks, **whole), flips, draw(HOSTILE)


def golden(name: str, text: str) -> str:
    """The text of a golden file; ``DISTRACT_GOLDEN=write`` rewrites it first, so that its diff can be reviewed."""
    file = GOLDEN / name
    if os.environ.get("DISTRACT_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8", newline="\n")
    return file.read_text(encoding="utf-8")
