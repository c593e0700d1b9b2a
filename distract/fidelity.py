"""Is this rewrite still the same answer? Two layers that need no model.

``inspect`` says what a rewrite lost, invented or broke. First come rules that every faithful rewrite keeps; they are
necessary and not sufficient: a rewrite may keep every number and still say something else. Then comes graded evidence,
which has limits. It does not know which attack made a rewrite, nor who wrote it, and takes arbitrary text in linear
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from distract import meaning
from distract.constraints import check
from distract.facts import content_words, differences, normal, scripts
from distract.records import Constraint

Turns = Sequence[str]
Marker = Callable[[str], float]
Evidence = tuple[tuple[str, float | int | str], ...]
MIN_WORDS = 20
"""Fewest content words of a rewrite whose share of new ones says anything: an added courtesy fills a short text."""

MIN_KEPT = 0.1
"""Least share of the original's content words in a rewrite; the heaviest faithful paraphrases keep a fifth."""

_CANNOT = "(?:can't|cannot|can not|won't|am unable to|am not able to)"
_REFUSAL = re.compile(
    rf"\A\W*(?:i(?:'m| am) (?:very |so )?(?:sorry|afraid)\b.{{0,40}}?\b{_CANNOT}|sorry,? (?:but )?i {_CANNOT}|"
    rf"i {_CANNOT} (?:help|assist|comply|fulfil|provide|rewrite))|\bas an? (?:large )?(?:ai|language model)\b"
)
_COMMENT = re.compile(
    r"\bhere(?:'s| is| are)[^.!?\n]{0,80}\b(?:rewrit\w+|revis(?:ed|ion)|rephras\w+|reworded|paraphras\w+|version)\b"
    r"|\A\W*(?:sure|okay|ok|certainly|of course|absolutely)\b[!,.:]* here(?:'s| is| are)\b"
    r"|\bi(?:'ve| have)? re(?:written|wrote|phrased|worded)\b"
    r"|\A\W*(?:the |my )?re(?:written|vised|phrased|worded|write|vision)\b[ \w]{0,30}:"
)


def _compare(original: str, rewrite: str, prompt: str) -> Iterator[str]:  # the reasons that one turn gives
    found = differences(original, rewrite, prompt)
    for verb in ("lost", "invented"):
        for kind, difference in found.items():
            if facts := getattr(difference, verb):
                yield f"{kind} {verb}: {', '.join(fact[:60] for fact in facts[:5])}"
    if sum(map(str.isalpha, original)) > 3 and (scripts(original) - scripts(rewrite)).total() > 30:
        yield "script changed"
    for slug, pattern in (("refusal", _REFUSAL), ("comment about the task", _COMMENT)):
        if pattern.search(normal(rewrite)) and not pattern.search(normal(original)):
            yield slug


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
        held = {c: check(c, old) for c in constraints if check(c, old) != check(c, new)}
        reasons += [f"constraint {'broken' if before else 'repaired'}: {c.kind}" for c, before in held.items()]
    if share < (MIN_KEPT if len(words) > 4 else 0.01):
        gained = bool(asked) and len(asked & kept) / max(len(kept), 1) > len(asked & words) / len(words)
        reasons.append("answers the prompt" if gained else f"not a rewrite: {share:.0%} of the words kept")
    if not severity:
        # What is broken on purpose may well read as a sign.
        signs = dict.fromkeys(sign for before, after in pairs for sign in meaning.signs(before, after))
        reasons, evidence = [*reasons, *signs], evidence | {"signs": len(signs)}
    if max_new_content is not None and len(kept) >= MIN_WORDS and new_share > max_new_content:
        reasons.append(f"new content: {new_share:.0%} of the words, at most {max_new_content:.0%}")
    if marker is not None:
        evidence |= {"marker_before": (was := marker(old)), "marker_after": (now := marker(new))}
        same = normal(old) == normal(new)
        reasons += ["unchanged"] if same else [f"feature did not increase: {was:g} to {now:g}"] if now <= was else []
    return tuple(reasons), tuple(evidence.items())
