"""Drawn rewrites: what the rules of an attack make of responses, all of it or a part.

A rewrite shrinks by losing edits: first whole phrases, then words, until one word is left of it. It knows no attack by
name and no judge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.plan import Attack, PlanResult, step
from distract.core.records import BASELINE, Case, Edit, Lineage, Response, apply_edits
from distract.data.constraints import check
from distract.rewriting.writers import DRAWN, build_response, find_writer
from distract.studies.attack.minimal import find_edits, group_edits
from distract.testing.strategies import word_lists
from distract.testing.strategies.drawn_cases import Data, choose_cases, pairs
from distract.testing.strategies.requirements import constrained
from distract.testing.strategies.text import check_kinds

SEEDS = 99
"""The largest number that varies what a rule chooses; 0 is what commands use where no seed is named."""


STRENGTHS = (1, 3, 15)
"""How many times likelier a phrase is to be kept than to be left out; with the last one most of a rewrite is kept."""


def rewrites(
    attack: str | None = None, *, kinds: Collection[str] | None = None, data: Data | None = None
) -> SearchStrategy[Case]:
    """Cases of two responses which also hold a rewrite of each, by rule and of a drawn strength.

    Of the edits between a response and the whole rewrite some are kept, often most, and at least one. A response in
    which the rules find nothing to change has no rewrite; in each case at least one response has one. For a
    severity the case is one of ``constrained`` with a worse version of its response, always the whole of it.

    Args:
        attack: its name; None draws one of those that distract or are controls.
        kinds: of the texts, as in ``texts``; neither with ``data`` nor for a severity.
        data: cases to draw from, as in ``pairs``; None writes them.

    Raises:
        UnknownName: no such attack or kind.
        UsageError: the attack changes nothing, or not in these data; or as for ``pairs`` and ``constrained``.
    """
    named = None if attack is None else registry.get_attack(attack)
    if named and named.severity:
        if kinds is not None:
            raise UsageError(
                f"kinds={list(kinds)!r}: {attack} is drawn of responses with format requirements; leave it out"
            )
        return _worse_cases(named, constrained(least=named.severity, data=data))
    if named and named.name == BASELINE:
        raise UsageError(f"attack {attack!r} changes nothing; name one that does, or none to draw one")
    able = [named] if named else [a for a in registry.attacks().values() if not a.severity and a.name != BASELINE]
    if data is None:
        return _distracting_cases(able, pairs(kinds=check_kinds(kinds)), loose=True)
    found = [strip_rewrites(case) for case in choose_cases(data, 2, kinds)]
    able = [one for one in able if any(_is_changed(one, case, 0) for case in found)]
    if not able:
        raise UsageError(
            f"attack {attack or 'of any name'!r}: it changes nothing in the {len(found)} pairs of the data"
        )
    return _distracting_cases(able, st.sampled_from(found), loose=False)


def strip_rewrites(case: Case) -> Case:
    """A case without the rewrites that it records: what is drawn takes their place."""
    return replace(case, responses=case.originals, lineages=())


@st.composite
def _distracting_cases(draw: DrawFn, able: Sequence[Attack], originals: SearchStrategy[Case], loose: bool) -> Case:
    attack, seed = draw(st.sampled_from(able)), draw(st.integers(0, SEEDS))
    if loose:
        originals = originals.map(lambda case: case if _is_changed(attack, case, seed) else _loosen_case(case))
    case = draw(originals.filter(lambda case: _is_changed(attack, case, seed)))
    made = []
    for original in case.originals:
        whole = _full_rewrite(attack, case, original, seed)
        if found := _edits(original.turns, whole.turns):
            part = build_response(original, attack, apply_edits(original.turns, _draw_edits(draw, found)))
            # Half a sentence may be one more line of a list, which is a format requirement that no rule would break.
            kept = all(check(one, part.text) == check(one, original.text) for one in case.constraints)
            made.append(part if kept else whole)
    lineages = (Lineage(one, DRAWN, parameters=(("seed", seed),)) for one in made)
    return replace(case, responses=(*case.responses, *made), lineages=(*case.lineages, *lineages))


@st.composite
def _worse_cases(draw: DrawFn, attack: Attack, originals: SearchStrategy[Case]) -> Case:
    seed = draw(st.integers(0, SEEDS))
    # Of some requirements no edit is known that breaks just so many.
    case = draw(originals.filter(lambda case: _is_changed(attack, case, seed)))
    (original,) = case.originals
    return replace(case, responses=(*case.responses, _full_rewrite(attack, case, original, seed)))


def _draw_edits(draw: DrawFn, found: Sequence[Edit]) -> Sequence[Edit]:
    """Some of these edits, at least one: of some phrases, nearly all of each."""
    grouped = group_edits(found)
    strength = draw(st.sampled_from(STRENGTHS))
    drawn = draw(_signs(strength, tuple(map(len, grouped))))
    kept = [edit for phrase, signs in zip(grouped, drawn, strict=True) for edit in _select_edits(phrase, *signs)]
    return kept or found[:1]


def _select_edits(phrase: Sequence[Edit], whole: bool, *each: bool) -> list[Edit]:
    return [edit for edit, sign in zip(phrase, each or (True,), strict=True) if whole and sign]


# As many signs are drawn whatever they say, so that one of them can turn without moving the others: where it is drawn
# which edits to keep, a phrase goes only together with what was drawn for its words. Made once: hypothesis looks each
# new strategy through.
@lru_cache(maxsize=4096)
def _signs(strength: int, sizes: Sequence[int]) -> SearchStrategy[tuple[tuple[bool, ...], ...]]:
    """For each phrase, whether anything of it is kept, and for each edit of one that has several whether it is."""
    some, most = ([False, *[True] * weight] for weight in (strength, STRENGTHS[-1]))
    several = (size if size > 1 else 0 for size in sizes)
    return st.tuples(*(st.tuples(st.sampled_from(some), *[st.sampled_from(most)] * number) for number in several))


def _loosen_case(case: Case) -> Case:
    """A case that every attack has something to do with, whatever its texts are."""
    *others, last = case.originals
    *turns, text = last.turns
    return replace(case, responses=(*others, replace(last, turns=(*turns, f"{text}\n\n{word_lists.LOOSE}".lstrip()))))


def _is_changed(attack: Attack, case: Case, seed: int) -> bool:
    return any(_full_rewrite(attack, case, one, seed).turns != one.turns for one in case.originals)


@lru_cache(maxsize=4096)
def _full_rewrite(attack: Attack, case: Case, original: Response, seed: int) -> Response:
    """All that the rules make of a response."""
    plan = find_writer("rules").write(case, original, attack, seed, 0, ())
    drafts = step(plan)
    assert isinstance(drafts, PlanResult), "rules ask no model"
    (draft,) = drafts.value
    return draft.response


@lru_cache(maxsize=4096)
def _edits(original: tuple[str, ...], whole: tuple[str, ...]) -> tuple[Edit, ...]:
    return find_edits(original, whole)
