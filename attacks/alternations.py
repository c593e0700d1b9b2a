"""Pairs of English words that say the same in the same tone, each with the words around them that exclude other senses.

A pattern never matches where a reader might take the new word in another sense: it names what stands before and after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Rule = tuple[re.Pattern[str], str]

_DETERMINER = r"(?:the|a|an|one|your|my|our|its|his|her|their)\b"
_OBJECT = rf"(?={_DETERMINER})"
_PRONOUN = r"(?:you|they|we|he|she|it|there|I)"
_FINITE = (
    r"(?:is|are|was|were|can|could|will|would|has|have|had|may|might|must|should|need|needs|do|does|did)\b(?!['’])"
)
_NUMBER = r"(?:\d+(?:[.,]\d+)*|two|three|four|five|six|seven|eight|nine|ten) [a-z]"
_BEFORE_NUMBER = r"\b(is|are|was|takes?|costs?|lasts?|of|for|in|at|by|with|within|after|use|every)"
_NOT_DENIED = r"(?<!no )(?<!not )(?<!any )(?<!much )(?<!little )\b"
_BEFORE_VERB = r"\b(to|you|we|they|I|can|could|may|might|will|would|should|and|then)"
_STEPS = (
    r"(?:add|ask|check|cut|give|go|leave|let|look|move|open|pour|put|read|rinse|send|set|take|tell|try|turn|wait)\b"
)
_JOINED = r"(?:(?<=, )|(?<=and )|(?<=or )|(?<=then ))"
_ADVERBIAL = rf"(?=(?:a|an|the|with|as|even|by|in|for|from|at|on|{_NUMBER})\b)"
_AID = (
    r"(?:achieve|address|avoid|boost|bring|build|create|develop|determine|ensure|explain|find|foster|identify|improve|"
    r"increase|keep|learn|lower|maintain|make|manage|move|prevent|promote|protect|provide|raise|reduce|relieve|"
    r"remove|solve|strengthen|support|understand)\b"
)
_THAT_SAID = r"(?:(?:make|makes|making) sure|ensures?|ensuring|means|hopes?|believes?|thinks?)"
_ASKED = r"(?<!do you )(?<!did you )(?<!what I )(?<!what you )(?<!as I )(?<!as we )"
_THING = (
    r"(?:activit(?:y|ies)|algorithm|approach(?:es)?|behaviou?r|book|cell|code|component|compound|condition|country|"
    r"device|disease|event|exercise|feature|food|force|framework|function|game|language|machine|material|method|"
    r"model|number|object|place|platform|practice|problem|process(?:es)?|product|program|project|protein|resource|"
    r"sentence|service|skill|solution|song|step|strateg(?:y|ies)|structure|substance|system|task|technique|"
    r"technolog(?:y|ies)|tool|value|variable|website|word)s?"
)
_DOES = (
    r"(?=(?:is|are|was|were|can|could|will|would|may|might|has|have|had|allows?|provides?|uses?|helps?|includes?|"
    r"contains?|requires?|makes?|enables?|works?|involves?|takes?|returns?|means?)\b)"
)
_MANY = r"\b(different|various|several|many|other|all|these|those|some|common|certain|two|three|four|most|the|what) "
_PASSIVE = (
    r"(?:designed to|characterized by|characterised by|caused by|located in|composed of|made of|filled with|"
    r"surrounded by|dedicated to|based on|intended to)\b"
)
_WHERE = r"(?:situation|case|place|area|country|countries|city|cities|environment|room|world|region|culture|society)s?"
_SORT = r"(?:new|different|understandable|free|safe|separate|natural|normal|random|unknown|possible|clear)\b"
_SORTS = r"(?:ways|types|forms|kinds|methods|techniques|tools|aspects|factors|areas|sources|strategies|activities)\b"
_PLENTY = r"(?:\d+(?:\.\d+)?%|\d[\d,.]*(?: (?:million|billion))? (?:people|countries|species|users|million|billion)\b)"
_END = r"(?=[.;,)]| (?:is|are|can|will|have|has|were|was|may)\b)"
_NOUN = r"(?=[.;,)]| (?!for|to|with|than|of|about|in|and|or|as|but)[a-z])"
_FEATURE = r"[a-z]{2,}(?:[^r]al|ive|ous|ful|able|ible|ic|ing|ant|ent)"
_ABSTRACT = (
    r"(?!installation|configuration|preparation|implementation|evaluation|introduction|conclusion|production|"
    r"distribution|consumption|submission|question|addition|subtraction|multiplication|division|creation|"
    r"presentation|completion|absorption|generation|execution|collection|publication|identity|supply|demand)"
    r"[a-z]{3,}(?:tion|ment|ness|ity|ance|ence|ship|acy|ism)"
)
_PLURAL = (
    r"(?!pros|ups|highs|causes|questions|strengths|advantages|benefits|terms|rights|buyers|inputs|husbands|mothers|"
    r"brothers|ladies|births|wins|arts|nuts|beginnings|goods|trials|hopes|losses|days|nights|sights|its|his|thanks|"
    r"steps|bits|sons|parents|plans|needs|wants|goals|likes|dislikes|costs|gains|rules|symptoms|rises|falls|profits)"
    r"[a-z]{3,}[^s\Wiu]s(?<!less)"
)
_NO_VERB = r"(?<!be )(?<!is )(?<!are )(?<!was )(?<!were )(?<!been )"
_SPAN = r"(?:(?:few|several|two|three|five|ten) )?(?:decade|year|month|week|day)s?\b"
_POINT = r"(?:goals?|purpose|reasons?|causes?|difference|differences|source|function|focus|advantage|concern|aim)\b"
_THEM = r"users|people|us|them|you|individuals|students|developers|businesses|companies"
_EVERYWHERE = r"people|countries|companies|cities|cultures|communities|millions|places|users|fans|nations|regions"
_ADJECTIVES = (
    r"(?:affordable|academic|beautiful|clean|clear|cognitive|comfortable|creative|cultural|digital|durable|easy|"
    r"economic|educational|effective|efficient|emotional|engaging|entertaining|environmental|ethical|fast|financial|"
    r"flexible|friendly|fun|global|healthy|informative|innovative|intellectual|interesting|legal|meaningful|mental|"
    r"modern|moral|peaceful|personal|physical|political|positive|powerful|practical|productive|professional|"
    r"psychological|quiet|reliable|respectful|safe|scientific|secure|simple|social|spiritual|supportive|sustainable|"
    r"technical|unique|versatile|warm)"
)
_NOUNS = (
    r"(?:accuracy|animals|anxiety|art|beaches|birds|books|cities|collaboration|colou?rs|comfort|commitment|"
    r"communication|compassion|confidence|creativity|culture|dedication|depression|determination|efficiency|empathy|"
    r"films|fish|flexibility|flowers|fruits|games|guidance|happiness|honesty|hospitals|insects|integrity|joy|kindness|"
    r"knowledge|lakes|materials|methods|minerals|mountains|movies|music|nuts|parks|passion|patience|planets|plants|"
    r"privacy|productivity|relaxation|resources|respect|restaurants|rivers|schools|security|seeds|shapes|skills|"
    r"stability|strength|stress|support|techniques|technology|tension|textures|theatre|tools|towns|toys|transparency|"
    r"trees|trust|values|vegetables|vitamins)"
)
_ALONE = (
    r"(?<!very )(?<!more )(?<!most )(?<!less )(?<!so )(?<!too )(?<!as )(?<!not )(?<!, )(?<!ly )(?<!quite )(?<!and )"
    r"(?<!or )(?<!-)(?<!no )(?<!non )"
)
_LED = (
    r"\b(of|in|to|on|as|with|for|their|your|our|its|between|his|her|about|these|including|promotes?|reduces?|improves?|"
    r"builds?|increases?|requires?)"
)
_LISTED = rf"{_LED[:-1]}|the|like|through|such as|requires|against|support|provides?|many|some|other)"

_WORDS = (
    (r"\bfor example\b", "for instance"),
    (r"\bfor instance\b", "for example"),
    (r"(?<=\()e\.g\.,? ", "for example, "),
    (r"(?<=\()for example, ", "e.g., "),
    (r"(?<!no )(?<!not )(?<!never )\bsuch as (?!to\b|those\b|this\b|these\b|that\b|it\b)", "like "),
    (r"(?<=[a-z]s)(,?) like (?=[a-z]+(?: [a-z]+)?(?:,|,? and|,? or) )", r"\1 such as "),
    (r"(?-i:\bPerhaps )(?!not\b)", "Maybe "),
    (r"(?-i:\bMaybe )(?!not\b)", "Perhaps "),
    (rf"{_JOINED}perhaps {_ADVERBIAL}", "maybe "),
    (rf"{_JOINED}maybe {_ADVERBIAL}", "perhaps "),
    (r"(?<!more )\bgenerally\b(?! speaking)", "usually"),
    (r"(?<!more )(?<!than )(?<!as )\busually\b", "generally"),
    (r"(?<!more )(?<!as )\btypically\b", "usually"),
    (r"\bmostly\b", "mainly"),
    (r"\bmainly\b", "mostly"),
    (r"\bprimarily\b", "mainly"),
    (r"(?<!not )(?<!so )(?<!as )\bnearly (?!as\b)", "almost "),
    (r"\balmost (?=(?:all|always|every|everyone|everybody|everything|half|ready|done|full|empty|dry)\b)", "nearly "),
    (r"\bstraight away\b", "right away"),
    (r"\bright away\b", "straight away"),
    (r"(?<=[a-z])(?<!\bnot),? too(?=\.)", " as well"),
    (r"\b(?<!that )(?<!for )(some|any|every)one\b(?! of\b)", r"\1body"),
    (r"\b(?<!that )(?<!for )(some|any|every)body\b", r"\1one"),
    (r"\bnobody\b", "no one"),
    (r"\b(?<!not )a lot of (?!how\b|what\b|the\b|who\b)(?=[a-z])", "lots of "),
    (r"\blots of\b", "a lot of"),
    (r"\balthough\b", "though"),
    (rf"(?-i:\bThough )(?={_DETERMINER}|{_PRONOUN} )", "Although "),
    (r", because (?!(?:of|he|she)\b)", ", since "),
    (rf", since (?={_PRONOUN} (?:is|are|can|will|do|does|may)\b)", ", because "),
    (r"(?<!so )\bas soon as (?=(?:the|it|they|he|she|we|your)\b)", "once "),
    (r"\bin order to\b", "to"),
    (r"\bbegan\b", "started"),
    (r"\bbegins\b", "starts"),
    (r"\bbegin\b", "start"),
    (r"\bstarts to\b", "begins to"),
    (r"(?-i:\bStart )(?=(?:with|by)\b)", "Begin "),
    (rf"{_BEFORE_VERB} start (?=(?:with|by|to)\b)", r"\1 begin "),
    (rf"\bchoose {_OBJECT}", "pick "),
    (rf"(?-i:\bThen )(?={_STEPS})", "After that, "),
    (rf"{_BEFORE_NUMBER} about (?={_NUMBER})", r"\1 around "),
    (rf"{_BEFORE_NUMBER} around (?={_NUMBER})", r"\1 about "),
    (rf"{_NOT_DENIED}more than (?={_NUMBER})", "over "),
    (rf"{_NOT_DENIED}less than (?={_NUMBER})", "under "),
    (rf"\bnext to {_OBJECT}", "beside "),
    (rf"\bbeside (?!the point){_OBJECT}", "next to "),
    (rf"\bclose to {_OBJECT}", "near "),
    (rf"\bnear {_OBJECT}", "close to "),
    # Links between sentences
    (r"\bfurthermore,", "moreover,"),
    (r"\bmoreover,", "furthermore,"),
    (r"\badditionally,", "in addition,"),
    (r"\bin addition,", "additionally,"),
    (r"\bthus, ", "therefore, "),
    (r"\btherefore, ", "thus, "),
    (r"\bin contrast, ", "by contrast, "),
    (r"\bby contrast, ", "in contrast, "),
    (r"\blastly, ", "finally, "),
    (r"(?-i:\bTo summari[sz]e, )", "In summary, "),
    (r"(?-i:\bIn summary, )", "To summarize, "),
    (r"(?-i:\bIn conclusion, )", "To conclude, "),
    (r"(?-i:\bIn general, )", "Generally, "),
    (rf"(?-i:\bIf )([^,.;:\n?!]{{3,80}}), then (?={_DETERMINER}|{_PRONOUN}\b)", r"If \1, "),
    # Words that a clause may have or lack
    (rf"{_ASKED}\b({_THAT_SAID}) (?={_PRONOUN} {_FINITE}|{_DETERMINER} \w+ {_FINITE})", r"\1 that "),
    (rf"\b({_THAT_SAID}|knows?|says?|said) that (?={_PRONOUN} {_FINITE}|(?!one\b){_DETERMINER} \w+ {_FINITE})", r"\1 "),
    (rf"\b(help(?:s|ed|ing)?) to (?={_AID})", r"\1 "),
    (rf"(?<!to )(?<!and )\b(help(?:s|ed)?) (?={_AID})", r"\1 to "),
    (r"\ball of (?=(?:the|these|those|your|our|their|its|his|her|my)\b)", "all "),
    (r"(?<!of )(?<!at )\ball (?=(?:these|those|your|our|their|my) \w+s\b)", "all of "),
    (r"(?<!of )(?<!at )\ball the (?!best|time|way|more|better|same|while|other|rest)(?=\w{3,}s\b)", "all of the "),
    (r"\boutside of (?=(?:the|your|a)\b)", "outside "),
    (r"\bthe reason why\b", "the reason"),
    (r"\bthe way in which\b", "the way"),
    (r"\b(determine|decide|know|see|consider|of) whether or not\b", r"\1 whether"),
    (r"\b(determine|check|see) if (?=(?:the|it|you|they|there|your|a)\b)", r"\1 whether "),
    (r"\b(determine|check|see) whether (?!or\b)(?=(?:the|it|you|they|there|your|a)\b)(?![^.]* or not)", r"\1 if "),
    (r"\b(is|are) able to (?!be\b)(?=[a-z])", "can "),
    (rf"\b({_THING}) that {_DOES}", r"\1 which "),
    (rf"\b({_THING}) which {_DOES}", r"\1 that "),
    (r"(?<=[a-z] )by using (?=(?:a|an|the)\b)", "using "),
    (rf"(?<=[a-z]) (?:that|which) (?:is|are) (?={_PASSIVE})", " "),
    (rf"\b({_WHERE}) in which\b", r"\1 where"),
    (r", as well as (?=[^,;:\n]*(?:[.;]|$))", " as well as "),
    (r"(?<=[a-z]) as well as (?=[^,;:\n]*(?:[.;]|$))", ", as well as "),
    # Words of one meaning
    (rf"\bvarious (?={_SORTS})", "different "),
    (rf"(?<!many )(?<!two )(?<!three )(?<!very )(?<!in )(?<!of )\bdifferent (?={_SORTS})", "various "),
    (r"\bseveral (?=[a-z]+s\b)", "a number of "),
    (r"\ba number of (?=[a-z]+s\b)", "several "),
    (rf"\bover (?={_PLENTY})", "more than "),
    (rf"{_NOT_DENIED}more than (?={_PLENTY})", "over "),
    (r"(?-i:\bHere are )(?=[^.\n]*:)", "Below are "),
    (r"(?-i:\bBelow are )(?=[^.\n]*:)", "Here are "),
    (r"\bthe following (?=(?:[a-z]+ )?[a-z]+s:)", "these "),
    (r"\b(follow|following|take|use|try|consider) these (?=(?:[a-z]+ )?[a-z]+s:)", r"\1 the following "),
    (r"\b(is|are) composed of\b", r"\1 made up of"),
    (r"\bcrucial\b", "vital"),
    (r"\bvital (?!signs|organ|statistics|record)", "crucial "),
    (rf"\bcompletely (?={_SORT})", "entirely "),
    (rf"(?<!not )(?<!n['’]t )\bentirely (?={_SORT})", "completely "),
    (r"\bsignificantly (?!different)(?=[a-z])", "considerably "),
    (r"\bconsiderably\b", "significantly"),
    (r"\breduce (?=the risk|stress)", "lower "),
    (r"\breduces (?=the risk|stress)", "lowers "),
    (r"\breducing (?=the risk|stress)", "lowering "),
    (r"\benhanc(e|es|ed|ing) (?=the|your|their|our|its|overall|his|her)\b", r"improv\1 "),
    (r"\bdifficult (?=to\b|for\b)", "hard "),
    (r"(?<!too )(?<!work )(?<!works )(?<!worked )(?<!try )\b(?:(is|be|are|it|was)) hard (?=to\b)", r"\1 difficult "),
    (rf"\bthe main (?={_POINT})", "the primary "),
    (rf"\bthe primary (?={_POINT})", "the main "),
    (r"\b(a|the) specific (?=[a-z])", r"\1 particular "),
    (r"\b(a|the) particular (?=[a-z])", r"\1 specific "),
    (r"(?<!and)(?<!but)(?<!or), so (?!the story|they say)(?=(?:the|it|you|we|they|I|he|she|there)\b)", ", and so "),
    (r", and so (?=(?:the|it|you|we|they|I|he|she|there)\b)", ", so "),
    (r"\bas a result of (?=(?:the|a|an|its|their|his|her)\b)", "because of "),
    (r"\bis known as\b", "is called"),
    (r"\bespecially (?=(?:if|when|in|for|with|at|during|on|those|the|since|as)\b)", "particularly "),
    (r"\bparticularly (?=(?:if|when|in|for|with|at|during|on|those|the|since|as)\b)", "especially "),
    (rf"{_MANY}types of (?=[a-z])", r"\1 kinds of "),
    (rf"{_MANY}kinds of (?=[a-z])", r"\1 types of "),
    (r"\b(this|that) type of (?=[a-z])", r"\1 kind of "),
    (r"\b(this|that) kind of (?=[a-z])", r"\1 type of "),
    (r"\ba (wide|broad) range of (?!values|temp|numb|freq|prices|ages)", r"a \1 variety of "),
    (r"\ba (wide|broad) variety of ", r"a \1 range of "),
    (r"\ba variety of (?=\w+(?: \w+)?s\b)", "a range of "),
    (rf"{_NO_VERB}(?<!ly )\bdue to (?!the fact)(?=(?:the|its|their|his|her|a)\b)", "because of "),
    (r"(?<!ly )(?<!just )(?<!only )(?<!not )\bbecause of (?=(?:the|its|their|his|her|a)\b)", "due to "),
    (r"\bin spite of\b", "despite"),
    (r"\bdespite (?=(?:the|its|their|his|her|a)\b)", "in spite of "),
    (r"\beach other\b", "one another"),
    (r"\bone another\b", "each other"),
    (r"\b(based|depend|depends|depending|relies|rely|focus|focuses) upon\b", r"\1 on"),
    (r"\bin the long run\b", "in the long term"),
    (r"\bin the long term\b", "in the long run"),
    (rf"\b({_EVERYWHERE}) around the world\b", r"\1 across the world"),
    (rf"\b({_EVERYWHERE}) across the world\b", r"\1 around the world"),
    (rf"\b(over|during|in) the past (?={_SPAN})", r"\1 the last "),
    (rf"\b(over|during|in) the last (?={_SPAN})", r"\1 the past "),
    (r"(?-i:\bMake sure to )(?=[a-z])", "Be sure to "),
    (r"(?-i:\bBe sure to )(?=[a-z])", "Make sure to "),
    (r"\bkeep in mind that\b", "bear in mind that"),
    (r"\bbear in mind that\b", "keep in mind that"),
    (rf"(?<!not )(?<!n't )(?<!no )\ballow(s?) ({_THEM}) to (?=[a-z])", r"enable\1 \2 to "),
    (rf"(?<!not )(?<!n't )\benable(s?) ({_THEM}) to (?=[a-z])", r"allow\1 \2 to "),
    # Pairs whose order says nothing
    (rf"{_ALONE}(?-i:\b({_ADJECTIVES}) and ({_ADJECTIVES}){_NOUN})",
     r"\2 and \1"),
    (rf"(?-i:\b(is|are|be|was|were) ({_FEATURE}) and ({_FEATURE})(?=[.;]))", r"\1 \3 and \2"),
    (rf"(?-i:{_LED} ({_ABSTRACT}) and ({_ABSTRACT}){_END})", r"\1 \3 and \2"),
    (rf"(?-i:{_LED} ({_PLURAL}) and ({_PLURAL}){_END})", r"\1 \3 and \2"),
    (rf"(?-i:{_LISTED} ({_ABSTRACT}), ({_ABSTRACT})(,? (?:and|or)) ({_ABSTRACT}){_END})", r"\1 \5, \2\4 \3"),
    (rf"(?-i:{_LISTED} ({_ABSTRACT}), ({_ABSTRACT})(,? (?:and|or)) ({_ABSTRACT}){_END})", r"\1 \3, \2\4 \5"),
    (rf"(?-i:{_LISTED} ({_PLURAL}), ({_PLURAL})(,? (?:and|or)) ({_PLURAL}){_END})", r"\1 \5, \2\4 \3"),
    (rf"(?-i:{_LISTED} ({_PLURAL}), ({_PLURAL})(,? (?:and|or)) ({_PLURAL}){_END})", r"\1 \3, \2\4 \5"),
    (rf"(?-i:{_LED} ({_NOUNS}) and ({_NOUNS}){_END})", r"\1 \3 and \2"),
)  # fmt: skip

_INTRODUCTIONS = (
    r"(?-i:\b(Today|Sometimes|Often|Recently|Currently|Nowadays|Usually|Eventually|Later|Thus|Therefore|Then|Next|So|"
    r"Typically|Generally|Traditionally|Initially|Originally|First|Here|In th(?:is|at) (?:case|way|situation|example)|"
    r"In (?:many|most|some) (?:cases|places|countries)|In the (?:past|future|end|morning|evening)|In recent years|"
    r"Over time|At (?:first|night)|In turn|In practice|In theory))"
)
_SUBJECT = rf"(?=(?:{_DETERMINER}|{_PRONOUN}|this|these|people|many|some|most)\b)"
_ITEM = (
    r"(?!(?:in|on|at|by|from|a|an|the|who|which|that|one|my|his|her|our|their|however|though|therefore|too|of|for|such|"
    r"including|like|built|made|located|known|called|or|and|but|not|[\w-]+ed)\b)"
    r"[\w’'-]+(?: (?!and\b|or\b|but\b)[\w’'-]+){0,2}"
)
_ITEM_ALONE = r"(?!so\b|to\b|if\b|eat\b)[a-z]{3,}"
_LAST = (
    r"(?=(?!(?:I|you|he|she|it|we|they|there|this|that|these|the|a|an|so|then|if|when|not|also|now|yet|more|even|perhaps|"
    r"[a-z]+ly)\b)[\w’'-]+)"
    r"(?![^,.;:\n]{0,60} (?:and|or) )"
)

_HABITS = (
    (
        (rf"(, {_ITEM}), (and|or) {_LAST}", r"\1 \2 "),
        (rf"(, {_ITEM_ALONE}, {_ITEM_ALONE}) (and|or) (?=[a-z]+[.;)])", r"\1, \2 "),
    ),
    ((rf"{_INTRODUCTIONS}, {_SUBJECT}", r"\1 "), (rf"{_INTRODUCTIONS} {_SUBJECT}", r"\1, ")),
    ((r"\btowards\b", "toward"), (r"\btoward\b", "towards")),
    ((r"\bafterwards\b", "afterward"), (r"\bafterward\b", "afterwards")),
    ((r"(?-i:\b(First|Second|Third)ly, )", r"\1, "),),
    ((r"\bwell-being\b", "wellbeing"), (r"\bwellbeing\b", "well-being")),
    ((r"\bhealth care\b", "healthcare"), (r"\bhealthcare\b", "health care")),
    ((r"\bemail(s?)\b", r"e-mail\1"), (r"\be-mail(s?)\b", r"email\1")),
    ((r"\b(problem|decision)-(solving|making)\b", r"\1 \2"), (r"\b(problem|decision) (solving|making)\b", r"\1-\2")),
    ((r"\bdata set(s?)\b", r"dataset\1"), (r"\bdataset(s?)\b", r"data set\1")),
    ((r"\bjudgement(s?)\b", r"judgment\1"), (r"\bjudgment(s?)\b", r"judgement\1")),
    ((r"\bvs\. (?=\w)", "versus "), (r"\bversus (?=\w)", "vs. ")),
)  # fmt: skip


def _compile(rules: Sequence[tuple[str, str]]) -> Sequence[Rule]:
    return [(re.compile(pattern, re.I), new) for pattern, new in rules]


GENERAL = _compile(_WORDS)
"""Words that may change each on its own."""

HABITS = [_compile(ways) for ways in _HABITS]
"""Habits of writing, which change throughout a text or not at all: the ways to change each, of which the first that
applies does."""
