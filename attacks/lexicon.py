"""Plain words and their inflated counterparts, as patterns for the prolix attack.

Each pattern is narrow enough to be grammatical without a parser: a base form counts as a verb only after a word that
requires one, and most verbs only match before their object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_BEFORE = r"\b(to|can|could|will|would|should|must|[Yy]ou|[Ww]e|[Tt]hey|I|don't|didn't|not|cannot|can't) "
_SUBJECT = r"\b([Ii]t|[Hh]e|[Ss]he|[Tt]hat|which|who|[Tt]his|also) "
_OBJECT = r"(?= (?:the|an?|your|their|our|his|her|its|my|this|these|those|more|some|any|all|each|every|other)\b)"

# Plain base form, its past and participle where irregular, then the inflated verb (regular).
_VERBS = (
    "use utilise|show demonstrate|start commence|begin began begun commence|buy bought bought purchase|"
    "explain elucidate|describe delineate|understand understood understood comprehend|include encompass|"
    "choose chose chosen select|improve ameliorate|reduce diminish|decrease diminish|increase augment|"
    "build built built construct|provide furnish|avoid eschew|protect safeguard|prevent preclude|enjoy savour|"
    "send sent sent dispatch|change alter|allow permit|need require|examine scrutinise|"
    "collect accumulate|gather accumulate|finish conclude|discover uncover|consider contemplate|remember recollect|"
    "combine amalgamate|hide hid hidden conceal|fix rectify|solve resolve|assess appraise|strengthen fortify|"
    "encourage galvanise|obtain procure|achieve attain|promote foster|maintain preserve|highlight underscore|"
    "emphasize accentuate|simplify streamline|create engender|cause occasion|represent embody|explore investigate|"
    "identify pinpoint|offer proffer|receive acquire|complete finalise|produce generate|share impart|"
    "display exhibit|require necessitate|evaluate appraise|determine ascertain|demonstrate exemplify|"
    "enhance augment|establish institute|address confront|indicate signify|connect interconnect"
)

# Pattern and replacement; \1 is a group, and the first letter keeps its case.
_PHRASES = (
    (r"\b[Ff]or (?:example|instance)\b", "by way of illustration"),
    (r"\b[Ii]n addition\b(?! to)", "in addition to the foregoing"),
    (r"\b(?:[Aa]dditionally|[Mm]oreover|[Ff]urthermore)\b(?=,)", "in addition to the foregoing"),
    (r"\b[Hh]owever\b(?=,)", "be that as it may"),
    (r"\b(?:[Tt]herefore|[Tt]hus)\b(?=,)", "as an inevitable consequence"),
    (r"\b[Bb]ecause of\b", "on account of"),
    (r"\b[Bb]ecause (?=(?:the|it|they|he|she|we|you|this|there|an?|I) )", "by reason of the fact that "),
    (r"\b[Ss]ince (?=(?:it|they|you|this|there) (?:is|are|will|can|has)\b)", "in view of the fact that "),
    (r"\b[Aa]lthough (?=[a-z])", "notwithstanding the fact that "),
    (r"(?:(?<=, )if|\bIf) (?=(?:you|it|they|he|she|we|the|your) )", "in the event that "),
    (r"\b(is|are|was|were|can|will|may|and) also (?=[a-z])", r"\1 likewise "),
    (r"(?<!\bas )(?<!how )(?<!so )(?<!too )(?<!very )(?<!not )\b[Mm]any (?=[a-z]{3,}s\b)", "numerous "),
    (r"\b(?:a lot of|lots of)\b", "an abundance of"),
    (r"(?<!the )(?<!this )(?<!that )\bvery (?=[a-z])(?!(?:first|last|much|same|few|own|best)\b)", "exceedingly "),
    (r"\b(a|the|some|any) big (?=[a-z])(?!(?:bang|data|bird|apple|brother|deal)\b)", r"\1 substantial "),
    (r"\beasy to (?=[a-z])", "straightforward to "),
    (r"(?<!not )\b(?:hard|difficult) to (?=[a-z])", "arduous to "),
    (r"\bimportant\b", "consequential"),
    (r"\bdifferent (?=[a-z]{3,}s\b)", "disparate "),
    (r"\bvarious (?=[a-z]{3,}s\b)", "manifold "),
    (r"\b(the|a|your|their|its) main (?=[a-z])", r"\1 principal "),
    (r"\bquickly\b", "expeditiously"),
    (r"\beasily\b", "effortlessly"),
    (r"\boften\b", "frequently"),
    (r"\b[Uu]sually\b", "customarily"),
    (r"\bmostly\b", "predominantly"),
    (r"\bmainly\b", "principally"),
    (r"\balmost\b", "very nearly"),
    (r"\b[Dd]uring (?=(?:the|an?|this|these|those|his|her|their|your|our)\b)", "throughout the course of "),
    (r"\b(information|questions?|ideas?|details?|advice|knowledge) about\b", r"\1 pertaining to"),
    (r"\bso that (?=(?:the|you|we|they|he|she|it|your|their)\b)", "to the end that "),
    (r"\b[Pp]eople (?=(?:who|with|are|to|in|have|can|from)\b)", "individuals "),
    (r"\ba lack of\b", "a dearth of"),
    (r"\bthe lack of\b", "the dearth of"),
    (r"\b(an?|the|best|good|great|effective) way to\b", r"\1 means by which to"),
    (r"\bways to\b", "means by which to"),
    (r"\bthe end of\b", "the conclusion of"),
    (r"\bthe beginning of\b", "the commencement of"),
    (r"\b(?:kinds|types) of\b", "varieties of"),
    (r"\bbased on\b", "predicated upon"),
    (r"\b[Dd]epending on\b", "contingent upon"),
    (r"\b[Ii]n fact\b", "as a matter of actual fact"),
    (r"\b(is|are) able to\b", r"\1 in a position to"),
    (
        r"\bhelps (?=(?:to )?(?:reduce|improve|prevent|maintain|protect|ensure|keep|create|build) )(?:to )?",
        "serves to ",
    ),
    (r"\b[Mm]ake sure (?:that )?(?=(?:the|you|your|it|they|all|there|this)\b)", "ascertain that "),
    (r"\b([Mm])ake sure to\b", r"\1ake it a matter of course to"),
    (r"\b[Tt]ry to\b", "endeavour to"),
    (r"\btrying to\b", "endeavouring to"),
    (r"\btried to\b", "endeavoured to"),
    (r"\bdecided to\b", "arrived at the decision to"),
    (r"\b[Aa]t the same time\b(?! (?:as|every|each))", "in a simultaneous manner"),
    (r"\bright now\b", "at the present juncture"),
    (r"\b(?:nowadays|these days)\b", "in the present age"),
    (r"\b[Oo]verall\b(?=,)", "taking all of the foregoing into consideration"),
    (r"\b[Ii]n (?:summary|conclusion)\b(?=,)", "by way of a concluding recapitulation"),
    (r"\bmore and more (?=[a-z])", "increasingly "),
    (r"\bget rid of\b", "dispose of"),
    (r"\b(is|are) made up of\b", r"\1 constituted of"),
    (r"\b(is|are) called\b", r"\1 denominated"),
    (r"\b(is|was) born (?=in\b)", r"\1 brought into the world "),
    (r"\bdue to\b", "by reason of"),
    (r"\baccording to\b", "in accordance with the account of"),
    (r"\bkids\b", "youngsters"),
    (r"\bhappened\b(?! to)", "transpired"),
    (r"\bhappens\b(?! to)", "transpires"),
    (r"\b(will|would|can|could|may|might) happen\b(?! to)", r"\1 transpire"),
    (r"\b(he|she|I|they|we) lived (?=(?:in|with|on)\b)", r"\1 resided "),
    (r"\babout (?=\d)", "approximately "),
    (r"\ba mix of\b", "an admixture of"),
    (r"\b(to|can|will|you|we) find out\b", r"\1 ascertain"),
    (r"\bput together\b", "composed"),
    (r"\bnext to\b", "adjacent to"),
    (r"\bnear (?=(?:the|a|his|her|your|their)\b)", "in the vicinity of "),
    (r"\b[Mm]ost of (?=(?:the|your|their)\b)", "the preponderance of "),
    (r"\b[Mm]uch of (?=(?:the|your|their)\b)", "a considerable portion of "),
    (r"\b[Ss]ometimes\b", "on occasion"),
    (r"\balways\b", "invariably"),
    (r"\b(is|are|was|were|be) enough\b", r"\1 sufficient"),
    (r"\bthe whole (?=[a-z])", "the entirety of the "),
)


def _inflect_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("fy") else _double_consonant(verb) + "ed"


def _inflect_third(verb: str) -> str:
    if verb.endswith("fy"):
        return verb[:-1] + "ies"
    return verb + "es" if verb.endswith(("sh", "ch", "x", "ss")) else verb + "s"


def _inflect_ing(verb: str) -> str:
    return (verb[:-1] if verb.endswith("e") else _double_consonant(verb)) + "ing"


def _double_consonant(verb: str) -> str:
    return verb + verb[-1] if verb in ("permit", "begin") else verb


def _inflections() -> list[tuple[list[str], str, str]]:
    """Make patterns for the forms of every verb, each in a place where it must be that verb with an object."""
    patterns: list[tuple[list[str], str, str]] = []
    for entry in _VERBS.split("|"):
        plain, *irregular, new = entry.split()
        pasts = sorted(set(irregular) or {_inflect_past(plain)})
        patterns += [
            ([plain], _BEFORE + plain + _OBJECT, rf"\1 {new}"),
            ([plain.capitalize()], rf"\b{plain.capitalize()}{_OBJECT}", new),
            ([_inflect_third(plain)], _SUBJECT + _inflect_third(plain) + _OBJECT, rf"\1 {_inflect_third(new)}"),
            (pasts, rf"\b(?:{'|'.join(pasts)}){_OBJECT}", _inflect_past(new)),
            ([_inflect_ing(plain)], rf"\b{_inflect_ing(plain)}{_OBJECT}", _inflect_ing(new)),
        ]
    return patterns


# Each entry has words, one of which a text must contain, a pattern and its replacement: searching and compiling are
# slow.
_RULES = [*(([""], pattern, new) for pattern, new in _PHRASES), *_inflections()]
_compiled = cache(re.compile)


def rules(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """List the patterns that may match a text, with their replacement templates, in the order to apply them."""
    for words, pattern, new in _RULES:
        if any(word in text for word in words):
            yield _compiled(pattern), new
