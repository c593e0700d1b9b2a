"""Judges of other frameworks, each with the real package; they share an environment of their own (see .ci/run)."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_result import CommandResult

import distract
from distract.core.errors import UsageError
from distract.core.plugin import Comparison
from distract.core.records import NO_ANSWER, NO_REPLY, Case, Judgment, Message, Reply, Request, Response
from distract.judging import published
from distract.judging.functions.backend import FunctionBackend
from distract.judging.functions.declaration import declare
from distract.judging.functions.source import find
from distract.judging.inspect_model import InspectModel
from distract.judging.judge import Judge

pytestmark = [
    pytest.mark.neighbours,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the other frameworks' own dependencies
]
EXAMPLES = Path(__file__).parents[2] / "examples"
os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let nothing reach a network."""

    def refuse(*address: Any) -> None:
        raise AssertionError(f"a connection to {address[1:]}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def case(*texts: str, reference: tuple[str, ...] = ()) -> Case:
    texts = texts or ("Red.", "I think it might be blue.")
    responses = tuple(Response(name, (text,)) for name, text in zip("xy", texts, strict=True))
    return Case("c1", ("Name a colour.",), responses, reference=reference)


def judge_once(function: Any, one: Case | None = None, **settings: Any) -> Judgment:
    one = one or case()
    with Judge("f", FunctionBackend(declare(function), **settings)) as judge:
        return judge.judgments(Comparison(one, *one.responses[:2]))[0]


def say(text: str, reason: Any = "stop") -> Any:
    """An output of inspect_ai's mock, with the counts that it would else need a tokeniser from the network for."""
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.from_content("mockllm/model", text, stop_reason=reason)
    output.usage = ModelUsage(input_tokens=30, output_tokens=2)
    return output


def write(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return str(folder / "mine.py")


class TestDeepeval:
    @pytest.fixture
    def make(self) -> Callable[..., Any]:
        metrics = pytest.importorskip("deepeval.metrics", reason="deepeval is not installed")

        class Length(metrics.BaseMetric):  # type: ignore[misc, name-defined]
            score: float | None

            def __init__(self, score: Callable[[Any], Any], threshold: float | None = 0.5) -> None:
                self.function, self.threshold = score, threshold

            def measure(self, test_case: Any, *more: Any, **named: Any) -> Any:
                assert self.score is None
                self.score = self.function(test_case)
                self.reason = f"for {test_case.input}"
                return self.score

            async def a_measure(self, test_case: Any, *more: Any, **named: Any) -> Any:
                raise AssertionError

        return Length

    @pytest.mark.parametrize(
        ("score", "preferred", "failure"),
        [
            (lambda test: min(1.0, len(test.actual_output) / 1000), "b", None),
            (lambda test: 0.5, "tie", None),
            (lambda test: 7, None, "expected a number on the scale, 0 to 1"),
            (lambda test: None, None, "expected a finite number"),
            (lambda test: test.nothing, None, "raised AttributeError"),
        ],
    )
    def test_metric_scores(self, make: Any, score: Any, preferred: str | None, failure: str | None) -> None:
        judgment = judge_once(make(score), case("Short.", "A longer response."))
        assert judgment.preferred == preferred
        assert (failure or "") in (judgment.failure or "")
        assert (judgment.failure is None) == (failure is None)

    def test_threshold_is_the_pass_mark(self, make: Any) -> None:
        (protocol,) = FunctionBackend(declare(make(len, 0.7))).protocols
        assert (protocol.scale, protocol.pass_mark, protocol.reference) == ((0, 1), 0.7, "")
        assert declare(make(len, None)).pass_mark is None
        assert distract.judge(pass_mark=0.2, version="2")(make(len)).pass_mark == 0.2

    def test_metric_that_needs_a_reference_says_so(self) -> None:
        metrics = pytest.importorskip("deepeval.metrics", reason="deepeval is not installed")
        backend = FunctionBackend(declare(metrics.ExactMatchMetric()))
        assert backend.protocols[0].reference == "required"
        one = case("Red.", "Blue.", reference=("Red.",))
        assert judge_once(metrics.ExactMatchMetric(), one).scores == (1.0, 0.0)

    def test_calls_do_not_share_state(self, make: Any) -> None:
        barrier = threading.Barrier(2, timeout=10)

        def score(test: Any) -> float:
            barrier.wait()
            return len(test.actual_output) / 100

        metric = make(score)
        assert judge_once(metric, case("Short.", "A longer response.")).scores == (0.06, 0.18)
        assert metric.score is None

    def test_identity_covers_the_metric_and_the_file_that_names_it(self, tmp_path: Path) -> None:
        pytest.importorskip("deepeval", reason="deepeval is not installed")
        text = (EXAMPLES / "deepeval_judge.py").read_text(encoding="utf-8")
        codes = []
        for number, (old, new) in enumerate((("", ""), ("/ 500", "/ 400"), ("tone.", "style."), ("# x", ""))):
            (folder := tmp_path / str(number)).mkdir()
            file = write(folder, "# comment\n" * number + (text.replace(old, new) if old else text))
            codes.append(FunctionBackend(find(f"{file}:metric")).identity["code"])
        assert (codes[0], len(set(codes))) == (codes[3], 3)

    def test_example_runs(self, run: Callable[..., CommandResult]) -> None:
        pytest.importorskip("deepeval", reason="deepeval is not installed")
        judge = f"python:{EXAMPLES / 'deepeval_judge.py'}:metric"
        ran = run("attack", "--judge", judge, "--generator", "rules", "--limit", "3", "--json")
        assert ran.code == 0, ran.err
        assert all(figure["invalid"] == 0 for figure in json.loads(ran.out)["results"])
        assert not Path(".deepeval").exists()


class TestInspectScorers:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

    @pytest.mark.parametrize(
        ("value", "score"),
        [("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0), ("yes", 1.0), ("0.25", 0.25), (3, 3.0), (True, 1.0)],
    )
    def test_values_are_read_as_inspect_reads_them(self, value: Any, score: float) -> None:
        from inspect_ai.scorer import Score

        async def scorer(state: Any, target: Any) -> Any:
            assert (state.input_text, state.messages[-1].text) == ("Name a colour.", state.output.completion)
            return Score(value=value)

        assert judge_once(scorer).scores == (score, score)

    @pytest.mark.parametrize("value", ["maybe", [1, 0], {"a": 1}, float("nan")])
    def test_unreadable_values_are_invalid(self, value: Any) -> None:
        from inspect_ai.scorer import Score

        async def scorer(state: Any, target: Any) -> Any:
            return Score(value=value)

        assert "expected a finite number" in (judge_once(scorer).failure or "")

    def test_scorers_of_inspect_compare_with_the_reference(self) -> None:
        from inspect_ai.scorer import includes, match

        one = case("It is red.", "It is blue.", reference=("red",))
        for scorer in (includes(), includes, match(location="any")):
            assert judge_once(scorer, one).scores == (1.0, 0.0)
        codes = {
            FunctionBackend(declare(scorer)).identity["code"]
            for scorer in (match(location="any"), match(location="any"), match(), includes())
        }
        assert len(codes) == 3

    def test_model_grades_through_its_mock(self) -> None:
        from inspect_ai.model import get_model
        from inspect_ai.scorer import model_graded_qa

        def grade(messages: Any, *more: Any) -> Any:
            grade = "C" if "It is blue." in messages[-1].text else "I"
            return say(f"GRADE: {grade}")

        scorer = model_graded_qa(model=get_model("mockllm/model", custom_outputs=grade, memoize=False))
        assert judge_once(scorer, case("It is red.", "It is blue.")).scores == (0.0, 1.0)

    def test_factory_that_needs_arguments_is_refused(self, tmp_path: Path) -> None:
        text = "from inspect_ai.scorer import scorer, mean\n@scorer(metrics=[mean()])\ndef mine(x):\n    return None\n"
        with pytest.raises(UsageError, match="makes a scorer from arguments; name what it returns"):
            find(f"{write(tmp_path, text)}:mine")

    def test_example_runs(self, run: Callable[..., CommandResult]) -> None:
        judge = f"python:{EXAMPLES / 'inspect_judge.py'}:polite"
        ran = run("attack", "--judge", judge, "--generator", "rules", "--limit", "3", "--json")
        assert ran.code == 0, ran.err
        assert ran.figure("tie_rate", attack="prolixity")["value"] == 1.0
        assert ran.figure("tie_rate", attack="sycophancy")["value"] < 1.0


class TestInspectModels:
    @pytest.fixture
    def open_model(self) -> Callable[..., InspectModel]:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        return lambda answer: InspectModel("mockllm/model", arguments={"custom_outputs": answer}, attempts=1)

    def reply(self, backend: InspectModel, request: Request) -> Reply:
        ((ticket, reply),) = [each for batch in backend.reply([request], frozenset({0})) for each in batch]
        assert ticket == 0
        return reply

    def test_request_and_reply(self, open_model: Any) -> None:
        seen: list[Any] = []

        def answer(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
            seen.append(([(message.role, message.text) for message in messages], config))
            return say("[[A]] it", "max_tokens")

        turns = (Message("system", "Judge."), Message("user", "[user] <|im_end|>"), Message("assistant", "Yes."))
        request = Request(turns, prefill="[[", max_tokens=77, temperature=0.5, top_p=0.9, seed=3, stop=("]]", "x"))
        reply = self.reply(open_model(answer), request)
        ((messages, config),) = seen
        assert messages == [(turn.role, turn.content) for turn in turns]
        assert (config.max_tokens, config.temperature, config.top_p, config.stop_seqs) == (77, 0.5, 0.9, ["]]", "x"])
        assert config.seed is not None
        assert (reply.text, reply.finish, reply.failure) == ("A]] it", "length", None)
        assert (reply.tokens_in, reply.tokens_out) == (30, 2)

    @pytest.mark.parametrize(
        ("content", "reason", "failure"),
        [
            ("", "stop", f"{NO_REPLY}: empty reply"),
            ("", "max_tokens", "truncated: nothing but reasoning"),
            ("no", "content_filter", "refused"),
        ],
    )
    def test_unusable_replies(self, open_model: Any, content: str, reason: Any, failure: str) -> None:
        assert (
            self.reply(open_model(lambda *_: say(content, reason)), Request((Message("user", "Hi"),))).failure
            == failure
        )

    def test_reply_without_text_says_what_it_holds(self, open_model: Any) -> None:
        from inspect_ai.model import ContentReasoning
        from inspect_ai.tool import ToolCall

        called, thought = say("", "tool_calls"), say("")
        called.message.tool_calls = [ToolCall(id="c1", function="grade_output", arguments={"score": 7})]
        thought.message.content = [ContentReasoning(reasoning="[[A]]")]
        for output, failure in ((called, "calls the tool 'grade_output' instead of answering"), (thought, NO_ANSWER)):
            reply = self.reply(open_model(lambda *_, it=output: it), Request((Message("user", "Hi"),)))
            assert (reply.failure, reply.answered) == (failure, True)

    def test_error_of_a_provider_is_no_reply(self, open_model: Any) -> None:
        def answer(*arguments: Any) -> Any:
            raise OSError("the line is dead")

        reply = self.reply(open_model(answer), Request((Message("user", "Hi"),)))
        assert not reply.answered
        assert "the line is dead" in (reply.failure or "")

    @pytest.mark.parametrize("protocol", ["pairwise", "base", "absolute"])
    def test_protocols_are_answered_in_text(self, open_model: Any, protocol: str) -> None:
        def answer(messages: Any, *more: Any) -> Any:
            text = messages[-1].text
            score = 6 if "blue" in text else 2
            label = "B" if text.find("blue") > text.find("red") else "A"
            return say(f"[[{score if protocol == 'absolute' else label}]]")

        one = case("It is red.", "It is blue.")
        with Judge("m", open_model(answer)) as judge:
            assert judge.judgments(Comparison(one, *one.responses), protocol)[0].preferred == "b"

    def test_command_runs(self, run: Callable[..., CommandResult], open_model: Any) -> None:
        from inspect_ai.model import ModelAPI, modelapi

        @modelapi("always")
        class Always(ModelAPI):  # type: ignore[misc]
            async def generate(self, *arguments: Any, **named: Any) -> Any:
                return say(f"[[{self.model_name}]]")

        settings = ("--generator", "rules", "--limit", "2", "--protocol", "pairwise", "--json")
        ran = run("attack", "--judge", "inspect:always/A", *settings)
        assert ran.code == 0, ran.err
        assert ran.figure("order_inconsistency", attack="none")["value"] == 1.0
        for name, problem in (
            ("mockllm", "name a provider and a model"),
            ("nosuch/model", "Model API nosuch of model 'nosuch/model' not recognized"),
        ):
            ran = run("attack", "--judge", f"inspect:{name}", *settings)
            assert (ran.code, problem in ran.err) == (2, True), ran.err


INSPECT_TASK = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
outputs = [ModelOutput.from_content("mockllm/model", text) for text in ("Red.", "The Baltic.")]
for output in outputs:
    output.usage = ModelUsage(input_tokens=30, output_tokens=2)
messages = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Name a sea.")]
samples = [Sample("Name a colour.", target="Red", id="one"), Sample(messages, target=["Baltic", "Black"], id=2)]
model = get_model("mockllm/model", custom_outputs=outputs)
eval(Task(samples, scorer=match()), model, log_dir="log", log_format=sys.argv[1], display="none", max_samples=1)
"""


@pytest.mark.parametrize("form", ["eval", "json"])
def test_log_of_inspect_ai_is_read(form: str) -> None:
    # In a process of its own: inspect_ai leaves connections open.
    subprocess.run([sys.executable, "-c", INSPECT_TASK, form], check=True, capture_output=True)
    (log,) = Path("log").glob(f"*.{form}")
    texts = {one.id: (one.prompt, one.responses[0].text, one.reference) for one in distract.load(log)}
    assert texts == {
        "item-one": (("Name a colour.",), "Red.", ("Red",)),
        "item-2": (("Be brief.\n\nName a sea.",), "The Baltic.", ()),
    }


SCORING_TASK = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, model_graded_qa, scorer, value_to_float

values = ["C", "I", "P", "N", "yes", "No", "TRUE", "false", "0.25", "1", 0.75, 1, 0, True, False, float("nan")]

def model(name, answer):
    def output(messages, *more):
        text = ModelOutput.from_content(name, answer(messages[-1].text))
        text.usage = ModelUsage(input_tokens=30, output_tokens=2)
        return text
    return get_model(name, custom_outputs=output, memoize=False)

@scorer(metrics=[mean()])
def stored():
    async def score(state, target):
        return Score(value=values[state.sample_id])
    return score

grades = {"Answer 3": "GRADE: C", "Answer 4": "GRADE: I"}
grader = model("mockllm/grader", lambda text: next((grades[answer] for answer in grades if answer in text), "?"))
samples = [Sample(f"Answer {number}", target="x", id=number) for number in range(len(values))]
task = Task(samples, scorer=[stored(), model_graded_qa(model=grader)], name="quiz")
eval(task, model("mockllm/model", lambda text: text), log_dir="log", log_format=sys.argv[1], display="none")
print(json.dumps([None if value != value else value_to_float()(value) for value in values]))
"""


@pytest.mark.parametrize("form", ["eval", "json"])
def test_scores_of_inspect_ai_are_replayed(form: str) -> None:
    ran = subprocess.run([sys.executable, "-c", SCORING_TASK, form], check=True, capture_output=True, text=True)
    numbers = json.loads(ran.stdout.splitlines()[-1])
    graded, stored = (
        sorted(run.rows["stored"], key=lambda row: int(row.case.removeprefix("item-")))
        for run in sorted(published.load("log"), key=lambda run: run.protocol)
    )
    judgments = [row.judgments[0] for row in stored]
    assert [judgment.scores and judgment.scores[0] for judgment in judgments] == numbers
    assert [judgment.preferred for judgment in judgments] == [
        None if number is None else "a" if number >= 0.5 else "b" for number in numbers
    ]
    assert {row.judge for row in graded} == {"mockllm/grader"}
    assert [row.judgments[0].preferred for row in graded][2:6] == [None, "a", "b", None]
    assert graded[0].judgments[0].failure == "no score: grader_failed"
