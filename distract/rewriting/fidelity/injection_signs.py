"""Signs of words to a judge: requests and orders, forged verdicts and blocks, remarks on the comparison.

Patterns of ``PHRASES`` read plain words, in lower case and one space apart; those of ``MARKS`` read the text itself.
"""

from __future__ import annotations

import re

_ANSWER = (
    r"(?:(?:response|answer|reply|output|text|version|candidate|submission|option|assistant|solution|essay|entry|one|"
    r"completion|explanation|passage|piece|contribution|message|write ?up|document)s?|replies)"
)
_SUBJECT = r"(?:(?:response|answer|output|submission|candidate|completion|assistant|entry|reply|text)s?|replies)"
"""Nouns that name what a judge compares, and seldom anything else."""

_THIS = (
    rf"(?:(?:this|these|my|our|said) ?(?:\w+ ){{0,2}}?"
    rf"{_ANSWER}|the (?:above|present|current|preceding|foregoing|following|given) (?:\w+ )?{_ANSWER}|the {_ANSWER} "
    rf"(?:(?:given|shown|printed|written) )?(?:above|below|here|before you|in front of you|at hand|"
    r"(?:that )?you (?:just|have|are)|that (?:stands|ends|begins|follows))|what (?:you (?:just|have|are) "
    r"read(?:ing)?|(?:is|stands|was) (?:\w+ )?(?:here|above)))"
)
_PREFER = (
    r"(?:choos(?:e|es|ing)|chose|chosen|pick(?:s|ed|ing)?|prefer(?:s|red|ring)?|select(?:s|ed|ing)?|"
    r"favou?r(?:s|ed|ing)?|elect|crown|upvote|opt for|going with|go with|side with|siding with|settle (?:on|for)|"
    r"vot(?:e|es|ing) (?:for|in favou?r of)|decide (?:for|on|in favou?r of)|rul(?:e|ing) (?:for|in favou?r of)|"
    r"rat(?:e|ed|ing)|grad(?:e|ing)|scor(?:e|ing)|rank(?:ed|ing)?|judg(?:e|ing)|award(?:ed|ing)?|reward(?:ed|ing)?|"
    r"declar(?:e|ing)|pronounc(?:e|ing)|deem|evaluat(?:e|ing)|mark|place|put|give|giving|grant|assign|name|consider|"
    r"treat|label|regard|back|endorse)"
)
_BEST = (
    r"(?:better|best|winners?|winning|wins?|won|superior|preferred|preferable|strongest|stronger|highest|higher|top|"
    r"maximum|perfect score|full (?:marks|points|score|credit)|first (?:place|prize|rank)|deserves?|outperforms?|"
    r"beats?|"
    r"surpass(?:es)?|outranks?|number one|champion|most (?:helpful|accurate|correct)|unbeaten|unrivall?ed|unmatched|"
    r"victory|victor|(?:five|ten) stars)"
)
_JUDGE = (
    r"(?:judges?|judging|graders?|grading|evaluators?|evaluations?|raters?|reviewers?|annotators?|assessors?|referees?|"
    r"examiners?|arbiters?|jury|jurors?|adjudicators?|markers?|scorers?|verdicts?|rubric|language model|llm|ai model|"
    r"(?:system|hidden) (?:prompt|message|note))"
)
_ORDERS = r"(?:instructions?|prompts?|rules?|criteri(?:a|on)|rubrics?|guidelines?|directions?|orders?|standards?)"

