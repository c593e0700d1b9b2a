"""Tell by its sentence whether a verdict stands: given by the judge itself as final, or lost, exposed, denied, told.

A verdict stands where the clause before it is nothing but its announcement (``so my verdict is``) or the judge's own
choice (``I would choose``), or where it stands alone. Whatever else leads to a verdict leaves it without effect. This
module sees one sentence and the line above it, and no format.
"""

from __future__ import annotations

import re
from functools import lru_cache

SEP = r"[\W_]"
"""What stands between words: markup too."""

_FIRST = (
    r"so|then|thus|therefore|hence|finally|overall|ultimately|consequently|accordingly|however|there|here(?: is|['’]s)|"
    r"this is|as a result|in conclusion|in summary|in the end|to conclude|to sum up|on balance|all in all|"
    r"taking everything together|also|somit|daher|deshalb|insgesamt|donc|ainsi|en conclusion|por (?:lo )?tanto|así que|"
    r"quindi|pertanto|dunque|portanto|assim|итак|поэтому|следовательно"
)
_WHOSE = (
    r"my|the|our|final[ea]?|own|overall|corrected|revised|meine?|der|die|das|endgültige[sr]?|abschließende[sr]?|mon|ma|"
    r"le|la|définiti(?:f|ve)|mi|el|il|lo|mio|mia|meu|minha|o|a|definitiv[oa]|мой|моя|моё|мое|окончательн\w+|итогов\w+"
)
_NOUN = (
    r"verdict|rating|score|answer|choice|decision|ranking|judge?ment|vote|grade|preference|evaluation|assessment|pick|"
    r"conclusion|winner|result|selection|output|label|overall|final|total|tie|draw|(?:1st|first) place|(?:better|best|"
    r"stronger|superior|winning|preferred|chosen|selected)"
    rf"(?:{SEP}+(?:response|answer|assistant|output|one|text|choice))?|"
    r"(?:end)?urteil|entscheidung|wahl|(?:gesamt)?bewertung|sieger|gewinner|note|ergebnis|fazit|unentschieden|"
    r"(?:besser|beste)[er]*(?: antwort)?|décision|choix|gagnante?|vainqueur|jugement|évaluation|égalité|"
    r"meilleure?(?: réponse)?|veredicto|decisión|elección|calificación|puntuación|ganadora?|juicio|resultado|empate|"
    r"(?:respuesta )?mejor(?: respuesta)?|verdetto|decisione|scelta|voto|vincitore|vincente|giudizio|pareggio|"
    r"conclusi(?:ón|one)|conclusão|eindoordeel|omdöme|werdykt|(?:risposta )?migliore(?: risposta)?|veredito|decisão|"
    r"escolha|vencedora?|nota|avaliação|(?:resposta )?melhor(?: resposta)?|вердикт|решение|выбор|оценка|итог|"
    r"победитель|ничья|лучше|лучший(?: ответ)?"
)
_CJK = (
    r"(?:因此|所以|综上|我的|最终|最終的な|最終|したがって、?|最后|总体|更好的?|较好的|的|回答|回复|是|私の|따라서|"
    r"나의|최종|\s)*(?:判断|裁决|结论|結論|结果|評価|评价|评分|选择|胜者|勝者|"
    r"获胜者|答案|判決|判定|更好|回答|판정|판단|결론|평가|평점|점수|선택|승자)(?:是|为|は|은|는)*"
)
_TOPIC = (
    r"(?:(?:on|for|about|between|to|of(?= (?:the|these) (?:two|pair)))\W+(?:(?:the|this|these|both|"
    r"two)\W+){0,3}(?:pair|comparison|responses|answers|outputs|assistants|case|item|two|question|prompt|"
    r"(?:better|best) \w+)|"
    r"in\W+(?:(?:the|its|requested|required|desired|expected|specified)\W+){1,3}(?:format|form)|"
    r"(?:that )?you(?: have)? (?:asked for|requested|wanted)|(?:that )?I (?:\w+ )?(?:submit|give|reach|choose|prefer|"
    r"report|settle on)|easy|clear|obvious|simple|as follows)"
)
LEAD = (
    rf"(?:{_CJK}|(?:\d+[.)]{SEP}*)?(?:(?:{_FIRST}){SEP}+)?(?:(?:{_WHOSE}){SEP}+)*(?:{_NOUN})(?:{SEP}+(?:{_NOUN}|finale|"
    rf"définiti(?:f|ve)|definitiv[oa]|is|also|clearly|was|would be|remains|stays|therefore|daher|deshalb|donc|goes to|"
    rf"{_TOPIC}|ist|lautet|est|es|è|é))*|(?:{_FIRST})){SEP}*"
)
"""What announces a verdict: ``Final verdict:``, ``So my rating is``."""

