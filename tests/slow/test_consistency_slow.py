"""Slow tests of ``distract consistency``."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import case, finish
from command_result import print_parts
from test_consistency import RULES, SWAYED, fair, find, judge_cases, make_case, parameters_of, ready

from distract.core.records import Reply, Request, Response
from distract.core.store import Store
from distract.core.usage import Tally
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend
from distract.models.transformers.backend import Transformers
from distract.studies.consistency import session
from distract.studies.consistency.study import figures, measure_rows, report_parts
from distract.studies.estimate import estimate


@pytest.mark.parametrize("name", ["pairwise", "rank", "absolute", "triadic", "cot-consistency", "prepair"])
@pytest.mark.parametrize("manner", [Manner(), Manner("given", samples=3)])
def test_plan_counts_are_exact(name: str, manner: Manner, tmp_path: Path) -> None:
    """These protocols send a fixed number of requests; samples differ, and so do the requests that quote them."""

    def wordy(request: Request) -> Reply:
        reply = fair(request)
        return reply if request.choices else replace(reply, text=f"{request.key}\n{reply.text}")

    job = ready(tmp_path, ScriptedBackend(wordy), [make_case(), make_case("c2", "abc")], names=[name], manner=manner)
    expected, tally = estimate(job), Tally()
    loaded = finish(job, tmp_path / "s", tally).run
    assert sum(expected.requests.values()) == tally.made
    assert expected.comparisons == len({session.comparison_key(row) for row in loaded.rows if row.judgments})


def test_report_fits_eighty_columns_and_keeps_names_verbatim() -> None:
    cases = [make_case(f"c{i}", prompt=f"Prompt {i}.") for i in range(60)]
    rows = judge_cases(SWAYED, *cases, names=["rank", "pairwise"])
    rows = [
        *rows,
        *(replace(row, protocol="[red]a-protocol-with-a-long-name") for row in rows if row.protocol == "rank"),
    ]
    parameters = parameters_of("pairwise", "rank", "[red]a-protocol-with-a-long-name")
    parameters |= {"self_judging": ["self-judging: \x1b[2Ja, b"]}
    text = print_parts(report_parts(parameters, measure_rows(parameters, rows)))
    assert r"self-judging: \x1b[2Ja, b" in text
    assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "…" not in text
    assert "\x1b" not in text
    assert r"judge [bold red]:m:[/] \x1b[31mred · data d\x07.jsonl, 3 cases of 9, seed 0" in text
    assert "360/720" in text
    words = " ".join(text.split())
    assert "rank: 0 of 240 triples are intransitive, 240 hold a chain at all; 360 of 720 preferences reverse" in words
    assert "published (third shown first), overall / instruction following: Llama-3-70B 13.5/11.0" in words
    assert "choice_set_sensitivity does not apply to pairwise: shows two responses only" in words
    assert "intervals allow for their dependence" in words
    assert "too few" not in words


def test_real_judge_runs_the_consistency_study(smollm2: Transformers, tmp_path: Path) -> None:
    texts = {"w": "Blue.", "x": "The sky is blue on a clear day.", "y": "Green.", "z": "I do not know."}
    one = case(prompt="What colour is the sky?", responses=[Response(a, (text,)) for a, text in texts.items()])
    job = ready(tmp_path, smollm2, [one], manner=Manner(answer_tokens=16), judge="smollm2-135m", sets=2)
    tally = Tally()
    loaded = finish(job, tmp_path / "s", tally).run
    assert sum(estimate(job).requests.values()) == tally.made == sum(tally.asked.values())
    results = figures(loaded.rows, RULES)
    for protocol in RULES:
        figure = find(results, "intransitivity", protocol)
        assert figure.n + figure.invalid == 2
    assert find(results, "intransitivity", "pairwise").invalid == 0
    for place in ("first", "last"):
        figure = find(results, "choice_set_sensitivity", "rank", place)
        assert figure.n + figure.invalid == 2
    assert all(prompt > 50 for row in loaded.rows for prompt, _ in row.tokens)
    with Store(tmp_path / "s", smollm2.identity) as store:
        assert len(store) == tally.made
