"""Small builders of records for tests: each takes only what a test is about."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import DistractError
from distract.core.job import FinishedRun, Job, open_stores, run_job
from distract.core.plan import Plan, T
from distract.core.records import (
    Case,
    Judgment,
    Message,
    Outcome,
    Reply,
    Request,
    Response,
    Rewrite,
    Role,
    Row,
    Side,
    Slots,
)
from distract.core.study import R
from distract.core.usage import Tally
from distract.models.options import describe
from distract.rewriting.generator_options import GeneratorOptions
from distract.stats.figure import Figure
from distract.studies.attack import session
from distract.studies.attack.measures import figures
from distract.studies.attack.options import AttackOptions
from distract.studies.attack.session import AttackSelection
from distract.studies.explain.edits import MinimalFlip, find_edits
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.setup import Setup

near: Any = pytest.approx
"""`pytest.approx` of any type: mypy lets it be part of a compared tuple."""


def case(
    name: str = "c1",
    *,
    prompt: str = "Name a colour.",
    responses: Sequence[Response] = (Response("x", ("Red.",)), Response("y", ("I think it might be blue.",))),
    preferred: str | None = None,
) -> Case:
    return Case(name, (prompt,), tuple(responses), preferred)


def request(content: str = "hello", *, sample: int = 0, slots: Slots | None = None, to: Role = "judge") -> Request:
    messages = (Message("user", content),)
    return Request(messages, choices=("A", "B", "C"), prefill="[[", sample=sample, slots=slots, to=to)


def verdict(preferred: Outcome | None, probabilities: tuple[float, float, float] | None = None) -> Judgment:
    if preferred is None:
        return Judgment(None, failure="no verdict")
    certain = {"a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0), "tie": (0.0, 0.0, 1.0)}[preferred]
    return Judgment(preferred, probabilities=probabilities or certain, mass=0.9)


def scored(scores: tuple[float, float], ratings: tuple[int, int]) -> Judgment:
    preferred: Outcome = "tie" if scores[0] == scores[1] else "a" if scores[0] > scores[1] else "b"
    return Judgment(preferred, scores=scores, ratings=ratings, mass=0.8)


def row(
    name: str,
    judgments: Sequence[Judgment],
    *,
    design: str = "flip",
    attack: str = "none",
    target: str | None = None,
    protocol: str = "pairwise",
    cluster: str | None = None,
    excluded: str | None = None,
    severity: int | None = None,
    label: Outcome | None = None,
) -> Row:
    def side(letter: str, author: str) -> Side:
        attacked = target == letter and attack != "none"
        return Side(author, attack if attacked else None, severity if letter == "b" else None)

    sides = (side("a", "x"), side("b", "y" if design == "flip" else "x"))
    return Row(
        case=name,
        cluster=cluster or name,
        design=design,
        protocol=protocol,
        judge="j",
        attack=attack,
        a=sides[0],
        b=sides[1],
        target=target,  # type: ignore[arg-type]
        judgments=tuple(judgments),
        excluded=excluded,
        label=label,
        prompt_group=cluster or name,
    )


def write_rows(path: str | Path, rows: Iterable[object]) -> str:
    """Write a line of JSON for each row."""
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_several(path: str = "d.jsonl", prompts: int = 4) -> str:
    """Write cases with four responses each, by m0 to m3, which hedge and are longer and longer."""
    lines = [
        {
            "id": f"c{number}",
            "prompt": f"What is {number}?",
            "responses": [{"author": f"m{at}", "text": f"It may be {number}. " * (at + 1)} for at in range(4)],
        }
        for number in range(prompts)
    ]
    return write_rows(path, lines)


def run_parameters(name: str, protocols: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The parameters of a run on three cases of a data set."""
    return {
        **attack_parameters(dict(protocols), ["f"], ties=["absolute"], controls=[]),
        **{"judge": "j", "data": {"name": name, "cases": 3}, "limit": 3, "seed": 0, "generator": "rules"},
        **{"asking": None, "verifier": None, "self_judging": [], "degradations": [], "left_out": {}},
    }


