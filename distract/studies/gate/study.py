"""``distract gate``: whether a judge flips too often, decided as soon as the evidence suffices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from distract.core.study import BufferedSums, Study
from distract.studies.attack import study as attack
from distract.studies.gate.live import replay_gate
from distract.studies.gate.verdict import Verdict

if TYPE_CHECKING:
    from distract.report.blocks import Block


def _report(parameters: Mapping[str, Any], verdict: Verdict) -> Iterable[Block]:
    from distract.studies.gate.view import gate_report

    return gate_report(verdict)


STUDY = Study(
    name="gate",
    designs=attack.STUDY.designs,
    row_fields=attack.STUDY.row_fields,
    schema={
        **{name: attack.STUDY.schema[name] for name in ("data", "limit", "attacks", "degradations", "generator")},
        "gate": dict.fromkeys(("limits", "checks", "prompts", "baseline", "budget"), object),
    },
    measures=lambda parameters: BufferedSums(lambda rows, _, flaw: replay_gate(parameters, rows).verdict(flaw)),
    document=lambda _, verdict: verdict.document(),
    sections=_report,
    page=attack.browse_flips,
)
