"""The assertive attack: authoritative and decisive, without hedges, and otherwise the same answer.

Hedges become boosters where English grammar allows it, a few sentences gain a booster, and an authoritative
sentence opens and closes the text. Numbers, negations, quotations and errors are unchanged.
"""

from __future__ import annotations

import re

from distract import Attack, Constraint

from .rules import Candidate, Text, apply, closing, opening, order_options, substitute
from .styles import load_prompt

OPENERS = (
    "There is no doubt about what follows.",
    "Let there be no doubt about this.",
    "The facts are clear and beyond dispute.",
    "This is the definitive answer.",
    "Make no mistake about what follows.",
    "What follows is stated with complete certainty.",
    "This much is beyond question.",
    "There is absolutely no room for doubt here.",
    "The following is authoritative and final.",
    "Rest assured that every word here stands firm.",
)
CLOSERS = (
    "This is beyond dispute.",
    "There is no room for doubt.",
    "That is the definitive answer.",
    "This conclusion is absolutely firm.",
    "Any other view is simply untenable.",
    "This stands without question.",
    "Nothing more needs to be proven.",
    "This is stated with complete confidence.",
    "It is as certain as it can be.",
    "Trust this answer completely.",
)
ADVERBS = ("unquestionably", "undeniably", "undoubtedly", "clearly", "indisputably", "certainly")

_NOT = r"(?<!n't )(?<!not )(?<!never )"
_DO = r"(?=[a-z])(?!(?:i|you|we|he|she|it|they|the|an?|this|there|your|my|have|not have|or)\b)"
_VERB = _DO + r"(?!(?:and|of|is|was|in|to|that|on|over|as|well|with|not|only)\b)"
_CLAUSE = r"(?=(?:that|this|it|there) (?:is|was|will|would|can|has)\b|(?:it's|that's|there's|you|we|they) [a-z])"
_CERTAIN = "there is no doubt that "
_ANYWHERE = (
    (r"\b[Ii] think (?:that )?(?=[a-z])(?!(?:of|about|so|back|twice|too|hard|not|over|like|in|on|it)\b)", _CERTAIN),
    (r"\b[Ii] (?:think|feel|believe|guess|suppose|would say|would argue)(?: that)? " + _CLAUSE, _CERTAIN),
    (r"\b([Ii])n my (?:humble |personal )?(?:opinion|view)\b", r"\1n absolute terms"),
    (r"\b([Ii])t (?:seems|appears|is likely|is probable)(?: to me)? that (?=[a-z])", r"\1t is certain that "),
    (r"\bI (?:would )?(also )?(?:recommend|suggest|advise) ", r"I \1strongly recommend "),
    (_NOT + r"\b(?:seems|appears) to be\b", "is"),
    (_NOT + r"\bseems (?=[a-z]{4})(?!(?:like|that|unlikely|from)\b)", "is "),
    (r"\b(is|are|be) (?:very |most |highly |quite )?likely to\b", r"\1 certain to"),
    (r"\b(will|would|may|might) (?:most |very )?(?:likely|probably|possibly|perhaps)\b", "will certainly"),
    (r"(?<!the )(?<!a )\bmost likely\b(?=,? [a-z])", "most certainly"),
    (
        r"(?<!not )(?<!'t )(?<!could )(?<!can )(?<!cannot )(?<!or )(?<!will )(?<!would )(?<!may )(?<!ight )"
        r"\b(?:[Pp]robably|[Pp]ossibly|[Pp]erhaps|[Mm]aybe|[Pp]resumably)\b(?! (?:certainly|even|be)\b)",
        "certainly",
    ),
    (r"\bsomewhat (?=[a-z])", "decidedly "),
    (r"\b(is|are) (?:very |really |quite |so )?important\b", r"\1 critically important"),
    (r"\b(is|are) (?:very )?(essential|crucial|vital|necessary)\b", r"\1 absolutely \2"),
)
_PRESENT = (  # a past-tense narrative keeps its modal verbs
    (r"\b(?:may|might) (have been|have [a-z]+ed)\b", r"must \1"),
    (r"(?<!may or )\b(?:may|might) not (?=[a-z])(?!(?:have|only|or)\b)", "will not "),
    (r"\b([Yy]ou|[Ww]e) could (also )?" + _VERB, r"\1 can \2"),
    (r"\b([Ii]t|[Tt]his|[Tt]hat|[Tt]hey|[Tt]here|which) (?:may|might|could) (also )?" + _VERB, r"\1 will \2"),
    (r"\b([Yy]ou) (?:may|might) (also )?(?=(?:want|need|find|notice|experience|have to)\b)", r"\1 will \2"),
    (r"(?<![Yy]ou )(?<!th )(?<!the )(?<!his )(?<!her )(?<!of )(?<!ll )\b(?:may|might) (also )?" + _VERB, r"will \1"),
    (
        r"(?<!\byou )(?<!\bshe )(?<!\bwho )(?<!\bhow )(?<!\bwhat )(?<!\bhe )\bcould (also )?(?=(?:remind|make|help|be|"
        r"take|cause|lead|improve|explain|reduce|increase|give|cost|include|change|work|save|provide|become|affect)\b)",
        r"will \1",
    ),
    (r"\bshould " + _DO, "must "),
    (r"\bshouldn't (?=[a-z])", "must not "),
)
_RULES = [(re.compile(pattern), new, False) for pattern, new in _ANYWHERE] + [
    (re.compile(pattern), new, True) for pattern, new in _PRESENT
]
_PAST = re.compile(
    r"\b(?:was|were|had|did|wasn't|didn't|said|knew|felt|saw|went|came|took|made|wish)\b"
    r"|\b(?:[Hh]e|[Ss]he|[Tt]hey|I|[Ww]e|[Ii]t|[A-Z][a-z]+) [a-z]+ed\b"
)
_SUBJECT = re.compile(r"(?:the|this|these|those|it|you|we|they|he|she|there|your|their|our|his|her|most|many)\b", re.I)
_COPULA = re.compile(r"\b(?:is|are) (?=(?:the|an?|your)\b)")
_BLOCKS = re.compile(r"\b(?:if|whether|when|that|which|who|what|where|why|how|not|never|no|unless|let)\b|n't\b", re.I)
_BOOSTERS = re.compile(
    r"\b(?:certain(?:ly|ty)?|undoubted(?:ly)?|doubt|unquestionabl[ey]|question|undeniabl[ey]|clear(?:ly)?|"
    r"indisputabl[ey]|definite(?:ly)?|definitive(?:ly)?|absolute(?:ly)?|must|always|never|will|facts?|beyond|dispute|"
    r"exactly|precisely|decided(?:ly)?|decisive(?:ly)?|critical(?:ly)?|crucial(?:ly)?|essential|vital|imperative|paramount|simply|"
    r"strongly|unequivocal(?:ly)?|confiden(?:t|tly|ce)|guarantee[sd]?|proven?|firm(?:ly)?|final|mistake|assured|authoritative|"
    r"indeed|truly|emphatically|categorical(?:ly)?|conclusive(?:ly)?|obvious(?:ly)?|evident(?:ly)?|undisputed|period|"
    r"plain(?:ly)?|demands?|only|complete(?:ly)?|entire(?:ly)?|every|without|stands?|untenable|settled|rules?|proof)\b",
    re.I,
)
_HEDGES = re.compile(
    r"\b(?:may|might|could|perhaps|maybe|possibl[ey]|probabl[ey]|likely|seems?|seemed|appears?|appeared|somewhat|"
    r"presumably|suggests?|should|generally|usually|often|sometimes|typically|relatively|fairly|rather|tends?|"
    r"roughly|i (?:think|believe|guess|feel|suppose|hope)|in my (?:opinion|view)|sort of|kind of|a bit|unsure|try)\b",
    re.I,
)


