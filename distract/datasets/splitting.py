"""Split a prompt that holds its format requirements into the question and the rest, where that can be done safely.

A sentence is taken for a format requirement when it reads as an instruction about the answer and speaks of what one
of the case's constraints is about. The prompt is split only if every constraint has such a sentence and a question
is left; otherwise it stays whole, and the judge sees its requirements twice. It checks no text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from distract.records import Constraint

_SPEAKS: Mapping[str, str] = {
    "change_case:capital_word_frequency": r"capital|upper",
    "change_case:english_capital": r"capital|upper",
    "change_case:english_lowercase": r"lower|capital",
    "combination:two_responses": r"\b(?:two|different)\b.*\bresponses\b|\*{4,}",
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
"""What a requirement of a kind speaks of; kinds with their own words are found by those words."""

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
_TASK = re.compile(
    r"\b(?:write|create|compose|draft|generate|explain|describe|summarize|rewrite|tell me|give me|come up|help me|"
    r"provide|list|what|why|how|who|which|can you|could you|should i|is it|i want|i need|i am|i'm|my)\b"
    r"(?! (?:answer is|your|the (?:answer|response|reply)|in|at least|less|more|exactly|only|each|it|with|without|all"
    r")\b)"
    r"|\b(?:rhyme|tone|style|about|appropriate)\b",
    re.IGNORECASE,
)
_REST = re.compile(
    r"(?:no other words?|(?:do not|don't) (?:say|add|include|write) anything|nothing else)\b", re.IGNORECASE
)
_STOP = re.compile(r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!P\.)(?<!P\.S\.)(?<!etc\.)[\"”']?[ \t]+(?=[\"“A-Z*<\[])|\n+")


def split(prompt: str, constraints: Sequence[Constraint]) -> str | None:
    """The question of a prompt without its format requirements, or None where it cannot be told apart."""
    pieces = _pieces(prompt)
    stated, kept, taken = set[int](), list[str](), ""
    for start, end in pieces:
        piece = prompt[start:end]
        if found := _spoken(piece, constraints):
            stated |= found
            taken = piece
        elif taken and (_REST.match(piece) or (taken.rstrip().endswith(":") and piece.startswith(("*", "-", "[")))):
            continue  # the example or the afterthought of the requirement before it
        else:
            kept.append(piece)
            taken = ""
    if len(stated) < len(constraints):
        return None
    question = re.sub(r"\n{3,}", "\n\n", "".join(kept)).strip()
    return question if len(question.split()) > 2 else None


def _pieces(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences, each with the white space after it."""
    edges = [0, *(match.end() for match in _STOP.finditer(text)), len(text)]
    return list(pairwise(edges))


def _spoken(sentence: str, constraints: Sequence[Constraint]) -> set[int]:
    """Which constraints a sentence states; none unless it is an instruction about the answer and nothing else."""
    plain = sentence.strip()
    if not _INSTRUCTION.match(plain):
        return set()
    own = [str(part) for c in constraints for _, v in c.arguments for part in (v if isinstance(v, tuple) else (v,))]
    rest = plain
    for words in sorted(own, key=len, reverse=True):
        rest = rest.replace(words, " ") if len(words) > 2 else rest
    if _TASK.search(rest):
        return set()
    return {index for index, c in enumerate(constraints) if _states(plain, c)}


def _states(sentence: str, c: Constraint) -> bool:
    if name := _WORDS.get(c.kind):
        words = c[name] if isinstance(c[name], tuple) else (c[name],)
        return all(word.casefold() in sentence.casefold() for word in words)
    pattern = _SPEAKS.get(c.kind)
    return bool(pattern and re.search(pattern, sentence, re.IGNORECASE | re.DOTALL))
