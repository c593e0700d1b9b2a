"""Detect the language of a text with the optional library py3langid, looked up only if a constraint needs it."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import Any

from distract.core.errors import install_command
from distract.data.constraints.kind import Argument, UnavailableError

_NAMES = (
    "af=Afrikaans am=Amharic ar=Arabic as=Assamese az=Azerbaijani be=Belarusian bg=Bulgarian bn=Bengali "
    "bs=Bosnian ca=Catalan cs=Czech cy=Welsh da=Danish de=German el=Greek en=English eo=Esperanto es=Spanish "
    "et=Estonian eu=Basque fa=Persian fi=Finnish fr=French ga=Irish gl=Galician gu=Gujarati he=Hebrew hi=Hindi "
    "hr=Croatian hu=Hungarian hy=Armenian id=Indonesian is=Icelandic it=Italian ja=Japanese ka=Georgian kk=Kazakh "
    "km=Khmer kn=Kannada ko=Korean la=Latin lo=Lao lt=Lithuanian lv=Latvian mk=Macedonian ml=Malayalam "
    "mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese ne=Nepali nl=Dutch no=Norwegian or=Odia pa=Punjabi "
    "pl=Polish ps=Pashto pt=Portuguese ro=Romanian ru=Russian si=Sinhala sk=Slovak sl=Slovenian so=Somali "
    "sq=Albanian sr=Serbian sv=Swedish sw=Swahili ta=Tamil te=Telugu th=Thai tl=Tagalog tr=Turkish uk=Ukrainian "
    "ur=Urdu vi=Vietnamese zh=Chinese zu=Zulu"
)
NAMES = dict(pair.split("=") for pair in _NAMES.split())
"""Languages by code."""


def _is_language(value: Any) -> bool:
    if not isinstance(value, str) or value not in NAMES:
        return False
    if importlib.util.find_spec("py3langid") is None:
        raise UnavailableError("language", f"needs py3langid, which is not installed: {install_command('language')}")
    return True


LANGUAGE = Argument(f"the code of a language ({' '.join(NAMES)})", _is_language)


@cache
def _load_identifier() -> Any:
    _is_language("en")  # a constraint built without parsing has not been checked
    module = importlib.import_module("py3langid.langid")
    identifier = module.LanguageIdentifier.from_model_file(module.MODEL_FILE)
    identifier.set_languages(list(NAMES))
    return identifier


def detect(text: str) -> str | None:
    """The code of the most likely language; None for a text without letters."""
    # The library needs UTF-8, which has no lone surrogates.
    text = text.encode(errors="replace").decode()
    return str(_load_identifier().classify(text)[0]) if any(map(str.isalpha, text)) else None