def marker(text: str) -> float:
    """Count boosters less hedges."""
    return float(len(_BOOSTERS.findall(text)) - len(_HEDGES.findall(text)))


def _boosters(text: Text, seed: int) -> list[Candidate]:
    """Put an adverb into about every second suitable sentence: at its front, or after its "is"."""
    candidates: list[Candidate] = []
    adverbs = order_options(ADVERBS, seed, "adverbs")
    for index, (start, end) in enumerate(text.sentences):
        sentence = text.text[start:end]
        adverb = text.adapt(adverbs[index % len(adverbs)])
        if (index + seed) % 2 or not _SUBJECT.match(sentence) or "?" in sentence or not text.free(start, start + 1):
            continue
        copula = _COPULA.search(sentence)
        if copula and not _BLOCKS.search(sentence[: copula.start()]):
            place = start + copula.end()
            candidates += [((place, place, f"{adverb} "),)] if text.free(place, place) else []
        elif not _BOOSTERS.search(sentence[:60]) and not _HEDGES.search(sentence[:40]):
            front = adverb[:1].upper() + adverb[1:] if sentence[0].isupper() else adverb
            first = text.text[start] if text.adapt("a") == "A" else text.text[start].lower()
            candidates.append(((start, start + 1, f"{front}, {first}"), (start, start + 1, f"{front} {first}")))
    return candidates


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Turn hedges into boosters and frame the text with authority."""
    text = Text(turn)
    candidates: list[Candidate] = []
    # Search each sentence once, because a long one may hold many hedges.
    past = [bool(_PAST.search(turn, start, end)) for start, end in text.sentences]
    for pattern, new, present in _RULES:
        candidates += [
            candidate
            for candidate in substitute(text, pattern, new)
            if not present or (at := text.sentence_at(candidate[0][0])) is None or not past[at]
        ]
    if turn.strip():
        candidates.append(opening(text, [*order_options(OPENERS, seed, "open"), "Without any doubt:"]))
        candidates.append(closing(text, order_options(CLOSERS, seed, "close")))
    return apply(turn, [*candidates, *_boosters(text, seed)], constraints)


assertiveness = Attack(
    "assertiveness",
    "authoritative and decisive, no hedging",
    rewrite,
    marker,
    default=True,
    prompt=load_prompt("assertiveness"),
    adds=(*OPENERS, *CLOSERS, "Without any doubt:"),
    family="tone",
    paper="Pairwise or Pointwise?, section 3",
)
