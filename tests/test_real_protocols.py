"""Every protocol on the real embedded model: real prompts, real text, whatever verdicts come of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distract import datasets
from distract.audit import Audit, audit
from distract.backends.transformers import Transformers
from distract.manner import Manner
from distract.metrics import figures
from distract.registry import attacks, protocols
from distract.run import execute
from distract.store import Store
from distract.tally import Tally
from distract.writers import writer

TOKENS = 24


def test_every_protocol_judges_a_real_case_in_one_order(smollm2: Transformers, tmp_path: Path) -> None:
    """With so few tokens most verdicts in words are cut off: they are counted as invalid, and nothing else is."""
    case = min(datasets.load("tweakset").cases, key=lambda one: len(one.responses[0].text))
    every = tuple(protocols().values())
    parameters = Audit(
        "smollm2-135m",
        every,
        (attacks()["none"],),
        writer("rules"),
        designs=frozenset({"flip"}),
        manner=Manner("given", answer_tokens=TOKENS),
        helped=True,
    )
    # The first pair, before any rewrite.
    responses = [r for r in case.originals if r.severity is None][:1] + [r for r in case.originals if r.severity]
    one, tally = replace(case, responses=tuple(responses)), Tally()
    with Store(tmp_path / "s", smollm2.identity) as store:
        model = smollm2, store
        (done,) = execute([audit(one, parameters)], {"judge": model, "reference": model}, tally=tally)
    rows = [row for row in done.rows if row.target is None]
    assert sorted(row.protocol for row in rows) == sorted(protocols())
    for row in rows:
        protocol = protocols()[row.protocol]
        (judgment,) = row.judgments
        if judgment.failure is None:
            # What two texts in conflict cannot decide is read from probabilities.
            assert judgment.read == protocol.reads or protocol.calls.conflict
        else:
            assert judgment.failure in ("truncated", "no verdict", "no majority"), row
        assert all(prompt > 50 and answer <= TOKENS for prompt, answer in row.tokens)
        assert any(answer for _, answer in row.tokens) or judgment.read == "choices"
    found = figures(done.rows, [], {p.name: p.rules for p in every}, ["none"])
    invalid = {f.protocol: f for f in found if f.measure == "invalid_rate" and f.attack == "none"}
    assert {name: (f.k, f.n) for name, f in invalid.items()} == {
        row.protocol: (int(row.judgments[0].failure is not None), 1) for row in rows
    }
    chosen = [row for row in rows if protocols()[row.protocol].reads == "choices"]
    assert all(row.judgments[0].failure is None and 0 < (row.judgments[0].mass or 0) <= 1 for row in chosen)
    assert tally.asked["judge", "text"] > 20
    assert tally.asked["reference", "text"] >= 1
