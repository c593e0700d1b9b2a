"""Judge files: one TOML file with a model, its options, a prompt and a verdict, to be kept beside the code.

The prompt and the verdict become the judge's own protocol. The judge's identity is that of its model, so that replies
are shared with other runs of that model.

A prompt, here or in a file of its own, has placeholders by everyday names, lines ``[system]`` and ``[user]`` before its
parts (without any of them it is one user message), and such a file may end in a part ``[verdict]`` of TOML. Which
responses it shows decides whether it compares two or scores one.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

from distract.core.backend import Backend
from distract.core.errors import DataError, PromptError, UsageError
from distract.core.files import MOST_TEXT, read_text
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol, spell_name
from distract.core.prompts import Prompt, parse
from distract.core.records import Case, Judgment, Outcome, ParseFailure, Reply, Request, Response, Slots
from distract.judging import instructions, verdicts
from distract.judging.case_texts import state_criterion, state_question, state_reference
from distract.judging.parsers.words import Unread, Value
from distract.judging.verdict_spec import VerdictSpec, check_keys, first_mention, infer_table, parse_spec
from distract.models.options import COMMON, Options
from distract.models.provider import read_settings

MAX_TOKENS = 512
"""Token limit of an answer, if the file sets none."""

PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "input", "inputs"),
    "response_a": ("response_a", "output_a"),
    "response_b": ("response_b", "output_b"),
    "response": ("response", "output", "outputs"),
    "reference": ("reference", "expected", "reference_outputs"),
    "criterion": ("criterion", "criteria"),
}
"""What a placeholder shows, with all of its names."""

NO_REFERENCE = "no reference in the data"

_NAMES = {name: slot for slot, names in PLACEHOLDERS.items() for name in names}
_NAME = rf"({'|'.join(_NAMES)})"
_FOREIGN = re.compile(
    rf"\{{\{{-?\s*(?:[\w.]*\.)?{_NAME}\s*(?:\|[^{{}}\n]*)?-?\}}\}}|\$\{{\s*{_NAME}\s*\}}(?!\$)"
    rf"|\${_NAME}\b(?!\$)|\{{(?=\s|\w+[\s!])\s*{_NAME}\s*(?:![rsa])?\}}"
    r"""|\{\{\s*(["'][^"'\n]*["'])\s*:"""
)
"""Placeholders of other tools; not mathematics between two dollar signs."""
_VERDICT = re.compile(r"^\[verdict\][ \t]*(?:\n|\Z)", re.MULTILINE)
_ROLE = re.compile(r"^\[(?:system|user|assistant|prefill)\][ \t]*$", re.MULTILINE)
_SETTINGS = ("max_tokens", "temperature")


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A user's prompt, its verdict, and how an answer is made."""

    prompt: Prompt
    verdict: VerdictSpec
    outcomes: tuple[tuple[str, str], ...]  # answers that planted judges give
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0

    def request(self, case: Case, responses: Mapping[str, Response]) -> Request:
        """Request an answer about responses, by slot."""
        texts = {
            "question": state_question(case),
            "reference": state_reference(case),
            "criterion": state_criterion(case),
            **{slot: instructions.format_turns("Assistant", response.turns) for slot, response in responses.items()},
        }
        return Request(
            messages=self.prompt.fill({slot: texts[slot] for slot in self.prompt.slots}),
            prefill=self.prompt.prefill,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            slots=Slots(case.id, tuple(responses.values()), self.outcomes),
        )

    def compare(self, comparison: Comparison) -> Plan[Judgment]:
        """Show both responses and read the word for one of them."""
        if failed := self._reject(comparison.case):
            return failed
        pair = instructions.response_slots(comparison)
        (reply,) = yield [self.request(comparison.case, pair)]
        outcome = self._read(reply, comparison.case, pair.values())
        return outcome if isinstance(outcome, Judgment) else verdicts.certain_judgment(cast(Outcome, outcome))

    def score(self, comparison: Comparison) -> Plan[Judgment]:
        """Show each response alone and prefer the higher score."""
        if failed := self._reject(comparison.case):
            return failed
        pair = (comparison.first, comparison.second)
        replies = yield [self.request(comparison.case, {"response": response}) for response in pair]
        values = []
        for reply, response in zip(replies, pair, strict=True):
            value = self._read(reply, comparison.case, [response])
            if isinstance(value, Judgment):
                return value
            values.append(cast("float | tuple[float, ...]", value))
        return verdicts.compare_graded(*map(self.verdict.grade, values))

    def _read(self, reply: Reply, case: Case, responses: Iterable[Response]) -> Value | Judgment:
        """Read a verdict; return a failed judgment if there is none."""
        material = [*instructions.quotable_texts(case, responses), *case.reference]
        value = self.verdict.read(reply, self.prompt.prefill, material).value
        if isinstance(value, Unread):
            return Judgment(None, read="text", failure=ParseFailure(str(value), reply))
        return value

    def _reject(self, case: Case) -> Judgment | None:
        """Return a failed judgment if the prompt needs a reference that the data lack."""
        is_lacking = "reference" in self.prompt.slots and not case.reference
        return Judgment(None, read="text", failure=NO_REFERENCE) if is_lacking else None


def split_file(path: Path) -> tuple[str, str, dict[str, Any] | None, dict[str, Any]]:
    """Split a prompt file: its text, the prompt, the table ``[verdict]`` if it has one, and the settings in that."""
    text = read_text(path, MOST_TEXT).replace("\r\n", "\n")
    body, *tables = _VERDICT.split(text)
    if len(tables) > 1:
        raise DataError("more than one part [verdict]", path=path)
    table = read_table(tables[0], path, body.count("\n") + 1) if tables else None
    return text, body, table, {name: table.pop(name) for name in _SETTINGS if table and name in table}


def read_table(text: str, path: Path, lines: int = 0) -> dict[str, Any]:
    """Parse TOML that begins after some lines of a file."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a whole number has at most 4,300 digits
        place = re.search(r" \(at line (\d+), column \d+\)", str(error))
        problem = (str(error).replace(place[0], "") if place else str(error)).partition("; ")[0]
        line = lines + int(place[1]) if place else None
        raise DataError(
            f'is not TOML here: {problem}; quote texts, as in marker = "Winner:"', path=path, line=line
        ) from error


def make_protocol(
    path: Path, text: str, body: str, table: Mapping[str, Any] | None, settings: Mapping[str, Any], checksum: str = ""
) -> Protocol:
    """Make the protocol of a prompt.

    Args:
        path: File to name in messages, and the protocol after.
        text: Whole text of that file, for line numbers.
        body: Text of the prompt.
        table: The table ``[verdict]``; None to infer it from the prompt.
        settings: ``max_tokens`` and ``temperature``, if the file sets them.
        checksum: SHA-256 (hex) of what defines the protocol; empty to compute it from the other arguments.
    """

    def fail(problem: str, field: str) -> NoReturn:
        raise DataError(problem, path=path, line=first_mention(text, [f"{field} =", f"{field}="]), field=field)

    prompt = _parse_prompt(path, text, body)
    is_pair = "response_a" in prompt.slots
    is_inferred = table is None
    if table is None and (table := infer_table(body)) is None:
        example = "Winner: {A|B|tie}" if is_pair else "Score: {0-10}"
        raise DataError(f"no verdict: end the prompt with a line such as {example}, or add [verdict]", path=path)
    spec = parse_spec(table, is_pair, fail, in_order=not is_inferred)
    limit, temperature = settings.get("max_tokens", MAX_TOKENS), settings.get("temperature", 0)
    if type(limit) is not int or not 1 <= limit <= 10_000_000:
        fail(f"expected a whole number from 1, found {limit!r}", "max_tokens")
    if type(temperature) not in (int, float) or not 0 <= temperature <= 10:
        fail(f"expected a number from 0 to 10, found {temperature!r}", "temperature")
    own = OwnPrompt(prompt, spec, spec.outcomes(), limit, float(temperature))
    named = partial(
        Protocol,
        name=name_protocol(path),
        summary=f"{path.name} {spec.summary}",
        reads="text",
        reference="required" if "reference" in prompt.slots else "",
        reads_question="question" in prompt.slots,
        prompts=(prompt,),
        checksum=checksum or hashlib.sha256(json.dumps([body, table, limit, temperature]).encode()).hexdigest(),
    )
    if is_pair:
        return named(ask=own.compare, calls=Calls(1), ties="tie" in spec.meanings.values())
    assert spec.scale is not None
    mark = None if spec.pass_mark is None else spec.mirror(spec.pass_mark)
    scored = partial(named, ties=True, rules=("score",), orders="none", scale=spec.scale, pass_mark=mark)
    scored = partial(scored, criteria=tuple(spec.weights))
    return scored(ask=own.score, calls=Calls(response=1))


def name_protocol(path: Path) -> str:
    """Name a protocol after its file."""
    return spell_name(path.stem) or "prompt"


def _parse_prompt(path: Path, text: str, body: str) -> Prompt:
    """Parse a prompt and give its slots their usual names."""
    if not body.strip():
        raise DataError("the prompt is empty; write one with {question} and {response_a}, {response_b}", path=path)
    try:
        prompt = parse(name_protocol(path), body if _ROLE.search(body) else f"[user]\n{body}")
    except PromptError as error:
        raise DataError(str(error).partition(": ")[2], path=path) from error

    def fail(placeholder: str, problem: str) -> NoReturn:
        name = " ".join(placeholder.split())
        raise DataError(f"{name} {problem}", path=path, line=first_mention(text, [placeholder]))

    parts = tuple((role, tuple(_rename(pieces, fail))) for role, pieces in prompt.parts)
    slots = frozenset(piece for _, pieces in parts for piece in pieces[1::2])
    for match in _FOREIGN.finditer(body):
        braces, wrapped, *bares, key = match.groups()
        if braces:
            fail(match[0], f"has two braces; write {{{braces}}}")
        if key:
            fail(match[0], f"has two braces, which the judge would see; write {{{key}: …}}")
        if wrapped:
            fail(match[0], f"shows a dollar sign; write {{{wrapped}}}")
        # Scripts and mathematics have such words too, so they count only where nothing shows what they name.
        if not any(slot.startswith(_NAMES[name]) for slot in slots for name in filter(None, bares)):
            fail(match[0], f"is no placeholder; write {{{bares[0] or bares[1]}}}")
    pair = slots & {"response_a", "response_b"}
    if pair and "response" in slots:
        fail("{response}", "shows one response, but {response_a} and {response_b} show two; use either")
    if len(pair) == 1:
        (missing,) = {"response_a", "response_b"} - pair
        raise DataError(
            f"no placeholder {{{missing}}}; a prompt shows both responses, or {{response}} alone", path=path
        )
    if not slots & {"response_a", "response"}:
        raise DataError("shows no response: expected {response_a} and {response_b}, or {response}", path=path)
    return replace(prompt, parts=parts, slots=slots, checksum=hashlib.sha256(body.encode()).hexdigest())


def _rename(pieces: tuple[str, ...], fail: Any) -> list[str]:
    """Give slots their usual names; ``{{name}}`` is the text ``{name}``."""
    renamed = [pieces[0]]
    for name, after in zip(pieces[1::2], pieces[2::2], strict=True):
        is_literal = renamed[-1].endswith("{") and after.startswith("}")
        if is_literal:
            renamed[-1] += f"{name}{after}"
        elif name in _NAMES:
            renamed += [_NAMES[name], after]
        else:
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            fail(f"{{{name}}}", f"is no placeholder; these are: {known} (for the text itself write {{{{{name}}}}})")
    return renamed


_OPTIONS = ("base_url", "concurrency", "timeout", "engine", "dtype", "quantization")
KEYS = ("model", "prompt", "prompt_file", "verdict", "temperature", "max_tokens", *_OPTIONS, "model_options")
SECRET = re.compile(r"(?i)(?:.*[-_])?(?:api[-_]?key|key|token|secret|password)")


@dataclass(frozen=True, slots=True)
class JudgeFile:
    """A judge file.

    Attributes:
        model: Name of the model, as for ``--judge``.
        options: Options of the model, by field of ``Options``.
        protocol: The file's prompt and verdict.
    """

    model: str
    options: Mapping[str, Any]
    protocol: Protocol

    def under(self, given: Options) -> Options:
        """Return the file's options under those given elsewhere, which win."""
        common = {name: value for name, value in self.options.items() if name in COMMON and name not in given.changed}
        own = {name: value for name, value in self.options.items() if name not in COMMON}
        return replace(given, **common, model_options={**own, **given.model_options})


def read_judge(path: Path) -> JudgeFile:
    """Read a judge file.

    Raises:
        DataError: The file is wrong; the message has its line or field.
    """
    text = read_text(path, MOST_TEXT).replace("\r\n", "\n")
    table = read_table(text, path)

    def fail(problem: str, field: str) -> NoReturn:
        raise DataError(problem, path=path, line=first_mention(text, [f"{field} =", f"{field}=", field]), field=field)

    options = table.get("model_options", {})
    for key in (*table, *(options if isinstance(options, dict) else ())):
        if SECRET.fullmatch(key):
            fail("keys are never read from a file; set OPENAI_API_KEY or DISTRACT_API_KEY in the environment", key)
    check_keys(table, KEYS, fail)
    model = table.get("model")
    if not isinstance(model, str) or not model.strip() or model.endswith(".toml"):
        fail(
            'expected the name of a model, such as "openai:gpt-4o"' + f", found {model!r}" * (model is not None),
            "model",
        )
    for key in ("model_options", "verdict"):
        if not isinstance(table.get(key, {}), dict):
            fail(f"expected a table [{key}]", key)
    try:
        settings = read_settings([*((key, table[key]) for key in _OPTIONS if key in table), *options.items()])
    except UsageError as error:
        raise DataError(str(error), path=path) from error
    return JudgeFile(model, settings, _read_own(path, text, table, fail))


def _read_own(path: Path, text: str, table: Mapping[str, Any], fail: Any) -> Protocol:
    """Read the prompt, here or in a file of its own, and its verdict."""
    if ("prompt" in table) == ("prompt_file" in table):
        fail("expected either prompt or prompt_file", "prompt_file" if "prompt" in table else "prompt")
    key = "prompt" if "prompt" in table else "prompt_file"
    if not isinstance(table[key], str):
        fail(f"expected a text, found {table[key]!r}", key)
    settings = {name: table[name] for name in ("max_tokens", "temperature") if name in table}
    if key == "prompt":
        return make_protocol(path, text, table["prompt"], table.get("verdict"), settings)
    other = path.parent / table["prompt_file"]
    whole, body, verdict, own = split_file(other)
    if verdict is not None and "verdict" in table:
        fail(f"{other} has a part [verdict] too; keep one of them", "verdict")
    return make_protocol(other, whole, body, table.get("verdict", verdict), {**own, **settings})


def bring(backend: Backend, protocol: Protocol, answers_others: bool = True) -> Backend:
    """Let a backend bring a protocol; see ``OwnBackend``."""
    # Set attributes instead of wrapping: a wrapper would hide what else the backend can do (stream, probe, report).
    vars(backend).update(protocols=(protocol,), answers_others=answers_others)
    return backend


def read_protocol(path: Path) -> Protocol:
    """Read the protocol of a prompt file or, from a file that ends in ``.toml``, of a judge file.

    Raises:
        DataError: The file is wrong; the message has its line or field.
    """
    if path.suffix == ".toml":
        return read_judge(path).protocol
    file = split_file(path)
    return make_protocol(path, *file, hashlib.sha256(file[0].encode()).hexdigest())
