"""Random rows of all designs, and the outcome and margin of a row by their definitions, for second implementations."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from builders import row, scored, verdict

from distract.core.records import Judgment, Outcome, Row

RULES: dict[str, tuple[str, ...]] = {"base": (), "compared": (), "scored": ("score", "rating")}
ATTACKS = ("f", "g", "placebo")
RULED = [(protocol, rule) for protocol, rules in RULES.items() for rule in rules or (None,)]

_TRIPLES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.3, 0.1), (0.3, 0.6, 0.1), (0.45, 0.45, 0.1), (0.5, 0.2, 0.3))
_LABELS: tuple[Outcome | None, ...] = ("a", "b", "a", "b", "tie", None)
_SCORES = (1.0, 2.0, 2.00005, 3.5, 5.0)


def draw_rows(random: Random, cases: int, designs: tuple[str, ...]) -> list[Row]:
    """Draw rows with ties, invalid verdicts, rejected rewrites, gaps, and several cases of one prompt."""
    prompts = random.choice((cases, max(2, cases // 2)))
    costs = {protocol: random.choice((10, 20)) for protocol in RULES}
    # A good judge makes some comparisons significant, and rewrites win against a bad one.
    skill = {protocol: random.choice((0.0, 0.5, 0.95)) for protocol in RULES}
    rows = list[Row]()
    for number in range(cases):
        name, prompt = f"c{number}", f"p{random.randrange(prompts)}" if prompts < cases else f"p{number}"
        label = random.choice(_LABELS)
        for protocol in RULES:
            for design, attack, target, severity in _places(random, designs):
                excluded = "rejected" if random.random() < 0.07 else None
                better = (label or "a") if design == "flip" else "a"
                judgments = () if excluded else _judge(random, protocol, skill[protocol], better)
                one = row(
                    name, judgments, design=design, attack=attack, target=target, protocol=protocol, cluster=prompt,
                    excluded=excluded, severity=severity,
                    label=label if design == "flip" and target is None else None,
                )  # fmt: skip
                if judgments:
                    one = replace(one, keys=(f"{protocol} {len(rows)}",), tokens=((costs[protocol], 0),))
                rows.append(one)
    return rows


def _places(random: Random, designs: tuple[str, ...]) -> Iterator[tuple[str, str, str | None, int | None]]:
    """Yield design, attack, target and severity of the rows of one case."""
    if "flip" in designs:
        yield "flip", "none", None, None
        for attack in ATTACKS:
            for target in "ab":
                if random.random() < 0.9:
                    yield "flip", attack, target, None
    if "fixed" in designs:
        for attack in ATTACKS:
            yield "fixed", attack, "b", None
    if "severity" in designs:
        for severity in (1, 2, 3):
            if random.random() < 0.9:
                yield "severity", "none", "b", severity


def _judge(random: Random, protocol: str, skill: float, better: str) -> tuple[Judgment, ...]:
    if protocol == "scored":
        if random.random() < 0.07:
            return (Judgment(None, failure="no verdict"),)
        pair = sorted(random.choices(_SCORES, k=2), reverse=True)
        if better == "b" if random.random() < skill else random.random() < 0.5:
            pair.reverse()
        return (scored((pair[0], pair[1]), (round(pair[0] / 2), round(pair[1] / 2))),)
    return tuple(_compare(random, skill, better) for _ in range(2))


def _compare(random: Random, skill: float, better: str) -> Judgment:
    if random.random() < 0.07:
        return verdict(None)
    p = random.choice(_TRIPLES)
    if random.random() < skill:
        p = (0.7, 0.2, 0.1) if better == "a" else (0.2, 0.7, 0.1) if better == "b" else (0, 0, 1)
    return verdict(_largest(*p), p)


def _largest(a: float, b: float, tie: float) -> Outcome:
    return "a" if a > max(b, tie) + 1e-6 else "b" if b > max(a, tie) + 1e-6 else "tie"


def decide(one: Row, rule: str | None, margin: float = 0.0) -> Outcome | None:
    """The outcome of a row over its orders; a lead up to the margin is a tie."""
    lead = measure_lead(one)
    if lead is None:
        return None
    if margin and abs(lead) <= margin:
        return "tie"
    if rule == "rating":
        a, b = one.judgments[0].ratings or (0, 0)
        return "tie" if a == b else "a" if a > b else "b"
    if rule == "score":
        return "tie" if abs(lead) <= 1e-4 else "a" if lead > 0 else "b"
    triples = [judgment.probabilities or (0, 0, 0) for judgment in one.judgments]
    return _largest(*(sum(triple[at] for triple in triples) / len(triples) for at in range(3)))


def measure_lead(one: Row) -> float | None:
    """The mean lead of a over b, in points or probability; None without valid verdicts in all orders."""
    if one.excluded or any(judgment.failure for judgment in one.judgments):
        return None
    pairs = [judgment.scores or (judgment.probabilities or (0, 0))[:2] for judgment in one.judgments]
    return sum(a - b for a, b in pairs) / len(pairs)


def pick(rows: list[Row], protocol: str, design: str, attack: str, target: str | None = None) -> dict[str, Row]:
    """Rows of one condition by case; baselines have no target."""
    return {
        one.case: one
        for one in rows
        if (one.protocol, one.design, one.attack, one.target) == (protocol, design, attack, target)
    }
