"""Decide whether a rewrite is what its attack declares, in layers that need no model.

``inspect`` lists the faults of a rewrite. Where an attack keeps the meaning, rules that every faithful rewrite keeps
come first. They are necessary but not sufficient: a rewrite may keep every number and still say something else. So
graded evidence with limits follows. Where an attack keeps every word or the whole text, that is checked instead. All
take arbitrary text in linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from distract.core.attack import LAYERS, Effect, Kept, Layer
from distract.core.records import Constraint, Evidence
from distract.data.constraints import check
from distract.data.lexicon import content_words
from distract.rewriting.fidelity import meaning_signs, misbehaviour
from distract.rewriting.fidelity.additions import Addition, classify_addition, find_additions, unescape
from distract.rewriting.fidelity.facts import READ, differences, normalise_text, scripts
from distract.rewriting.fidelity.remainder import find_losses

Turns = Sequence[str]
Words = frozenset[str]
Marker = Callable[[str], float]

MIN_WORDS = 20
"""Minimum number of content words for a meaningful share of new ones: a courtesy may be most of a short text."""

MIN_KEPT = 0.1
"""Minimum share of the original's content words in a rewrite; the heaviest faithful paraphrases keep a fifth."""

FEW_KEPT = 0.45
"""Share of the original's words (without the prompt's) below which another sign makes a text a different answer."""

FEWEST_KEPT, MOST_NEW = 0.3, 0.8
"""Below the first share, no second sign is needed if the attack allows at most the second share of new words."""

IN_ORDER = 0.65
"""Minimum share of common words in the original's order; a paraphrase moves clauses but follows the text."""

MANY_FACTS = 3
"""Number of lost or invented facts that count as a second sign; one changed fact counts twice."""

FACTS = ("number", "unit", "date", "url", "code", "quote", "name")
_WORD = re.compile(r"[^\W\d_]+")


def _compare(original: str, rewrite: str, prompt: str) -> Iterator[str]:  # the reasons that one turn gives
    kinds = differences(original, rewrite, prompt)
    for verb in ("lost", "invented"):
        for kind, difference in kinds.items():
            if facts := getattr(difference, verb):
                yield f"{kind} {verb}: {', '.join(fact[:60] for fact in facts[:5])}"
    if (scripts(original) - scripts(rewrite)).total() > 30 and sum(map(str.isalpha, original)) > 3:
        yield "script changed"
    yield from misbehaviour.find_remarks(original, rewrite)


@lru_cache(READ)
def _bare_letters(text: str) -> str:
    """Strip white space, case and punctuation; keep a text that has nothing else."""
    return re.sub(r"[\W_]+", "", text.casefold()) or normalise_text(text)


def _is_another(words: Words, rewritten: Words, prompted: Words, most_new: float, facts: int) -> bool | None:
    """Whether a text that kept few words of another is a second answer; None if the order of words must decide."""
    own = words - prompted
    share = len(own & rewritten) / len(own) if own else 1.0
    if share >= FEW_KEPT or (len(own) < 5 and facts < MANY_FACTS):
        return False
    has_sign = (
        facts >= MANY_FACTS or len(prompted & rewritten - words) > 1 or (share < FEWEST_KEPT and most_new <= MOST_NEW)
    )
    return True if has_sign else None


def _is_reordered(original: str, rewrite: str) -> bool:
    """Whether the common words of two texts have a different order."""
    old, new = (_WORD.findall(text.casefold()) for text in (original, rewrite))
    counts = Counter(old) | Counter(new)
    places = {word: place for place, word in enumerate(new) if counts[word] == 1 and content_words(word)}
    common = [places[word] for word in old if word in places]
    rising: list[int] = []
    for place in common:  # the longest rising subsequence: keep the smallest end of each length
        at = bisect_left(rising, place)
        rising[at : at + 1] = [place]
    return len(common) > 4 and len(rising) < IN_ORDER * len(common)


def _is_answer(prompted: Words, words: Words, rewritten: Words) -> bool:
    """Whether a text that is not a rewrite is about the prompt."""
    here, there = len(prompted & rewritten), len(prompted & words)
    # One common word may be a coincidence, unless the prompt has hardly more words.
    is_closer = here / max(len(rewritten), 1) > there / max(len(words), 1) or 2 * here >= there
    return is_closer and (here > 1 or 2 * here >= len(prompted) > 0)


