"""Find numbers, units and dates in English text, in digits and words, and equal amounts in other units.

Reading can be strict or lenient, and takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from distract.data.lexicon import SCALES, SMALL


def _aliases(text: str) -> dict[str, str]:
    return {alias: names.split()[0] for names in text.split("|") for alias in names.split()}


_LOOSE = _aliases(
    "1 once single sole first|2 both either pair couple twice double dual second|3 triple thrice third|"
    "4 fourth quarter|5 fifth|6 sixth|7 seventh|8 eighth|9 ninth|10 tenth|12 dozen twelfth|19 nineteenth|"
    "20 twentieth|0.5 half|0 none no"
)
_UNITS = _aliases(  # look-ups remove the plural -s
    "% percent percentage|$ dollar usd|€ euro eur|£ pound gbp lb|¥ yen|km kilometre kilometer|m metre meter|mm|cm "
    "centimetre centimeter|mile|ft foot feet|"
    "inch inches|kg kilogram|g gram|mg|µg mcg μg|oz ounce|l litre liter|ml millilitre|cup|"
    "tbsp tablespoon|tsp teaspoon|° degree|hour hr|minute min|second sec|day|week|month|year yr|kwh|gb|mb|mph|hz|ms|"
    "ns|nm|volt|amp|watt|acre|hectare|°c celsius|°f fahrenheit|am|pm|knot|tonne|ton|gallon|pint|quart|bar|calorie|joule"
)
_FACTORS = (
    ("week", 7, "day"),
    ("day", 24, "hour"),
    ("hour", 60, "minute"),
    ("minute", 60, "second"),
    ("year", 12, "month"),
    ("km", 1000, "m"),
    ("m", 100, "cm"),
    ("cm", 10, "mm"),
    ("kg", 1000, "g"),
    ("l", 1000, "ml"),
)
_ORDINAL = re.compile(rf"\b(?:{'|'.join(filter(str.isalpha, _LOOSE))})\b")
_SPANS = {  # equivalent figures, applied after numbers in words became digits
    "quarter of an hour": "15 minutes",
    "half an hour": "30 minutes",
    "half hour": "30 minutes",
    "half-hour": "30 minutes",
    "quarters of an hour": "45 minutes",
    "an hour": "60 minutes",
    "hour and a half": "90 minutes",
    "fortnight": "14 days 2 weeks",
    "a week": "7 days",
    "a year": "12 months",
    "half a year": "6 months",
    "year and a half": "18 months",
    "a day": "24 hours",
    "decade": "10 years",
    "century": "100 years",
    "half": "50 %",
    "third": "33 %",
    "quarter": "25 %",
    "fifth": "20 %",
    "tenth": "10 %",
}
_SPAN = re.compile(rf"\b(?:{'|'.join(sorted(_SPANS, key=len, reverse=True))})\b")
_W = "|".join([*SMALL, *SCALES])
_RUN = re.compile(rf"\b(?:{_W})(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )(?:{_W}))*\b")
_HALVES = re.compile(rf"(?<![\d.])(\d{{1,9}}|{'|'.join(SMALL)}) and a half\b")
_FRACTIONS = str.maketrans({"½": "0.5", "¼": "0.25", "¾": "0.75"})
_CLOCK, _DEGREES = re.compile(r"\b([ap])\.m\b\.?"), re.compile(r"° ?([cf])\b|\bdegrees? (c|f)(?:elsius|ahrenheit)\b")
_SCALED = re.compile(rf"\b(\d{{1,30}}(?:[.,]\d{{1,30}})?)[ -]({'|'.join(SCALES)})\b")
_NUMBER = re.compile(r"(?<!\w)(?:(?<![\d)\]] )(?<![\w)\]])-)?\d+(?:[.,]\d+)*")
_NAMED = re.compile(r"\b[^\W\d_]+\d\w*")  # H2O, B12: a number that belongs to a name
_DIGIT = re.compile(r"\d")
_NEXT, _JOINED = re.compile(r"°[cf]\b|[^\W\d_]+|[%°$€£¥]"), re.compile(r" {0,2}-?[^\W_]|[ -]{0,2}[%°]")
_MONTHS = list(_aliases("january|february|march|april|may|june|july|august|september|october|november|december"))
MONTH = {m: m for m in _MONTHS} | {m[:3]: m for m in _MONTHS} | {"sept": "september"}
_SHORT_MONTHS = [m[:3] for m in _MONTHS]
_M = "|".join(sorted(MONTH, key=len, reverse=True))
_DATE = re.compile(rf"\b(?:({_M})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b|(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_M})\b)")
DAY = re.compile(rf"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|{'|'.join(_MONTHS[:2] + _MONTHS[5:])})\b")
_IN_MONTH = re.compile(  # "may" and "march" are words; a capital or a year makes them months
    r"\b(?i:in|since|until|by|of|during|from|early|late|mid|last|next|this) ((?i:april)|March|May)\b"
    r"|\b((?i:march|april|may)) (?=\d{4}\b)"
)
_COUNTED = re.compile(  # "Two examples are ..." counts what follows
    rf"\b(?:{'|'.join(list(SMALL)[2:11])})(?: [a-z]+)? (?:example|reason|way|point|thing|factor|aspect|idea|tip)s\b",
    re.I,
)
_SLASHES = re.compile(r"\b\d{1,2}/\d{1,2}/\d{2,4}\b")
_ISO = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d{2})\b")


def _parse_words(run: str) -> str:  # "two hundred and five" is 205
    total = current = 0
    if len(run) > 200:  # not a real number, and its value may be too long to print
        return run
    for word in run.replace("-", " ").replace(" and ", " ").split():
        if word in SMALL:
            current += SMALL[word]
        else:
            product = max(current, 1) * SCALES[word]
            total, current = (total, product) if word == "hundred" else (total + product, 0)
    return str(total + current)


def _numerals(digits: str) -> list[str]:  # 1,000.50 is 1000.5, but a list such as 2,3,5 is several numbers
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
    numerals = []
    for part in [digits.replace(",", "")] if grouped else digits.split(","):
        whole, _, rest = part.partition(".")
        rest = rest if "." in rest else rest.rstrip("0")
        numerals.append((whole.lstrip("0") or "0") + (f".{rest}" if rest else ""))
    return [sign + numerals[0], *numerals[1:]]


def _convert_units(numbers: set[str], units: set[str]) -> tuple[set[str], set[str]]:
    """Add equal amounts in other units: 3 weeks are 21 days."""
    more_numbers, more_units = set[str](), set[str]()
    for figure in sorted(units)[:200]:
        number, _, unit = figure.partition(" ")
        for larger, factor, smaller in _FACTORS:
            if unit in (larger, smaller) and len(number) < 15 and number.lstrip("-").replace(".", "", 1).isdigit():
                value = Decimal(number) * factor if unit == larger else Decimal(number) / factor
                if value == round(value, 2):
                    converted = _numerals(format(value.normalize(), "f"))[0]
                    more_numbers.add(converted)
                    more_units.add(f"{converted} {smaller if unit == larger else larger}")
    return numbers | more_numbers, units | more_units


def amounts(text: str, strict: bool) -> dict[str, set[str]]:
    """The sets of numbers, units and dates in a text."""
    months = {(one or other).casefold() for one, other in _IN_MONTH.findall(text)}
    text = _normalise_figures(text)
    # "one" is often a pronoun; an ordinal or "both" may mean a number, so only lenient reading counts it.
    text = _RUN.sub(lambda m: m[0] if strict and m[0] in ("zero", "one") else _parse_words(m[0]), text)
    if not strict:
        text = _SPAN.sub(lambda m: f"{m[0]} {_SPANS[m[0]]} ", text)
        text = _ORDINAL.sub(lambda m: f"{m[0]} {_LOOSE[m[0]]}", text)
    numbers, units = set[str](), set[str]()
    has_digits = _DIGIT.search(text) is not None
    if has_digits:
        numbers.update(_NAMED.findall(text))
    for match in _NUMBER.finditer(text) if has_digits else ():
        numbers.update(values := _numerals(match[0]))
        # A unit after the next number belongs to that number.
        after = _DIGIT.split(text[match.end() : match.end() + (20 if strict else 80)], maxsplit=1)[0]
        near = _NEXT.findall(after)[: 1 if strict else 4] if not strict or _JOINED.match(after) else []
        nearby = map(_unit, (text[match.start() - 1 : match.start()], *near))
        units |= {f"{values[-1]} {unit}" for unit in nearby if unit}
    if not strict:
        numbers, units = _convert_units(numbers, units)
    return {"number": numbers, "unit": units, "date": _dates(text, strict) | months}


def find_counts(text: str) -> set[str]:
    """The numbers that only count what a text lists."""
    if not _COUNTED.search(text):
        return set()
    return amounts(text, True)["number"] - amounts(_COUNTED.sub(" . ", text), True)["number"]


@lru_cache(4)
def _normalise_figures(text: str) -> str:
    """Put a text in lower case with one spelling of figures; cached, because texts are read in both ways.

    Quick tests come before each slow search.
    """
    text = _normalise_units(text).translate(_FRACTIONS)
    if "-" in text:
        text = _ISO.sub(lambda m: f"{_MONTHS[int(m[2]) - 1]} {m[3]} {m[1]}", text)
    if " and a half" in text:
        text = _HALVES.sub(lambda m: f"{SMALL.get(m[1], m[1])}.5", text)
    if "bn" in text:
        text = re.sub(r"(?<=\d)bn\b", " billion", text)
    if _DIGIT.search(text):
        text = _SCALED.sub(lambda m: format(Decimal(m[1].replace(",", "")) * SCALES[m[2]], "f"), text)
    return text


def _dates(text: str, strict: bool) -> set[str]:
    dates = set(_SLASHES.findall(text)) if "/" in text else set[str]()
    if _has_any(text, ("day", *_MONTHS)):
        dates |= set(DAY.findall(text))
    if not strict:
        dates |= set(re.findall(r"\b(?:march|april|may)\b", text))
    if _has_any(text, _SHORT_MONTHS) and _DIGIT.search(text):
        for m in _DATE.finditer(text):
            month, day = MONTH[m[1] or m[4]], int(m[2] or m[3])
            dates |= {f"{month} {day}"} if strict else {f"{month} {day}", month}
    return dates


def _has_any(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def find_units(text: str) -> set[str]:
    """All units in a text."""
    return {unit for word in _NEXT.findall(_normalise_units(text)) if (unit := _unit(word))}


def _normalise_units(text: str) -> str:
    """Put a text in lower case with one spelling of each unit."""
    text = text.casefold().replace("per cent", "percent")
    if ".m" in text:
        text = _CLOCK.sub(r"\1m", text)
    return _DEGREES.sub(lambda m: f" °{m[1] or m[2]} ", text) if _has_any(text, ("°", "degree")) else text


def _unit(word: str) -> str | None:
    return _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
