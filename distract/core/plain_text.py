"""Text as a reader sees it: without invisible characters, and with Latin letters for their look-alikes."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

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


@lru_cache(64)
def read_plainly(text: str) -> str:
    """Return a text as a reader sees it: no invisible characters, Latin letters for their look-alikes."""
    if text.isascii():
        return text
    # Tags are invisible copies of ASCII; a hidden message is read too.
    text = "".join(chr(ord(c) - 0xE0000) if 0xE0020 <= ord(c) <= 0xE007E else c for c in text)
    folded = unicodedata.normalize("NFKD", text)
    shown = "".join(c for c in folded if c not in FILLERS and unicodedata.category(c) not in ("Cf", "Mn"))
    return unicodedata.normalize("NFC", shown).translate(_LOOKALIKES)
