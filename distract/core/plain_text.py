"""Text as a reader sees it: without invisible characters, and with Latin letters for their look-alikes."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_LATIN_NAME = re.compile(r"\bLATIN (?:SMALL |LETTER |CAPITAL )+([A-Z])$")

FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Letters and signs that show nothing, although they are no format characters."""

_LOOKALIKES = str.maketrans(
    dict(
        zip(
            "аеорсухіјѕһԁԛԝԍҮӀАВЕКМНОРСТУХІЈЅαορνικτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
            "aeopcyxijshdqwgYlABEKMHOPCTYXIJSaopvikTuxABEZHIKMNOPTYX",
            strict=True,
        )
    )
)


_UNSEEN = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\u2065\ufe00-\ufe0f\ufff0-\ufff8\U000e0000-\U000e0fff]")
"""What Unicode lets a font ignore, besides format characters and fillers."""


def fold_text(text: str) -> str:
    """Fold how a text is written: its Unicode form, invisible characters, white space and case."""
    if not (text.isascii() and text.isprintable()):
        kept = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
        unseen = (c for c in {*kept} if c in FILLERS or (unicodedata.category(c) in ("Cc", "Cf") and not c.isspace()))
        text = unicodedata.normalize("NFKC", kept.translate(dict.fromkeys(map(ord, unseen))).casefold())
    return " ".join(text.casefold().split())


@lru_cache(64)
def read_plainly(text: str) -> str:
    """Return a text as a reader sees it: no invisible characters, Latin letters for their look-alikes."""
    if text.isascii():
        return text
    # Tags are invisible copies of ASCII; a hidden message is read too.
    text = "".join(chr(ord(c) - 0xE0000) if 0xE0020 <= ord(c) <= 0xE007E else c for c in text)
    folded = unicodedata.normalize("NFKD", text)
    shown = "".join(c for c in folded if c not in FILLERS and unicodedata.category(c) not in ("Cf", "Mn"))
    return "".join(map(_fold_letter, unicodedata.normalize("NFC", shown)))


@lru_cache(4096)
def _fold_letter(letter: str) -> str:
    """Replace a letter that looks like a Latin one, such as a small capital or one in a box."""
    if letter.isascii():
        return letter
    name = _LATIN_NAME.search(unicodedata.name(letter, ""))
    return name[1].casefold() if name else letter.translate(_LOOKALIKES)
