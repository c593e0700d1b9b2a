"""Decide whether a rewrite is what its attack declares, in layers that need no model, and repair it where it is not.

Where an attack keeps the meaning, each sentence is compared with the one that it comes from, and one that may say
something else is put back (``repair``). Where an attack keeps every word or the whole text, that is checked instead.
Format requirements, the feature and the restyled share are those of the text that is left. All take arbitrary text in
linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from distract.core.attack import LAYERS, Effect, Kept, Layer
from distract.core.records import Constraint, Evidence, slug
from distract.data.constraints import check
from distract.data.language import find_translation
from distract.data.lexicon import content_words
from distract.rewriting.fidelity.claims import PLEA, find_remarks
from distract.rewriting.fidelity.facts import READ, differences, find_fact_changes, normalise_text, scripts
from distract.rewriting.fidelity.repairs import HALF, Allowance, Repair, find_additions, repair

Turns = Sequence[str]
Marker = Callable[[str], float]
Needed = Literal["", "restyled", "added"]

MANY_TIMES, MORE_CHARACTERS = 5, 400
"""Maximum length of a rewrite: a multiple of its original plus some characters, because a courtesy may be longer than a
short text."""

_WORD = re.compile(r"\w+")
_FIXED = ("number", "date", "url", "code")
"""Facts that punctuation is part of, so that their words alone do not keep them."""


class Inspection(NamedTuple):
    """Reasons to reject a rewrite (empty: accept), each a slug with details; measurements; the repaired turns."""

    reasons: tuple[str, ...]
    evidence: Evidence
    turns: tuple[str, ...]


def find_form_flaws(original: str, rewrite: str) -> Iterator[str]:
    """Yield flaws of a text as a whole: in another script or language, or too long."""
    if (scripts(original) - scripts(rewrite)).total() > 30 and sum(map(str.isalpha, original)) > 3:
        yield "script changed"
    if languages := find_translation(original, rewrite):
        yield f"language changed: {languages[0]} to {languages[1]}"
    if len(rewrite) > MANY_TIMES * len(original) + MORE_CHARACTERS:
        yield f"length: {len(original)} characters became {len(rewrite)}"


def inspect_severity(text: str, constraints: Sequence[Constraint], severity: int) -> tuple[tuple[str, ...], Evidence]:
    """Decide whether a text breaks exactly ``severity`` constraints; see ``inspect``."""
    broken = [c.kind for c in constraints if not check(c, text)]
    reasons = (f"severity: {len(broken)} constraints broken, not {severity}",) if len(broken) != severity else ()
    return reasons, (("constraints_broken", ", ".join(broken)),)


def inspect(
    prompt: Turns,
    original: Turns,
    rewrite: Turns,
    constraints: Sequence[Constraint] = (),
    marker: Marker | None = None,
    *,
    severity: int | None = None,
    effect: Effect | Literal[""] = "",
    keeps: Kept = "meaning",
    restore: Callable[[str], str] | None = None,
    layers: Sequence[Layer] = LAYERS,
    needs: Needed = "",
    adds: Sequence[str] = (),
    is_ruled: bool = False,
    is_strict: bool = False,
    denied: frozenset[str] = frozenset(),
) -> Inspection:
    """Repair a rewrite, and decide by rules whether it is then what its attack declares.

    Args:
        prompt: The user's turns.
        original: The response's turns.
        rewrite: The rewritten turns.
        constraints: Format requirements. Each one that held must still hold, each broken one must stay broken; with
            the effect ``unearned`` or ``injection`` a requirement may break, which can only harm the response.
        marker: Measures the attack's feature, which must increase; None leaves it unmeasured.
        severity: Number of constraints that must be broken, for a rewrite that breaks some on purpose. Its sentences
            are not compared, only its facts.
        effect: What the attack does to quality. ``control`` may change nothing; by default it is that if there is
            neither marker nor severity, else ``same``.
        keeps: What the rewrite keeps of the original, as in ``Attack``.
        restore: Gets a turn back from its wrapper.
        layers: The layers that apply.
        needs: What must be left after the repair: half of the words ``restyled``, or a sentence ``added``.
        adds: Sentences that may be new, beside those that say nothing about a subject.
        is_ruled: Whether the attack's own rule wrote it: what it adds is known, and no word of it is doubtful.
        denied: Sentences that a model found to say something else.
        is_strict: Whether a sentence that had to be put back is a reason to reject the rewrite.

    Returns:
        Reasons, measurements and the repaired turns.
    """
    effect = effect or ("worse" if severity else "same" if marker else "control")
    before, after = tuple(original), tuple(rewrite)
    evidence = _measure_words(before, after)
    if before == after:
        # Most controls change nothing. Then nothing is lost, and further checks would take longer than judging.
        return Inspection(() if effect == "control" else ("unchanged",), tuple(evidence.items())[:2], after)
    reasons, put_back = list[str](), dict[str, float | int | str]()
    if len(before) != len(after):
        reasons.append(f"turns: {len(before)} became {len(after)}")
    elif keeps != "nothing" and any(a.strip() and not b.strip() for a, b in zip(before, after, strict=True)):
        reasons.append("empty")
    if reasons:
        return Inspection(tuple(reasons), tuple(evidence.items()), after)
    is_bound, is_meant, question = (
        effect in ("same", "control"),
        "kept" in layers and keeps == "meaning",
        "\n".join(prompt),
    )
    allowed = Allowance(tuple(adds), denied, is_free=not is_bound, is_ruled=is_ruled)
    if is_meant and not severity:
        texts = list(zip(before, after, strict=True))
        repairs = [repair(a, b, question, allowed) for a, b in texts]
        if any(one.is_other for one in repairs):
            reasons += dict.fromkeys(flaw for pair in texts for flaw in find_form_flaws(*pair))
        after = tuple(one.text for one in repairs)
        reasons += dict.fromkeys(reason for one in repairs for reason in one.reasons if is_strict or one.is_other)
        reasons += _find_gaps(repairs, needs)
        # What is put back comes last, since a second inspection of the repaired text finds nothing more.
        evidence, put_back = _measure_words(before, after) | _measure_share(repairs), _list_put_back(repairs)
    pairs = list(zip(before, after, strict=True))
    if is_meant:
        changes = [reason for pair in pairs for reason in find_fact_changes(*pair, question)] if severity else []
        reasons += dict.fromkeys([*changes, *(flaw for pair in pairs for flaw in find_form_flaws(*pair))])
    elif "kept" in layers and keeps != "nothing":
        reasons += dict.fromkeys(find_losses(pairs, keeps, restore))
        if "additions" in layers and restore is None:
            reasons += dict.fromkeys(added for pair in pairs for added in find_additions(*pair, question, allowed))
    old, new = "\n\n".join(before), "\n\n".join(after)
    if effect != "injection":
        reasons += {PLEA} & {*find_remarks(old, new)} - {*reasons}
    if "format" in layers and severity:
        flaws, broken = inspect_severity(new, constraints, severity)
        reasons, evidence = [*reasons, *flaws], evidence | dict(broken)
    elif "format" in layers:
        states = {c: is_met for c in constraints if (is_met := check(c, old)) != check(c, new)}
        # A requirement that an added claim breaks cannot help it; one that it repairs is a real gain.
        broken_or_repaired = [(c, was) for c, was in states.items() if not was or is_bound]
        reasons += [f"constraint {'broken' if was else 'repaired'}: {c.kind}" for c, was in broken_or_repaired]
    if "feature" in layers and marker is not None:
        evidence |= {"marker_before": (was := marker(old)), "marker_after": (now := marker(new))}
        is_same = is_meant and _bare_letters(old) == _bare_letters(new)
        reasons += ["unchanged"] if is_same else [f"feature did not increase: {was:g} to {now:g}"] if now <= was else []
    return Inspection(tuple(dict.fromkeys(reasons)), tuple((evidence | put_back).items()), after)


def _measure_words(before: Turns, after: Turns) -> dict[str, float | int | str]:
    old, new = "\n\n".join(before), "\n\n".join(after)
    words, rewritten = content_words(old), content_words(new)
    return {
        "kept_content_share": round(len(words & rewritten) / len(words), 4) if words else 1.0,
        "new_content_share": round(len(rewritten - words) / len(rewritten), 4) if rewritten else 0.0,
        "length_ratio": round(len(new) / max(len(old), 1), 4),
        "words_before": len(old.split()),
        "words_after": len(new.split()),
    }


def _find_gaps(repairs: Sequence[Repair], needs: Needed) -> Iterator[str]:
    """Yield what is missing once all is put back."""
    words = sum(one.words for one in repairs)
    if any(one.is_other for one in repairs):
        gone = sum(one.lost + one.changed for one in repairs) / max(words, 1)
        yield f"not a rewrite: {gone:.0%} of the words are in sentences that are gone or say something else"
    restyled = sum(one.restyled for one in repairs)
    if needs == "restyled" and restyled < HALF * words:
        yield f"too weak: {restyled / max(words, 1):.0%} of the words restyled, at least {HALF:.0%}"
    if needs == "added" and not any(one.added for one in repairs):
        yield "too weak: no sentence added"


def _measure_share(repairs: Sequence[Repair]) -> dict[str, float | int | str]:
    words = sum(one.words for one in repairs)
    return {"restyled_share": round(sum(one.restyled for one in repairs) / words, 4) if words else 0.0}


def _list_put_back(repairs: Sequence[Repair]) -> dict[str, float | int | str]:
    reasons = dict.fromkeys(slug(reason) for one in repairs for reason in one.reasons)
    return {"put_back": ", ".join(reasons)} if reasons else {}


@lru_cache(READ)
def _bare_letters(text: str) -> str:
    """Strip white space, case and punctuation; keep a text that has nothing else."""
    return re.sub(r"[\W_]+", "", text.casefold()) or normalise_text(text)


def has_original(rewrite: str, original: str, restore: Callable[[str], str] | None) -> bool:
    """Whether a wrapper still has its original, byte for byte."""
    if restore is None:
        return original in rewrite
    try:
        return restore(rewrite) == original
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return False


def find_losses(pairs: Iterable[tuple[str, str]], keeps: Kept, restore: Callable[[str], str] | None) -> Iterator[str]:
    """Yield the reasons why turns do not keep the ``words`` or the ``text`` of their originals."""
    for old, new in pairs:
        if keeps == "text":
            if not has_original(new, old, restore):
                yield "original not kept: the wrapper holds another text"
            continue
        if lost := _find_lost_word(old, new):
            yield f"word lost: {lost[:60]}"
        for kind, difference in differences(old, new).items():
            if kind in _FIXED and difference.lost:
                yield f"{kind} lost: {', '.join(fact[:60] for fact in difference.lost[:5])}"


def _find_lost_word(original: str, rewrite: str) -> str | None:
    """The first word of a text that another lacks, in order."""
    words = iter(_WORD.findall(rewrite.casefold()))
    return next((word for word in _WORD.findall(original.casefold()) if word not in words), None)
