"""The English in which judges give a verdict, or do not: what stands before and after one in its sentence.

A verdict is dismissed for words that govern it, directly or through the verb that introduces it, within its clause;
words that only occur near it are about the responses. It knows no format of a verdict and never sees a whole text.
"""

from __future__ import annotations

import re
from functools import lru_cache

SEP = r"[\W_]"
"""What stands between words: markup too."""

_NOUN = (
    r"(?:verdict|rating|score|answer|choice|decision|ranking|judge?ment|vote|grade|preference|evaluation|assessment|"
    r"conclusion|pick|winner|result|selection)"
)
LEAD = (
    rf"(?:(?:so|thus|therefore|hence|finally|overall|in conclusion|in|here is|this is|accordingly){SEP}+)?"
    rf"(?:(?:my|the){SEP}+)?(?:(?:own|final|overall|corrected|revised){SEP}+)*(?:{_NOUN}|overall|final|total|"
    rf"(?<=my )(?:opinion|view))"
    rf"(?:{SEP}+(?:is|was|would be|remains|stays|therefore))*{SEP}*"
)
"""What announces a verdict: ``Final verdict:``, ``So my rating is``."""

_LED = re.compile(rf"(?i){SEP}*(?:{LEAD})")
_LEAD_END = re.compile(rf"(?i)(?<![^\W_]){LEAD}\Z")
_THEREFORE = re.compile(r"(?i)\b(?:therefore|thus|hence|consequently)\b")
_FINALLY = re.compile(
    r"(?i)\b(?:overall(?=\W*(?:,|:|$|i\b|it\b|as\b|output\b|my\b|the\b|rating|verdict))|in conclusion|in summary|"
    r"to conclude|to sum up|final(?:ly)?|ultimately|on balance|all in all|(?:all|every)things? considered|in the end|"
    r"after all|as an overall \w+|my (?:own )?(?:verdict|decision|ranking|rating|choice)|"
    r"(?:verdict|decision|ranking|rating|choice) (?:is|remains|stays))\b"
)

