"""Test the plan before a run: no run makes more requests than it says, and what it says of tokens and prices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import finish, select, set_up, write_rows
from command_result import Run
from loops import each

from distract.core import registry
from distract.core.records import Reply, Request
from distract.core.usage import Tally, estimate_tokens
from distract.models.catalogue import catalogue
from distract.models.opener import resolve
from distract.models.options import Options
from distract.models.scripted import PLANTED, ScriptedBackend, make_planted
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.attack import session
from distract.studies.estimate import estimate, scale_up

HEDGED, PLAIN = "It may be seven, I think. ", "It is seven."  # only the first can be rewritten


def count(folder: Path, judge: str, name: str, texts: Sequence[str], **options: Any) -> tuple[dict[str, int], Tally]:
    """The requests that a run plans, if its judge is fair, and those that it makes."""
    responses = [{"author": f"m{at}", "text": text} for at, text in enumerate(texts)]
    data = write_rows(folder / "d.jsonl", [{"id": "c", "prompt": "What is 3 + 4?", "responses": responses}])
    selected = select(data=data, attacks=("assertiveness",), **options)
    helper = ("helper", make_planted("fair")) if registry.protocols()[name].reference else None
    more: Any = {"helpers": selected.models, "reference": helper}
    job, tally = session.prepare(selected, set_up(judge, make_planted(judge), folder / judge, (name,), **more)), Tally()
    finish(job, folder / f"{judge}.sqlite", tally)
    return dict(estimate(job).requests if judge == "fair" else {}), tally


@pytest.mark.parametrize("name", registry.protocols())
def test_no_planted_judge_asks_for_more_than_planned(name: str, tmp_path: Path) -> None:
    protocol = registry.protocols()[name]
    texts = [HEDGED * (at + 1) for at in range(max(2, protocol.shows or 2))]
    runs = {one: count(tmp_path, one, name, texts, control=True, measures=("net_flip_rate",)) for one in PLANTED}
    planned = sum(runs["fair"][0].values())
    assert max(tally.made for _, tally in runs.values()) <= planned
    # These judges tie no two authors, except where a list has a better third response, or ratings are equal.
    if not protocol.calls.conflict and len(protocol.rules) < 2 and protocol.orders == "swap":
        assert {runs[judge][1].made for judge in ("fair", "coin", "blind", "longer")} == {planned}


@each("name", "absolute", "pairwise", "prepair", "swap-synthesize")
def test_plan_counts_the_response_whose_rewrites_cost_more(name: str, tmp_path: Path) -> None:
    runs = [count(tmp_path, judge, name, [PLAIN, HEDGED, PLAIN * 2], control=True) for judge in PLANTED]
    assert max(tally.made for _, tally in runs) <= sum(runs[0][0].values())


@each("retries, best_of", (0, 1), (1, 1), (1, 2))
def test_plan_counts_retries_and_verifier(tmp_path: Path, retries: int, best_of: int) -> None:
    hedged = "Perhaps the old bridge may be seven metres long. "

    def restyle(request: Request) -> str:
        listed = request.messages[-1].content.partition(":\n")[2]
        sure = "Surely" + " surely" * request.sample
        return listed.replace("Perhaps", sure).replace("may be", "is")

    rejecting = ScriptedBackend(lambda _: Reply(probabilities=(0.1, 0.9), mass=1.0), name="v")
    more: Any = {"models": {"generator": ScriptedBackend(restyle, name="g"), "verifier": rejecting}, "generator": "g"}
    more["asking"], more["verifier"] = GeneratorOptions(retries=retries, best_of=best_of), "v"
    planned, tally = count(tmp_path, "fair", "pairwise", [hedged, hedged * 2], **more)
    made = {role: number for (role, _), number in tally.asked.items() if role != "judge"}
    attempts = (1 + retries) * best_of
    # One of two sentences loses its modality, and is asked for again alone; the verifier reads both ways.
    assert planned["generator"] == made["generator"] == (2 + 1) * attempts
    assert 0 < made["verifier"] <= planned["verifier"]


def test_samples_are_scaled_up_with_their_errors_and_tokens_estimated_by_script() -> None:
    assert (scale_up([4, 4], 10), scale_up([2, 4], 1), scale_up([2, 4], 2), scale_up([], 3)) == (80, 6, 21, 0)
    texts = (
        "The quick brown fox jumps over the lazy dog.",
        "def f(a, b):\n    return a + b\n",
        "请用一句话回答这个问题",
    )
    assert [round(estimate_tokens(text)) for text in texts] == [
        10,
        12,
        17,
    ]  # the embedded model's tokenizer: 10, 13, 17


@each("name", "gpt-4o", "openai:GPT-4o", "https://api.openai.com/v1#gpt-4o", "inspect:openai/gpt-4o", "mine.toml")
def test_every_form_of_a_name_has_its_price(name: str, run: Run) -> None:
    Path("mine.toml").write_text('model = "openai:gpt-4o"\nprompt = "{question} {response}\\nScore: {1-5}"\n')
    assert resolve(name, Options(), catalogue()).entry == catalogue()["gpt-4o"]


@each("name, more", ("openai:new", ()), ("openai:new", ("--price-in", 1)), ("http://127.0.0.1:9/v1#new", ()))
def test_plan_needs_no_key_and_says_that_a_price_is_unknown(run: Run, name: str, more: Sequence[Any]) -> None:
    pytest.importorskip("openai")
    plan = run("attack", "--judge", name, "--dry-run", *more).out
    is_unknown = f"price unknown: {name}; give --price-in and --price-out\n" in plan
    assert (is_unknown, "at most about $" in plan) == (name == "openai:new" and not more, bool(more))
