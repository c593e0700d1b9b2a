"""What a text states that can be looked up: numbers, units, dates, addresses, code, quotations, its content words.

Facts are sets, read strictly where they must be found and leniently where they are looked for: "3" is kept where the
other text says "three" or "third", and an idle "one" is no invention. It takes arbitrary text in linear time, and does
not know what is an original and what a rewrite, nor what to make of a difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

Span = tuple[int, int]
Facts = dict[str, set[str]]
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"”)\]]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CODE = re.compile(
    r"(?m)^ {0,3}(`{3,}|~{3,})[^`\n]*$(?:\n.*)*?(?:\n[^`~\n]*\1[`~]*[ \t]*$|\Z)"
    r"|(?<!`)`[^`\n]{1,500}`(?!`)|(?<!`)``(?:[^`\n]|`(?!`)){1,500}``(?!`)"
)
_QUOTE = re.compile(r'(?<!\w)"[^"\n]{1,600}"(?!\w)|“[^“”\n]{1,600}”|«[^«»\n]{1,600}»|「[^「」\n]{1,600}」')
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u2011": "-", "−": "-"})
_MARKER = re.compile(r"^[ \t]*(?:[*#>-]+[ \t]*)?\d{1,3}[.)](?=[ \t*]+\S)", re.M)


def _aliases(text: str) -> dict[str, str]:
    return {alias: names.split()[0] for names in text.split("|") for alias in names.split()}


_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_SMALL = dict(zip(_NAMES.split(), [*range(20), *range(20, 100, 10)], strict=True))
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LOOSE = _aliases(
    "1 once single sole first|2 both either pair couple twice double dual second|3 triple thrice third|"
    "4 fourth quarter|5 fifth|6 sixth|7 seventh|8 eighth|9 ninth|10 tenth|12 dozen twelfth|19 nineteenth|"
    "20 twentieth|0.5 half|0 none no"
)
_UNITS = _aliases(  # the plural in -s is taken off before the look-up
    "% percent percentage|$ dollar usd|€ euro eur|£ pound gbp lb|¥ yen|km kilometre kilometer|m metre meter|mm|cm "
    "centimetre centimeter|mile|ft foot feet|inch inche|kg kilogram|g gram|mg|oz ounce|l litre liter|ml millilitre|cup|"
    "tbsp tablespoon|tsp teaspoon|° degree|hour hr|minute min|second sec|day|week|month|year yr|kwh|gb|mb|mph|hz"
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
_SPANS = {  # figures that may stand for them, after numbers in words have become digits
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
_W = "|".join([*_SMALL, *_SCALES])
_RUN = re.compile(rf"\b(?:{_W})(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )(?:{_W}))*\b")
_HALVES = re.compile(r"(?<![\d.])(\d{1,9}) and a half\b")
_SCALED = re.compile(rf"\b(\d{{1,30}}(?:[.,]\d{{1,30}})?)[ -]({'|'.join(_SCALES)})\b")
_NUMBER = re.compile(r"(?<!\w)(?:(?<![\d)\]] )(?<![\w)\]])-)?\d+(?:[.,]\d+)*")
_NAMED = re.compile(r"\b[^\W\d_]+\d\w*")  # H2O, B12: a number that belongs to a name
_NEXT, _JOINED = re.compile(r"[^\W\d_]+|[%°$€£¥]"), re.compile(r"[ -]?[^\W_]|[ -]?[%°]")
_MONTHS = list(_aliases("january|february|march|april|may|june|july|august|september|october|november|december"))
_MONTH = {m: m for m in _MONTHS} | {m[:3]: m for m in _MONTHS} | {"sept": "september"}
_M = "|".join(sorted(_MONTH, key=len, reverse=True))
_DATE = re.compile(rf"\b(?:({_M})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b|(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_M})\b)")
_DAY = re.compile(rf"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|{'|'.join(_MONTHS[:2] + _MONTHS[5:])})\b")
_ISO = re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-(\d{2})\b")
_CAPITAL = re.compile(r"(?<=[\w,;)] )([A-Z][\w’'&-]*[^\W_])(?!\w)")
_LETTERS = re.compile(r"[^\W_]+")
_TITLE = re.compile(r"<<[^\n]{0,300}>>|^[ \t]*#.*$", re.M)
_RUN_OF_NAMES = re.compile(r"[A-Z]\w+(?: [A-Z]\w+){1,5}")
_TITLES = (
    "i'm i'll i've i'd mr mrs ms dr prof sir madam dear ok pm am no yes step part section figure table chapter "
    "earth sun moon internet web celsius fahrenheit"
)
_NO_NAMES = frozenset(_TITLES.split())
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+")
_COMMON = (
    "the and for are was but not you all can had her his she has him its our who how why did may any too out off then "
    "than that this these those there here your they them their whom whose which what when where were been being does "
    "done have having will would shall should could might must with about into over from down also very"
)
_STOP = {*_SMALL, *_SCALES, *_COMMON.split()}
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "e", "y")


def code_spans(text: str) -> list[Span]:
    """Find fenced code blocks and code spans, in order, with their delimiters."""
    return [m.span() for m in _CODE.finditer(text)]


def core(text: str) -> Span:
    """Find the text proper: without outer white space and quotation marks around the whole of it."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if end - start > 2 and text[start] in '"“' and text[end - 1] in '"”':
        inner = text.find('"', start + 1, end - 1)
        # In `"Yes" and "no"` the first inner mark closes; in a text that is wrapped as a whole it opens.
        if inner < 0 or (inner > start + 1 and text[inner - 1] in " \n(" and not text[inner + 1].isspace()):
            return start + 1, end - 1
    return start, max(start, end)