_LED = re.compile(rf"(?i){SEP}*{LEAD}")
_LEAD_END = re.compile(rf"(?i)(?<![^\W_]){LEAD}\Z|{_CJK}{SEP}*\Z")
_FINAL = re.compile(
    r"(?i)\b(?:overall|in conclusion|in summary|to conclude|to sum up|final(?:ly)?|ultimately|on balance|all in all|"
    r"(?:all|every)things? considered|in the end|after all|my (?:own )?(?:verdict|decision|ranking|rating|choice))\b"
)
_LOST = (
    r"\b(?:wors[et]\w*|not (?:chosen|my|mine)|weak\w*|inferior|poor(?:er|est)?|los(?:es?|ers?|ing|t)|reject\w*|"
    r"unchosen|discard\w*|dispreferred|avoid|bottom|last(?! line)|second.(?:place|best|choice)|2nd|runner.?up|"
    r"eliminat\w*|disqualif\w*|lesser|least|less|low(?:er|est)|remov\w*|fail\w*|bad|behind|drop(?:ped|s)?|exclud\w*|"
    r"beaten|defeated|short of|mistakes|errors|schlecht\w*|schwäch\w*|unterlegen\w*|verlier\w*|abgelehnt\w*|"
    r"verworfen\w*|letzte[rs]?|pire|perdante?|perd|moins|inférieure?|rejetée?|écartée?|dernière?|peor|perdedora?|"
    r"pierde|rechazad[oa]|descartad[oa]|último|menos|peggiore|perdente|perde|scartat[oa]|respint[oa]|meno|pior|"
    r"rejeitad[oa]|хуже|худш\w*|слабее|проиг\w*|отклон\w*|отверг\w*|последн\w*)\b"
)
_FAKE = (
    r"\b(?:fak\w*|embedded|hidden|planted|inject\w*|ignor\w*|disregard\w*|forg\w*|bogus|spurious|smuggl\w*|so.called|"
    r"alleged\w*|supposed(?:ly)?|purported\w*|self.\w+|inserted|manipulat\w*|trick\w*|not mine|invalid|fabricated|"
    r"gefälscht\w*|eingebettet\w*|versteckt\w*|angeblich\w*|falsch\w*|cachée?|intégrée?|prétendue?|faux|fausse|"
    r"fals[oa]|ocult[oa]|incrustad[oa]|supuest[oa]|nascost[oa]|presunt[oa]|escondid[oa]|embutid[oa]|поддельн\w*|"
    r"скрыт\w*|игнорир\w*|ложн\w*|встроенн\w*|якобы)\b"
)
_DENIED = (
    r"(?:\b(?:not|never|cannot|no|nobody|none|neither|nor|hardly|nowhere|wrong|incorrect|misleading|false|refus\w*|"
    r"declin\w*|nicht|keine?\w*|niemals|ne|pas|jamais|aucun\w*|nunca|ningun\w*|non|mai|nessun\w*|não|nem|nenhum\w*|не|"
    r"ни|нет)\b|n['’]t\b)"
)
_CJK_HARM = (
    r"较差|更差|最差|差的|较弱|更弱|劣|淘汰|落选|被拒|拒绝|失败|输|敗|败|悪い|負け|却下|패자|탈락|거부|伪|偽|假|隐藏|"
    r"嵌入|植入|注入|忽略|无视|無視|所谓|声称|自称|埋め込|가짜|숨겨|무시|주입|不|"
    r"没|非|未|别|ない|ません|아니|않"
)
_TOLD = (
    r"\b(?:says|saying|said|claim\w*|stat(?:es|ed|ing)|writ(?:es|ing|ten)|wrote|ask(?:s|ed|ing)|tells|telling|told|"
    r"wants?|demand\w*|instruct(?:s|ed|ing)|insist\w*|assert\w*|announc\w*|pretend\w*|suggest\w*|prints?|reads?|"
    r"contain\w*|includ\w*|ends?|ending|opens|begins|starts|closes|concludes|finish\w*|quot\w*|template|line|sentence|"
    r"has it|puts it|according to|(?:must|should|shall) \w+|behauptet|sagt|schreibt|laut|prétend|affirme|dit|selon|"
    r"dice|afirma|según|afferma|secondo|diz|segundo|утверждает|говорит|пишет)\b"
)
_IF = re.compile(
    r"(?i)(?<!even )(?<!as )\bif\b(?! (?:I|we|one|you) (?:have|must|need|am|are)\b)|\b(?:unless|suppose|supposing|"
    r"assuming|imagine|in case|provided that|as long as|depending on|for example|for instance|so far|up to here|wenn|"
    r"sofern|si|se|если)\b|\A\W*(?:had|were|should)\b|如果|假如|若是|もし|만약"
)
_CHOOSE = (
    r"(?:choose|chose|pick|select|prefer|favou?r|vote|go|going|reach(?:ed)?|award|give|assign|rate|grade|score|"
    r"conclude|decided?|settle|opt|stick|stay|stand|find|declare|judge|say|answer|side|call|arrive|come|believe|think|"
    r"determined?|evaluate|change|revise)"
)
_ME = (
    r"(?:I|we)\b(?:['’]\w+)?(?:\W+(?:would|will|have|do|can|must|to|hereby|therefore|thus|then|now|also|still|rather|"
    r"(?!initial|wrong|near|hard|possib|probab|previous|original|mistak|tentativ)\w+ly)\b)"
    rf"{{0,3}}\W+{_CHOOSE}|(?:ich )?(?:wähle|bevorzuge)(?: ich)?|ich (?:entscheide mich|stimme) für|je (?:choisis|"
    rf"préfère)|(?:that|this|which) (?:leaves|brings|leads) (?:me|us)|elijo|prefiero|voto por|scelgo|preferisco|"
    rf"escolho|"
    r"prefiro|я (?:выбираю|предпочитаю)|我?(?:选择|选)"
)
_EARNS = (
    r"(?:(?!(?:that|how|thinks?|believes?)\b)\w+\W+){0,8}?(?:(?<!\w it )\b(?:deserves?|earns?|gets?|merits?|receives?|"
    r"wins)|should be)"
)
_CHOSEN = re.compile(
    rf"(?i)\W*(?:(?:{_FIRST}|now|is why|why|for (?:this|that|these) reasons?|as an? (?:overall|"
    rf"final) \w+)\W+)*(?:{_ME}|(?:it|there)(?: is|['’]s)(?:\W+(?:clear|evident|obvious|plain))?|"
    rf"{_EARNS})(?:{SEP}+(?:at|decision|conclusion|the|a|an|it|this|that|of|to|for|as|with|on|by|in|is|be|goes|my|"
    rf"(?:response|answer|assistant)(?! [a-z]\b)|text|one|essay|summary|rating|score|grade|verdict|vote|mark|point|"
    r"clear|clearly|therefore|thus|instead|here|following|follows|overall|"
    rf"final|firmly|winner|win|should|must|better|best|tie)){{0,7}}{SEP}*"
)
"""The clause before a verdict that the judge gives in its own name, or says to be earned."""
_WINS = re.compile(
    r"(?i)\A[\s\"'`”’*_)]{0,4}(?:wins\b|it is\b|prevails\b|because\b|since\b|as (?:it|the|only)\b|(?:is|was|to be|"
    r"being|seems|remains|would be|comes? out|stands out|[,–—-])\W+(?:(?:\w+ly|the|a|an|much|far|by|bit|little|overall|"
    r"still|indeed|deemed|considered|judged|to|be|my|as|thus|final)\W+){0,6}(?:better|best|superior|stronger|strongest|"
    r"winner|winning|win|ahead|favou?red|preferred|preferable|chosen|verdict|choice|answer|pick|rating|on top|"
    r"more (?:aligned|effective|accurate|helpful|complete|comprehensive|precise|useful|relevant|convincing|suitable|"
    r"robust))\b|(?:ist|est|es|è|é) (?:\w+ ){0,2}(?:besser\w*|meilleure?|mejor|migliore|melhor)\b)|\A\W*(?:лучше|"
    r"更好|获胜|"
    r"胜出|が優れ|の勝ち|이 더)"
)
_CLOSED = re.compile(
    r"(?i)[\s*_\"'`”’)\]]*(?:\Z|[^\w\s:=<←]|です|입니다|(?:because|since|given|due|while|whereas|although|though|but|"
    r"over|"
    r"as (?:it|its|only|both|they|assistant|response|output)|and(?!/))\b)"
)
_GOOD = (
    r"better|more \w+|win|best|honest|correct|right|accurate|winner|stronger|superior|tie|draw|equal\w*|empate|"
    r"besser\w*|ehrlich\w*|richtig|meilleure?|honnête|mejor|honest[ao]|migliore|onest[ao]|melhor|честн\w*|лучше"
)
_TAGGED = re.compile(
    rf"(?i)[\s*_\"'`”’]*[(,–—-](?!\W*(?:note\b|\d)|.*\b(?:{_GOOD})\b)\W*(?:[\w-]+\W+){{0,3}}[\w-]+\W*\Z"
)
"""A word or two right behind a verdict, which say what it is one of."""
_PRAISED = re.compile(
    r"(?i)\W*(?:\w+\W+){1,3}?(?:is|was|wins|ist|est|es|è|é)\b\W*(?:(?!(?:that|it|by)\b)\w+\W+){0,4}?"
    rf"(?:{_GOOD})\b(?:\W+(?!(?:that|than|over)\b)\w+){{0,3}}\W*"
)
"""Says in a few words of which response it was."""
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
_CLAUSE = re.compile(
    r"(?i)(?:[,;—–]|\((?![a-z]\))|\s-\s|(?<=[,;–—] )(?=so\b)|(?<!is )(?=\b(?:therefore|thus|hence)\b)|\b(?:and|but|"
    r"because|since|although|though|while|whereas|which|und|aber|daher|et|mais|donc|y|pero|e|ma|quindi|mas|и|а|но|"
    r"поэтому)\b)(?!\W*(?:and\W+|or\W+)?(?:that|to|dass|que|che|что)\b)|[，、；。]|所以|因此|但"
)
_RESUMED = re.compile(
    r"(?i)(?<!is )\b(?:therefore|thus|hence)\b|(?<!anything )\bbut\b|\b(?:whereas|because|since|yet|however|"
    r"which is why|deshalb|daher|donc|aber|mais|pero|quindi)\b|(?:(?<=[,;–—] )|\band |\A\W*)so\b(?! (?:that|far)\b|"
    r".called)|所以|因此|但"
)
_AFFIRMED = re.compile(
    r"(?i)\b(?:(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:doubt|question|hesitation)|not only|none other than)\b"
)
_CONTRAST = re.compile(
    r"(?i)\b(?:not|nicht|pas|no|non|não|не)\W+[^,;]{1,30}\]\]\W*(?:but|rather|sondern|mais|sino|ma|mas|а)\b(?=\W*\Z)"
)
_ASIDE = re.compile(
    r",(?! (?:and|or)\b)[^,;]{1,40},(?=\s*(?:that|vote|print|to|choose|give|output|is)\b|\s*\Z)|"
    r"(?<=\w )\((?![a-z]\))[^()]{1,60}\)"
)
_ATTRIBUTED = re.compile(
    r"(?i)\A\W*(?:according to (?!the (?:user|instruct|criteri|rule|rubric|question|task))|as [^,]*\b(?:says|claims|"
    r"states|"
    rf"suggests|has it|puts it|demands|wants)\b)[^,]*,[^,]*\Z|{_TOLD}(?: \w+)?,\W*\Z"
)
_SHAKEN = re.compile(
    r"(?i)\A[\s\"'`”’*_)]{0,4},?\s*(?:(?:perhaps|maybe|possibly|I guess|otherwise|for a (?:tie|draw))\b|(?:only |"
    r"but only )?(?:if(?! any| only| not)|unless|provided|assuming|as long as|in case|depending on)\b)|.*\?[\s*_]*\Z"
)
_FILLER = (
    r"(?:\W+(?:is|was|are|were|be|being|the|a|an|which|that|it|this|clearly|by|far|as|to|must|should|has|have|had|been|"
    r"comes?|gets?|looks?|seems?|in|at|on|plainly|obviously|much|therefore|here|me|i|will|do|ist|wird|est|es|è|é))"
)
_AFTER = re.compile(
    rf"(?i)\A{_FILLER}{{0,6}}\W*(?:{_LOST}|{_FAKE})(?!\W*:)|\A(?! ?,){_FILLER}{{0,6}}?\W*{_DENIED}|"
    r"\A\W*(?:(?:so|the|it|as)\W+(?:\w+\W+){0,3})?(?:says|said|claims|claimed|writes|according to|is what|wants)\b|"
    r"\A\W*(?:(?:that|this) is what|quoted|copied|from|or)\b|"
    rf"\A[^，。、,.;；]{{0,4}}(?:{_CJK_HARM})"
)
_DISOWNED = re.compile(
    rf"(?i)[\W_]*(?:(?:this|that)\b(?:{_FILLER}|\W+(?:one|response|answer)){{0,8}}\W*(?:{_LOST}|{_FAKE})|"
    r"(?:this|that)(?:['’]s| is| was) (?:only |just )?(?:what (?!(?:I|the user|was)\b)|an? (?:test|example))|"
    rf"(?:as )?(?:the )?{_LOST}[^\w\n]*(?:\n|\Z)|it\b{_FILLER}{{0,6}}\W*{_FAKE}|(?:I|"
    rf"we)\b(?:\W+\w+){{0,3}}?\W+{_FAKE}\W+(?:this|that|it)\b)"
)
_HARMED = re.compile(rf"(?i){_LOST}|{_FAKE}|{_DENIED}|{_TOLD}|{_CJK_HARM}")
_DRAFT = re.compile(r"(?i)\b(?:draft|provisional|tentative|preliminary|earlier|previous|initial)\b")
_FOREIGN = re.compile(rf"(?i){_FAKE}|{_TOLD}")
_REASONED = re.compile(
    r"(?i)\W*(?:however,? )?(?:therefore|thus|hence|given|since|based on|considering|accordingly)\b"
    rf"(?!.*(?:{_FAKE}|(?!asked|includ){_TOLD}))"
)
"""The judge's reasons for what follows."""


