"""Published figures on consistency: shares on UltraFeedback (Distracted evaluation, sections A.4 and A.5)."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Distracted evaluation, {}, on UltraFeedback"

CRITERIA = ("overall", "instruction following")


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A published share, 0 to 1; ``place`` is that of the third response, None without one."""

    measure: str
    judge: str
    place: str | None
    criterion: str
    value: float
    source: str


def _criterion_figures(
    measure: str, section: str, place: str | None, judge: str, *values: float
) -> list[PublishedFigure]:
    source = SOURCE.format(section)
    return [PublishedFigure(measure, judge, place, *one, source) for one in zip(CRITERIA, values, strict=True)]


PUBLISHED = (
    *_criterion_figures("choice_set_sensitivity", "A.5", "first", "Llama-3-70B", 0.135, 0.11),
    *_criterion_figures("choice_set_sensitivity", "A.5", "first", "Llama-3-8B", 0.17, 0.146),
    *_criterion_figures("choice_set_sensitivity", "A.5", "last", "Llama-3-70B", 0.071, 0.06),
    *_criterion_figures("choice_set_sensitivity", "A.5", "last", "Llama-3-8B", 0.105, 0.095),
    *_criterion_figures("intransitivity", "A.4", None, "Llama-3-70B", 0.076, 0.06),
    *_criterion_figures("intransitivity", "A.4", None, "Llama-3-8B", 0.108, 0.085),
)
