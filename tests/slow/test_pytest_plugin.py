"""Test the pytest plugin: its import cost, test selection, choice of judge and store, and summary."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from loops import each

from distract.core import registry
from distract.judging import judge
from distract.models import opener

# Imported here, because an inner run forgets its own imports, and numpy cannot be imported twice.
from distract.testing import invariants, summary

IMPORTED = (invariants, judge, registry, opener, summary)

LEFT_OUT = "distract: 1 test that calls a judge was deselected; run it with --judge NAME or -m distract"

ASKING = """
import pytest
from distract.core.plugin import Comparison
from distract.core.records import Case, Response

def compared(number):
    sides = Response("x", ("Red.",)), Response("y", ("I think it might be blue.",))
    return Comparison(Case(f"c{number}", (f"Name colour {number}.",), sides), *sides)
"""
MARKED = f"""{ASKING}
@pytest.mark.distract
def test_marked(judge):
    assert len(judge.judgments(compared(1))) == 2
"""
MIXED = f"""{MARKED}
def test_plain():
    pass

@pytest.mark.distract
@pytest.mark.parametrize("number", [1, 2])
class TestMany:
    def test_it(self, judge, number):
        judge.judgments(compared(number))
"""
OWN_JUDGE = """
import time
from pathlib import Path
import pytest
from distract.judging.judge import Judge
from distract.core.records import Reply

LOG = Path(__file__).with_name("asked")

class Slow:
    identity = {"engine": "own", "model": "slow"}
    reads_slots = False

    def reply(self, requests, wanted):
        for index in sorted(wanted):
            with LOG.open("a") as log:
                log.write(requests[index].key + "\\n")
            time.sleep(0.02)
            yield [(index, Reply(probabilities=(0.5, 0.25, 0.25), mass=1.0, finish="choices", tokens_in=10))]

@pytest.fixture(scope="session")
def judge(distract_store):
    return Judge("own [red]\\x1b[31m", Slow(), store=distract_store)
"""


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A run of pytest in this process, without the plugins of the outer run."""
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments)


