"""The pytest plugin: fixtures ``judge`` and ``distract_store``, the marker ``distract``, and a summary of the judges.

Every pytest in an environment with distract loads this module, so it imports nothing but pytest and a little of the
standard library; the engine comes with the first fixture that needs it. It knows no invariant and no protocol.

A test with ``@pytest.mark.distract`` calls a model and is left out unless it is asked for: by ``--judge NAME``, by a
``-m`` expression in which ``distract`` occurs, or by its own node id (``file.py::test_x``). Any fixture whose value is
a ``Judge`` is counted, whatever its name; it is closed at the end of the session, or when nobody holds it any more.
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
    from distract.core.project import Project
    from distract.core.usage import Tally
    from distract.judging.findings import InvariantFinding
    from distract.judging.judge import Judge

NO_JUDGE = (
    'no judge is named: run pytest with --judge NAME, set judge = "NAME" under [tool.distract] in pyproject.toml, or '
    "write a fixture called judge in conftest.py"
)


_Numbers = tuple[str, "Tally", "list[InvariantFinding]"]
"""A judge's name, what it was asked, and what was found; these grow while it is used."""


class _Session:
    """What one session has come to know; under xdist a worker's, and the sum of all in the process that starts them."""

    def __init__(self) -> None:
        # Not the judges themselves: a fixture may make one for each test, and each keeps files open.
        self.judges: list[tuple[weakref.ref[Judge], _Numbers]] = []
        self.documents: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.left_out = 0
        self.lost = 0


_SESSION = pytest.StashKey[_Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--judge`` and ``--distract-store``."""
    group = parser.getgroup("distract", "distract: how robust a judge is")
    group.addoption(
        "--judge",
        dest="distract_judge",
        metavar="NAME",
        help="The judge of the fixture `judge` (see `distract list`); runs the tests that are marked distract.",
    )
    group.addoption(
        "--distract-store",
        dest="distract_store",
        metavar="FILE",
        help="The store of its replies (default: .distract/replies.sqlite in the current folder, as for commands).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    for option, wanted in (("judge", "the name of a judge"), ("store", "the path of a file")):
        given = config.getoption(f"distract_{option}")
        # As from an empty variable: to leave all tests of the judge out would be a green build.
        if given is not None and not given.strip():
            flag = "--judge" if option == "judge" else "--distract-store"
            raise pytest.UsageError(f"{flag}: expected {wanted}, found nothing")
    config.addinivalue_line("markers", "distract: calls a judge; left out unless asked for (--judge NAME, -m distract)")
    config.stash[_SESSION] = _Session()


@pytest.fixture(scope="session")
def distract_store(pytestconfig: pytest.Config) -> Path:
    """The file in which judges keep their replies: one for all tests and for all of xdist's workers."""
    started = pytestconfig.invocation_params.dir
    if given := pytestconfig.getoption("distract_store"):
        return started / str(given)
    if set_there := _project(pytestconfig).store:
        return set_there
    from distract.core.store import DEFAULT_PATH

    return started / DEFAULT_PATH


@pytest.fixture(scope="session")
def judge(pytestconfig: pytest.Config, distract_store: Path) -> Judge:
    """The judge of ``--judge`` or of ``[tool.distract]``; a fixture of this name in conftest.py takes its place."""
    name = pytestconfig.getoption("distract_judge") or _project(pytestconfig).judge
    if not name:
        pytest.fail(NO_JUDGE, pytrace=False)
    from distract.judging.judge import Judge

    return Judge.open(name, store=distract_store)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Notice every judge that a fixture makes; one that cannot be made is one line."""
    try:
        value = yield
    except Exception as error:
        errors = sys.modules.get("distract.core.errors")
        if errors is not None and isinstance(error, errors.DistractError):
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        raise
    # Where the module was never imported there is no judge, and it is not imported to find that out.
    module = sys.modules.get("distract.judging.judge")
    if module is not None and isinstance(value, module.Judge):
        judges = request.config.stash[_SESSION].judges
        if not any(value is seen() for seen, _ in judges):
            judges.append((weakref.ref(value), (value.name, value.tally, value.findings)))
    return value


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that call a judge, unless they are asked for; last, so that other choices count first."""
    asked = config.getoption("distract_judge") or re.search(r"\bdistract\b", config.getoption("markexpr", "") or "")
    if asked:
        return
    out = {item for item in items if item.get_closest_marker("distract") and not _is_named(config, item)}
    if out:
        config.stash[_SESSION].left_out = len(out)
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the judges, which no fixture needs any more, and keep their numbers; a worker of xdist hands them on."""
    seen = session.config.stash[_SESSION]
    if seen.judges:
        from distract.testing.summary import document

        seen.documents += [document(*numbers) for _, numbers in seen.judges]
        from distract.core.errors import BackendError

        for held, _ in seen.judges:
            if (one := held()) is not None:
                try:
                    one.close()
                except BackendError as error:  # its store was deleted
                    seen.faults.append(str(error))
                    session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["distract"] = {"documents": seen.documents, "left_out": seen.left_out, "faults": seen.faults}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker of xdist has seen; each of them left out the same tests."""
    seen = node.config.stash[_SESSION]
    told = getattr(node, "workeroutput", {}).get("distract")
    if told is None:
        seen.lost += 1
    else:
        seen.documents += told["documents"]
        seen.faults += told["faults"]
        seen.left_out = max(seen.left_out, told["left_out"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the judges were asked and found to do, and which tests were left out."""
    seen = config.stash[_SESSION]
    if seen.documents:
        from distract.testing.summary import summary

        if lines := summary(seen.documents, seen.lost):
            terminalreporter.section("distract")
            for line in lines:
                terminalreporter.write_line(line)
    for fault in seen.faults:
        terminalreporter.write_line(f"distract: {fault}")
    if seen.left_out:
        one = seen.left_out == 1
        tests = "1 test that calls a judge was" if one else f"{seen.left_out} tests that call a judge were"
        run = f"run {'it' if one else 'them'} with --judge NAME or -m distract"
        terminalreporter.write_line(f"distract: {tests} left out; {run}")


def _is_named(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether a test was asked for by its own node id, or by its class's."""
    own = item.nodeid.partition("::")[2]
    for given in config.args:
        path, _, names = given.partition("::")
        within = names and (own == names or own.startswith((f"{names}::", f"{names}[")))
        if within and (config.invocation_params.dir / path).resolve() == item.path.resolve():
            return True
    return False


def _project(config: pytest.Config) -> Project:
    """What ``pyproject.toml`` in pytest's root folder sets."""
    from distract.core.project import FILE, Project, read_project

    path = config.rootpath / FILE
    return read_project(path) if path.is_file() else Project()
