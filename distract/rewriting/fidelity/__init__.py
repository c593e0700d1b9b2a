"""Is this rewrite still the same answer? Two layers that need no model.

``inspect`` says what a rewrite lost, invented or broke. First come rules that every faithful rewrite keeps; they are
necessary and not sufficient: a rewrite may keep every number and still say something else. Then comes graded evidence,
which has limits. It does not know which attack made a rewrite, nor who wrote it, and takes arbitrary text in linear
time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from distract.core.records import Constraint, Evidence
from distract.data.constraints import check
from distract.data.lexicon import content_words
from distract.rewriting.fidelity import meaning, misbehaviour
from distract.rewriting.fidelity.facts import READ, differences, normalise_text, scripts

Turns = Sequence[str]
Words = frozenset[str]
Marker = Callable[[str], float]

MIN_WORDS = 20
"""Fewest content words of a rewrite whose share of new ones says anything: an added courtesy fills a short text."""

MIN_KEPT = 0.1
"""Least share of the original's content words in a rewrite; the heaviest faithful paraphrases keep a fifth."""

FEW_KEPT = 0.45
"""Share of the original's words, less the prompt's, below which a rewrite must not also look like another answer."""

FEWEST_KEPT, MOST_NEW = 0.3, 0.8
"""The same share that does not need a second sign, where an attack may have no more than that share of new words."""

IN_ORDER = 0.65
"""Least share of the common words in the order of the original; a paraphrase moves clauses, and follows the text."""

MANY_FACTS = 3
"""Facts lost or invented that are a second sign; a single one that was changed is two."""

FACTS = ("number", "unit", "date", "url", "code", "quote", "name")
_WORD = re.compile(r"[^\W\d_]+")


def _compare(original: str, rewrite: str, prompt: str) -> Iterator[str]:  # the reasons that one turn gives
    found = differences(original, rewrite, prompt)
    for verb in ("lost", "invented"):
        for kind, difference in found.items():
            if facts := getattr(difference, verb):
                yield f"{kind} {verb}: {', '.join(fact[:60] for fact in facts[:5])}"
    if (scripts(original) - scripts(rewrite)).total() > 30 and sum(map(str.isalpha, original)) > 3:
        yield "script changed"
    yield from misbehaviour.find_remarks(original, rewrite)


@lru_cache(READ)
def _bare_letters(text: str) -> str:
    """What is left without white space, case and punctuation; all of it where that is nothing."""
    return re.sub(r"[\W_]+", "", text.casefold()) or normalise_text(text)


def _is_another(words: Words, kept: Words, asked: Words, most_new: float, facts: int) -> bool | None:
    """Whether a text that kept few words of another is a second answer; None where the order of words must say it."""
    own = words - asked
    share = len(own & kept) / len(own) if own else 1.0
    if share >= FEW_KEPT or (len(own) < 5 and facts < MANY_FACTS):
        return False
    strange = facts >= MANY_FACTS or len(asked & kept - words) > 1 or (share < FEWEST_KEPT and most_new <= MOST_NEW)
    return True if strange else None


def _is_reordered(original: str, rewrite: str) -> bool:
    """Whether the words that two texts have in common follow each other in another order."""
    old, new = (_WORD.findall(text.casefold()) for text in (original, rewrite))
    often = Counter(old) | Counter(new)
    places = {word: place for place, word in enumerate(new) if often[word] == 1 and content_words(word)}
    common = [places[word] for word in old if word in places]
    rising: list[int] = []
    for place in common:  # the longest rising subsequence: what can end one of each length is enough
        at = bisect_left(rising, place)
        rising[at : at + 1] = [place]
    return len(common) > 4 and len(rising) < IN_ORDER * len(common)


def _is_answer(asked: Words, words: Words, kept: Words) -> bool:
    """Whether a text that is no rewrite has to do with the prompt at all."""
    here, there = len(asked & kept), len(asked & words)
    # One word may be there by chance, unless the prompt has hardly more.
    more = here / max(len(kept), 1) > there / max(len(words), 1) or 2 * here >= there
    return more and (here > 1 or 2 * here >= len(asked) > 0)


