"""The pytest plugin: fixtures ``judge`` and ``distract_store``, the marker ``distract``, and a summary of the judges.

pytest loads this module in every environment with distract, so it imports only pytest and a little of the standard
library; the first fixture that needs the engine imports it. A test marked ``distract`` calls a model and is deselected
unless you ask for it: with ``--judge NAME``, a ``-m`` expression that contains ``distract``, or its node id. Every
``Judge`` that a fixture returns appears in the summary, and is closed at the end of the session.
"""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from distract.core.usage import Tally
    from distract.judging.findings import InvariantFinding
    from distract.judging.judge import Judge
    from distract.studies.project import Project

NO_JUDGE = (
    'no judge: run pytest with --judge NAME, set judge = "NAME" under [tool.distract] in pyproject.toml, or define a '
    "fixture called judge in conftest.py"
)

_Numbers = tuple[str, "Tally", "list[InvariantFinding]"]
"""A judge's name, usage and findings; the last two grow while it is in use."""


class _Session:
    """The state of one session. Under xdist, each worker has its own, and the controller adds them up."""

    def __init__(self) -> None:
        # Weak references: a fixture may open a judge for each test, and each keeps files open.
        self.judges: list[tuple[weakref.ref[Judge], _Numbers]] = []
        self.documents: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.deselected = 0
        self.crashed = 0


_SESSION = pytest.StashKey[_Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--judge`` and ``--distract-store``."""
    group = parser.getgroup("distract", "distract: robustness of LLM judges")
    group.addoption(
        "--judge",
        dest="distract_judge",
        metavar="NAME",
        help="Judge for the fixture `judge` (see `distract list`); also runs tests marked distract.",
    )
    group.addoption(
        "--distract-store",
        dest="distract_store",
        metavar="FILE",
        help="File for its replies (default: .distract/replies.sqlite in the current folder, as for commands).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and register the marker."""
    for flag, option, expected in (
        ("--judge", "distract_judge", "the name of a judge"),
        ("--distract-store", "distract_store", "the path of a file"),
    ):
        value = config.getoption(option)
        # An unset shell variable leaves it blank; deselecting all tests of the judge would then pass the build.
        if value is not None and not value.strip():
            raise pytest.UsageError(f"{flag}: expected {expected}, found nothing")
    config.addinivalue_line(
        "markers", "distract: calls a judge; deselected unless you pass --judge NAME or -m distract"
    )
    config.stash[_SESSION] = _Session()


@pytest.fixture(scope="session")
def distract_store(pytestconfig: pytest.Config) -> Path:
    """The file in which judges keep replies, shared by all tests and xdist workers."""
    folder = pytestconfig.invocation_params.dir
    if path := pytestconfig.getoption("distract_store"):
        return folder / str(path)
    if configured := _project(pytestconfig).store:
        return configured
    from distract.core.store import DEFAULT_PATH

    return folder / DEFAULT_PATH


@pytest.fixture(scope="session")
def judge(pytestconfig: pytest.Config, distract_store: Path) -> Judge:
    """The judge that ``--judge`` or ``[tool.distract]`` names; define a fixture of this name to replace it."""
    name = pytestconfig.getoption("distract_judge") or _project(pytestconfig).judge
    if not name:
        pytest.fail(NO_JUDGE, pytrace=False)
    from distract.judging.judge import Judge

    return Judge.open(name, store=distract_store)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Record each judge that a fixture returns, and report a judge that cannot be opened in one line."""
    try:
        value = yield
    except Exception as error:
        errors = sys.modules.get("distract.core.errors")
        if errors is not None and isinstance(error, errors.DistractError):
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        raise
    # Without this module there is no judge, so do not import it to find out.
    module = sys.modules.get("distract.judging.judge")
    if module is not None and isinstance(value, module.Judge):
        judges = request.config.stash[_SESSION].judges
        if not any(value is reference() for reference, _ in judges):
            judges.append((weakref.ref(value), (value.name, value.tally, value.findings)))
    return value


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that call a judge unless asked for; last, so that other selections come first."""
    if config.getoption("distract_judge") or re.search(r"\bdistract\b", config.getoption("markexpr", "") or ""):
        return
    deselected = [item for item in items if item.get_closest_marker("distract") and not _is_named(config, item)]
    if deselected:
        config.stash[_SESSION].deselected = len(deselected)
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the judges and keep their numbers; an xdist worker passes them to the controller."""
    state = session.config.stash[_SESSION]
    if state.judges:
        from distract.core.errors import BackendError
        from distract.testing.summary import document

        for reference, numbers in state.judges:
            state.documents.append(document(*numbers))
            if (judge := reference()) is not None:
                try:
                    judge.close()
                except BackendError as error:  # its store was deleted
                    state.faults.append(str(error))
                    session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["distract"] = {"documents": state.documents, "deselected": state.deselected, "faults": state.faults}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the state of an xdist worker; all workers deselect the same tests."""
    state = node.config.stash[_SESSION]
    output = getattr(node, "workeroutput", {}).get("distract")
    if output is None:
        state.crashed += 1
    else:
        state.documents += output["documents"]
        state.faults += output["faults"]
        state.deselected = max(state.deselected, output["deselected"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the usage and findings of each judge, and how many tests were deselected."""
    state = config.stash[_SESSION]
    if state.documents:
        from distract.testing.summary import summary

        if lines := summary(state.documents, state.crashed):
            terminalreporter.section("distract")
            for line in lines:
                terminalreporter.write_line(line)
    for fault in state.faults:
        terminalreporter.write_line(f"distract: {fault}")
    if state.deselected:
        single = state.deselected == 1
        tests = "1 test that calls a judge was" if single else f"{state.deselected} tests that call a judge were"
        run = f"run {'it' if single else 'them'} with --judge NAME or -m distract"
        terminalreporter.write_line(f"distract: {tests} deselected; {run}")


def _is_named(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether the command line has the node id of a test or of its class."""
    own = item.nodeid.partition("::")[2]
    for argument in config.args:
        path, _, names = argument.partition("::")
        is_match = names and (own == names or own.startswith((f"{names}::", f"{names}[")))
        if is_match and (config.invocation_params.dir / path).resolve() == item.path.resolve():
            return True
    return False


def _project(config: pytest.Config) -> Project:
    """The settings in ``distract.toml`` or ``pyproject.toml`` of pytest's root folder."""
    from distract.studies.project import Project, find_in, read_project

    path = find_in(config.rootpath)
    return read_project(path) if path else Project(config.rootpath)