# A denial that affirms; taken out before denials are looked for.
_AFFIRMED = re.compile(
    r"(?i)\b(?:(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:doubt|question|hesitation)|cannot be denied|"
    r"(?:cannot|can't) deny|not (?:hard|difficult) to \w+|not only|none other than|nothing but)\b"
)
_ASIDE = re.compile(r",[^,;]{1,40},(?=\s*(?:that|vote|print|to|choose|give)\b)")
_CLAUSE = re.compile(
    r"(?i)[,;:—–]|\b(?:and|but|so|because|since|therefore|although|though|while|whereas|which)\b|"
    r"(?<!\bthat )(?<!\bif )\b(?=(?:I|we)\b)"
)
# The last word before a verdict that it governs; after any other word the verdict stands loosely, by itself.
_LINK = re.compile(
    r"(?i)(?:\A|\b(?:that|an?|this|it|be|been|is|was|for|to|with|of|as|towards?|say|said|choose|pick|giv(?:e|en|ing)|"
    r"call|answer|output|print|write|vote|award(?:ing)?|conclude|claim|argue|think|thought|believe|find|see|prefer|deserves?|"
    rf"either|earns?|gets?|merits?|rate|assign|select|justify|support|recommend|verdict|rating|ranking|grade|score)){SEP}*\Z"
)
_DENIED = re.compile(
    r"(?i)\b(?:not|never|cannot|no|nobody|none|neither|nor|hardly|nowhere|"
    r"(?:wrong|mistake|unfair|incorrect|misleading) to|refuse[sd]?|decline[sd]?|false|untrue|doubt\w*|far from|"
    r"fail\w* to|disagree\w*|reject\w*|den(?:y|ies|ied))\b|n['’]t\b"
)
_UNSURE = re.compile(
    r"(?i)\b(?:perhaps|maybe|possibl[ey]|probably|presumably|conceivably|may|might|could|can be argued|arguably|"
    r"tempt\w*|lean(?:s|ing)?|inclined|almost|nearly|seems?|appears?|suspect|guess|would have|thought|tentative|"
    r"first (?:impression|thought|instinct|reaction|verdict)|initial\w*|at first|for a moment|whether|consider\w*|"
    r"about to|wanted to|going to|one can)\b|(?<!\bI )(?<!\bwe )\bwould\b"
)
# Words right before a verdict that leave it to something else.
_BESIDE = re.compile(
    rf"(?i)(?:\b(?:not|no|neither|nor|than|over|against|versus|vs|from|anything but|short of|rul(?:e|es|ed|ing) out|"
    rf"prefer\w* [^,.;]* to)(?:{SEP}+(?:an?|the))?|\b(?:output|response|assistant)\s*\(?[a-z]\)?\W*(?:or|nor)|"
    rf"['’]s(?: own)?(?: (?:opinion|view) (?:is|was))?|"
    rf"(?:['’]s|its|last|final|first|closing) (?:\w+ )?(?:line|sentence|words?|paragraph)(?: (?:is|are|was|reads))?:?|"
    rf"\b(?:nicht|keine?|pas|non|nunca|не|não)(?:\s\w+)?|不[^，。]{{0,4}})[\s*_\"'`“(\[]*\Z"
    rf"|\b(?:perhaps|maybe|possibl[ey]|so far|where|in (?:which|that) case|otherwise|at first(?: sight| glance)?|"
    rf"initially|first|initial|previous){SEP}*\Z"
)
_EXAMPLE = re.compile(r"(?i)\b(?:for example|for instance|such as|e\.g\.|in the form(?:at)?)[^.]{0,20}\Z")
_CHOOSING = (
    r"(?!\s+(?:(?:I|we|one|you) (?:have|had|must|need|were|am|are)\b[^,]{0,20}\b(?:to|forced|pressed)\b|you ask me|any|"
    r"nothing else))"
)
_SUPPOSED = re.compile(
    rf"(?i)\A{SEP}*(?:(?:and|but|so|then|now|also|only|however|I (?:think|believe|would say)(?: that)?){SEP}+)*"
    r"(?:if|had|were|should|unless|suppose|supposing|assuming|imagine|in case|provided|as long as|depending on|"
    rf"otherwise)\b{_CHOOSING}(?:(?!\bbut\b).)*\Z"
    rf"|(?:\bthat|\be\.g\.|[:;—–(]|\band|\bbut),?\s+(?:if|unless|assuming)\b{_CHOOSING}[^,]*(?:,\s*(?:\w+\s+){{0,4}})?\Z"
    r"|\A\W*to (?:reach|get|earn|deserve|merit|receive|win|achieve)\b[^,]*\Z|(?:如果|假如|若是)[^。]*\Z"
)
_FEATURE = (
    r"(?:style|speed|tone|length|grammar|layout|structure|content|details?|depth|humou?r|spelling|wording|writing|"
    r"(?:first|second|third|last|next) (?:criterion|question|part|step|turn|point)|\w+(?:ity|ness|racy|ency))"
)
_ASPECT = re.compile(
    rf"(?i)(?:\A|[,;:(]|\b(?:and|but|thus|so)){SEP}*(?:in terms of|with (?:respect|regard) to|regarding|concerning|"
    r"when it comes to|as far as|from an? [^,]{1,30} (?:point of view|perspective)|for \w+ alone|"
    rf"(?:on|by|for|in) (?:the )?{_FEATURE})\b(?![^,]*\b(?:all|every\w*|overall|instructions?|task)\b)"
    r"[^,;]{0,40}(?:,[^,;]{0,30})?\Z"
)
_REPORT = re.compile(
    r"(?is)\b(?:assistants?|responses?|outputs?|answers?|repl(?:y|ies)|models?|candidates?|text|author|writer|essay|"
    r"comment|note|code|program|instructions|it|which|reader|people|public|critic|scientist|jur(?:y|or))\b(?:\W+(?!(?:I|be|user|you)\b)\w+){0,4}?\W+"
    r"(?:says?|said|saying|claims?|claimed|claiming|states?|stated|insists?|asserts?|declares?|argues?|writes?|wrote|"
    r"tells?(?! us)|told|announces?|demands?|asks?|asked|begs?|orders?|urges?|instructs?|pleads?|requests?|requested|"
    r"contends?|maintains|boasts?|alleges?|ends|opens|begins|starts|closes|concludes|finishes|prints?|reads(?=\W*[:,])|contains?|"
    r"includes?|(?-i:would|might|may|could) \w+)\b(.*)\Z"
)
_RESUMED = re.compile(
    rf"(?i)\b(?:therefore|thus|hence|but|whereas|which|because|since)\b|\bso(?={SEP}*\Z| (?:I|my|the)\b)|"
    r"\bI (?!must|should|have)(?:\w+ ){0,2}?"
    r"(?:choose|give|rate|pick|prefer|select|go|vote|award|find|conclude|think|say|assign)\b|"
    r"\b(?:and|it) (?:\w+ )?(?:deserves|earns|gets|merits|receives|scores|wins|is)\b|"
    r"\b(?:earning|deserving|meriting|making|giving|scoring)\b"
)
# How what is reported goes on up to a verdict: with a word that takes it, or a colon after words about words.
_LINKED = re.compile(
    rf"(?i)(?:\A{SEP}*(?:,[^,]*,)?|\A(?:\W+(?:a|at|in|with|as|the|this|its|own|very|end|follows|following|line|words?|"
    r"sentence|text|me|which|judge|evaluator|conclude|\w+ly)){0,6}[^\w:]*:|\A[^,;:]{0,25}\b(?:an?|the)|"
    rf"\b(?:that|with|for|to|as|print|output|write|writing|say|saying|award|give|choose|answer|conclude|ranking|order)){SEP}*\Z"
)
_ACCORDING = re.compile(
    r"(?i)\baccording to (?:the |its |their )?(?:\w+ )?(?:response|assistant|output|answer|author|candidate)\b"
)
_OTHERS = re.compile(
    r"(?is)(?:\b(?:people|readers?|graders?|judges|annotators|colleagues?|critics|others|someone|anyone|one|some|many)\b"
    r"(?:\W+\w+){0,3}?\W+(?:may|might|would|could|gave|said|voted|chose)|\A\W*(?:whoever|anyone who|those who|giving|"
    r"choosing|awarding|picking|answering))\b([^,]*)\Z"
)
_NAME_BEFORE = re.compile(rf"(?i)\A{SEP}*(?:an?|(?:the(?: \w+)?)|assistant|response|answer)?{SEP}*\Z")
_NAME_AFTER = re.compile(
    r"\A[\"'`”’*_]*\s(?:(?!(?:is|as|wins|its|this|thus|beats|was|plus|versus|vs|less|unless|towards|besides|across|"
    r"deserves|seems|appears|takes|stands|remains|emerges|prevails|regardless|whereas|perhaps|follows)\b)[a-z]+s|"
    r"forgot|had|did|in the \w+ (?:response|answer|reply)|at the end|"
    r"is (?:reserved|for|given|meant|used|only))\b"
)
_COMPARED = re.compile(r"\b(?:better|best|more|superior)\b")
_SHAKEN = re.compile(
    r"(?i)\A[\s\"'`”’*_]{0,4}(?:(?:would|could|might|may) (?:be|have|seem|also)\b(?! my)|"
    r"(?:is|was|seems|looks) (?:not|n't|wrong|incorrect|tempting|too|ruled out|out of the question|also possible|"
    r"what)\b|to (?:win|count)\b|(?:\w+\s+){1,5}would (?:have|need) to\b|"
    r",?\s*(?:perhaps|maybe|possibly|I guess|otherwise)\b|"
    r",?\s*(?:only |but only )?(?:if(?! any| only| not)|unless|provided|assuming|as long as|in case|depending on)\b)"
)
_TIE = re.compile(r"(?i)\A[\s\"'`”’*_]{0,4}for a (?:tie|draw)\b")