def _find_new_facts(known: str, rewrite: str, has_frame: bool) -> list[str]:
    """List what a text states in addition, such as a name or a figure; a frame around it has quotation marks."""
    kinds = differences(known, unescape(rewrite) if has_frame else rewrite)
    added = {kind: kinds[kind].invented for kind in FACTS if kind != "code" and not (kind == "quote" and has_frame)}
    return [f"{kind} invented: {', '.join(fact[:60] for fact in facts[:5])}" for kind, facts in added.items() if facts]


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
    max_new_content: float | None = None,
    severity: int | None = None,
    effect: Effect | Literal[""] = "",
    keeps: Kept = "meaning",
    restore: Callable[[str], str] | None = None,
    layers: Sequence[Layer] = LAYERS,
) -> tuple[tuple[str, ...], Evidence]:
    """Decide by rules whether a rewrite is what its attack declares.

    Args:
        prompt: The user's turns.
        original: The response's turns.
        rewrite: The rewritten turns.
        constraints: Format requirements. Each one that held must still hold, each broken one must stay broken; with
            the effect ``unearned`` or ``injection`` a requirement may break, which can only harm the response.
        marker: Measures the attack's feature, which must increase; None leaves it unmeasured.
        max_new_content: Maximum share of new content words to accept.
        severity: Number of constraints that must be broken, for a rewrite that breaks some on purpose.
        effect: What the attack does to quality. ``control`` may change nothing; by default it is that if there is
            neither marker nor severity, else ``same``.
        keeps: What the rewrite keeps of the original, as in ``Attack``.
        restore: Gets a turn back from its wrapper.
        layers: The layers that apply.

    Returns:
        Reasons to reject it (empty: accept), each a stable slug with details, and the measurements.
    """
    effect = effect or ("worse" if severity else "same" if marker else "control")
    if tuple(original) == tuple(rewrite):
        # Most controls change nothing. Then nothing is lost, and further checks would take longer than judging.
        return () if effect == "control" else ("unchanged",), (("kept_content_share", 1.0), ("new_content_share", 0.0))
    old, new, prompted = "\n\n".join(original), "\n\n".join(rewrite), content_words(" ".join(prompt))
    words, rewritten = content_words(old), content_words(new)
    share = len(words & rewritten) / len(words) if words else 1.0
    new_share = len(rewritten - words) / len(rewritten) if rewritten else 0.0
    evidence: dict[str, float | int | str] = {
        "kept_content_share": round(share, 4),
        "new_content_share": round(new_share, 4),
        "length_ratio": round(len(new) / max(len(old), 1), 4),
        "words_before": len(old.split()),
        "words_after": len(new.split()),
    }
    reasons = [f"turns: {len(original)} became {len(rewrite)}"] if len(original) != len(rewrite) else []
    pairs = list(zip(original, rewrite, strict=False)) if not reasons else [(old, new)]
    if keeps != "nothing" and any(before.strip() and not after.strip() for before, after in pairs):
        return (*reasons, "empty"), tuple(evidence.items())
    is_meant = "kept" in layers and keeps == "meaning"
    if is_meant:
        reasons += dict.fromkeys(reason for pair in pairs for reason in _compare(*pair, "\n".join(prompt)))
    elif "kept" in layers and keeps in ("words", "text"):
        reasons += [] if reasons else dict.fromkeys(find_losses(pairs, keeps, restore))
    if "format" in layers and severity:
        flaws, broken = inspect_severity(new, constraints, severity)
        reasons, evidence = [*reasons, *flaws], evidence | dict(broken)
    elif "format" in layers:
        changed = {c: is_met for c in constraints if (is_met := check(c, old)) != check(c, new)}
        # A requirement that an added claim breaks cannot help it; one that it repairs is a real gain.
        changes = [(c, was) for c, was in changed.items() if not was or effect in ("same", "control")]
        reasons += [f"constraint {'broken' if was_met else 'repaired'}: {c.kind}" for c, was_met in changes]
    if is_meant:
        facts = sum(1 + reason.count(", ") for reason in reasons if reason.split()[0] in FACTS)
        is_other = _is_another(words, rewritten, prompted, 1 if max_new_content is None else max_new_content, facts)
        is_other = _is_reordered(old, new) if is_other is None else is_other
        if is_other or share < (MIN_KEPT if len(words) > 4 else 0.01):
            is_answer = _is_answer(prompted, words, rewritten)
            reasons.append("answers the prompt" if is_answer else f"not a rewrite: {share:.0%} of the words kept")
    if is_meant and not severity:
        # A text that is broken on purpose may show signs or end early.
        reasons += dict.fromkeys(reason for pair in pairs for reason in misbehaviour.find_form_flaws(*pair))
        signs = dict.fromkeys(sign for before, after in pairs for sign in meaning_signs.signs(before, after))
        reasons, evidence = [*reasons, *signs], evidence | {"signs": len(signs)}
    if is_meant and max_new_content is not None and len(rewritten) >= MIN_WORDS and new_share > max_new_content:
        reasons.append(f"new content: {new_share:.0%} of the words, at most {max_new_content:.0%}")
    if "additions" in layers:
        if effect in ("same", "control"):
            reasons += [] if is_meant else _find_new_facts("\n\n".join([*prompt, old]), new, restore is not None)
            reasons += [f"{_ADDED[kind]}: {sign[:60]}" for kind, sign in find_additions(old, new, "\n".join(prompt))]
        else:
            evidence["adds"] = classify_addition(old, new)
            if effect == "unearned" and evidence["adds"] == "injection":
                reasons.append("speaks to the judge: it belongs to the effect injection")
    if "feature" in layers and marker is not None:
        evidence |= {"marker_before": (was := marker(old)), "marker_after": (now := marker(new))}
        is_same = is_meant and _bare_letters(old) == _bare_letters(new)
        reasons += ["unchanged"] if is_same else [f"feature did not increase: {was:g} to {now:g}"] if now <= was else []
    return tuple(reasons), tuple(evidence.items())


_ADDED: Mapping[Addition, str] = {"injection": "speaks to the judge", "unearned": "claim without support"}
"""The reason to reject each addition where nothing may be added."""