def attack_parameters(rules: Mapping[str, Sequence[str]], attacks: Sequence[str], **more: Any) -> dict[str, Any]:
    """The parameters that an audit's figures depend on; its attacks keep the content."""
    effects = dict.fromkeys(attacks, "same")
    usual = {"attacks": attacks, "effects": effects, "controls": (), "ties": None, "net": True}
    return {"protocols": rules, **usual, **more}


def measure_rows(rows: Sequence[Row], rewrites: Sequence[Rewrite], *run: Any, **more: Any) -> list[Figure]:
    """The figures of an audit with these rows and parameters."""
    parameters = attack_parameters(*run, **more)
    return figures(CompactRows.of_run(parameters, rows), rewrites, parameters)


def small(original: str, rewrite: str, *, minimal: bool = True, invalid: int = 0) -> MinimalFlip:
    """A flip that needs all of its edits."""
    edits = find_edits([original], [rewrite])
    return MinimalFlip(
        case=Case("c", ("p",), ()),
        protocol="pairwise",
        rule=None,
        attack="f",
        rewritten="y",
        severity=None,
        other="x",
        edits=edits,
        of=len(edits),
        original=(original,),
        turns=(rewrite,),
        before=(0.0, 1.0),
        after=(1.0, 0.0),
        comparisons=3,
        requests=2,
        invalid=invalid,
        minimal=minimal,
    )


def drive(plan: Plan[T], answer: Callable[[Request], Reply]) -> tuple[T, list[list[Request]]]:
    """Run a plan with a function as the backend; return its result and the rounds of requests."""
    rounds: list[list[Request]] = []
    try:
        requests = next(plan)
        while True:
            rounds.append(list(requests))
            requests = plan.send([answer(r) for r in requests])
    except StopIteration as done:
        return done.value, rounds


def set_up(judge: str, backend: Backend, out: Path, protocols: Sequence[str] = (), **more: Any) -> Setup:
    """A ``Setup`` with the default protocols if none is named; ``more`` sets further attributes."""
    return Setup(judge, backend, registry.choose_protocols(protocols), out=out, **more)


def select(
    models: Mapping[Role, Backend] = MappingProxyType({}),
    asking: GeneratorOptions | None = None,
    is_matched: bool = True,
    **options: Any,
) -> AttackSelection:
    """What ``distract attack`` selects, of all cases by default; ``asking`` holds further options of the generator."""
    how = {name: getattr(asking, name) for name in describe(GeneratorOptions)} if asking else {}
    chosen = AttackOptions(**{"limit": None, **how, **options})
    return session.select(chosen, models, measures=chosen.measures, is_matched=is_matched)


def finish(job: Job[R], store: Path, tally: Tally | None = None) -> FinishedRun[R]:
    """Execute a job with the replies of a store."""
    with open_stores(job.models, store) as models:
        return run_job(job, models, tally or Tally())


def error_line(kind: type[DistractError], call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The message of the error that a call must raise, which is one line."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert (caught.value.exit_code, len(str(caught.value).splitlines())) == (kind.exit_code, 1)
    return str(caught.value)


def talk(*texts: str, keys: tuple[str, str] = ("role", "content")) -> list[dict[str, str]]:
    """The messages of a conversation, the user's first."""
    names = ("user", "assistant") if keys[0] == "role" else ("human", "gpt")
    return [{keys[0]: names[place % 2], keys[1]: text} for place, text in enumerate(texts)]


def damage_file(path: Path, damage: str) -> None:
    """Empty a file, cut it in half, drop its first line, append to it, or remove it."""
    text = path.read_text(encoding="utf-8")
    if damage == "gone":
        path.unlink()
        return
    damaged = {
        "emptied": "",
        "cut": text[: len(text) // 2],
        "line dropped": text.partition("\n")[2],
        "longer": f"{text}{{}}\n",
    }
    path.write_text(damaged[damage], encoding="utf-8")
