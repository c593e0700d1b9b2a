"""Recognise the language of a text by its function words, to notice a rewrite that translates."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from distract.data.lexicon import PARTS

FEW_WORDS = 8
"""Minimum number of words whose language can be recognised."""

_LETTERS = re.compile(r"[^\W\d_]+")

_FUNCTION_WORDS = {
    "en": "the and of to is that it for with are was on you this be as have from or by not but they at which an "
    "your we can will its has were their in a if when so there than into about would should more most "
    "also these those he she",
    "es": "el los las y que en un una por con para es se su sus del lo como más pero está están son al muy "
    "también hay si este esta cuando puede de la no o ser fue desde entre porque sin sobre todo hasta le "
    "nos tiene",
    "fr": "le les et des est une dans que qui pour sur pas plus avec ce il elle vous nous sont au aux du cette "
    "être mais ou son ses peut de la un en ne se par comme lorsque leur très aussi fait sans y on a",
    "de": "der die das und ist nicht ein eine einen zu den von mit sich auf für dem im es auch sind wird bei "
    "aus dass werden als oder wenn sie kann man nach um am wie nur noch des vom zum zur aber hat ich in "
    "an war über",
    "it": "il lo gli e che di è un una per con non sono della del nel nella alla al più anche come si dei delle "
    "questo questa ha può ma da la le i in se quando dal ogni essere molto o",
    "pt": "o os as e que em um uma para com não por é são da do dos das no na mais como ou seu sua ao se também "
    "pode de a à está muito quando foi mas ser nos pelo pela isso",
    "nl": "de het een en van is dat niet te op voor met zijn die aan er ook als maar bij om worden naar kan uit "
    "je wordt in of tot door dan heeft deze dit hij zij over nog meer wel u",
    "sv": "och att det som en är på av för med den till inte har om ett de var kan från eller men vid så när du "
    "i man sig också ska blir mycket efter under",
}
_LANGUAGES = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}


def find_translation(original: str, rewrite: str) -> tuple[str, str] | None:
    """Return the languages of two texts if both are clear and the words of the first language are gone."""
    (old, was), (new, now) = _identify_language(original), _identify_language(rewrite)
    if was == now or min(old.total(), new.total()) < FEW_WORDS:
        return None
    first, second = _LANGUAGES[was] - _LANGUAGES[now], _LANGUAGES[now] - _LANGUAGES[was]
    lost = sum(old[word] for word in first), sum(new[word] for word in first)
    gained = sum(new[word] for word in second), sum(old[word] for word in second)
    # A quotation or an example in another language is in both texts, so require that the old language is gone.
    clear = all(a > 2 and a >= 0.08 * words.total() and 3 * b <= a for (a, b), words in ((lost, old), (gained, new)))
    return (was, now) if clear else None


def name_language(text: str) -> str:
    """Name the language of a text by its function words; where none are known, name the script of its letters."""
    words, language = _identify_language(text)
    if words.keys() & _LANGUAGES[language]:
        return language
    scripts = Counter[str]()
    for letter, number in Counter(filter(str.isalpha, text)).items():
        scripts[unicodedata.name(letter, "").partition(" ")[0]] += number
    return max(scripts, key=lambda script: (scripts[script], script), default="")


@lru_cache(PARTS)
def _identify_language(text: str) -> tuple[Counter[str], str]:
    """Count the words of a text and find the language with the most function words among them."""
    words = Counter(_LETTERS.findall(text.casefold()))
    return words, max(_LANGUAGES, key=lambda language: sum(words[word] for word in words.keys() & _LANGUAGES[language]))