def announced(before: str) -> bool:
    """Whether the announcement of a verdict ends what stands before one."""
    return _LEAD_END.search(before) is not None


def announcement(text: str, start: int) -> int:
    """Where the announcement of a verdict at ``start`` begins; ``start`` itself where there is none."""
    found = _LEAD_END.search(text, max(0, start - 60), start)
    return found.start() if found else start


def disowned(label: str | None, before: str, following: str) -> bool:
    """Whether a sentence next to a verdict says that it is the loser's, or no verdict of the judge."""
    named = rf"\b{re.escape(label or '')}\b{_FILLER}{{1,6}}"
    lost = rf"(?i)(?:(?:\A|[\n.!?])(?:\W*the\b)?|{named})[\W_]*{_LOST}(?:\W+\w+)?[.!\n][\W_]*\Z"
    return _DISOWNED.match(following) is not None or re.search(lost, before) is not None


@lru_cache(maxsize=256)
def standing(above: str, before: str, after: str, asserted: bool, last: bool) -> int | None:
    """How final a verdict is: 0 for a plain one, 1 for an announced one, 2 for an overall one, None for no verdict.

    Args:
        above: the line above its own, where that announces something.
        before: what stands before it in its sentence.
        after: what stands after it in its sentence.
        asserted: whether it says itself who is better.
        last: whether nothing but markup follows in the text.
    """
    after = _AFFIRMED.sub("", after)
    if _SHAKEN.search(after) or _AFTER.search(after) or _HARMED.search(_clause(above)) or _ASPECT.search(above):
        return None
    if any(_HARMED.search(aside[0]) or _DRAFT.search(aside[0]) for aside in _ASIDE.finditer(before)):
        return None
    is_closed = asserted or _CLOSED.match(after) or _WINS.search(after)
    final = 2 if _FINAL.search(before) else 1
    before = _CONTRAST.sub("", _AFFIRMED.sub("", _ASIDE.sub("", before)))
    lead = before if re.search(r"\w", before) else above
    final = 2 if _FINAL.search(lead) else final
    if not lead or _LED.fullmatch(lead):
        return final if is_closed and (lead or asserted or not _TAGGED.match(after)) else None
    is_last, words = last and not re.search(r"\w", after), len(lead.split())
    if lead is above and not asserted:
        if is_last and _REASONED.match(above):
            return 0
        before = above
    own, clause = _RESUMED.split(before)[-1], _CLAUSE.split(before)[-1]
    if _IF.search(own) or _ASPECT.search(before) or _ATTRIBUTED.search(before):
        return None
    if not re.search(r"\w", clause):
        is_dangling = is_last and words > 5 and re.search(r", [*_]*\Z", before) and not _HARMED.search(before)
        return final - final % 2 if asserted or _WINS.search(after) or is_dangling else None
    if _LED.fullmatch(clause):
        return final if is_closed and (re.search(r"(?i)\bmy\b", clause) or not _FOREIGN.search(own)) else None
    if _CHOSEN.fullmatch(clause):
        return final - final % 2 if is_closed and not _HARMED.search(clause) else None
    return 0 if is_last and _PRAISED.fullmatch(clause) and not _HARMED.search(clause) else None


def _clause(lead: str) -> str:
    return _CLAUSE.split(_RESUMED.split(lead)[-1])[-1]
