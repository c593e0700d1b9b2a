"""Prompt files and judge files: placeholders, every form of a verdict, every wrong file, hostile texts."""

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, error_line
from hypothesis import given, strategies as st
from loops import each

from distract.cli.apart import find_user_code
from distract.core import plan as plans
from distract.core.backend import StreamingBackend, own_protocols
from distract.core.errors import DataError
from distract.core.plugin import Comparison, Protocol
from distract.core.prompts import parse
from distract.core.records import Case, Constraint, Judgment, Reply, Request, Response
from distract.judging.case_texts import FORMAT_CRITERION
from distract.judging.judge import Judge
from distract.judging.judge_file import read_judge, read_protocol
from distract.judging.orders import ask_in_orders
from distract.judging.parsers.reader import MOST_SEARCHED
from distract.judging.verdict_spec import VerdictSpec, infer_table, parse_path, parse_spec
from distract.models.opener import open_judge, open_models
from distract.models.options import Options
from distract.models.scripted import PLANTED, make_planted

PAIR = "Q: {question}\n1: {response_a}\n2: {response_b}\n"
ONE = "Q: {question}\nR: {response}\n"


def protocol(tmp_path: Path, text: str, name: str = "mine.txt") -> Protocol:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_protocol(path)


def judge(own: Protocol, *answers: Reply | str, about: Case | None = None) -> tuple[Judgment, list[Request]]:
    """Ask a protocol once, with these answers; also return its requests."""
    whole = about or case()
    requests: list[Request] = []
    replies = [Reply(answer) if isinstance(answer, str) else answer for answer in answers]

    def answer(asked: Any) -> list[Reply]:
        requests.extend(asked)
        return [replies[min(index, len(replies) - 1)] for index in range(len(asked))]

    return plans.drive(own.ask(Comparison(whole, *whole.responses[:2])), answer), requests


def failing(problem: str, field: str) -> Any:
    raise DataError(problem, field=field)


def spec(is_pair: bool, table: Mapping[str, Any]) -> VerdictSpec:
    return parse_spec(table, is_pair, failing)


