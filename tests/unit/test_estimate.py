"""Test the plan before a run: no run makes more requests than it says, and what it says of tokens and prices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import finish, set_up, write_rows
from command_result import Run
from loops import each

from distract.core import registry
from distract.core.records import Reply
from distract.core.usage import Price, Tally, estimate_tokens
from distract.models.opener import open_models
from distract.models.options import Options
from distract.models.scripted import PLANTED, ScriptedBackend, make_planted
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.attack import session
from distract.studies.estimate import estimate, scale_up

UNTIED = ("fair", "coin", "blind", "longer")
"""Judges that tie no two authors of the data."""
HEDGED, PLAIN = "It may be seven, I think. ", "It is seven."


def write_case(folder: Path, texts: Sequence[str]) -> str:
    responses = [{"author": f"m{at}", "text": text} for at, text in enumerate(texts)]
    return write_rows(folder / "d.jsonl", [{"id": "c", "prompt": "What is 3 + 4?", "responses": responses}])


def count_requests(folder: Path, protocol: str, data: str, **options: Any) -> tuple[int, dict[str, int]]:
    """The requests planned, and those that each planted judge made."""
    selected = session.select(data=data, attacks=("assertiveness",), control=True, **options)
    more: dict[str, Any] = {"helpers": selected.models}
    if registry.protocols()[protocol].reference:
        more["reference"] = "helper", ScriptedBackend(lambda _: "Seven.", name="helper")
    planned, made = 0, dict[str, int]()
    for judge in PLANTED:
        job = session.prepare(selected, set_up(judge, make_planted(judge), folder / judge, (protocol,), **more))
        planned, tally = planned or sum(estimate(job).requests.values()), Tally()
        finish(job, folder / f"{judge}.sqlite", tally)
        made[judge] = tally.made
    return planned, made


@pytest.mark.parametrize("name", registry.protocols())
def test_no_planted_judge_asks_for_more_than_planned(name: str, tmp_path: Path) -> None:
    protocol = registry.protocols()[name]
    data = write_case(tmp_path, [HEDGED * (at + 1) for at in range(max(2, protocol.shows or 2))])
    planned, made = count_requests(tmp_path, name, data, measures=("net_flip_rate",))
    assert max(made.values()) <= planned, made
    # Where a list has a better third response, or ratings are equal, these judges tie too.
    if not protocol.calls.conflict and len(protocol.rules) < 2 and protocol.orders == "swap":
        assert {judge: made[judge] for judge in UNTIED} == dict.fromkeys(UNTIED, planned)


@pytest.mark.parametrize("name", ["absolute", "pairwise", "prepair", "swap-synthesize"])
def test_plan_counts_the_loser_whose_rewrites_cost_more(name: str, tmp_path: Path) -> None:
    planned, made = count_requests(tmp_path, name, write_case(tmp_path, [PLAIN, HEDGED, PLAIN * 2]))
    assert max(made.values()) <= planned, made


@each("retries, best_of", (0, 1), (1, 1), (1, 2))
def test_plan_counts_retries_and_verifier(tmp_path: Path, retries: int, best_of: int) -> None:
    # Every rewrite is verified, and rejected in each attempt.
    models: Any = {
        "generator": ScriptedBackend(lambda request: f"It is surely seven, no. {request.sample}.", name="g"),
        "verifier": ScriptedBackend(lambda _: Reply(probabilities=(0.1, 0.9), mass=1.0), name="v"),
    }
    asking = GeneratorOptions(retries=retries, best_of=best_of)
    options = {"generator": "g", "verifier": "v", "asking": asking, "models": models}
    selected = session.select(data=write_case(tmp_path, [HEDGED, HEDGED * 2]), attacks=("assertiveness",), **options)
    setup = set_up("fair", make_planted("fair"), tmp_path / "r", ("pairwise",), helpers=selected.models)
    job, tally = session.prepare(selected, setup), Tally()
    requests = estimate(job).requests
    finish(job, tmp_path / "store", tally)
    made = {role: number for (role, _), number in tally.asked.items() if role != "judge"}
    assert made == {role: requests[role] for role in ("generator", "verifier")}
    assert requests["generator"] == 2 * (1 + retries) * best_of  # both responses


@each(
    "counts, scale, expected",
    ([4, 4, 4], 1, 12),
    ([4, 4, 4], 10, 120),
    ([2, 4], 1, 6),
    ([2, 4], 2, 21),  # 12, and three standard errors of two cases estimated from two
    ([], 3, 0),
)
def test_sample_is_scaled_up_with_its_errors(counts: list[int], scale: float, expected: int) -> None:
    assert scale_up(counts, scale) == expected


@each(
    "text, tokens",  # counted by the embedded model's tokenizer, or for the last two between it and larger ones
    ("The quick brown fox jumps over the lazy dog, and nobody minds.", 15),
    ("def add(first, second):\n    return first + second\n", 13),
    ("Решетка - это что-то вроде сетки", 20),
    ("请用一句话回答这个问题", 16),
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == pytest.approx(tokens, rel=0.3)


@each("name", "gpt-4o", "openai:gpt-4o", "openai:GPT-4o", "https://api.openai.com/v1#gpt-4o", "mine.toml")
def test_every_form_of_a_name_has_its_price(name: str, tmp_path: Path) -> None:
    pytest.importorskip("openai")
    (tmp_path / "mine.toml").write_text('model = "openai:gpt-4o"\nprompt = "{question} {response}\\nScore: {1-5}"\n')
    opened = open_models({"judge": name.replace("mine", str(tmp_path / "mine"))}, Options(dry_run=True))
    assert (opened.prices, opened.notes) == ({"judge": Price(2.5, 10.0)}, ())


def test_unknown_price_is_said(run: Run) -> None:
    pytest.importorskip("openai")
    plan = run("attack", "--judge", "openai:new", "--dry-run")
    assert (plan.code, "price unknown: openai:new; give --price-in and --price-out\n" in plan.out) == (0, True)
    priced = run("attack", "--judge", "openai:new", "--dry-run", "--price-in", 1)
    assert ("price unknown" in priced.out, "at most about $" in priced.out) == (False, True)
    near = run("attack", "--judge", "http://127.0.0.1:9/v1#new", "--dry-run")
    assert "price unknown" not in near.out