def led(before: str) -> bool:
    """Whether nothing but the announcement of a verdict stands before one in its sentence."""
    return _LED.fullmatch(before) is not None


def announced(before: str) -> bool:
    """Whether the announcement of a verdict ends what stands before one."""
    return _LEAD_END.search(before) is not None


def announcement(text: str, start: int) -> int:
    """Where the announcement of a verdict at ``start`` begins; ``start`` itself where there is none."""
    found = _LEAD_END.search(text, max(0, start - 60), start)
    return found.start() if found else start


def weight(before: str) -> int:
    """How final a verdict says to be by what stands before it: 2 for overall ones, 1 for a conclusion, else 0."""
    return 2 if led(before) or _FINALLY.search(before) else int(bool(_THEREFORE.search(before)))


@lru_cache(maxsize=256)
def dismissed(before: str, after: str, name: bool, whole: bool) -> bool:
    """Whether a verdict is denied, supposed, asked, reported, weighed or only mentioned.

    Args:
        before: what stands before it in its sentence.
        after: what stands after it in its sentence.
        name: whether it may be meant as the name of a response (or of a grade).
        whole: whether it cannot be about one aspect only.
    """
    if after.rstrip(" *_").endswith("?") or _SHAKEN.search(after) or _EXAMPLE.search(before):
        return True
    core = _LEAD_END.sub("", re.sub(r"(?i)\btherefore\W*\Z", "", before))
    if _BESIDE.search(core) or _reported(core) or _SUPPOSED.search(core):
        return True
    if not re.search(r"\w", core) and core != before:
        return False
    core = _AFFIRMED.sub("", _ASIDE.sub("", core))
    clause = _CLAUSE.split(core)[-1]
    if (not whole and _ASPECT.search(before)) or (_TIE.search(after) and re.search(r"\w", core)):
        return True
    if name and _NAME_BEFORE.search(clause) and _NAME_AFTER.search(after) and not _COMPARED.search(after):
        return True
    if re.fullmatch(r"\W*for\W*", core, re.IGNORECASE) and after.startswith(" to "):
        return True
    return bool(_LINK.search(clause) and (_DENIED.search(clause) or _UNSURE.search(clause)))


def _reported(core: str) -> bool:
    """Whether a response, or somebody else than the judge, says it."""
    for pattern in (_REPORT, _OTHERS):
        found = pattern.search(core)
        if found and not _RESUMED.search(found[1]) and _LINKED.search(found[1]):
            return True
    return bool(_ACCORDING.search(core) and not _RESUMED.search(core))
