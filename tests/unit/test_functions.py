"""Python functions as judges: what they take and return, their identity, and how their faults end."""

import ast
import asyncio
import json
import math
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import case, error_line
from hypothesis import given, strategies as st
from loops import each

import distract
from distract.core.errors import BackendError, UsageError
from distract.core.plugin import Comparison
from distract.core.records import Case, Judgment, Message, Reply, Request
from distract.judging.functions import verdicts
from distract.judging.functions.backend import FunctionBackend
from distract.judging.functions.declaration import JudgeFunction, declare
from distract.judging.functions.digest import identify
from distract.judging.functions.modules import list_modules
from distract.judging.functions.protocol import bind
from distract.judging.functions.source import find, register
from distract.judging.judge import Judge
from distract.judging.orders import ask_in_orders
from distract.judging.verdicts import Grade


def judge_once(function: Callable[..., Any], store: Path, one: Case | None = None, **settings: Any) -> Judgment:
    """The judgment of a function on the first two responses of a case, in the order given."""
    one = one or case()
    backend = FunctionBackend(declare(function), **settings)
    with Judge("f", backend, store=store) as judge:
        return judge.judgments(Comparison(one, *one.responses[:2]))[0]


@dataclass
class Verdict:
    winner: Any = None
    label: Any = None
    reasoning: str | None = None


A, B, TIE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@each(
    "value, expected",
    *((value, A) for value in ("A", "first", 1, True, 1.0, np.bool_(True))),
    *((value, A) for value in ({"first": 0.9996, "second": 0.0}, {"label": 1}, Verdict(label="A"))),
    *((value, B) for value in (" b\n", "second", 2, False, np.int64(2), {"winner": "B", "reason": "longer"})),
    *((value, TIE) for value in ("Tie", Verdict(winner="tie", reasoning="equal"))),
    (0.7, (0.7, 0.3, 0.0)),
    (np.float32(0.5), (0.5, 0.5, 0.0)),
    (Fraction(1, 4), (0.25, 0.75, 0.0)),
    ({"A": 0.5, "B": 0.2, "tie": 0.3}, (0.5, 0.2, 0.3)),
    ({"winner": {"A": 0.25, "B": 0.75}}, (0.25, 0.75, 0.0)),
)
def test_return_values_of_comparisons(value: object, expected: tuple[float, float, float]) -> None:
    judgment = verdicts.judge_pair(verdicts.read_comparison(value))
    assert judgment.probabilities == pytest.approx(expected, abs=1e-9)


@each(
    "value, expected",
    (7, 7.0),
    (0.25, 0.25),
    (True, 1.0),
    (np.float64(3), 3.0),
    (np.array(2.5), 2.5),
    ({"score": 7, "reason": "good"}, 7.0),
    ({"value": 0, "comment": "bad"}, 0.0),
    (SimpleNamespace(score=4), 4.0),
    (SimpleNamespace(value=False), 0.0),
)
def test_return_values_of_scores(value: object, expected: float) -> None:
    grade = verdicts.read_grade(verdicts.read_score(value, declare(len)), declare(len))
    assert isinstance(grade, Grade)
    assert grade.score == expected


NO_VERDICTS: Any = (None, "", "C", "maybe", 0, 3, -0.1, 1.1, float("nan"), [], b"A", {}, {"A": 0.4}, object)
NO_SCORES: Any = (
    None,
    "7",
    "",
    [7],
    math.nan,
    math.inf,
    -1,
    11,
    10**400,
    {},
    {"score": "high"},
    {"points": 3},
    1j,
)


