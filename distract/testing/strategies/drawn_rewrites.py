"""Drawn rewrites: all or part of the edits that the rules of an attack make to a response.

A rewrite shrinks by losing edits: whole phrases first, then words, until one word is left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.plan import PlanResult, step
from distract.core.records import BASELINE, Case, Lineage, Response
from distract.data.constraints import check
from distract.rewriting.writers import DRAWN, build_response, find_writer, set_task
from distract.studies.explain.edits import Edit, apply_edits, find_edits, group_edits
from distract.testing.strategies import word_lists
from distract.testing.strategies.drawn_cases import Data, check_kinds, choose_cases, pairs
from distract.testing.strategies.requirements import constrained

MAX_SEED = 99  # largest seed for the choices of a rule; hypothesis shrinks towards 0, the default seed of commands
STRENGTHS = (1, 3, 15)  # odds of keeping a phrase; the last one keeps most of a rewrite


def rewrites(
    attack: str | None = None, *, kinds: Collection[str] | None = None, data: Data | None = None
) -> SearchStrategy[Case]:
    """Cases of two responses and a rewrite by rule of each, of drawn strength.

    Keeps at least one, and often most, of the edits between a response and its full rewrite. A response that the rules
    leave unchanged has no rewrite, but at least one response of each case has one. Without ``attack``, draws a
    distractor or control. For an attack with a severity, the case is one of ``constrained`` with a full rewrite of its
    response. ``kinds`` and ``data`` are those of ``cases``; an attack with a severity takes no ``kinds``.
    """
    chosen = None if attack is None else registry.get_attack(attack)
    if chosen and chosen.severity:
        if kinds is not None:
            raise UsageError(f"kinds={list(kinds)!r}: {attack} needs responses with format requirements; drop kinds")
        return _worse_cases(chosen, constrained(least=chosen.severity, data=data))
    if chosen and chosen.name == BASELINE:
        raise UsageError(f"attack {attack!r} changes nothing; use one that does, or leave it out to draw one")
    if chosen and chosen.asks:
        raise UsageError(f"attack {attack!r} needs a model, so no rewrite can be drawn; use one that has a rule")
    known = (one for one in registry.attacks().values() if one.name != BASELINE and not one.asks)
    usable = [chosen] if chosen else [one for one in known if one.effect in ("same", "control")]
    if data is None:
        return _distracting_cases(usable, pairs(kinds=check_kinds(kinds)), loosen=True)
    cases = [strip_rewrites(case) for case in choose_cases(data, 2, kinds)]
    usable = [candidate for candidate in usable if any(_is_changed(candidate, case, 0) for case in cases)]
    if not usable:
        subject = f"attack {attack!r} changes nothing" if attack else "no attack changes anything"
        raise UsageError(f"{subject} in the {len(cases)} pairs of the data")
    return _distracting_cases(usable, st.sampled_from(cases), loosen=False)


def strip_rewrites(case: Case) -> Case:
    """The case without recorded rewrites, which drawn ones replace."""
    return replace(case, responses=case.originals, lineages=())


@st.composite
def _distracting_cases(draw: DrawFn, usable: Sequence[Attack], originals: SearchStrategy[Case], loosen: bool) -> Case:
    attack, seed = draw(st.sampled_from(usable)), draw(st.integers(0, MAX_SEED))
    if loosen:
        originals = originals.map(lambda case: case if _is_changed(attack, case, seed) else _loosen_case(case))
    case = draw(originals.filter(lambda case: _is_changed(attack, case, seed)))
    drafts = []
    for original in case.originals:
        full = _full_rewrite(attack, case, original, seed)
        if edits := _edits(original.turns, full.turns):
            part = build_response(original, attack, apply_edits(original.turns, _draw_edits(draw, edits)))
            # A part of a rewrite may break a format requirement that the full one keeps: half a sentence may be one
            # more item of a list.
            is_met_alike = all(check(item, part.text) == check(item, original.text) for item in case.constraints)
            drafts.append(part if is_met_alike else full)
    lineages = (Lineage(draft, DRAWN, parameters=(("seed", seed),)) for draft in drafts)
    return replace(case, responses=(*case.responses, *drafts), lineages=(*case.lineages, *lineages))


@st.composite
def _worse_cases(draw: DrawFn, attack: Attack, originals: SearchStrategy[Case]) -> Case:
    seed = draw(st.integers(0, MAX_SEED))
    # Some sets of requirements cannot be broken this many at a time.
    case = draw(originals.filter(lambda case: _is_changed(attack, case, seed)))
    (original,) = case.originals
    return replace(case, responses=(*case.responses, _full_rewrite(attack, case, original, seed)))


def _draw_edits(draw: DrawFn, edits: Sequence[Edit]) -> Sequence[Edit]:
    """At least one of the edits: some phrases, nearly all of each."""
    phrases = group_edits(edits)
    signs = draw(_signs(draw(st.sampled_from(STRENGTHS)), tuple(map(len, phrases))))
    selected = [
        edit
        for phrase, (is_used, *flags) in zip(phrases, signs, strict=True)
        for edit, flag in zip(phrase, flags or (True,), strict=True)
        if is_used and flag
    ]
    return selected or edits[:1]


# The number of signs does not depend on their values, so hypothesis can flip one without moving the others. If we drew
# the edits to keep, removing a phrase would also remove the choices for its words. Cached, because hypothesis analyses
# each new strategy.
@lru_cache(maxsize=4096)
def _signs(strength: int, sizes: Sequence[int]) -> SearchStrategy[tuple[tuple[bool, ...], ...]]:
    """For each phrase, whether to keep any of it and, if it has several edits, which ones."""
    phrase_odds, edit_odds = ([False, *[True] * weight] for weight in (strength, STRENGTHS[-1]))
    edits = (size if size > 1 else 0 for size in sizes)
    return st.tuples(
        *(st.tuples(st.sampled_from(phrase_odds), *[st.sampled_from(edit_odds)] * number) for number in edits)
    )


def _loosen_case(case: Case) -> Case:
    """The case with a sentence that every attack can change."""
    *others, last = case.originals
    *turns, text = last.turns
    return replace(case, responses=(*others, replace(last, turns=(*turns, f"{text}\n\n{word_lists.LOOSE}".lstrip()))))


def _is_changed(attack: Attack, case: Case, seed: int) -> bool:
    return any(_full_rewrite(attack, case, one, seed).turns != one.turns for one in case.originals)


@lru_cache(maxsize=4096)
def _full_rewrite(attack: Attack, case: Case, original: Response, seed: int) -> Response:
    rival = next((one for one in case.originals if one != original), None) if "rival" in attack.depends else None
    drafts = step(find_writer("rules").write(attack, set_task(case, original, attack, seed, rival)))
    assert isinstance(drafts, PlanResult), "rules ask no model"
    (draft,) = drafts.value
    return draft.response


_edits = lru_cache(maxsize=4096)(find_edits)