def quote_spans(text: str) -> list[Span]:
    """Find quoted strings, with their marks; marks around the whole text are no quotation."""
    return [m.span() for m in _QUOTE.finditer(text, *core(text))]


def content_words(text: str) -> set[str]:
    """Collect the words that carry meaning, roughly stemmed; single characters where words are not spaced."""
    words = set()
    for word in set(_WORD.findall(text.casefold())) - _STOP:
        if len(word) > 2 or not word.isascii():
            stem = word.removesuffix(next((e for e in _ENDINGS if word.endswith(e) and len(word) > len(e) + 2), ""))
            words.add(stem[:-1] if stem[-1] == stem[-2:-1] else stem)
    return words


def new_content_share(original: str, rewrite: str) -> float:
    """Share of the distinct content words of a rewrite that its original does not have."""
    before, after = content_words(original), content_words(rewrite)
    return len(after - before) / len(after) if after else 0.0


def _without(text: str, spans: Sequence[Span]) -> str:  # a full stop instead, so that the rest does not join up
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return " . ".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def _spelled(run: str) -> str:  # "two hundred and five" is 205
    total = current = 0
    for word in run.replace("-", " ").replace(" and ", " ").split():
        if word in _SMALL:
            current += _SMALL[word]
        else:
            product = max(current, 1) * _SCALES[word]
            total, current = (total, product) if word == "hundred" else (total + product, 0)
    return str(total + current)


def _numerals(digits: str) -> list[str]:  # 1,000.50 is 1000.5; a bare list such as 2,3,5 is several numbers
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
    found = []
    for part in [digits.replace(",", "")] if grouped else digits.split(","):
        whole, _, rest = part.partition(".")
        rest = rest if "." in rest else rest.rstrip("0")
        found.append((whole.lstrip("0") or "0") + (f".{rest}" if rest else ""))
    return [sign + found[0], *found[1:]]


def _converted(numbers: set[str], units: set[str]) -> tuple[set[str], set[str]]:
    """The same amounts in other units: 3 weeks are 21 days, a fifth is 20%."""
    more_numbers, more_units = set[str](), set[str]()
    for figure in sorted(units)[:200]:
        number, _, unit = figure.partition(" ")
        for larger, factor, smaller in _FACTORS:
            if unit in (larger, smaller) and len(number) < 15 and number.lstrip("-").replace(".", "", 1).isdigit():
                value = Decimal(number) * factor if unit == larger else Decimal(number) / factor
                if value == round(value, 2):
                    found = _numerals(format(value.normalize(), "f"))[0]
                    more_numbers.add(found)
                    more_units.add(f"{found} {smaller if unit == larger else larger}")
    return numbers | more_numbers, units | more_units


def _facts(text: str, strict: bool) -> Facts:  # all that a text may be read as stating, or what it surely does
    text = text.translate(_PLAIN)
    if strict:  # code and addresses are compared as a whole; markers of lists may come and go
        text = _MARKER.sub(" ", URL.sub(" . ", _without(text, code_spans(text))))
    text = text.replace("per cent", "percent")
    text = _ISO.sub(lambda m: f"{_MONTHS[int(m[2]) - 1]} {m[3]} {m[1]}", text.casefold())
    text = _SCALED.sub(lambda m: format(Decimal(m[1].replace(",", "")) * _SCALES[m[2]], "f"), text)
    # "one" is a pronoun as often as a number; an ordinal or "both" may stand for a number, and need not.
    text = _RUN.sub(lambda m: m[0] if strict and m[0] in ("zero", "one") else _spelled(m[0]), text)
    text = _HALVES.sub(r"\1.5", text)
    if not strict:
        text = _SPAN.sub(lambda m: f"{m[0]} {_SPANS[m[0]]} ", text)
        text = _ORDINAL.sub(lambda m: f"{_LOOSE[m[0]]} {m[0]}", text)
    numbers, units = set(_NAMED.findall(text)), set[str]()
    for match in _NUMBER.finditer(text):
        numbers.update(values := _numerals(match[0]))
        after = text[match.end() : match.end() + (20 if strict else 80)]
        near = _NEXT.findall(after)[: 1 if strict else 4] if not strict or _JOINED.match(after) else []
        near = [text[match.start() - 1 : match.start()], *(unit.removesuffix("s") for unit in near)]
        units |= {f"{values[-1]} {_UNITS[unit]}" for unit in near if unit in _UNITS}
    if not strict:
        numbers, units = _converted(numbers, units)
    pairs = [(_MONTH[m[1] or m[4]], int(m[2] or m[3])) for m in _DATE.finditer(text)]
    dates = {f"{month} {day}" for month, day in pairs} | set(_DAY.findall(text))
    return {"number": numbers, "unit": units, "date": dates if strict else dates | {month for month, _ in pairs}}