def join_lines(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def test_plugin_loads_only_pytest_and_itself() -> None:
    program = """
import sys, pytest
before = set(sys.modules)
import distract.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["distract", "distract.testing", "distract.testing.pytest_plugin"]


class TestTestSelection:
    @each(
        "arguments, passed, left_out",
        ("", 1, 3),
        ("--judge planted:fair", 4, 0),
        ("-m distract -o addopts=--judge=planted:fair", 3, 0),
        ("-m 'not distract'", 1, 0),
        ("-m slow", 0, 0),
        ("-k 'plain or marked'", 1, 1),
        ("-k plain", 1, 0),
    )
    def test_marker_or_judge_option_selects_marked_tests(
        self, pytester: pytest.Pytester, arguments: str, passed: int, left_out: int
    ) -> None:
        pytester.makepyfile(test_mixed=MIXED)
        result = run_pytest(pytester, "-W", "ignore", *shlex.split(arguments))
        result.assert_outcomes(passed=passed, deselected=4 - passed)
        assert ("were deselected" in join_lines(result)) == (left_out > 1)
        assert (LEFT_OUT in result.outlines) == (left_out == 1)
        if left_out > 1:
            tests = f"distract: {left_out} tests that call a judge were deselected"
            assert f"{tests}; run them with --judge NAME or -m distract" in result.outlines

    @each(
        "names, passed",
        (["test_mixed.py::test_marked"], 1),
        (["inner/../test_mixed.py::TestMany"], 2),
        (["test_mixed.py::TestMany::test_it[1]", "test_mixed.py::test_plain"], 2),
        (["test_mixed.py::test_plain", "test_other.py"], 1),
    )
    def test_tests_selected_by_name_run(self, pytester: pytest.Pytester, names: list[str], passed: int) -> None:
        pytester.makepyfile(test_mixed=MIXED, test_other=MARKED)
        (pytester.path / "inner").mkdir(exist_ok=True)
        pytester.makepyprojecttoml('[tool.distract]\njudge = "planted:fair"')
        run_pytest(pytester, *names).assert_outcomes(passed=passed, deselected="test_other.py" in names)

    def test_unmarked_tests_keep_their_own_judge(self, pytester: pytest.Pytester) -> None:
        pytester.makepyfile("""
            import pytest
            @pytest.fixture
            def judge(): return "of the court"
            def test_it(judge): assert judge == "of the court"
            @pytest.mark.parametrize("judge", [1])
            def test_number(judge): assert judge == 1
        """)
        result = run_pytest(pytester, "--strict-markers")
        result.assert_outcomes(passed=2)
        assert "distract:" not in join_lines(result)
        assert " distract " not in join_lines(result)

    @each("more", "--collect-only", "-p no:xdist", "-p no:terminal", "--co -qq")
    def test_other_pytest_options_still_work(self, pytester: pytest.Pytester, more: str) -> None:
        pytester.makepyfile(MIXED)
        result = run_pytest(pytester, "--judge", "planted:fair", *more.split())
        assert result.ret == 0
        assert "Error" not in join_lines(result) + "\n".join(result.errlines)


class TestJudgeChoice:
    @each(
        "project, judge, message",
        ("", "", "no judge: run pytest with --judge NAME, set judge = "),
        ("", "planted:fairr", "unknown judge 'planted:fairr'; did you mean 'planted:fair'?"),
        ("[tool.distract]\njudge = 3", "", "tool.distract.judge: expected the name of a judge in quotes, found 3"),
        ("tool.distract = 3", "", "tool.distract: expected a table, found 3"),
        ("[tool.distract]\njudgee = 'x'", "", "unknown table or setting 'judgee'; did you mean 'judge'?"),
        ("[tool.distract]\nstore = ''", "planted:fair", "store: expected the path of a file in quotes"),
        (
            "[tool.distract]\nstore = '.'",
            "planted:fair",
            "leads out of the folder of this file; name it on the command",
        ),
        (
            "[tool.distract]\njudge = 'python:own:f'",
            "",
            "judge: names a file that runs code or decides where your keys",
        ),
    )
    def test_wrong_settings_are_one_line(
        self, pytester: pytest.Pytester, project: str, judge: str, message: str
    ) -> None:
        pytester.makepyfile(MARKED)
        (pytester.path / "pyproject.toml").write_text(project)
        result = run_pytest(pytester, "-m", "distract", *(("--judge", judge) if judge else ()))
        result.assert_outcomes(errors=1)
        start = next(number for number, text in enumerate(result.outlines) if "ERROR at setup" in text)
        assert message in result.outlines[start + 1]
        assert "short test summary" in result.outlines[start + 2]

    def test_options_override_the_settings_of_the_root_folder(self, pytester: pytest.Pytester) -> None:
        pytester.makepyfile(**{"deep/test_it": MARKED})
        settings = '[tool.distract]\njudge = "planted:first"\nstore = "kept/here"\n[tool.distract.gate]'
        pytester.makepyprojecttoml(settings)
        for name, store, options in (
            ("first", "kept/here", "-m distract"),
            ("fair", "other", "--judge planted:fair --distract-store other"),
        ):
            result = run_pytest(pytester, "deep", *options.split())
            assert f"judge planted:{name}: 2 calls made, 0 saved by the store" in result.outlines
            assert (pytester.path / store).is_file()

    def test_plugin_uses_the_store_of_the_commands(self, pytester: pytest.Pytester) -> None:
        away = """
@pytest.fixture(autouse=True, scope="session")
def away(tmp_path_factory):
    import os
    os.chdir(tmp_path_factory.mktemp("away"))
"""
        pytester.makepyfile(MARKED + away)
        for made in ("2 calls made, 0 saved", "0 calls made, 2 saved"):
            result = run_pytest(pytester, "--judge", "planted:fair")
            assert f"judge planted:fair: {made} by the store" in result.outlines
        assert (pytester.path / ".distract" / "replies.sqlite").is_file()

    def test_judge_fixture_of_any_name_is_counted_and_closed(self, pytester: pytest.Pytester) -> None:
        pytester.makeconftest(OWN_JUDGE.replace("def judge(", "def mine(") + """
@pytest.fixture
def same(mine): return mine

def pytest_unconfigure(config):
    from distract.testing.pytest_plugin import _SESSION
    ((mine, numbers),) = config.stash[_SESSION].judges
    assert mine() is None or not mine()._end.alive
""")  # fmt: skip
        pytester.makepyfile(f"{ASKING}\ndef test_it(mine, same):\n    same.judgments(compared(1))\n")
        result = run_pytest(pytester)
        result.assert_outcomes(passed=1)
        # The name is hostile: it is neither markup nor an escape of the terminal.
        message = r"judge own [red]\x1b[31m: 2 calls made, 0 saved by the store; 20 tokens in, 0 out"
        assert message in result.outlines
        assert LEFT_OUT not in result.outlines


FINDING = """
from distract.judging.findings import InvariantFinding

def test_found(judge):
    judge.judgments(compared(1))
    place = ("distractor_invariant", "pairwise", "assertiveness")
    judge.findings.append(InvariantFinding(*place, 40, 3, 1, 5, 0.1, 0.021, 0.183, "inconclusive"))
    rest = (1, 1, 0, 0, None, None, None, "fail", ("\\x1b[2J\\ud800",), True)
    judge.findings.append(InvariantFinding("swap_consistent", "pairwise", "", *rest))
"""


def test_summary_lists_invariants_and_counterexamples(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(OWN_JUDGE)
    pytester.makepyfile(ASKING + FINDING)
    result = run_pytest(pytester)
    result.assert_outcomes(passed=1)
    message = [" ".join(text.split()) for text in result.outlines if text]
    start = next(number for number, text in enumerate(message) if "= distract =" in text)
    assert message[start + 2 : start + 7] == [
        "decision invariant of violated rate % bounds % threshold %",
        "inconclusive distractor_invariant pairwise/assertiveness 3 of 40 7.5 2.1–18.3 10.0 1 invalid, 5 excluded",
        "fail swap_consistent pairwise counterexample found in 1 example",
        "smallest changes that flip a verdict:",
        r"swap_consistent pairwise: \x1b[2J\ud800",
    ]


def test_xdist_judges_each_request_once_and_prints_one_summary(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makeconftest(OWN_JUDGE)
    file = f"""{ASKING}
from distract.core import registry
from distract.judging.orders import ask_in_orders

@pytest.mark.parametrize("number", ORDER)
def test_overlapping_batches(judge, number):
    protocol = registry.get_protocol("pairwise")
    judge.run_all([ask_in_orders(protocol, compared(n % 6)) for n in range(number, number + 3)])

@pytest.mark.distract
def test_left_out(judge):
    raise AssertionError
"""
    orders = {"test_one": "range(6)", "test_two": "(5, 4, 3, 2, 1, 0)", "test_three": "(3, 0, 5, 2, 4, 1)"}
    files = {name: file.replace("ORDER", order) for name, order in orders.items()}
    pytester.makepyfile(**files, test_found=ASKING + FINDING)
    pytester.mkdir("inner")
    plugins = ("no:hypothesispytest", "no:pytest_cov", "no:anyio", "no:cacheprovider")
    result = pytester.runpytest_subprocess("-n", "2", *(part for name in plugins for part in ("-p", name)), timeout=120)
    result.assert_outcomes(passed=19)
    contents = (pytester.path / "asked").read_text().split()
    assert len(contents) == len(set(contents)) == 12
    (spent,) = [text for text in result.outlines if text.startswith("judge ")]
    assert spent == r"judge own [red]\x1b[31m: 12 calls made, 98 saved by the store; 120 tokens in, 0 out"
    assert sum("= distract =" in text for text in result.outlines) == 1
    assert sum("inconclusive  distractor_invariant" in text for text in result.outlines) == 1
    left_out = "distract: 3 tests that call a judge were deselected; run them with --judge NAME or -m distract"
    assert left_out in result.outlines
    assert [path.name for path in pytester.path.rglob("*.sqlite")] == ["replies.sqlite"]


@each("option, expected", ("--judge", "the name of a judge"), ("--distract-store", "the path of a file"))
def test_empty_option_is_a_usage_error(pytester: pytest.Pytester, option: str, expected: str) -> None:
    pytester.makepyfile(MARKED)
    result = run_pytest(pytester, option, "")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option}: expected {expected}, found nothing"])


def test_one_judge_per_test_keeps_no_files_open(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
import os
import pytest
from distract.judging.judge import Judge

@pytest.fixture
def judge(distract_store):
    assert len(os.listdir("/proc/self/fd")) < OPEN + 15
    return Judge.open("planted:fair", store=distract_store)

OPEN = len(os.listdir("/proc/self/fd"))
""")
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the system does not list open files")
    pytester.makepyfile(f"""{ASKING}
@pytest.mark.parametrize("number", range(20))
def test_it(judge, number):
    judge.judgments(compared(number % 3))
""")
    result = run_pytest(pytester)
    result.assert_outcomes(passed=20)
    assert "judge planted:fair: 6 calls made, 34 saved by the store" in result.outlines


def test_failing_judge_fixture_is_one_line(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
import pytest
from distract.judging.judge import Judge

@pytest.fixture
def judge():
    return Judge.open("planted:nobody")
""")
    pytester.makepyfile("def test_it(judge):\n    pass\n")
    result = run_pytest(pytester)
    result.assert_outcomes(errors=1)
    assert "Traceback" not in join_lines(result)
    result.stdout.fnmatch_lines(["unknown judge 'planted:nobody'; did you mean*"])