@each(
    "reply",
    *(verdicts.read_comparison(value) for value in NO_VERDICTS),
    *(verdicts.read_score(value, declare(len, scale=(0, 10))) for value in NO_SCORES),
)
def test_other_return_values_are_failures(reply: Reply) -> None:
    assert (reply.failure or "").startswith("returned")
    assert "expected" in (reply.failure or "")
    assert len(reply.failure or "") < 300


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_is_a_verdict_or_a_failure(value: object) -> None:
    for reply in (verdicts.read_comparison(value), verdicts.read_score(value, declare(len))):
        assert reply.answered
        judgment = verdicts.judge_pair(reply) if "winner" in reply.text or "prob" in reply.text else None
        assert reply.failure or judgment is None or sum(judgment.probabilities or ()) == pytest.approx(1)


class _Hostile:
    @property
    def winner(self) -> str:
        raise RuntimeError("no")

    score = winner

    def __repr__(self) -> str:
        raise RuntimeError("not even this")


def test_a_value_that_cannot_be_read_is_a_failure() -> None:
    for reply in (verdicts.read_comparison(_Hostile()), verdicts.read_score(_Hostile(), declare(len))):
        assert reply.failure == "returned a _Hostile that cannot be read: RuntimeError: no"


def test_a_huge_answer_is_cut() -> None:
    reply = verdicts.read_comparison("x" * 100_000_000)
    assert reply.failure
    assert len(reply.failure) < 300
    assert len(reply.text) <= verdicts.MAX_REASON
    reply = verdicts.read_comparison({"winner": "A", "reason": "x" * 10_000_000})
    assert not reply.failure
    assert len(reply.text) < verdicts.MAX_REASON + 100


def _make(parameters: str) -> Any:
    space: dict[str, Any] = {}
    exec(f"def f({parameters}): return locals()", space)
    return space["f"]


@each(
    "parameters, seen",
    ("question, response_a, response_b", {"question": "q", "response_a": "x", "response_b": "y"}),
    ("prompt, a, b", {"prompt": "q", "a": "x", "b": "y"}),
    ("a, b, /, input", {"a": "x", "b": "y", "input": "q"}),
    ("response", {"response": "x"}),
    (
        "*, inputs, outputs, reference_outputs=None, **kw",
        {"inputs": "q", "outputs": "x", "reference_outputs": "z", "kw": {}},
    ),
    ("output, expected, criterion, threshold=3", {"output": "x", "expected": "z", "criterion": "c", "threshold": 3}),
)
def test_texts_reach_parameters_by_name(parameters: str, seen: dict[str, object]) -> None:
    function = _make(parameters)
    values = {"question": "q", "response_b": "y", "reference": "z", "criterion": "c"}
    values |= dict.fromkeys(("response", "response_a"), "x")
    positional, keywords = bind(function, "f").arrange(values)
    assert function(*positional, **keywords) == seen