def _names(text: str) -> set[str]:
    """Words that are capitalised inside a sentence; none in titles, nor where a text is all capitals or has none."""
    if not any(map(str.islower, text)):
        return set()
    text = _TITLE.sub(" . ", _without(text, [*code_spans(text), *(m.span() for m in URL.finditer(text))]))
    text = "\n".join("" if _is_heading(line) else line for line in text.split("\n"))
    found = {match[1].translate(_PLAIN).removesuffix("'s").casefold() for match in _CAPITAL.finditer(text)}
    return {name for name in found if name not in _NO_NAMES and name not in _MONTH and not _DAY.fullmatch(name)}


def _initials(run: str) -> str:
    return "".join(word[0] for word in run.split()).casefold()


def _is_heading(line: str) -> bool:
    """Whether every longer word of a line is capitalised, so that capitals in it are no sign of a name."""
    words = [word for word in _LETTERS.findall(line) if len(word) > 3]
    return (
        len(words) > 1 and all(word[0].isupper() for word in words) and line.rstrip()[-1:] not in (".", "!", "?", ",")
    )


def _read_as_names(text: str) -> set[str]:
    """All that may stand for a name: every word, its beginnings (Brazil, Brazilian), the initials of words in a row."""
    words = _LETTERS.findall(text)
    initials = "".join(word[0] if word[0].isupper() else " " for word in words)
    lower = {word.casefold() for word in words}
    return lower | set(initials.casefold().split()) | {word[:n] for word in lower for n in range(3, min(len(word), 40))}


def _is_read(name: str, read: set[str]) -> bool:
    parts = _LETTERS.findall(name)
    return all(part in read or part[: max(4, len(part) - 3)] in read for part in parts)


def normal(text: str) -> str:
    """A text without what typography and case add."""
    return " ".join(text.translate(_PLAIN).casefold().split())


def _verbatim(text: str) -> Facts:  # what must be kept to the letter
    spans = code_spans(text)
    code = {normal(re.sub(r"\A *(?:`{3,}|~{3,}).*|[`~]+\Z", "", text[a:b])).strip("` ") for a, b in spans}
    text = _without(text, spans)
    quotes = {normal(text[a + 1 : b - 1]).strip(" .,;:!?") for a, b in quote_spans(text)}
    urls = {normal(url).rstrip(".,;:!?)'*_`") for url in URL.findall(text)}
    return {"code": code - {""}, "quote": quotes - {""}, "url": urls - {""}}


def scripts(text: str) -> Counter[str]:
    """The writing systems of the letters, in percent."""
    names = (unicodedata.name(c, "OTHER").split()[0] for c in text if c.isalpha())
    counts = Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)
    return Counter({script: 100 * count // counts.total() for script, count in counts.items()})


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one kind of fact; each part is sorted."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]
    invented: tuple[str, ...]


def differences(original: str, rewrite: str, given: str = "") -> dict[str, Difference]:
    """What a rewrite kept, lost and invented of the facts of its original, by kind.

    Args:
        original: a text.
        rewrite: what became of it.
        given: a text whose names are no invention, such as the prompt.
    """
    surely, lost = _missing(original, rewrite)
    _, invented = _missing(rewrite, original)
    # A figure may lose its unit to the context, as in "between 5 and 6 kg"; it may not get another one.
    lost["unit"] = {unit for unit in lost["unit"] if _units_of(unit.split()[0], rewrite)}
    known = _read_as_names(given)
    invented["name"] = {name for name in invented["name"] if not _is_read(name, known)}
    return {
        kind: Difference(tuple(sorted(surely[kind] - lost[kind])), *(tuple(sorted(x[kind])) for x in (lost, invented)))
        for kind in surely
    }


def _units_of(number: str, text: str) -> bool:
    """Whether a text gives any unit to a number."""
    return any(unit.split()[0] == number for unit in _facts(text, True)["unit"])


def _missing(there: str, here: str) -> tuple[Facts, Facts]:
    """What one text surely states, by kind, and what of it the other one does not."""
    sure, read, whole = _facts(there, True), _facts(here, False), normal(here)
    # The unit of a number that is gone, or new, would be the same finding twice.
    sure["unit"] = {unit for unit in sure["unit"] if unit.split()[0] in read["number"]}
    missing = {kind: found - read[kind] for kind, found in sure.items()}
    names, words = _names(there), _read_as_names(here)
    short = {part.casefold() for run in _RUN_OF_NAMES.findall(there) if _initials(run) in words for part in run.split()}
    missing["name"] = {name for name in names if not _is_read(name, words) and name not in short}
    kept, verbatim = _verbatim(here), _verbatim(there)
    for kind, found in verbatim.items():  # a search per item would not be linear: bounded
        missing[kind] = {f for i, f in enumerate(sorted(found - kept[kind])) if i > 99 or f not in whole}
    return sure | {"name": names} | verbatim, missing
