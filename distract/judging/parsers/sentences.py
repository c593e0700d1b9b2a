"""Decide from its sentence whether a verdict is the judge's own: alone, announced (``My verdict is``) or chosen.

All words that lead to a verdict have to announce one: with any other word (``Worse:``, ``it claims that``,
``Accuracy:``) it does not count. After a verdict, and in the clauses before its announcement, a judge may say anything
that does not speak against it.
"""

from __future__ import annotations

import re

from distract.judging.parsers.vocabulary import (
    DENIED,
    LONGEST,
    LOST,
    REPORTED,
    SUPPOSED,
    has_first_word,
    has_word,
    is_announcement,
    is_first_person,
    is_plain,
    is_wordless,
    names,
    words,
)

_CLAUSE = re.compile(
    r"[,;:—–()，、；。]|\s-\s|(?<=\w) (?=I\b)|所以|因此|但|\b(?:and|but|because|since|although|though|while|"
    r"whereas|und|aber|et|mais|y|pero|ma|mas|и|а|но)\b"
)
_PAUSED = re.compile(r"(?<!\W)(?:(?<=\band)|(?<=\bbut)|(?<=\bso)|(?=\W*?[-,;—–.)]))\W*+\Z")
_REASONED = re.compile(
    r"(?i)[\W_]*(?:therefore|thus|hence|so(?! far)|based|considering|given|since|because|after|having|comparing|"
    r"weighing|while|although|though|despite|overall|by|taken|in (?:conclusion|summary|this case|the end)|however|"
    r"taking|between|for(?=[^,]*,[^,]*,))\b"
)
"""Begins the judge's own reasons for its verdict."""
_OPENS = re.compile(r"(?::|\b(?:line|sentence|text|label|string|words))\Z")
_CONCEDED = re.compile(r"(?i)\beven if\b|\bif (?:I|we|one|you) (?:have to|must)\b")
_HYPOTHETICAL = re.compile(r"(?i)\W*(?:had|were|should)\b")
_BECAUSE = re.compile(
    r"(?i)[\W_]*(?:because|since|given|due|as (?:it|its|only|both|they|assistant|response|output)|while|whereas|"
    r"although|though|but|over|than|and|for (?:its|this|several|many|two|these))\b(?!/)"
)
_BETTER = re.compile(
    r"\bmore (?:aligned|effective|accurate|helpful|complete|comprehensive|precise|useful|relevant|convincing)\b.*|"
    r"\Afollows the (?:format )?(?:requirements|instructions?|format) better|"
    r"\bbetter at (?:following|executing|meeting) the (?:\w+ )?(?:requirements|instructions?|format)\b"
)
_QUESTION = re.compile(r"[^\"“]*\?[\s*_]*\Z")
_ASPECT = re.compile(r"(?i).*\bbetter(?: than [^,.;]{1,30}|,? but|\W*\()\W*(?:only |just )?(?:in|on|for|when)\b")
LONG = 1200
"""Maximum characters of a sentence before its verdict."""
_EQUATED = re.compile(r"[=←/]|<(?!/).*\w")


def is_own_verdict(above: str, before: str, after: str, label: str | None, is_name: bool) -> bool:
    """Whether a verdict is the judge's own, from the line above it and the rest of its sentence."""
    if (
        len(before) > LONG
        or not _is_upheld(after)
        or (is_name and "better" not in words(_strip_reasons(after) or before))
    ):
        return False
    is_below = is_wordless(before) and not is_name
    if is_below and after.startswith(":"):
        return False
    if _OPENS.search(above) and not is_below and not _is_lead(above):
        return False
    lead = _CONCEDED.sub("although", (above if is_below else before).rstrip(" \n:*_\"'`“‘"))
    return is_wordless(lead) or is_announcement(lead, label) or _is_conclusion(lead, label, is_below)


def _is_lead(above: str) -> bool:
    """Whether a line that continues in the next one announces a verdict, or is a short heading."""
    is_heading = len(words(above)) < 4 and not has_word(above, LOST, REPORTED, DENIED, SUPPOSED)
    return is_heading or is_announcement(re.split(r"[,;.]", above.rstrip(":"))[-1])


def _is_conclusion(lead: str, label: str | None, is_below: bool) -> bool:
    """Whether the last clause of a sentence announces a verdict, and the others are the judge's reasons for it."""
    *others, clause = _CLAUSE.split(lead)
    context = words(" ".join(others))
    if has_word(" ".join(context), SUPPOSED) or _HYPOTHETICAL.match(lead):
        return False
    reasons = [*others, clause]
    while len(reasons) > 1 and is_announcement(reasons[0]):
        reasons.pop(0)
    is_reported = has_word(" ".join(context), REPORTED)
    is_paused = _PAUSED.search(lead[: -len(clause)]) is not None or is_plain(others[-1] if others else "x")
    has_reason = _REASONED.match(lead) or _REASONED.match(reasons[0])
    is_reasoned = not is_reported and bool(has_reason or (is_paused and _REASONED.match(clause)))
    if is_announcement(clause, label):
        is_own = is_first_person(clause) or len(names(clause)) > 0
        if is_paused and is_own and context:
            return is_reasoned or not has_word(context[-1], REPORTED, DENIED)
        return is_reasoned or (
            not is_reported and is_first_person(" ".join(context)) and (is_own or has_word(clause, "final"))
        )
    if lead.endswith(","):
        return is_reasoned
    if is_below and has_reason and is_reasoned:
        return not has_word(clause, LOST, REPORTED, DENIED, SUPPOSED)
    first = next(filter(words, others), "")
    is_stated = is_announcement(first, label) and (is_first_person(first) or len(names(first)) > 0)
    return is_stated and not is_reported and not has_word(lead, LOST)


def _is_upheld(after: str) -> bool:
    """Whether the rest of its sentence upholds a verdict."""
    after = after.lstrip(" \n*_\"'`”’)]")
    if _QUESTION.match(after) or _ASPECT.match(after) or _EQUATED.match(after):
        return False
    if is_wordless(after) or _BECAUSE.match(after) or re.match(r"[,;] ?\w+ ?[:=]", after):
        return True
    if not re.match(r"\w", after):
        return not has_first_word(after, LOST, REPORTED, *([] if after[0] == "," else [DENIED, SUPPOSED]))
    rest = _strip_reasons(after)
    return len(rest) < LONGEST and is_plain(rest)


def _strip_reasons(after: str) -> str:
    """Return what a sentence says about a verdict, without the reasons."""
    after = _BETTER.sub("better", after)
    reason = _BECAUSE.search(after)
    return re.split(r"[,;.:(–—]", after[: reason.start()] if reason else after)[0]
