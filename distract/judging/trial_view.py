"""Show a trial of a judge: every prompt, every answer, and what was read from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.core.printable import clean_text, line, shorten
from distract.core.records import Judgment, Outcome, ParseFailure, Reply, Request
from distract.judging.parsers.reader import Reading
from distract.judging.parsers.words import Unread
from distract.judging.trial import OrderTrial, Trial

LONGEST = 20_000
"""Characters of an answer to print."""

LONGEST_WORDS, MOST_QUOTED = 80, 5
"""Characters of a verdict's words to print, and quoted verdicts to list."""


def trial_document(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON values."""
    return {
        "protocol": trial.protocol.name,
        "verdict": trial.outcome,
        "orders": [
            {
                "order": order.title,
                "requests": [
                    _exchange_document(*exchange, reading, order.readings.get(at), order.returned)
                    for at, (exchange, reading) in enumerate(_readings(order, trial.protocol.pass_mark))
                ],
                "sent": order.sent,
                "judgments": [
                    {
                        "preferred": one.preferred,
                        "probabilities": one.probabilities,
                        "scores": one.scores,
                        **({"criteria": one.criteria} if one.criteria else {}),
                        "mass": one.mass,
                        "read": one.read,
                        "failure": None if one.failure is None else str(one.failure),
                    }
                    for one in order.judgments
                ],
            }
            for order in trial.orders
        ],
    }


def _exchange_document(
    request: Request, reply: Reply | None, reading: str, source: Reading | None, returned: Mapping[str, str]
) -> dict[str, Any]:
    answer = reply and {
        "text": reply.text,
        "probabilities": reply.probabilities and dict(zip(request.choices, reply.probabilities, strict=False)),
        "mass": reply.mass,
        "finish": reply.finish,
        "failure": reply.failure,
    }
    return {
        "key": request.key,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "prefill": request.prefill,
        "choices": list(request.choices),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "answer": answer,
        "reading": reading,
        "from": source and {**asdict(source), "is_unread": isinstance(source.value, Unread)},
        "returned": returned.get(request.key),
    }


def show_trials(judge: str, case: str, trials: Sequence[Trial], notes: Sequence[str] = ()) -> Iterator[str]:
    """Return trials as lines to print; ``notes`` are about their prompts."""
    yield f"judge {line(judge)} · case {line(case)}"
    yield from map(line, notes)
    for trial in trials:
        yield ""
        yield from _trial_lines(trial)


def _trial_lines(trial: Trial) -> Iterator[str]:
    """Return a trial as lines to print; texts of the case and of the judge are indented, so that none is a heading."""
    yield f"protocol {trial.protocol.name}: {line(trial.protocol.summary)}"
    for order in trial.orders:
        several = len(order.exchanges) > 1
        readings = _readings(order, trial.protocol.pass_mark)
        for number, ((request, reply), reading) in enumerate(readings, 1):
            yield ""
            yield f"── {order.title}{f', request {number} of {len(order.exchanges)}' if several else ''}"
            for message in request.messages:
                yield from _indent(f"[{message.role}]", message.content)
            if request.prefill:
                yield from _indent("[prefill]", request.prefill)
            for text in order.sent.get(request.key, ()):
                yield from _indent("sent:", shorten(text, LONGEST))
            if reply is not None:
                yield from _indent("answer:", _answer(request, reply))
            if reading:
                yield f"read: {line(reading)}"
            if request.key in order.returned:
                yield f"from: return value {line(order.returned[request.key])}"
            if number - 1 in order.readings:
                yield from _source_lines(order.readings[number - 1], reading)
        for text in order.sent.get("", ()):
            yield from _indent("sent by a thread of its own:", shorten(text, LONGEST))
    judgments = [judgment for order in trial.orders for judgment in order.judgments]
    if judgments:
        yield ""
        yield f"verdict of {trial.protocol.name}: {_conclude(trial, judgments)}"


def _source_lines(reading: Reading, said: str) -> Iterator[str]:
    """Say where a verdict was read or why not, unless it is said already, and what was ignored."""

    def quote(text: str) -> str:
        return f'"{shorten(line(text), LONGEST_WORDS)}"'

    if reading.words:
        yield f"from: {f'line {reading.line}, ' if reading.line else ''}{quote(reading.words)}"
    if isinstance(reading.value, Unread) and reading.value not in said:
        yield f"unread: {line(reading.value)}"
    if quoted := list(dict.fromkeys(map(quote, reading.quoted))):
        more = [f"{len(quoted) - MOST_QUOTED} more"] if len(quoted) > MOST_QUOTED else []
        yield f"ignored as quoted: {', '.join([*quoted[:MOST_QUOTED], *more])}"


def _conclude(trial: Trial, judgments: Sequence[Judgment]) -> str:
    if trial.outcome is None:
        reasons = dict.fromkeys(line(str(judgment.failure)) for judgment in judgments if judgment.failure)
        return f"none ({'; '.join(reasons)})"
    winner = _name(trial.outcome)
    preferences = {judgment.preferred for judgment in judgments}
    if len(judgments) > 1 and trial.protocol.orders == "swap":
        return f"{winner}{', the same in both orders' if len(preferences) == 1 else '; the two orders disagree'}"
    return winner


def _answer(request: Request, reply: Reply) -> str:
    if reply.failure is not None:
        return f"(none: {reply.failure})"
    if reply.probabilities is not None:
        shares = zip(request.choices, reply.probabilities, strict=False)
        return ", ".join(f"{choice} {share:.3f}" for choice, share in shares)
    cut = f"\n[… {len(reply.text) - LONGEST:,} more characters before this]\n" if len(reply.text) > LONGEST else ""
    return f"{cut}{reply.text[-LONGEST:]}{' [cut at the token limit]' if reply.finish == 'length' else ''}"


def _readings(order: OrderTrial, mark: float | None) -> list[tuple[tuple[Request, Reply | None], str]]:
    """Add to each exchange what was read from it; a verdict is read from the last, a failure from its own."""
    readings = [""] * len(order.exchanges)
    for judgment in order.judgments:
        failed = judgment.failure.reply if isinstance(judgment.failure, ParseFailure) else None
        at = next((index for index, (_, reply) in enumerate(order.exchanges) if reply is failed), -1)
        shown = [len(request.slots.shown) if request.slots else 0 for request, _ in order.exchanges]
        if judgment.scores and shown == [1, 1]:
            scores, words = enumerate(judgment.scores), _certainty(judgment)
            readings = [f"score {one:g}{_name_criteria(judgment, at)}{_pass(one, mark)}, {words}" for at, one in scores]
        elif readings:
            readings[at] = _describe(judgment, order.title)
    return list(zip(order.exchanges, readings, strict=True))


def _indent(heading: str, text: str) -> list[str]:
    return [heading, *(f"  │ {one}" if one else "  │" for one in clean_text(text).split("\n"))]


def _pass(score: float, mark: float | None) -> str:
    return "" if mark is None else f" ({'passes' if score >= mark else 'does not pass'}: the mark is {mark:g})"


def _describe(judgment: Judgment, order: str) -> str:
    if judgment.failure is not None:
        return f"no verdict: {judgment.failure}".replace("no verdict: no verdict", "no verdict")
    scores = "" if judgment.scores is None else f" (scores {judgment.scores[0]:g} and {judgment.scores[1]:g})"
    scores += _name_criteria(judgment, 0, 1)
    # In the second order, a prompt shows B under the name or letter of A.
    places = {"A first": ("first", "second"), "B first": ("second", "first")}.get(order)
    place = f" (shown {places[judgment.preferred == 'b']})" if places and judgment.preferred != "tie" else ""
    return f"{_name(judgment.preferred)}{place}{scores}, {_certainty(judgment)}"


def _name_criteria(judgment: Judgment, *sides: int) -> str:
    """Name the criteria with the scores of these sides; nothing without criteria."""
    criteria = (judgment.criteria or {}).items()
    parts = [f"{name} {' and '.join(f'{pair[side]:g}' for side in sides)}" for name, pair in criteria]
    return f" ({', '.join(parts)})" if parts else ""


def _certainty(judgment: Judgment) -> str:
    if judgment.read == "text":
        return "in words"
    shares = ""
    if p := judgment.probabilities:
        shares = f"A {p[0]:.3f}, B {p[1]:.3f}, tie {p[2]:.3f}"
    mass = "" if judgment.mass is None else f"mass on the choices {judgment.mass:.3f}"
    return "; ".join(filter(None, (shares, mass))) or "from probabilities"


def _name(outcome: Outcome | None) -> str:
    return {"a": "A wins", "b": "B wins", "tie": "a tie", None: "none"}[outcome]