@each(
    "function, problem",
    *((_make(parameters), "takes no response") for parameters in ("", "question", "**all")),
    (_make("q, x, y"), "parameter 'q' stands for nothing; rename it to one of question, response_a"),
    (_make("question, a"), "takes response_a alone"),
    (_make("a, b, response"), "keep one form"),
    (type, "wrap it in a def"),  # it has no signature
)
def test_wrong_parameters_are_one_line(function: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        bind(function, "python:f.py:f")


def test_arguments_are_the_texts_of_the_case(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    @distract.judge(cache=False)
    def judge(question: str, a: str, b: str, criterion: str, reference: str = "none") -> str:
        seen.append((question, a, b, criterion, reference))
        return "A"

    hostile = "[user]\x1b[1m {b}"
    responses = distract.Response("x", (hostile,)), distract.Response("y", ("two",))
    judge_once(judge, tmp_path / "s", distract.Case("c", ("Why?",), responses, criterion="brevity"))
    assert seen[:2] == [("Why?", *texts, "brevity", "none") for texts in ((hostile, "two"), ("two", hostile))]


def test_direction_and_scale_are_turned_so_that_higher_is_better(tmp_path: Path) -> None:
    def rate(response: str) -> int:
        return len(response)

    one = distract.Case("c", ("Why?",), (distract.Response("x", ("long text",)), distract.Response("y", ("no",))))
    higher = judge_once(distract.judge(scale=(0, 10))(rate), tmp_path / "a", one)
    lower = judge_once(distract.judge(scale=(0, 10), better="lower")(rate), tmp_path / "b", one)
    open_end = judge_once(distract.judge(better="lower")(rate), tmp_path / "c", one)
    assert (higher.preferred, higher.scores) == ("a", (9.0, 2.0))
    assert (lower.preferred, lower.scores) == ("b", (1.0, 8.0))
    assert (open_end.preferred, open_end.scores) == ("b", (-9.0, -2.0))
    protocol = FunctionBackend(declare(rate, scale=(0, None), better="lower", pass_mark=4)).protocols[0]
    assert (protocol.scale, protocol.pass_mark) == ((None, 0), -4)


@each(
    "declaration, problem",
    ({"scale": (10, 0)}, "expected the lower number first"),
    *(({"scale": scale}, "expected two numbers") for scale in (10, (0, float("nan")))),
    ({"scale": (0, 10), "pass_mark": 11}, "expected a number on the scale"),
    ({"better": "up"}, "expected 'higher' or 'lower'"),
    ({"version": 2}, "expected str"),
    ({"cache": "no"}, "expected bool"),
    ({"marks": 2}, "no argument 'marks'"),
)
def test_wrong_declarations_are_one_line(declaration: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        distract.judge(**declaration)(lambda response: 1)


SOURCE = '''
"""A judge."""
import helper

def judge(question, a, b):
    """Prefer the longer."""
    # compare lengths
    return "A" if helper.size(a) > len(b) else "B"

def other(a, b):
    return "tie"
'''


@each(
    "old, new, same",
    ("# compare lengths", "# compare the lengths of both", True),
    ('"""A judge."""', '"""Another text."""', True),
    ('    """Prefer the longer."""\n', "", True),
    ("(question, a, b)", "(question,a,  b)", True),
    (">", "<", False),
    ('return "tie"', 'return "A"', False),  # the whole module counts
)
def test_identity_follows_the_code(old: str, new: str, same: bool, tmp_path: Path) -> None:
    digests = []
    for folder, text in (("one", SOURCE), ("two", SOURCE.replace(old, new, 1))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text("def size(text): return len(text)\n")
        (tmp_path / folder / "my_judge.py").write_text(text)
        digests.append(identify(find(f"{tmp_path / folder / 'my_judge.py'}:judge")))
    assert (digests[0] == digests[1]) is same


def test_identity_follows_imported_modules_values_and_version(tmp_path: Path) -> None:
    def make(limit: object) -> JudgeFunction:
        def judge(a: str, b: str) -> bool:
            return bool(limit)

        return declare(judge)

    assert identify(make(1)) == identify(make(1)) != identify(make(2))
    assert identify(make(object())) == identify(make(object()))  # an address says nothing
    versions = [identify(declare(make(1).function, version=version)) for version in ("", "1", "2")]
    assert len({str(sorted(identity.items())) for identity in versions}) == 3
    identities = []
    for number, text in enumerate(("return 1", "return 2", "return 2  # two")):
        folder = tmp_path / str(number) / "pack"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "deep.py").write_text(f"def f():\n    {text}\n")
        (folder / "main.py").write_text("from . import deep\ndef judge(a, b):\n    return deep.f()\n")
        (folder.parent / "unrelated.py").write_text(f"x = {number}\n")
        (folder.parent / "run.py").write_text("from pack.main import judge\n")
        assert sorted(list_modules(folder / "main.py").values()) == ["pack/__init__.py", "pack/deep.py", "pack/main.py"]
        modules = list_modules(folder.parent / "run.py")
        assert sorted(modules.values()) == ["pack/__init__.py", "pack/deep.py", "pack/main.py", "run.py"]
        identities.append([ast.dump(ast.parse(path.read_text())) for path in modules])
    assert identities[0] != identities[1] == identities[2]


def test_code_without_source_is_told_apart_by_its_instructions() -> None:
    def read(text: str) -> str:
        space: dict[str, Any] = {}
        exec(text, space)
        return identify(declare(space["f"]))["code"]

    assert read("def f(a, b): return 1") == read("\n\ndef f(a, b): return 1")
    assert len({read(f"def f(a, b): return {value}") for value in ("1", "2", "a", "[x for x in b]")}) == 4


def test_class_without_source_is_told_apart_by_its_instructions() -> None:
    def read(value: int) -> str:
        space: dict[str, Any] = {}
        exec(f"class F:\n    def __call__(self, a, b): return {value}", space)
        return identify(declare(space["F"]()))["code"]

    assert read(1) == read(1) != read(2)


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, a: str, b: str) -> str:
        self.calls += 1
        return "A"


def test_a_change_during_a_run_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(judge: Callable[..., Any]) -> str:
        judge_once(judge, tmp_path / "s")
        return capsys.readouterr().err

    note = "distract: Counter: its attribute calls changed during the run; replies are stored under the state before"
    assert run(Counter()).count(note) == 1
    assert run(Counter()) == ""  # found in the store: the state is that of the first call
    assert run(distract.judge(version="1")(Counter())) == run(distract.judge(cache=False)(Counter())) == ""


def test_async_and_threads_give_the_same_judgments(tmp_path: Path) -> None:
    def plain(question: str, a: str, b: str) -> float:
        time.sleep(0.001 * (len(a) % 3))
        return len(a) / (len(a) + len(b))

    async def waiting(question: str, a: str, b: str) -> float:
        await asyncio.sleep(0.001 * (len(b) % 3))
        return len(a) / (len(a) + len(b))

    cases = distract.load("tweakset")[:12]
    results = []
    for number, (function, concurrency) in enumerate(((plain, 1), (plain, 16), (waiting, 1), (waiting, 16))):
        backend = FunctionBackend(declare(function), concurrency=concurrency)
        with Judge("f", backend, store=tmp_path / str(number)) as judge:
            results.append([judge.judgments(Comparison(one, *one.originals[:2])) for one in cases])
    assert results[0] == results[1] == results[2] == results[3]


def test_calls_run_at_once_up_to_the_limit(tmp_path: Path) -> None:
    running, most = [0], [0]

    async def judge(response: str) -> int:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1
        return 1

    backend = FunctionBackend(declare(judge, cache=False), concurrency=3)
    with Judge("f", backend, store=tmp_path / "s") as asked:
        pairs = [Comparison(one, *one.originals[:2]) for one in distract.load("tweakset")[:6]]
        asked.run_all(ask_in_orders(backend.protocols[0], pair) for pair in pairs)
    assert most[0] == 3


def test_a_call_that_cancels_all_others_leaves_none_without_a_reply() -> None:
    async def judge(response: str) -> int:
        [task.cancel() for task in asyncio.all_tasks()]
        await asyncio.sleep(1)
        return 3

    backend = FunctionBackend(declare(judge, scale=(0, 9), cache=False), concurrency=4, timeout=5)
    prompts = [Request((Message("user", json.dumps({"response": f"text {number}"})),)) for number in range(9)]
    replies = [reply for batch in backend.reply(prompts, frozenset(range(9))) for _, reply in batch]
    assert [reply.failure for reply in replies] == ["raised CancelledError"] * 9


@each("blocks", "all", "one")
def test_a_coroutine_that_blocks_its_loop_is_lost_alone(
    blocks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judge(response: str) -> int:
        await asyncio.sleep(0)
        if blocks == "all" or response.endswith("3"):
            time.sleep(2)
        return 3

    monkeypatch.setattr("distract.judging.functions.backend.ALIVE", 0.1)
    backend = FunctionBackend(declare(judge, scale=(0, 9), cache=False), concurrency=4, timeout=0.4)
    prompts = [Request((Message("user", json.dumps({"response": f"text {number}"})),)) for number in range(9)]
    begin, replies = time.monotonic(), dict[int, Reply]()
    with pytest.raises(BackendError, match=r"4 calls .* 0\.4 s each") if blocks == "all" else nullcontext():
        for batch in backend.reply(prompts, frozenset(range(9))):
            replies.update(batch)
    lost = [number for number, reply in replies.items() if not reply.answered]
    assert (len(replies), lost) == ((3, [0, 1, 2]) if blocks == "all" else (9, [3]))
    assert time.monotonic() - begin < 4


class Theirs(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


RAISED = (KeyboardInterrupt, asyncio.CancelledError, SystemExit, GeneratorExit, Theirs)


@each("error, how", *product(RAISED, ("sync", "async", "child")), (KeyboardInterrupt, "stop"))
def test_whatever_a_call_raises_is_an_invalid_verdict(error: type[BaseException], how: str, tmp_path: Path) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    def judge(a: str, b: str) -> str:
        raise error

    async def judge_later(a: str, b: str) -> str:
        if how == "stop":
            asyncio.get_running_loop().stop()
        else:
            await (asyncio.create_task(fail()) if how == "child" else fail())
        return "A"

    function = JudgeFunction(judge if how == "sync" else judge_later, "f", version="1", cache=False)
    judgment = judge_once(function, tmp_path / "s", timeout=5.0)
    assert judgment.failure == (None if how == "stop" else f"raised {error.__name__}")


@each("is_async", False, True)
def test_lost_calls_end_the_run(is_async: bool, tmp_path: Path) -> None:
    async def forever(a: str, b: str) -> str:
        await asyncio.sleep(1000)
        return "A"

    def stuck(a: str, b: str) -> str:
        time.sleep(5)
        return "A"

    begin = time.monotonic()
    message = r"2 calls of .* did not return within 0\.1 s each, as many as may run at once"
    with pytest.raises(BackendError, match=message):
        judge_once(forever if is_async else stuck, tmp_path / "s", concurrency=2, timeout=0.1)
    assert time.monotonic() - begin < 4


def test_an_error_is_an_invalid_verdict_or_the_end(tmp_path: Path) -> None:
    def judge(a: str, b: str) -> str:
        raise errors[-1]

    errors: list[Exception] = [ValueError("no such key")]
    failed = judge_once(judge, tmp_path / "s")
    assert failed.failure == "raised ValueError: no such key"
    assert "Traceback" in getattr(failed.failure, "reply", Reply()).text
    with pytest.raises(BackendError, match="raised ValueError: no such key; --fail-fast stops here"):
        judge_once(judge, tmp_path / "t", fail_fast=True)
    errors.append(BackendError("the service is down"))
    with pytest.raises(BackendError, match="the service is down"):
        judge_once(judge, tmp_path / "u")


class TransportError(Exception):
    """As httpx names it."""


def raise_from(cause: BaseException) -> ValueError:
    """An error of the judge's own about a lost connection."""
    error = ValueError("no verdict")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("is_async", [False, True])
@each(
    "error",
    ConnectionResetError(104, "reset"),
    TimeoutError("timed out"),
    TransportError("closed"),
    raise_from(BrokenPipeError()),
)
def test_a_lost_connection_is_asked_again(
    error: Exception, is_async: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(a: str, b: str) -> str:
        calls.append(a)
        if len(calls) < works_at:
            raise error
        return "A"

    async def judge_later(a: str, b: str) -> str:
        return judge(a, b)

    monkeypatch.setattr("distract.judging.functions.backend.PAUSE", 0.0)
    calls, works_at, function = list[str](), 3, distract.judge(version="1")(judge_later if is_async else judge)
    assert judge_once(function, tmp_path / "s").failure is None
    assert len(calls) >= 3
    calls, works_at = [], 10**6
    with pytest.raises(BackendError, match=r"2 of 2 requests got no reply: .*, 6 attempts"):
        judge_once(function, tmp_path / "t")
    pairs = [Comparison(one, *one.originals[:2]) for one in distract.load("tweakset")[:6]]
    with (
        pytest.raises(BackendError, match=r"reaches no server: .*, 6 attempts"),
        Judge("f", backend := FunctionBackend(declare(function)), store=tmp_path / "u") as model,
    ):
        model.run_all(ask_in_orders(backend.protocols[0], pair) for pair in pairs)


def test_the_working_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(a: str, b: str) -> str:
        os.chdir(tmp_path / "other")
        return "A"

    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text("import os\nos.chdir('other')\ndef judge(a, b): return 'A'\n")
    find("judge.py:judge")
    assert Path.cwd() == tmp_path
    assert judge_once(judge, Path("s")).failure is None
    assert (Path.cwd(), (tmp_path / "s").is_file()) == (tmp_path, True)


@each("cache, calls", (False, 4), (True, 2))
def test_an_impure_function_is_asked_again(cache: bool, calls: int, tmp_path: Path) -> None:
    seen = []

    @distract.judge(cache=cache, version="1")
    def judge(a: str, b: str, log: str = "") -> str:
        seen.append(a)
        return "A"

    monkey = JudgeFunction(lambda a, b: judge(a, b), "f", version="1", cache=cache)
    for _ in range(2):
        judge_once(monkey, tmp_path / "s")
    assert len(seen) == calls


FILES = {
    "good.py": "def judge(question, a, b):\n    return 'A'\n",
    "two.py": "def one(a, b): ...\ndef two(a, b): ...\n",
    "syntax.py": "def judge(a, b):\n  return (\n",
    "import_error.py": "import no_such_package_xyz\ndef judge(a, b): return 1\n",
    "raises.py": "x = 1\nraise RuntimeError('no\\nway')\n",
    "exits.py": "import sys\nsys.exit(0)\n",
    "value.py": "judge = 3\n",
    "klass.py": "class Judge:\n    def __call__(self, a, b): return 1\n",
    "arity.py": "def judge(x, y): return 'A'\n",
    "empty.py": "",
    "prints.py": "print('{}')\ndef judge(a, b):\n    print('{}')\n    return 'A'\n",
}


@each(
    "spec, problem",
    ("", "name a file and a function"),
    (":judge", "name a file and a function"),
    ("missing.py:judge", "missing.py: no such file"),
    ("no_such_module_xyz:judge", "no module 'no_such_module_xyz'"),
    ("good.py:jugde", "unknown function 'jugde'; did you mean 'judge'"),
    ("good.py:judge.inner", "unknown function 'judge.inner'"),
    ("two.py", "name one of its functions after a colon (one, two)"),
    ("empty.py", "it has none"),
    ("syntax.py:judge", "syntax.py:2: is not valid Python"),
    ("import_error.py:judge", "import_error.py:1: cannot be imported: ModuleNotFoundError"),
    ("raises.py:judge", "raises.py:2: cannot be imported: RuntimeError: no"),
    ("exits.py:judge", "exits.py:2: cannot be imported: SystemExit"),
    ("value.py:judge", "judge is not a function"),
    ("klass.py:Judge", "Judge is a class"),
    ("arity.py:judge", "parameter 'x' stands for nothing"),
)
def test_wrong_names_are_one_line(spec: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert problem in error_line(UsageError, lambda: bind(find(spec).function, f"python:{spec}"))


def test_a_file_with_one_function_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.py").write_text(FILES["good.py"])
    assert find("good.py").name == "judge"
    assert find("good:judge").name == "judge"  # as a module
    assert register(find("good.py:judge")) == "python:good.py:judge"  # a name that a later run finds too


def test_prints_stay_out_of_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prints.py").write_text(FILES["prints.py"])
    judge_once(find(f"{tmp_path / 'prints.py'}:judge").function, tmp_path / "s")
    assert capsys.readouterr().out == ""
