"""Is this rewrite still the same answer? The first layer: rules that need no model.

``inspect`` says what a rewrite lost, invented or broke. The rules are necessary and not sufficient: a rewrite may keep
every number and still say something else. Facts are sets, read strictly where they must be found and leniently where
they are looked for: "3" is kept where the rewrite says "three" or "third", and an idle "one" is no invention. It does
not know which attack made a rewrite, nor who wrote it, and takes arbitrary text in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from distract.constraints import check
from distract.records import Constraint

Span = tuple[int, int]
Facts = dict[str, set[str]]
Turns = Sequence[str]
Marker = Callable[[str], float]
Evidence = tuple[tuple[str, float | int | str], ...]
MIN_KEPT = 0.2  # least share of the original's content words in a rewrite; faithful ones keep far more (0.7 and up)
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
    "1 once single sole first|2 both pair couple twice double dual second|3 triple thrice third|4 fourth quarter|"
    "5 fifth|6 sixth|7 seventh|8 eighth|9 ninth|10 tenth|12 dozen twelfth|19 nineteenth|20 twentieth|0.5 half|0 none no"
)
_UNITS = _aliases(  # the plural in -s is taken off before the look-up
    "% percent percentage|$ dollar usd|€ euro eur|£ pound gbp lb|¥ yen|km kilometre kilometer|m metre meter|mm|cm "
    "centimetre centimeter|mile|ft foot feet|inch inche|kg kilogram|g gram|mg|oz ounce|l litre liter|ml millilitre|cup|"
    "tbsp tablespoon|tsp teaspoon|° degree|hour hr|minute min|second sec|day|week|month|year yr|kwh|gb|mb|mph|hz"
)
_W = "|".join([*_SMALL, *_SCALES])
_RUN = re.compile(rf"\b(?:{_W})(?:(?:[ -]| and )(?:{_W}))*\b")
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
_CANNOT = "(?:can't|cannot|can not|won't|am unable to|am not able to)"
_REFUSAL = re.compile(
    rf"\A\W*(?:i(?:'m| am) (?:very |so )?(?:sorry|afraid)\b.{{0,40}}?\b{_CANNOT}|sorry,? (?:but )?i {_CANNOT}|"
    rf"i {_CANNOT} (?:help|assist|comply|fulfil|provide|rewrite))|\bas an? (?:large )?(?:ai|language model)\b"
)
_COMMENT = re.compile(
    r"\bhere(?:'s| is| are)[^.!?\n]{0,80}\b(?:rewrit\w+|revis(?:ed|ion)|rephras\w+|reworded|paraphras\w+|version)\b"
    r"|\A\W*(?:sure|okay|ok|certainly|of course|absolutely)\b[!,.:]* here(?:'s| is| are)\b"
    r"|\bi(?:'ve| have)? re(?:written|wrote|phrased|worded)\b"
    r"|\A\W*(?:the |my )?re(?:written|vised|phrased|worded|write|vision)\b[ \w]{0,30}:"
)
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


def _facts(text: str, strict: bool) -> Facts:  # all that a text may be read as stating, or what it surely does
    text = text.translate(_PLAIN)
    if strict:  # code and addresses are compared as a whole; markers of lists may come and go
        text = _MARKER.sub(" ", URL.sub(" . ", _without(text, code_spans(text))))
    text = _ISO.sub(lambda m: f"{_MONTHS[int(m[2]) - 1]} {m[3]} {m[1]}", text.casefold())
    text = _SCALED.sub(lambda m: format(Decimal(m[1].replace(",", "")) * _SCALES[m[2]], "f"), text)
    # "one" is a pronoun as often as a number; an ordinal or "both" may stand for a number, and need not.
    text = _RUN.sub(lambda m: m[0] if strict and m[0] in ("zero", "one") else _spelled(m[0]), text)
    loose = set[str]() if strict else _LOOSE.keys() & set(re.findall(r"\w+", text))
    numbers, units = {_LOOSE[word] for word in loose}.union(_NAMED.findall(text)), set[str]()
    for match in _NUMBER.finditer(text):
        numbers.update(values := _numerals(match[0]))
        after = text[match.end() : match.end() + (20 if strict else 80)]
        near = _NEXT.findall(after)[: 1 if strict else 4] if not strict or _JOINED.match(after) else []
        near = [text[match.start() - 1 : match.start()], *(unit.removesuffix("s") for unit in near)]
        units |= {f"{values[-1]} {_UNITS[unit]}" for unit in near if unit in _UNITS}
    pairs = [(_MONTH[m[1] or m[4]], int(m[2] or m[3])) for m in _DATE.finditer(text)]
    dates = {f"{month} {day}" for month, day in pairs} | set(_DAY.findall(text))
    return {"number": numbers, "unit": units, "date": dates if strict else dates | {month for month, _ in pairs}}


def _normal(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split())


def _verbatim(text: str) -> Facts:  # what must be kept to the letter
    spans = code_spans(text)
    code = {_normal(re.sub(r"\A *(?:`{3,}|~{3,}).*|[`~]+\Z", "", text[a:b])).strip("` ") for a, b in spans}
    text = _without(text, spans)
    quotes = {_normal(text[a + 1 : b - 1]).strip(" .,;:!?") for a, b in quote_spans(text)}
    urls = {_normal(url).rstrip(".,;:!?)'*_`") for url in URL.findall(text)}
    return {"code": code - {""}, "quote": quotes - {""}, "url": urls - {""}}


def _scripts(text: str) -> Counter[str]:  # percentages of the writing systems among the letters
    names = (unicodedata.name(c, "OTHER").split()[0] for c in text if c.isalpha())
    counts = Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)
    return Counter({script: 100 * count // counts.total() for script, count in counts.items()})


def _compare(original: str, rewrite: str) -> Iterator[str]:  # the reasons that one turn gives
    for verb, there, here in (("lost", original, rewrite), ("invented", rewrite, original)):
        sure, read, whole = _facts(there, True), _facts(here, False), _normal(here)
        # The unit of a number that is gone, or new, would be the same finding twice.
        sure["unit"] = {unit for unit in sure["unit"] if unit.split()[0] in read["number"]}
        missing = {kind: facts - read[kind] for kind, facts in sure.items()}
        kept = _verbatim(here)
        for kind, facts in _verbatim(there).items():  # a search per item would not be linear: bounded
            missing[kind] = {f for i, f in enumerate(sorted(facts - kept[kind])) if i > 99 or f not in whole}
        for kind in filter(missing.get, missing):
            yield f"{kind} {verb}: {', '.join(fact[:60] for fact in sorted(missing[kind])[:5])}"
    if sum(map(str.isalpha, original)) > 3 and (_scripts(original) - _scripts(rewrite)).total() > 30:
        yield "script changed"
    for slug, pattern in (("refusal", _REFUSAL), ("comment about the task", _COMMENT)):
        if pattern.search(_normal(rewrite)) and not pattern.search(_normal(original)):
            yield slug


def inspect(
    prompt: Turns, original: Turns, rewrite: Turns, constraints: Sequence[Constraint] = (), marker: Marker | None = None
) -> tuple[tuple[str, ...], Evidence]:
    """Decide by rules whether a rewrite is still the same answer.

    Args:
        prompt: the user's turns.
        original: the response's turns.
        rewrite: the rewritten turns.
        constraints: format requirements; one that held must hold still, one that was broken must stay broken.
        marker: measures the wanted feature; None for a control, which wants none and may change nothing.

    Returns:
        Reasons to reject it (empty: accept), each a stable slug and what it is about, and what was measured.
    """
    if tuple(original) == tuple(rewrite):
        # What a control mostly does; nothing can have been lost, and looking would cost more than judging.
        return ("unchanged",) if marker else (), (("kept_content_share", 1.0), ("new_content_share", 0.0))
    old, new, asked = "\n\n".join(original), "\n\n".join(rewrite), content_words(" ".join(prompt))
    words, kept = content_words(old), content_words(new)
    share = len(words & kept) / len(words) if words else 1.0
    evidence: dict[str, float | int | str] = {
        "kept_content_share": round(share, 4),
        "new_content_share": round(new_content_share(old, new), 4),
        "length_ratio": round(len(new) / max(len(old), 1), 4),
        "words_before": len(old.split()),
        "words_after": len(new.split()),
    }
    reasons = [f"turns: {len(original)} became {len(rewrite)}"] if len(original) != len(rewrite) else []
    pairs = list(zip(original, rewrite, strict=False)) if not reasons else [(old, new)]
    if any(before.strip() and not after.strip() for before, after in pairs):
        return (*reasons, "empty"), tuple(evidence.items())
    reasons += dict.fromkeys(reason for pair in pairs for reason in _compare(*pair))
    held = {c: check(c, old) for c in constraints if check(c, old) != check(c, new)}
    reasons += [f"constraint {'broken' if before else 'repaired'}: {c.kind}" for c, before in held.items()]
    if share < (MIN_KEPT if len(words) > 4 else 0.01):
        gained = bool(asked) and len(asked & kept) / max(len(kept), 1) > len(asked & words) / len(words)
        reasons.append("answers the prompt" if gained else f"not a rewrite: {share:.0%} of the words kept")
    if marker is not None:
        evidence |= {"marker_before": (was := marker(old)), "marker_after": (now := marker(new))}
        same = _normal(old) == _normal(new)
        reasons += ["unchanged"] if same else [f"feature did not increase: {was:g} to {now:g}"] if now <= was else []
    return tuple(reasons), tuple(evidence.items())
