"""Protocols on real models: real prompts and real texts, whatever the verdicts.

A small model with random weights, which gives unpredictable texts, runs every protocol; the embedded judge runs one
protocol of each kind, because all of them would take minutes.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from distract.core.loop import execute
from distract.core.plugin import Protocol
from distract.core.registry import attacks, protocols
from distract.core.store import Store
from distract.core.usage import Tally
from distract.data import datasets
from distract.judging.orders import Manner
from distract.models.transformers.backend import Transformers
from distract.rewriting.writers import find_writer
from distract.studies.attack.design import AuditConfig, audit_case
from distract.studies.attack.measures import figures

TOKENS = 24
KINDS = ("absolute", "cot", "metric", "prepair", "wild-bench")
"""A rating, a verdict in words, a choice after questions, one after analyses, a rating with a reference."""


def test_every_protocol_judges_a_real_case_in_one_order(folders: Mapping[str, Path], tmp_path: Path) -> None:
    judge_case(Transformers(str(folders["llama"])), protocols(), tmp_path, TOKENS)


def test_one_protocol_of_each_kind_runs_on_the_embedded_judge(smollm2: Transformers, tmp_path: Path) -> None:
    judge_case(smollm2, {name: protocols()[name] for name in KINDS}, tmp_path, TOKENS // 3)


def judge_case(model: Transformers, every: Mapping[str, Protocol], folder: Path, tokens: int) -> None:
    """Few tokens truncate most verdicts in words; only these count as invalid."""
    case = min(datasets.load("tweakset").cases, key=lambda one: len(one.responses[0].text))
    parameters = AuditConfig(
        "the judge",
        tuple(every.values()),
        (attacks()["none"],),
        find_writer("rules"),
        designs=frozenset({"flip"}),
        manner=Manner("given", answer_tokens=tokens),
        helped=True,
    )
    # The first pair, before any rewrite.
    responses = [r for r in case.originals if r.severity is None][:1] + [r for r in case.originals if r.severity]
    one, tally = replace(case, responses=tuple(responses)), Tally()
    with Store(folder / "s", model.identity) as store:
        opened = model, store
        (done,) = execute([audit_case(one, parameters)], {"judge": opened, "reference": opened}, tally=tally)
    rows = [row for row in done.rows if row.target is None]
    assert sorted(row.protocol for row in rows) == sorted(every)
    for row in rows:
        protocol = every[row.protocol]
        (judgment,) = row.judgments
        if judgment.failure is None:
            # Protocols with conflicting texts may fall back to probabilities.
            assert judgment.read == protocol.reads or protocol.calls.conflict
        else:
            assert judgment.failure in ("truncated", "no verdict", "no majority"), row
        assert all(prompt > 50 and answer <= tokens for prompt, answer in row.tokens)
        assert any(answer for _, answer in row.tokens) or judgment.read == "choices"
    results = figures(done.rows, [], {p.name: p.rules for p in every.values()}, ["none"])
    invalid = {f.protocol: f for f in results if f.measure == "invalid_rate" and f.attack == "none"}
    assert {name: (f.k, f.n) for name, f in invalid.items()} == {
        row.protocol: (int(row.judgments[0].failure is not None), 1) for row in rows
    }
    chosen = [row for row in rows if every[row.protocol].reads == "choices"]
    assert all(row.judgments[0].failure is None and 0 < (row.judgments[0].mass or 0) <= 1 for row in chosen)
    assert tally.asked["judge", "text"] >= len(every) - len(chosen)
    assert tally.asked["reference", "text"] >= 1