def inspect_severity(text: str, constraints: Sequence[Constraint], severity: int) -> tuple[tuple[str, ...], Evidence]:
    """Decide whether a text breaks exactly as many constraints as it is said to; see ``inspect``."""
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
) -> tuple[tuple[str, ...], Evidence]:
    """Decide by rules whether a rewrite is still the same answer.

    Args:
        prompt: the user's turns.
        original: the response's turns.
        rewrite: the rewritten turns.
        constraints: format requirements; one that held must hold still, one that was broken must stay broken.
        marker: measures the wanted feature; None for a control, which wants none and may change nothing.
        max_new_content: the largest share of new content words to accept.
        severity: how many constraints must be broken, of a rewrite that breaks some on purpose.

    Returns:
        Reasons to reject it (empty: accept), each a stable slug and what it is about, and what was measured.
    """
    if tuple(original) == tuple(rewrite):
        # What a control mostly does; nothing can have been lost, and looking would cost more than judging.
        return ("unchanged",) if marker or severity else (), (("kept_content_share", 1.0), ("new_content_share", 0.0))
    old, new, asked = "\n\n".join(original), "\n\n".join(rewrite), content_words(" ".join(prompt))
    words, kept = content_words(old), content_words(new)
    share = len(words & kept) / len(words) if words else 1.0
    new_share = len(kept - words) / len(kept) if kept else 0.0
    evidence: dict[str, float | int | str] = {
        "kept_content_share": round(share, 4),
        "new_content_share": round(new_share, 4),
        "length_ratio": round(len(new) / max(len(old), 1), 4),
        "words_before": len(old.split()),
        "words_after": len(new.split()),
    }
    reasons = [f"turns: {len(original)} became {len(rewrite)}"] if len(original) != len(rewrite) else []
    pairs = list(zip(original, rewrite, strict=False)) if not reasons else [(old, new)]
    if any(before.strip() and not after.strip() for before, after in pairs):
        return (*reasons, "empty"), tuple(evidence.items())
    reasons += dict.fromkeys(reason for pair in pairs for reason in _compare(*pair, "\n".join(prompt)))
    if severity:
        more, found = inspect_severity(new, constraints, severity)
        reasons, evidence = [*reasons, *more], evidence | dict(found)
    else:
        held = {c: met for c in constraints if (met := check(c, old)) != check(c, new)}
        reasons += [f"constraint {'broken' if before else 'repaired'}: {c.kind}" for c, before in held.items()]
    facts = sum(1 + reason.count(", ") for reason in reasons if reason.split()[0] in FACTS)
    other = _is_another(words, kept, asked, 1 if max_new_content is None else max_new_content, facts)
    other = _is_reordered(old, new) if other is None else other
    if other or share < (MIN_KEPT if len(words) > 4 else 0.01):
        answers = _is_answer(asked, words, kept)
        reasons.append("answers the prompt" if answers else f"not a rewrite: {share:.0%} of the words kept")
    if not severity:
        # What is broken on purpose may well read as a sign, or stop short.
        reasons += dict.fromkeys(reason for pair in pairs for reason in misbehaviour.find_form_flaws(*pair))
        signs = dict.fromkeys(sign for before, after in pairs for sign in meaning.signs(before, after))
        reasons, evidence = [*reasons, *signs], evidence | {"signs": len(signs)}
    if max_new_content is not None and len(kept) >= MIN_WORDS and new_share > max_new_content:
        reasons.append(f"new content: {new_share:.0%} of the words, at most {max_new_content:.0%}")
    if marker is not None:
        evidence |= {"marker_before": (was := marker(old)), "marker_after": (now := marker(new))}
        same = _bare_letters(old) == _bare_letters(new)
        reasons += ["unchanged"] if same else [f"feature did not increase: {was:g} to {now:g}"] if now <= was else []
    return tuple(reasons), tuple(evidence.items())
