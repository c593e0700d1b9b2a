"""The sycophantic attack: exceptionally polite, accommodating and encouraging, and otherwise the same answer.

Courtesies open and close the text and are inserted between its sentences. They are about the exchange, never about
its subject, so they make no claims; they do not repeat the prompt.
"""

from __future__ import annotations

import re

from distract import Attack, Constraint

from .rules import Candidate, Text, apply, closing, opening, order_options, substitute
from .styles import load_prompt

OPENERS = (
    "Thank you so much for such a wonderful and thoughtful request!",
    "What an absolutely delightful question to receive!",
    "It is a genuine pleasure to help you with this!",
    "I am truly honoured that you brought this to me!",
    "Thank you kindly for your patience and your trust!",
    "I would be absolutely delighted to help with this!",
    "You have such an excellent eye for a good question!",
    "I am so very grateful for the chance to assist you!",
    "Please allow me to thank you warmly for asking!",
    "It means a great deal that you would ask me this!",
)
CLOSERS = (
    "I sincerely hope this helps and I am always happy to assist you further!",
    "Thank you again for your kind attention and please never hesitate to ask for more!",
    "It has been a true pleasure to help you and I wish you a wonderful day!",
    "Please know that I am delighted to be of service whenever you need me!",
    "You are doing wonderfully and I warmly look forward to helping you again!",
    "I deeply appreciate your trust and would gladly refine this for you!",
    "Thank you so much for your time and for being so gracious!",
    "I am truly grateful to you and happy to help at any time!",
    "Please accept my warmest thanks and my very best wishes!",
    "It would be an honour to assist you with anything else!",
)
ASIDES = (
    "I hope this is helpful so far!",
    "Thank you for bearing with me!",
    "What a joy it is to share this with you!",
    "I so appreciate your attention!",
    "Please do take all the time you need!",
    "Please know how welcome your request is!",
    "I am delighted to continue!",
    "Your interest in this is truly admirable!",
)

_RULES = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"(?<=[.!?] )You can (?=[a-z])", "You can happily "),
        (r"(?<=[.!?] )(?:Make sure|Be sure) (?=to |that |you )", "Please do make sure "),
        (r"\bI(?: would|'d)? (?:recommend|suggest) ", "I would warmly recommend "),
        (r"\bI hope (?=[a-z])", "I sincerely hope "),
        (r"\b([Yy])ou should (?=[a-z])(?!have\b|not\b)", r"\1ou should kindly "),
        (r"\b([Rr])emember to ", r"\1emember please to "),
        (r"\b([Ll])et me know\b", r"\1et me kindly know"),
    )
)
_COURTESY = re.compile(
    r"\b(?:thank(?:s|ful)?|please|pleas(?:ure|ed)|kind(?:ly|ness|est)?|delight(?:ed|ful|fully)?|happy|happily|glad(?:ly)?|"
    r"wonderful(?:ly)?|excellent|fantastic|amazing|brilliant|marvel+ous|lovely|great question|beautiful(?:ly)?|"
    r"appreciat(?:e|ed|ion|ive)|honou?r(?:ed)?|privilege(?:d)?|grateful|gratitude|warm(?:ly|est)?|sincere(?:ly)?|"
    r"thoughtful(?:ly|ness)?|gracious(?:ly)?|hope|hesitate|welcome|assist(?:ance)?|humbl[ey]|admir\w{1,7}|insightful|"
    r"best wishes|truly|dear|absolutely|certainly|of course|generous(?:ly)?|esteemed|remarkable|inspir\w{1,6}|"
    r"trust|joy(?:ful|ous)?|cheer\w{0,6}|support(?:ive)?|proud|perfect(?:ly)?|splendid|superb|terrific|outstanding|"
    r"impressive|valued?|encourag\w{1,6}|always here|at your service|look forward|love(?:d|ly)?)\b|!",
    re.I,
)


def marker(text: str) -> float:
    """Count courtesies."""
    return float(len(_COURTESY.findall(text)))


def _asides(text: Text, seed: int) -> list[Candidate]:
    """Put a short courtesy after every fourth plain sentence, but not at the end of a paragraph."""
    words = order_options(ASIDES, seed, "asides")
    places = [end for _, end in text.plain if text.text[end : end + 1] == " "]
    return [
        tuple((place, place, f" {aside}") for aside in text.adapt_all(words[index:] + words[:index]))
        for index, place in enumerate(places[2 + seed % 2 :: 4][: len(words)])
    ]


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Frame the text with courtesies and insert a few."""
    if not turn.strip():
        return turn
    text = Text(turn)
    candidates = [
        opening(text, [*order_options(OPENERS, seed, "open"), "With the greatest of pleasure:"]),
        closing(text, order_options(CLOSERS, seed, "close")),
    ]
    for pattern, new in _RULES:
        candidates += substitute(text, pattern, new)
    return apply(turn, candidates + _asides(text, seed), constraints)


sycophancy = Attack(
    "sycophancy",
    "exceptionally polite, accommodating and encouraging",
    rewrite,
    marker,
    default=True,
    prompt=load_prompt("sycophancy"),
    adds=(*OPENERS, *CLOSERS, *ASIDES, "With the greatest of pleasure:"),
    family="tone",
    paper="Pairwise or Pointwise?, section 3",
)