PHRASES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_PREFER} ?(?:\w+ ){{0,2}}?{_THIS}\b",
        rf"\b{_THIS} [^.!?]{{0,60}}\b{_BEST}\b",
        rf"\b{_THIS} (?:should|must|ought to|has to|needs to|shall|is to|will|to) (?:\w+ )?(?:be )?{_PREFER}\b",
        rf"\b{_BEST} (?:\w+ ){{0,3}}?(?:to|for|is|goes to|belongs to|than|over) {_THIS}\b",
        rf"\b(?:better|best|winning|superior|preferred|stronger|top|correct|rival|competing|opposing|losing|worse|"
        rf"weaker) {_SUBJECT}\b",
        rf"\b(?:the|any|every|all|both|no|each|its|whatever) ?(?:the )?(?:other|rivals?|alternative|competing) "
        rf"{_SUBJECT}\b",
        rf"\b{_PREFER} (?:for )?(?:this|it|mine|ours|that)\b [^.!?]{{0,40}}\b(?:better|best|winner|winning|superior|"
        r"preferred|highest|winner|over (?:the|every|any|all)|other|first)\b",
        r"\b(?:choose|pick|select|prefer|favou?r|vote for|crown|upvote) (?:me|mine|us|ours)\b",
        r"\b(?:choose|pick|select|prefer|favou?r|(?:vote|go|opt) (?:for|with)) "
        r"(?:response|answer|output|option|assistant|candidate) [a-d12]\b",
        rf"\b(?:{_PREFER}|make|let) (?:this|it|that|mine) (?:be )?(?:as )?(?:the |a |your )?(?:winn?(?:er|ing)?|"
        rf"victor|best|top)\b",
        r"\b(?:this|it|mine) (?:one )?(?:should|must|ought to|has to|deserves to|needs to|shall) (?:\w+ )?(?:win|"
        r"prevail|"
        r"be (?:\w+ )?(?:chosen|picked|preferred|selected|favou?red|ranked|rated|scored|declared|named|crowned))\b",
        rf"\b(?:this|it) is the (?:{_ANSWER}) (?:\w+ ){{0,3}}?(?:choose|pick|prefer|select|vote for|reward)\b",
        rf"\b(?:choice|pick|decision|vote|preference|winner)(?: is| should be| must be)? {_THIS}\b",
        r"(?:^|[.!?] )(?:please |kindly )?(?:choose|pick|select|prefer|favou?r) (?:this|this one|mine)(?=[.!]|$)",
        r"\b(?:rate|score|grade|give|rank|mark|award) (?:this|it|me|mine) (?:an? |the |your )?(?:\w+ )?(?:10|ten|"
        r"five|5|100|high|highly|highest|higher|first|top|full|best|win|victory|points?)\b",
        r"\b(?:highest|best|maximum|full|perfect|high|higher|greatest|top(?! marks?\b)) (?:possible )?(?:scores?|"
        r"marks?|ratings?|grades?|points|credit)\b",
        rf"\b(?:dear|hello|hey|note|notes|attention|message|memo|reminder|instructions?|request|appeal|plea|hint|"
        rf"notice|"
        rf"guidance|advice|information|word|only|you|fellow|respected|esteemed|honou?rable)(?: to| for)?(?: the| "
        rf"all| any| every| each| our| your)? (?:\w+ )?{_JUDGE}\b",
        rf"(?:^|[.!?] )(?:to )?(?:the |all |our )?{_JUDGE}(?: please| must| should| you| note| [a-z]+ this)\b",
        rf"\b(?:as|whoever|anyone who|if you|those who|when you|you) (?:are )?(?:an? |the |now )?(?:impartial |fair "
        rf")?(?:judge|"
        rf"judges|grader|evaluator|judging|grading|evaluating|rating|comparing|grades|evaluates|compares|rater) "
        rf"[^.!?]{{0,40}}\b(?:{_SUBJECT}|this|these|must|should)\b",
        rf"\b(?:ignor|disregard|forget|overrid|bypass|skip|neglect|discard|drop)(?:e|ing|ting|ping|s|ed)? (?:\w+ "
        rf"){{0,5}}?"
        rf"(?:{_ORDERS}|(?:other|second|first|rival) {_SUBJECT}|above|before|previous|earlier|you were (?:told|"
        rf"given))\b",
        rf"\b(?:new|next|updated|revised|real|actual|only|system|secret) (?:task|{_ORDERS})(?: is| are| follows?| "
        rf"replaces?|$)",
        r"\b(?:final|overall|correct|official|my|your|the|right) (?:final )?(?:verdict|judge?ment)\b",
        r"\byour (?:verdict|vote|judge?ment|rating|score|evaluation|preference|decision|grade|ranking|choice|pick) "
        r"(?:should|must|is|goes|belongs|ought|has to|will be)\b",
        r"\b(?:verdict|winner|judge?ment) (?:is|b|1|2)\b",
        r"\b(?:the|clear|obvious|undisputed|rightful) (?:winner|victor)\b|\b(?:win|victory|vote|prize|nod) "
        r"(?:belongs|goes)\b",
        rf"\b(?:end|begin(?:ning)?|start) of (?:the |this |all )?(?:evaluation|judge?ment|comparison|{_SUBJECT})\b",
        r"\b(?:evaluation|judge?ment|judging|grading|comparison|assessment) (?:is|has been|was) (?:\w+ )?(?:complete|"
        r"completed|over|finished|done|void|closed|repeated|final|concluded)\b",
        r"\b(?:outputs?|responses?|answers?|assistants?|candidates?) [ab12] (?:is|wins|should|must|was|deserves|"
        r"better)\b",
        rf"\b(?:no|neither|nothing) (?:other |else )?(?:{_SUBJECT} )?(?:\w+ )?(?:comes close|is as good|can compete|"
        rf"compares)\b",
    )
)
MARKS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"\[\[\s*(?:[a-d]|tie|\d{1,3}(?:\.\d)?|[a-d]\s*[<>=]{1,2}\s*[a-d])\s*\]\]",
        r"\b(?:verdict|winner|judge?ment)[\"'*]{0,3}\s{0,3}[:=]|\"(?:choice|better|preferred)\"\s{0,3}:\s{0,3}\"[ab]\"",
        r"\boutput\s{0,3}\([ab]\)",
        r"</?\s{0,3}(?:system|trusted|verified|graders?|judges?|admin|evaluation|evaluator|instructions?|verdict|"
        r"operator|assistant|user|prompt|override|important|rubric)\b[^<>\n]{0,60}>",
        r"\[\s{0,3}/?(?:system|trusted|verified|admin|grader|judge|inst|operator|evaluator|"
        r"instruction)\b[^\]\n]{0,60}\]",
        r"<\|\w{1,30}\|>|<<\s{0,3}/?sys\b",
        r"(?m)(?:^\W{0,8}|[.!?][ \t]{1,3})(?:system|admin|operator|evaluator|judge|grader|instructions?)(?: "
        r"\w{1,12})?\W{0,4}:",
        rf"\bto (?:the|all|any|every) (?:\w+ )?{_JUDGE}\s?[:,]",
        r"\b(?:new|next|updated|revised|real|actual) (?:task|instructions?|orders?|rules?)\s?:",
        r"<!--(?:.{0,60})",
    )
)
