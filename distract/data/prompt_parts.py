"""Split a prompt into its question and its format requirements if that is safe.

A sentence counts as a format requirement if it reads as an instruction about the answer, mentions the topic of one of
the case's constraints, and has no word that could be about anything else. The prompt is split only if every constraint
has such a sentence and a question is left. Otherwise it stays whole, and the judge sees its requirements twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from distract.core.records import Constraint
from distract.data.constraints.language import NAMES
from distract.data.lexicon import content_words

_TOPICS: Mapping[str, str] = {
    "change_case:capital_word_frequency": r"capital|upper",
    "change_case:english_capital": r"capital|upper",
    "change_case:english_lowercase": r"lower|capital",
    "combination:two_responses": r"\A(?>.*?\b(?:two|different)\b).*\bresponses\b|\*{4,}",
    "detectable_content:number_placeholders": r"placeholder",
    "detectable_content:postscript": r"postscript|post script|P\.\s?S",
    "detectable_format:constrained_response": r"my answer is|one of the following|choose (?:one|from)",
    "detectable_format:json_format": r"\bjson\b",
    "detectable_format:multiple_sections": r"\bsections?\b|\bparts?\b|mark",
    "detectable_format:number_bullet_lists": r"bullet",
    "detectable_format:number_highlighted_sections": r"highlight|italic|\*",
    "detectable_format:title": r"<<|angular",
    "language:response_language": r"\blanguages?\b",
    "length_constraints:nth_paragraph_first_word": r"paragraph",
    "length_constraints:number_paragraphs": r"paragraph",
    "length_constraints:number_sentences": r"sentence",
    "length_constraints:number_words": r"\bwords?\b",
    "punctuation:no_comma": r"comma",
    "startend:quotation": r"quotation|double quotes",
}
"""Topic of the requirements of a kind; kinds with words as arguments are found by those words."""

_WORDS: Mapping[str, str] = {
    "keywords:existence": "keywords",
    "keywords:forbidden_words": "forbidden_words",
    "keywords:frequency": "keyword",
    "keywords:letter_frequency": "letter",
    "startend:end_checker": "end_phrase",
}

_ANSWER = (
    r"(?:answer|response|reply|output|essay|letter|poem|email|story|text|blog post|post|song|summary|document|article|"
    r"words?|keywords?|sentences?|paragraphs?|title|(?:entire|whole|total|last|first) \w+|very (?:end|last|first)|end|"
    r"beginning)"
)
_FORMAT = (
    r"(?:title|postscript|p\.\s?s|placeholders?|words?|sentences?|paragraphs?|sections?|bullets?|bullet points?|"
    r"letters?|quotation|commas?|json|lower\s?case|upper\s?case|all caps|capital|keywords?|responses|format|markdown|"
    r"phrase|options?|times|language|italic|following)"
)
_INSTRUCTION = re.compile(
    r"(?:(?:and|also|then|finally|please|additionally|but|in addition|however)\b,? *)*"
    r"(?:"
    r"(?:your|the|this|it|there|each|every|all|both)\b[^.!?]*?\b"
    r"(?:should|must|needs?|have to|has to|is to|be|contains?|are|is|can)\b"
    r"|(?:do not|don't|never|avoid|refrain|make sure|ensure|be sure|remember)\b"
    r"|(?:highlight|italici[sz]e|include|wrap|enclose|finish|end|conclude|close|mark|separate|limit|contain|mention|put)\b"
    rf"|(?:add|have|use|give|keep|write|make|answer|respond|reply|provide|choose|start)\b[^.!?]*?\b{_FORMAT}\b"
    rf"|(?:in|at|throughout|within|for) (?:the |your )?{_ANSWER}\b"
    r"|(?:first|only|no|not|without|italic|paragraphs|separate)\b"
    r")",
    re.IGNORECASE,
)
_ABOUT_FORMAT = (
    "response answer reply respond output text version whole entire total word letter character keyword key "
    "phrase sentence paragraph section part bullet point list title bracket angular double single square quote "
    "quotation mark marker markdown highlight highlighted italic italicize bold asterisk symbol placeholder "
    "postscript divider format json block tick language english capital capitalize lowercase uppercase lower "
    "upper case caps comma punctuation number time times line space separate separated wrap wrapped enclose "
    "contain include use using used mention make sure ensure add put give have keep need must write written start "
    "starting begin beginning end ending finish appear appearing follow following repeat represent represented "
    "indicate indicated allow allowed avoid refrain limit exactly explicitly least most more less fewer few only "
    "just each every first last final next second third once twice different new other another also additional "
    "additionally please don't not without within throughout around inside outside before after such like example "
    "below above form style exact same question yes no maybe option choose one either between any anywhere "
    "anything nothing else whatsoever etc some somewhere able still long length short called named name "
    "completely entirely say saying express said poem song story essay itinerary resume email post tweet article "
    "blog haiku rap limerick template proposal advertisement document summary riddle joke speech script review "
    "report outline plan rubric slogan pitch dialogue"
)
_FORMAT_WORDS = content_words(_ABOUT_FORMAT) | content_words(" ".join(NAMES.values()))
_SAMPLES = re.compile(r"<<[^>\n]{0,300}>>|\*[^*\n]+\*|\[[^\]\n]{0,300}\]")
_EXAMPLE = re.compile(r"\b(?:such as|like|example|i\.?e|e\.?g)\b.*$", re.IGNORECASE | re.DOTALL)
_ABOUT_WORDS = re.compile(
    r"\b(?:words?|keywords?|letters?|characters?|phrase|includ\w+|us(?:e|es|ing)|avoid|contain\w*|mention\w*|appear\w*|end\w*|"
    r"finish\w*|refrain|say|times|response|answer|reply)\b",
    re.IGNORECASE,
)
_REST = re.compile(
    r"(?:no other words?|(?:do not|don't) (?:say|add|include|write) anything|nothing else)\b", re.IGNORECASE
)
_STOP = re.compile(r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!P\.)(?<!P\.S\.)(?<!etc\.)[\"”']?[ \t]+(?=[\"“A-Z*<\[])|\n+")


def split_prompt(prompt: str, constraints: Sequence[Constraint]) -> str | None:
    """The question of a prompt without its format requirements, or None if the two cannot be separated."""
    edges = [0, *(match.end() for match in _STOP.finditer(prompt)), len(prompt)]  # of the sentences
    stated, rest, requirement = set[int](), list[str](), ""
    marks = Counter[str]()
    for start, end in pairwise(edges):
        piece = prompt[start:end]
        quoted = marks['"'] % 2 or marks["“"] > marks["”"]
        marks.update({mark: piece.count(mark) for mark in '"“”'})
        if not quoted and (matches := _find_stated(piece, constraints)):
            stated |= matches
            requirement = piece.rstrip()
        elif requirement and (_REST.match(piece) or (requirement.endswith(":") and piece.startswith(("*", "-", "[")))):
            continue  # an example or afterthought of the previous requirement
        else:
            rest.append(piece)
            requirement = ""
    if len(stated) < len(constraints):
        return None
    question = re.sub(r"\n{3,}", "\n\n", "".join(rest)).strip()
    return question if len(question.split()) > 2 else None


def _find_stated(sentence: str, constraints: Sequence[Constraint]) -> set[int]:
    """The constraints that a sentence states; none unless it is an instruction about the answer and nothing else."""
    plain = sentence.strip()
    if not _INSTRUCTION.match(plain):
        return set()
    own = [str(part) for c in constraints for _, v in c.arguments for part in (v if isinstance(v, tuple) else (v,))]
    rest = plain.casefold()
    for words in sorted(own, key=len, reverse=True):
        rest = re.sub(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", " ", rest)
    if content_words(_EXAMPLE.sub(" ", _SAMPLES.sub(" ", rest))) - _FORMAT_WORDS:
        return set()
    return {index for index, c in enumerate(constraints) if _is_stated(plain, c)}


def _is_stated(sentence: str, c: Constraint) -> bool:
    if name := _WORDS.get(c.kind):
        words = c[name] if isinstance(c[name], tuple) else (c[name],)
        # "It is white." has the word too, but is not about words.
        return _ABOUT_WORDS.search(sentence) is not None and all(
            word.casefold() in sentence.casefold() for word in words
        )
    pattern = _TOPICS.get(c.kind)
    return bool(pattern and re.search(pattern, sentence, re.IGNORECASE | re.DOTALL))