class TestProtocol:
    def test_pair(self, tmp_path: Path) -> None:
        own = protocol(tmp_path, f"{PAIR}Winner: {{A|B|tie}}\n", "My Prompt (v2).txt")
        assert (own.name, own.orders, own.ties, own.rules, own.reads) == ("my-prompt-v2", "swap", True, (), "text")
        assert (own.scale, own.pass_mark, own.reference, str(own.calls)) == (None, None, "", "1")
        judgment, (request,) = judge(own, "I like blue.\nWinner: B")
        assert (judgment.preferred, judgment.probabilities, judgment.read) == ("b", (0.0, 1.0, 0.0), "text")
        assert [message.role for message in request.messages] == ["user"]
        assert request.messages[0].content == (
            "Q: Name a colour.\n1: Red.\n2: I think it might be blue.\nWinner: {A|B|tie}"
        )
        assert (request.max_tokens, request.temperature, request.choices) == (512, 0.0, ())
        assert request.slots
        assert dict(request.slots.outcomes)["tie"] == "Winner: tie"

    def test_score(self, tmp_path: Path) -> None:
        table = '[verdict]\nmarker = "Score:"\nscale = [0, 10]\npass_mark = 6\nmax_tokens = 9\ntemperature = 0.5\n'
        own = protocol(tmp_path, f"[system]\nRate.\n[user]\n{ONE}{table}")
        assert (own.orders, own.ties, own.rules, own.scale, own.pass_mark) == ("none", True, ("score",), (0, 10), 6)
        judgment, requests = judge(own, "**Score:** 7", "Score: 4.5/10")
        assert (judgment.preferred, judgment.scores) == ("a", (7.0, 4.5))
        assert [(r.max_tokens, r.temperature, len(r.messages)) for r in requests] == [(9, 0.5, 2)] * 2
        assert "[verdict]" not in requests[0].messages[1].content

    def test_lower_scores_are_mirrored(self, tmp_path: Path) -> None:
        own = protocol(tmp_path, f'{ONE}[verdict]\nscale = [1, 5]\nbetter = "lower"\npass_mark = 2\n')
        judgment, _ = judge(own, "1", "4")
        assert (judgment.preferred, judgment.scores, own.pass_mark, own.scale) == ("a", (5.0, 2.0), 4, (1, 5))

    def test_everyday_names_are_the_same_placeholders(self, tmp_path: Path) -> None:
        texts = []
        for names in ("question response reference", "prompt output expected", "inputs outputs reference_outputs"):
            own = protocol(tmp_path, " ".join(f"{{{name}}}" for name in names.split()) + "\nScore: {0-10}")
            assert own.reference == "required"
            about = replace(case(), reference=("Green.",))
            texts.append(judge(own, "Score: 1", about=about)[1][0].messages)
        assert texts[0] == texts[1] == texts[2]
        assert texts[0][0].content.startswith("Name a colour. Red. Green.")

    def test_reference_comes_from_the_data_only(self, tmp_path: Path) -> None:
        own = protocol(tmp_path, f"{PAIR}{{reference}}\nWinner: {{A|B}}")
        judgment, requests = judge(own, "Winner: A")
        assert (judgment.failure, requests) == ("no reference in the data", [])

    def test_criterion_and_requirements(self, tmp_path: Path) -> None:
        own = protocol(tmp_path, f"{PAIR}By: {{criterion}}\nWinner: {{A|B}}")
        assert not own.ties
        plain, own_words = case(), replace(case(), criterion="Brevity.")
        strict = replace(case(), constraints=(Constraint("punctuation:no_comma"),))
        contents = [judge(own, "", about=about)[1][0].messages[0].content for about in (plain, own_words, strict)]
        assert "By: how precisely a response follows the instruction" in contents[0]
        assert "By: Brevity." in contents[1]
        assert "Name a colour.\n\n# Format requirements\n- " in contents[2]
        assert f"By: {FORMAT_CRITERION}" in contents[2]

    def test_other_braces_stay(self, tmp_path: Path) -> None:
        own = protocol(tmp_path, f'{PAIR}Write {{"why": {{"x": 1}}}}, {{}}, {{{{x}}}} and {{ y }}.\nWinner: {{A|B}}')
        content = judge(own, "")[1][0].messages[0].content
        assert 'Write {"why": {"x": 1}}, {}, {x} and { y }.\nWinner: {A|B}' in content

    def test_checksum_follows_what_defines_the_protocol(self, tmp_path: Path) -> None:
        toml = "model = 'planted:fair'\nprompt = '''{q}'''\nconcurrency = {n}\n".replace("{q}", f"{ONE}Score: {{0-9}}")
        judges = (toml.replace("{n}", "1"), toml.replace("{n}", "2"), toml.replace("{n}", "2").replace("Q:", "P:"))
        sums = [protocol(tmp_path, text, "j.toml").checksum for text in judges]
        assert sums[0] == sums[1] != sums[2]
        assert len(sums[0]) == 64

    def test_crlf_and_a_mark_of_bytes_change_nothing(self, tmp_path: Path) -> None:
        text = f"[system]\nx\n[user]\n{ONE}[verdict]\nscale = [0, 1]\n"
        (tmp_path / "w.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        assert judge(read_protocol(tmp_path / "w.txt"), "1")[1] == judge(protocol(tmp_path, text), "1")[1]


def read(own: VerdictSpec, reply: Reply | str) -> Any:
    """The verdict of an answer: an outcome, a score of which higher is better, or the reason for having none."""
    value = own.read(Reply(reply) if isinstance(reply, str) else reply, "").value
    return value if isinstance(value, str) else own.grade(value).score


WORDS = {"marker": "Winner:"}
CUSTOM = {"marker": "The best is", "words": {"a": "Response 1", "b": ["Response 2", "the other"], "tie": "Neither"}}
NO_TIE = {"marker": "Winner:", "words": ["A", "B"]}
VERDICTS = {"regex": r"(?i)verdict\s*=\s*(?P<verdict>\w+)"}
PATH = {"json": "$.result.winner"}

OUTCOMES: tuple[tuple[Mapping[str, Any], str, str], ...] = (
    (WORDS, "Winner: A", "a"),
    (WORDS, "**Winner:** B", "b"),
    (WORDS, "__winner:__ `tie`", "tie"),
    (WORDS, "### WINNER:\n\n  \"second\".", "b"),
    (WORDS, "Winner: A\nOn reflection.\nWinner: B", "b"),
    (WORDS, "<think>Winner: A</think>Winner: B", "b"),
    (WORDS, "Winner: Response A", "a"),
    (WORDS, "Winner: 2, since it is short", "b"),
    (WORDS, "Winner: a draw", "tie"),
    (WORDS, "Winner: A or B", "ambiguous: it names two verdicts"),
    (WORDS, "Winner: A/B/tie", "ambiguous: it names two verdicts"),
    (WORDS, "Winner: {A|B|tie}\nWinner: A", "a"),
    (WORDS, "Winner: A, not B", "a"),
    (WORDS, "Winner: Apple", "the verdict is none of "),
    (WORDS, "Winner:", "the verdict is none of "),
    (WORDS, "A", "no 'Winner:' in the answer"),
    (WORDS, "", "no 'Winner:' in the answer"),
    (NO_TIE, "Winner: tie", "the verdict is none of a, b"),
    (CUSTOM, "So the  best\nis response 1.", "a"),
    (CUSTOM, "The best is Response 2", "b"),
    (CUSTOM, "The best is THE OTHER", "b"),
    (CUSTOM, "The best is neither", "tie"),
    (CUSTOM, "The best is Response 12", "the verdict is none of "),
    ({"words": ["A", "B", "tie"]}, "Both are fine.\n\n**B**\n", "b"),
    ({}, "first", "a"),
    ({}, "I prefer A", "a"),
    ({}, "A names both facts", "its last line holds something else than the verdict"),
    (VERDICTS, "verdict = A. No, wait: VERDICT=b", "b"),
    (VERDICTS, "verdict = A, then VERDICT=b", "ambiguous: it gives two verdicts"),
    (VERDICTS, "verdict = Z", "the verdict is none of "),
    (VERDICTS, "nothing", "the regular expression does not match"),
    ({"regex": "x|(?P<verdict>A)"}, "x", "the regular expression does not match"),
    (PATH, '{"result": {"winner": "A"}}', "a"),
    (PATH, 'No: {"a": 1}\n```json\n{"result": {"winner": "tie", "x": [1]}}\n```', "tie"),
    (PATH, '{"result": {"winner": 2}}', "b"),
    (PATH, '{"result": {"winner": "A", "winner": "B"}}', "ambiguous: its JSON object has two values there"),
    (PATH, '{"result": "A"}', "its last JSON object has no value there"),
    (PATH, '{"result": {"winner": null}}', "the verdict is none of "),
    (PATH, '{"result": {"winner": true}}', "the verdict is none of "),
    (PATH, '{"result": {"winner": ["A"]}}', "the verdict is none of "),
    (PATH, '{"result": ', "its JSON is not valid"),
    (PATH, "A", "no JSON object in the answer"),
    ({"json": "votes[1].name"}, '{"votes": [{"name": "A"}, {"name": "B"}]}', "b"),
    ({"json": "votes[2].name"}, '{"votes": [{"name": "A"}, {"name": "B"}]}', "its last JSON object has no value there"),
)  # fmt: skip

SCALE = {"scale": [0, 10]}
AFTER = {**SCALE, "marker": "Score:"}
SCORES: tuple[tuple[Mapping[str, Any], str, float | str], ...] = (
    (AFTER, "Score: 7", 7),
    (AFTER, "**Score:** **7.5**/10", 7.5),
    (AFTER, "Score: 7 out of 10.", 7),
    (AFTER, "Score: 3\nRevised score: 8", 8),
    (AFTER, "Score: 3\nThe tone is right.\nScore: 8", "ambiguous: it gives two verdicts"),
    (AFTER, "score: −0", 0),
    (AFTER, "Score: 6,5", 6.5),
    (AFTER, "Score: 7/5", "out of another scale: expected 0 to 10"),
    (AFTER, "Score: 7%", "out of another scale: expected 0 to 10"),
    (AFTER, "Score: 11", "out of scale: expected 0 to 10"),
    (AFTER, "Score: -1", "out of scale: expected 0 to 10"),
    (AFTER, "Score: 7-8", "ambiguous: it names two verdicts"),
    (AFTER, "Score: 7 or 8", "ambiguous: it names two verdicts"),
    (AFTER, "Score: high", "the score is not a number"),
    (AFTER, "Score: 7th", "the score is not a number"),
    (AFTER, "7", "no 'Score:' in the answer"),
    (SCALE, "7", 7),
    (SCALE, "It has 2 flaws.\n\nOverall: 7/10", 7),
    (SCALE, "It has 2 flaws of 3.", "its last line holds something else than the verdict"),
    (SCALE, "none", "its last line holds something else than the verdict"),
    ({**SCALE, "json": "score"}, '{"score": 7, "reason": "..."}', 7),
    ({**SCALE, "json": "score"}, '{"score": "7/10"}', 7),
    ({**SCALE, "json": "score"}, '{"score": NaN}', "out of scale: expected 0 to 10"),
    ({**SCALE, "json": "score"}, '{"score": 1e999}', "out of scale: expected 0 to 10"),
    ({**SCALE, "json": "score"}, '{"score": ' + "9" * 400 + "}", "out of scale: expected 0 to 10"),
    ({**SCALE, "json": "score"}, '{"score": true}', "the score is not a number"),
    ({**SCALE, "json": "score"}, '{"score": "good"}', "the score is not a number"),
    ({**SCALE, "regex": r"\[\[(?P<score>.*?)\]\]"}, "[[3]]. Correction: [[ 4.0 ]]", 4),
    ({**SCALE, "regex": r"\[\[(?P<score>.*?)\]\]"}, "[[x]]", "the score is not a number"),
    ({"scale": [-1, 1]}, "-0.5", -0.5),
    ({"scale": [0, 100]}, "70%", 70),
)  # fmt: skip


class TestVerdicts:
    @each("table, answer, expected", *OUTCOMES)
    def test_words(self, table: Mapping[str, Any], answer: str, expected: str) -> None:
        outcome = read(spec(True, table), answer)
        assert outcome == expected or (expected.endswith(" ") and outcome.startswith(expected))

    @each("table, answer, expected", *SCORES)
    def test_scores(self, table: Mapping[str, Any], answer: str, expected: object) -> None:
        assert read(spec(False, table), answer) == expected

    @each(
        "table, answer, is_read",
        (AFTER, "Score: 1", False),
        (AFTER, "Score: 1\nbecause it", True),
        (AFTER, "Scor", False),
        (SCALE, "7", False),
        ({**SCALE, "json": "score"}, '{"score": 7}', True),
        ({**SCALE, "json": "score"}, '{"score": 7', False),
        ({**SCALE, "regex": r"=(?P<score>\d+)"}, "=1", False),
        ({**SCALE, "regex": r"=(?P<score>\d+)"}, "=1 and", True),
    )
    def test_cut_answer_has_a_verdict_only_if_it_is_whole(
        self, table: Mapping[str, Any], answer: str, is_read: bool
    ) -> None:
        score = read(spec(False, table), Reply(answer, finish="length"))
        assert (score != "truncated") == is_read

    @each(
        "answer, silence",
        (" \n\u3000", "nothing but white space"),
        ("\u200b\u2060 \ufeff\xad\u3164", "nothing but invisible characters"),
        ("<think>Score: 7</think>\n\u200b", "nothing but reasoning"),
        ("<|channel|>analysis<|message|>Score: 7", "nothing but reasoning"),
        ("", None),
        ("<think>Score: 7</think>.", None),
    )
    def test_reason_says_what_an_answer_without_words_holds(self, answer: str, silence: str | None) -> None:
        for table in (AFTER, SCALE, {**SCALE, "json": "score"}, {**SCALE, "regex": "=(?P<score>.)"}):
            for finish, begin in (("stop", ""), ("length", "truncated: ")):
                reason = read(spec(False, table), Reply(answer, finish=finish))
                assert reason == f"{begin}{silence}" if silence else "nothing" not in reason

    def test_failed_reply_keeps_its_reason(self, tmp_path: Path) -> None:
        judgment, _ = judge(protocol(tmp_path, f"{PAIR}Winner: {{A|B}}"), Reply(failure="refused"))
        assert (judgment.preferred, judgment.failure) == (None, "refused")
        assert getattr(judgment.failure, "reply", None) == Reply(failure="refused")

    @pytest.mark.parametrize(
        ("pattern", "group"), [(r"(a+)+$(?P<verdict>x)", "verdict"), (r"(?P<score>(.*.*.*)=)", "score")]
    )
    def test_catastrophic_expression_ends(self, pattern: str, group: str) -> None:
        own = spec(group == "verdict", {"regex": pattern, **({} if group == "verdict" else SCALE)})
        begin = time.process_time()
        assert read(own, "a" * 30_000 + "!") == "the regular expression takes too long on this answer"
        assert time.process_time() - begin < 2.5

    @pytest.mark.parametrize("table", [WORDS, VERDICTS, PATH, {}])
    @pytest.mark.parametrize("piece", ["x", "{", '{"a":', "Winner: ", "[["])
    def test_answer_of_any_length_ends(self, table: Mapping[str, Any], piece: str) -> None:
        answer = piece * (20_000_000 // len(piece))
        assert read(spec(True, table), answer) not in ("a", "b", "tie")

    def test_only_the_end_of_an_answer_is_searched(self) -> None:
        own = spec(True, WORDS)
        assert read(own, f"Winner: A\n{'x' * MOST_SEARCHED}") == "no 'Winner:' in the answer"
        assert read(own, f"{'x' * 3_000_000}\nWinner: A") == "a"

    @each(
        "path, steps",
        ("$.score", ("score",)),
        ("score", ("score",)),
        ("result.winner", ("result", "winner")),
        ("$.a[0].b", ("a", 0, "b")),
        *((path, ()) for path in ("", "$", "a..b", "[0]", "$.a[x]")),
    )
    def test_paths(self, path: str, steps: tuple[object, ...]) -> None:
        assert parse_path(path) == steps

    @each(
        "prompt, table",
        ("x\nWinner: {A|B|tie}", {"marker": "Winner:", "words": ["A", "B", "tie"]}),
        ("- **Final verdict:** {first|second}\n", {"marker": "Final verdict:", "words": ["first", "second"]}),
        ("Score: {1-7}", {"marker": "Score:", "scale": [1.0, 7.0]}),
        ("Score: {-1 to 1.5}.", {"marker": "Score:", "scale": [-1.0, 1.5]}),
        ("Accuracy: {0-10}\nTotal: {0..100}", {"marker": "Total:", "scale": [0.0, 100.0]}),
        *((prompt, None) for prompt in ("Say {A|B} or so", "{A|B}", "Winner: {winner}")),
    )
    def test_inferred_verdicts(self, prompt: str, table: object) -> None:
        assert infer_table(prompt) == table


@each(
    "text",
    *("costs $5 and $inputs_2", "$x$ and $question$, ${response}$", 'Reply {"a": {"score": 7}}', "{{x}} and {{ x }}"),
    *("echo $question", "$$, $1, ${HOME}", "$questions", "\\frac{{1}}{{2}}", '{"a": [{"b": 1}]}', "{% raw %}"),
)
def test_dollars_and_braces_may_be_text(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(f"{{question}}\n{text}\n{{response}}\nScore: {{0-10}}")
    pieces = read_protocol(file).prompts[0].parts[0][1]
    shown = "".join(f"{{{piece}}}" if at % 2 else piece for at, piece in enumerate(pieces))
    assert f"\n{text.replace('{{x}}', '{x}')}\n" in shown


WRONG: tuple[tuple[str, str], ...] = (
    ("", "mine.txt: the prompt is empty"),
    ("  \n\n", "the prompt is empty"),
    (f"{PAIR}{{answer}}\nWinner: {{A|B}}", "mine.txt:4: {answer} is no placeholder; these are: {question}, "),
    (f"{PAIR}{{{{question}}}}\nWinner: {{A|B}}", "mine.txt:4: {{question}} has two braces; write {question}"),
    (f"{PAIR}{{{{ question }}}}\nWinner: {{A|B}}", "mine.txt:4: {{ question }} has two braces; write {question}"),
    (f"{PAIR}{{{{inputs | trim}}}}\nWinner: {{A|B}}", "mine.txt:4: {{inputs | trim}} has two braces; write {inputs}"),
    ("$question\n{response}\nScore: {0-10}", "mine.txt:1: $question is no placeholder; write {question}"),
    ("{input}\nA: $response\nScore: {0-10}", "mine.txt:2: $response is no placeholder; write {response}"),
    *((f"{ONE}{text}\nScore: {{0-10}}", f"mine.txt:3: {text} {problem}") for text, problem in (
        ("{{- question -}}", "has two braces; write {question}"), ("{{item.prompt}}", "has two braces; write {prompt}"),
        ("${ input }", "shows a dollar sign; write {input}"), ("{ reference }", "is no placeholder; write {reference}"),
        ("{criteria!r}", "is no placeholder; write {criteria}"))),
    ("{input}\n${response}\nScore: {0-10}", "mine.txt:2: ${response} shows a dollar sign; write {response}"),
    (f'{ONE}{{{{"score": 7}}}}', 'mine.txt:3: {{"score": has two braces, which the judge would see; write {"score"'),
    (f"{ONE}{{{{\n 'mark' : 7\n}}}}", "mine.txt:3: {{ 'mark' : has two braces, which the judge would see; write {'"),
    ("Q: {question}\nWinner: {A|B}", "shows no response: expected {response_a} and {response_b}, or {response}"),
    ("{response_a}\nWinner: {A|B}", "no placeholder {response_b}"),
    (f"{PAIR}{{response}}\nWinner: {{A|B}}", "mine.txt:4: {response} shows one response, but"),
    (PAIR, "mine.txt: no verdict: end the prompt with a line such as Winner: {A|B|tie}, or add [verdict]"),
    (ONE, "no verdict: end the prompt with a line such as Score: {0-10}"),
    (f"text\n[user]\n{PAIR}Winner: {{A|B}}", "expected a line [system] or [user] before any other text"),
    (f"[system]\n{PAIR}Winner: {{A|B}}", "no [user] part"),
    (f"[user]\n{PAIR}[prefill]\n{{question}}\n[verdict]\n", "a slot in [prefill]"),
    (f"{PAIR}Winner: {{X|B}}", "field 'words': the meaning of 'X' is open; write words = {a = "),
    (f"{PAIR}Winner: {{A|tie}}", "field 'words': no word for b"),
    (f"{PAIR}Score: {{0-10}}", "field 'scale': the prompt shows two responses, so its verdict is a word"),
    (f"{ONE}Winner: {{A|B}}", "field 'words': the prompt shows one response, and the order of A, B is open; write"),
    (f"{PAIR}[verdict]\n[verdict]\n", "more than one part [verdict]"),
    (f"{PAIR}[verdict]\nmarker = Winner:\n", "mine.txt:5: is not TOML here: Invalid value; quote texts"),
    (f"{PAIR}[verdict]\nmaker = 'x'\n", "mine.txt:5: field 'maker': unknown key; did you mean 'marker'? ("),
    (f"{PAIR}[verdict]\nregex = '(?P<verdict>.)'\njson = 'x'\n", ":6: field 'json': expected one of marker, regex and"),
    (f"{PAIR}[verdict]\nregex = '(A|B)'\n", "field 'regex': expected a named group for the word: (?P<verdict>…)"),
    (f"{ONE}[verdict]\nscale = [0, 1]\nregex = '(?P<verdict>.)'\n", "expected a named group for the number: (?P<s"),
    (f"{PAIR}[verdict]\nregex = '('\n", "mine.txt:5: field 'regex': is not a regular expression (missing )"),
    (f"{PAIR}[verdict]\nregex = 3\n", "field 'regex': expected a text, found 3"),
    (f"{PAIR}[verdict]\nmarker = '**'\n", "field 'marker': expected a text, found '**'"),
    (f"{PAIR}[verdict]\njson = '$.a[{'9' * 6000}]'\n", "or result.scores[0], found '$.a[999"),
    (f"{PAIR}[verdict]\njson = 'a{'.a' * 6000}'\n", "or result.scores[0], found 'a.a.a"),
    (f"{PAIR}[verdict]\nmax_tokens = {'9' * 6000}\n", "mine.txt: is not TOML here: Exceeds the limit"),
    (f"{PAIR}[verdict]\njson = 'a..b'\n", "field 'json': expected a path such as $.score or "),
    (f"{PAIR}[verdict]\nwords = ['A']\n", "field 'words': no word for b"),
    (f"{PAIR}[verdict]\nwords = {{a = 'x'}}\n", "field 'words': no word for b"),
    (f"{PAIR}[verdict]\nwords = {{a = 'x', b = 'X '}}\n", "field 'words': has the same word twice"),
    (f"{PAIR}[verdict]\nwords = {{a = 'x', c = 'y'}}\n", "field 'words': expected a, b and tie as its keys"),
    (f"{PAIR}[verdict]\nwords = {{a = 1, b = 2}}\n", "field 'words': expected a word or a list of words for a, f"),
    (f"{PAIR}[verdict]\nwords = 'A B'\n", "field 'words': expected a list such as"),
    (f"{PAIR}[verdict]\nscale = [0, 1]\n", "mine.txt:5: field 'scale': the prompt shows two responses"),
    (f"{ONE}[verdict]\nwords = ['A', 'B']\n", "mine.txt:4: field 'words': the prompt shows one response"),
    (f"{ONE}[verdict]\njson = 'x'\n", "field 'scale': the prompt shows one response, so its verdict is a number: give"),
    (f"{ONE}[verdict]\nscale = [10, 0]\n", ":4: field 'scale': expected the lowest number first, found [10, 0]; for"),
    (f"{ONE}[verdict]\nscale = [1, 1]\n", "field 'scale': expected the lowest number first, found [1, 1]"),
    (f"{ONE}[verdict]\nscale = [1, inf]\n", "field 'scale': expected two numbers, as in [0, 10], found [1, inf]"),
    (f"{ONE}[verdict]\nscale = [false, true]\n", "field 'scale': expected two numbers"),
    (f"{ONE}[verdict]\nscale = 10\n", "field 'scale': expected two numbers, as in [0, 10], found 10"),
    (f"{ONE}[verdict]\nscale = [0, 1]\nbetter = 'less'\n", "field 'better': expected \"higher\" or \"lower\""),
    (f"{ONE}[verdict]\nscale = [0, 1]\npass_mark = 2\n", "field 'pass_mark': expected a number from 0 to 1, found 2"),
    (f"{ONE}[verdict]\nscale = [0, 1]\nmax_tokens = 0\n", "field 'max_tokens': expected a whole number from 1"),
    (f"{ONE}[verdict]\nscale = [0, 1]\ntemperature = -1\n", "field 'temperature': expected a number from 0 to 10"),
)  # fmt: skip

TOML = f"model = 'planted:fair'\nprompt = '''{PAIR}Winner: {{A|B}}'''\n"
WRONG_JUDGES: tuple[tuple[str, str], ...] = (
    ("x", "j.toml: is not TOML here: "),
    ("prompt = 'x'", "j.toml: field 'model': expected the name of a model, such as \"openai:gpt-4o\""),
    ("model = 3", "j.toml:1: field 'model': expected the name of a model, such as \"openai:gpt-4o\", found 3"),
    ("model = 'other.toml'", "field 'model': expected the name of a model"),
    ("model = 'x'", "field 'prompt': expected either prompt or prompt_file"),
    (f"{TOML}prompt_file = 'x.txt'", "field 'prompt_file': expected either prompt or prompt_file"),
    ("model = 'x'\nprompt = 3", "j.toml:2: field 'prompt': expected a text, found 3"),
    ("model = 'x'\nprompt_file = 'none.txt'", "none.txt: no such file"),
    ("model = 'x'\nprompt_file = '/dev/zero'", "/dev/zero: is a device; name a regular file"),
    (f"{TOML}api_key = 'sk-1'", "field 'api_key': keys are never read from a file; set OPENAI_API_KEY or"),
    (f"{TOML}[model_options]\nOPENAI_API_KEY = 'sk-1'", "field 'OPENAI_API_KEY': keys are never read from a file"),
    (f"{TOML}modell = 'x'", "field 'modell': unknown key; did you mean 'model'? (known: model, "),
    (f"{TOML}verdict = 'x'", "field 'verdict': expected a table [verdict]"),
    (f"{TOML}[model_options]\ntimeot = 3", "j.toml: unknown model option 'timeot'; did you mean 'timeout'?"),
    (f"{TOML}concurrency = 0", "j.toml: --concurrency 0: expected a whole number from 1"),
    (f"{TOML}max_tokens = 'x'", "field 'max_tokens': expected a whole number from 1, found 'x'"),
    (f"model = 'x'\nprompt = '''\n{PAIR}{{x}}'''", "j.toml:6: {x} is no placeholder"),
    (f"{TOML}[verdict]\nscale = [0, 1]", "field 'scale': the prompt shows two responses"),
)  # fmt: skip


class TestWrongFiles:
    @each("name, text, message", *(("mine.txt", *one) for one in WRONG), *(("j.toml", *one) for one in WRONG_JUDGES))
    def test_wrong_file_is_one_line(self, tmp_path: Path, name: str, text: str, message: str) -> None:
        error = error_line(DataError, protocol, tmp_path, text, name)
        assert message in error
        assert "sk-1" not in error

    def test_other_bytes_name_their_line(self, tmp_path: Path) -> None:
        (tmp_path / "x.txt").write_bytes(b"{question}\n\xff")
        (tmp_path / "big.txt").write_bytes(bytes((1 << 20) + 1))
        os.mkfifo(tmp_path / "pipe.toml")
        messages = {"x.txt": r"x\.txt:2: .*UTF-8", "none.txt": "no such file", ".": "directory",
                    "big.txt": "more than 1 MB", "pipe.toml": "is a pipe; name a regular file"}  # fmt: skip
        for name, message in messages.items():
            with pytest.raises(DataError, match=message):
                read_protocol(tmp_path / name)
        assert find_user_code([str(tmp_path / "pipe.toml"), "--judge=/dev/zero.toml"]) == ""


class TestJudgeFile:
    def test_settings_and_prompt_file(self, tmp_path: Path) -> None:
        (tmp_path / "p.txt").write_text(f"{ONE}[verdict]\nscale = [0, 5]\nmax_tokens = 7\n")
        url = "http://127.0.0.1:1/v1"
        text = f"model = 'openai:m'\nprompt_file = 'p.txt'\nbase_url = '{url}'\ntemperature = 1\n"
        (tmp_path / "j.toml").write_text(f"{text}[model_options]\ntimeout = 3\nattempts = 2\n")
        file = read_judge(tmp_path / "j.toml")
        assert (file.model, file.protocol.name, file.protocol.scale) == ("openai:m", "p", (0, 5))
        assert dict(file.options) == {"base_url": url, "timeout": 3.0, "attempts": 2}
        (_, (request, _)) = judge(file.protocol, "5")
        assert (request.max_tokens, request.temperature) == (7, 1.0)
        options = file.under(Options(model_options={"attempts": 9}))
        assert (options.timeout, options.model_options["attempts"], options.base_url) == (3.0, 9, url)

    def test_second_verdict_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "p.txt").write_text(f"{ONE}[verdict]\nscale = [0, 5]\n")
        text = "model = 'x'\nprompt_file = 'p.txt'\n[verdict]\nscale = [0, 1]\n"
        with pytest.raises(DataError, match=r"p\.txt has a part \[verdict\] too; keep one"):
            protocol(tmp_path, text, "j.toml")

    def test_judge_brings_its_protocol_and_answers_others(self, tmp_path: Path) -> None:
        (tmp_path / "j.toml").write_text(TOML)
        backend = open_judge(str(tmp_path / "j.toml"))
        assert backend.identity == make_planted("fair").identity
        comparison = Comparison(case(), *case().responses)
        with Judge("j", backend, store=tmp_path / "s") as own:
            for name in (None, "j", "pairwise"):
                assert [judgment.failure for judgment in own.judgments(comparison, name)] == [None, None]

    @each("bias", *(name for name in PLANTED if name != "garbage"))
    @each(
        "text",
        f"{PAIR}Winner: {{A|B|tie}}",
        f"{PAIR}[verdict]\nregex = '(?i)\\*{{0,2}}verdict\\s*:\\s*\\[\\[(?P<verdict>\\w+)\\]\\]$'\n",
        f"{PAIR}[verdict]\njson = 'x[1].winner'\n",
        f"{ONE}Score: {{0-10}}",
        f"{ONE}[verdict]\nscale = [-2, 3]\nbetter = 'lower'\njson = 'score'\n",
        f"{ONE}[verdict]\nscale = [1, 5]\nregex = 'Score: (?P<score>[0-9.]+)'\n",
    )
    def test_planted_judges_answer_every_form(self, tmp_path: Path, bias: str, text: str) -> None:
        own, comparison = protocol(tmp_path, text), Comparison(case(), *case().responses)
        with Judge("p", make_planted(bias), store=tmp_path / "s") as planted:
            judgments = planted.run(ask_in_orders(own, comparison))
        assert [one.failure for one in judgments] == [None] * (2 - bool(own.rules))
        assert bias != "longer" or {one.preferred for one in judgments} <= {"b", "tie"}


PARTS = ("[user]\nx", "[verdict]\n", "{response_b}", "{reference}", "Winner: A", "\\1", "$a", "\x1b[2J", "{{x}}")
TEXTS = st.one_of(
    st.text(),
    st.sampled_from(PARTS),
    st.builds("{}\n[system]\n{}".format, st.text(max_size=9), st.text(max_size=9)),
)


@given(TEXTS, TEXTS, TEXTS)
def test_hostile_texts_stay_in_their_slots(question: str, first: str, second: str) -> None:
    frame = "[system]\nJudge.\n[user]\n<{question}>\n<{response_a}>\n<{response_b}>\nWinner: {A|B}\n"
    with tempfile.TemporaryDirectory() as folder:
        own = protocol(Path(folder), frame)
    whole = Case("c", (question,), (Response("x", (first,)), Response("y", (second,))))
    judgment, (request,) = judge(own, f"{first}\nWinner: B", about=whole)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].content == "Judge."
    assert request.messages[1].content == f"<{question}>\n<{first}>\n<{second}>\nWinner: {{A|B}}"
    assert parse("x", frame).slots == own.prompts[0].slots
    assert judgment.preferred in ("b", None)


@given(st.text(), st.sampled_from([WORDS, CUSTOM, VERDICTS, PATH, {}]))
def test_no_answer_raises(answer: str, table: Mapping[str, Any]) -> None:
    assert isinstance(read(spec(True, table), answer), str)


@given(st.text(), st.sampled_from([AFTER, SCALE, {**SCALE, "json": "a[0]"}, {**SCALE, "regex": "(?P<score>.*)"}]))
def test_score_is_in_the_scale_or_unread(answer: str, table: Mapping[str, Any]) -> None:
    score = read(spec(False, table), answer)
    assert isinstance(score, str) or 0 <= score <= 10


def test_options_of_a_judge_file_are_for_the_judge_alone(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    path = tmp_path / "j.toml"
    path.write_text(TOML.replace("planted:fair", "openai:m") + "base_url = 'http://127.0.0.1:1/v1'\nconcurrency = 3\n")
    helper = "http://127.0.0.1:2/v1#m"
    opened = open_models({"judge": str(path), "generator": helper}, Options(concurrency=5))
    servers = {role: model.identity["server"] for role, model in opened.models.items()}
    assert servers == {"judge": "http://127.0.0.1:1/v1", "generator": "http://127.0.0.1:2/v1"}
    assert [own_protocols(opened.models[role]) == () for role in ("judge", "generator")] == [False, True]
    assert isinstance(opened.models["judge"], StreamingBackend)
