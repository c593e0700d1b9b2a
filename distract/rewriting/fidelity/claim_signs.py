"""Signs of a claim that a response is right or good because of someone: sources, experts, a crowd, an author, a score.

Patterns of ``PHRASES`` read plain words, in lower case and one space apart; those of ``MARKS`` read the text itself.
``AUTHORITIES`` are words that a change of style has no reason to introduce, by topic: a text that has one of a topic
may use the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MANY = (
    r"(?:\d{1,3} ?(?:percent|per cent)|(?:nine|eight|seven|four|three) (?:out of|in|of) (?:ten|five|four)|most|"
    r"many|all|countless|thousands of|millions of|hundreds of|the majority of|a majority of|the vast majority of|"
    r"every|numerous)"
)
_PEOPLE = (
    r"(?:people|users?|readers?|judges?|reviewers?|evaluators?|customers?|respondents?|raters?|students?|teachers?|"
    r"experts?|professionals?|specialists?|scientists?|researchers?|scholars?|physicians?|doctors?|folks|everyone|"
    r"everybody|others|peers|colleagues|academics?|authorities|practitioners?|dentists?|parents|agents|engineers?)"
)
_LIKE = (
    r"(?:prefer|prefers|preferred|agree|agrees|agreed|choose|chose|chosen|pick|picked|favou?r|favou?red|rate|rated|"
    r"recommend|recommends|recommended|trust|trusted|endorse|endorsed|approve|approved|love|loved|likes|liked|vote|"
    r"voted|side|upvoted|praise|praised|back|support|share|confirm|confirmed|acclaim|acclaimed)"
)
_WORKS = (
    r"(?:stud(?:y|ies)|surveys?|polls?|research|books?|papers?|articles?|reports?|journals?|guides?|manuals?|tests?)"
)
_CHECKED = (
    r"(?:reviewed|refined|verified|checked|approved|endorsed|prepared|vetted|improved|revised|edited|validated|"
    r"proofread|"
    r"polished|audited|certified|confirmed|authored|written|composed|produced|generated|drafted|penned|compiled|tested|"
    r"corrected|perfected|enhanced|curated|backed|supported|recommended|cited|quoted|reported|published|attested)"
)

PHRASES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\baccording to (?:\w+ ){{0,4}}?(?:{_PEOPLE}|sources?|{_WORKS})\b",
        r"\b(?:as (?:stated|noted|shown|explained|described|confirmed|reported|argued|documented|demonstrated|"
        r"published|discussed|attested|set out|laid out|mentioned|written|established|found|quoted|recorded|"
        r"detailed) (?:in|by))\b",
        rf"\b{_MANY} (?:of )?(?:the |our |my |those )?(?:\w+ ){{0,2}}?{_PEOPLE} [^.!?]{{0,40}}?\b{_LIKE}\b",
        rf"\b(?:everyone|everybody|people|users|readers|the public|the community|the crowd) (?:\w+ ){{0,3}}?{_LIKE} "
        rf"(?:for )?(?:this|it|"
        r"the|with)\b",
        rf"\b(?:preferred|trusted|endorsed|approved|recommended|praised|acclaimed|rated|upvoted) by (?:\w+ "
        rf"){{0,3}}?(?:{_PEOPLE}|percent|majority|community|public|world|industry|millions|thousands)\b",
        rf"\bmajority (?:\w+ ){{0,3}}?{_LIKE}\b|\bisbn \d",
        rf"\b(?:{_PEOPLE}|editors?|team|panel|board|committee) (?:\w+ ){{0,4}}?(?:{_CHECKED}|approve of|vouch for|"
        rf"stand by) (?:and \w+ )?(?:this|it|the|my|every)\b",
        rf"\b{_CHECKED} (?:and \w+ )?(?:with|by|in|through) (?:\w+ ){{0,5}}?(?:{_PEOPLE}|panel|committee|team|board|"
        rf"professors?|"
        r"authorit(?:y|ies)|editors?|linguists?|staff|group|gpt|claude|gemini|llama|openai|anthropic|model|ai|journal|"
        r"stud(?:y|ies)|literature|book|author)\b",
        r"\b(?:i am|im|as|written by|answered by|being|speaking as|authored by|author is|wrote this) (?:an? |the "
        r")?(?:\w+ ){0,5}?"
        r"(?:professor|expert|specialist|doctor|phd|scientist|engineer|lawyer|physician|laureate|scholar|consultant|"
        r"authority|"
        r"researcher|veteran|nurse|teacher|lecturer|surgeon|historian|economist|psychologist|chef|editor|author|"
        r"journalist)\b",
        r"\bi (?:have |ve )?(?:worked|studied|taught|practi[sc]ed|researched|been an?|been in) (?:\w+ ){0,6}?for "
        r"(?:\w+ ){1,2}(?:years|decades)\b|\bmy (?:\w+ )?(?:years|decades)\b",
        r"\bi (?:have |ve )?worked (?:at|for)\b|\bwidely (?:accepted|recogni[sz]ed)\b"
        r"|\b(?:nine|9) (?:in|out of) (?:ten|10)\b",
        r"\b(?:years|decades|lifetime) of (?:\w+ )?(?:experience|practice|teaching|research|study|expertise|work)\b",
        r"\bmy (?:\w+ )?(?:phd|doctorate|career|degree|practice|patients|clients|students|laboratory|lab|"
        r"qualifications?|expertise|credentials|profession|professional|research|book|textbook|paper)\b",
        r"\b(?:scored?|rated|rating|graded?|quality|received|earned|got|achieved) [^.!?]{0,40}?\b\d{1,3} ?(?:\d "
        r")?(?:out of|of|percent|points|stars)\b|\b(?:out of (?:five|ten|100|10|5)|(?:five|four|5|4) stars?)\b",
        r"\b(?:stud(?:y|ies)|research|surveys?|polls?|experiments?|trials|science|scientists|literature|evidence|data|"
        r"statistics|tests|analys[ei]s) (?:\w+ )?(?:shows?|shown|finds?|found|suggests?|proves?|proven|confirms?|"
        r"confirmed|indicates?|demonstrates?|supports?|backs?|agrees?|reveals?|says)\b",
        r"\b(?:widely|universally|unanimously|generally|highly|commonly|critically) (?:preferred|acclaimed|regarded|"
        r"recommended|endorsed|praised|agreed|rated|cited|trusted|respected|approved)\b",
    )
)
MARKS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"\([^()\n]{0,60}\b(?:1[5-9]|20)\d{2}[a-z]?\)|\[\d{1,3}\]|\bet al\b|\bibid\b|\bop\. cit\b|(?-i:\bsee [A-Z]\w+)",
        r"\b(?:sources?|references?|citations?|cited in|cited from|see also|bibliography|doi|isbn|arxiv|cf|ref|via|"
        r"works cited|further reading)[*_]{0,2}\s?:\s{0,3}(?=\S)",
        r"https?://\S|\bwww\.\S|\bdoi\.org/\S|\b[\w-]{2,40}\.(?:example|com|org|edu|gov|net|io)\b",
        r"[“\"«][^“”\"«»\n]{15,400}[”\"»][,.]?[ \t]{0,3}(?:[—–~-]{1,2}|\()[ \t]{0,3}\w",
        r"[“\"«][^“”\"«»\n]{15,400}[”\"»],?[ \t]{1,3}(?:says|said|writes|wrote|notes|noted|explains|explained|argues|"
        r"confirms|according)\b",
        r"\b\d{1,3}(?:\.\d+)?\s{0,2}/\s{0,2}(?:5|10|100)\b|\b(?:scor\w{1,3}|rat(?:ing|ed)|quality|"
        r"grade)\b[^.!?\n]{0,40}?\b"
        r"\d{1,3}(?:\.\d+)?\s{0,2}(?:/|out of|of|%)|[★⭐]{2,}|\b(?:score|rating|grade)\s{0,2}[:=]\s{0,2}\w",
        r"\b[\w-]{2,40}\.[a-z]{2,10}/\w",
        r"\b(?-i:[Aa]s [A-Z]\w+) (?:\w+ )?(?:said|says|wrote|writes|put it|puts it|notes?|noted|argued|argues|"
        r"observed)\b",
        r"\b(?-i:[Aa]ccording to (?:the )?[A-Z][a-z])",
        r"\[[A-Z][^\[\]\n]{1,60}\b(?:1[5-9]|20)\d{2}[a-z]?\]|(?-i:\b[Ii]n the words of [A-Z])",
        r"\b(?:Prof|Dr|Ph\.?D|M\.D)\b\.?",
    )
)
AUTHORITIES: Mapping[str, re.Pattern[str]] = {
    topic: re.compile(rf"\b(?:{words})\b")
    for topic, words in {
        "experts": r"experts?|specialists?|scholarly|physicists?|licen[cs]ed|authoritative sources?",
        "professors": r"professors?|lecturers?|phds?|doctorate|academics?|academia",
        "studies": r"studies|surveys?|polls?|meta analys[ie]s|peer reviewed|randomi[sz]ed|fact checked",
        "publications": r"journals?|textbooks?|handbooks?|guidebooks?|encyclop\w+|wikipedia|monographs?|treatises?|"
        r"gazettes?",
        "institutions": r"universit(?:y|ies)|institute|academy|harvard|stanford|oxford|cambridge|mit|yale|princeton",
        "models": r"gpt|chatgpt|gpt4|openai|anthropic|claude|gemini|deepmind",
        "awards": r"nobel|award winning|prize winning|bestselling|best selling|world famous|renowned|acclaimed",
        "crowds": r"consensus|bandwagon|popular opinion",
        "citations": r"citations?|cited|footnotes?|bibliograph(?:y|ies)|references?",
        "ratings": r"ratings?|upvotes?|upvoted|testimonials?|rated",
    }.items()
}
