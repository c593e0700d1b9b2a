"""Guards for each folder of tests: unit tests stay light, and tests that CI must run are never skipped silently."""

import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

SECONDS = 3.0
"""Processor time of one unit test: three times what the longest takes on idle cores, since shared ones are slower."""

LOOP, LOOP_SECONDS = 300_000, 0.012
"""A loop and its processor time on those cores; where it takes longer, so may a test."""

IMPORTS = 20
"""Modules whose first import does not count towards the time of a test."""

STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
"""Audit events of the interpreter: each starts a process or becomes one."""

MAY_SKIP = (
    "root may write anything",
    "only GNU's C library",
    "the system does not list",
    "the time of all faults is up",
    "has no budget",
)
"""Skip reasons of some systems, whatever is installed; they are always accepted."""

_offences: list[str] | None = None


def folder(path: Path) -> str:
    """The folder of tests that a file lies in: unit, slow or published."""
    parts = path.relative_to(Path(__file__).parent).parts
    return parts[0] if len(parts) > 1 else ""


def _record_event(event: str, arguments: tuple[object, ...]) -> None:
    if _offences is None:
        return
    if event in STARTS:
        _offences.append(f"starts a process ({event})")
    elif event == "import" and arguments[0] == "torch":
        _offences.append("imports torch")


sys.addaudithook(_record_event)


def _watch(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a unit test that computes for long, imports torch or starts a process; more examples get more time."""
    global _offences
    if folder(item.path) != "unit":
        yield
        return
    _offences, begun, modules = [], time.process_time(), len(sys.modules)
    try:
        yield
        spent, offences = time.process_time() - begun, _offences
    finally:
        _offences = None
    is_drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    limit = SECONDS * (max(settings().max_examples / 10, 1) if is_drawn else 1)
    # The import of a library slows the first test that needs it, and that test depends on the selection.
    if spent > limit and len(sys.modules) - modules < IMPORTS and spent > limit * _measure_slowness():
        offences.append(f"computes for {spent:.1f} s, more than {limit:g} s")
    if offences:
        pytest.fail(f"belongs to tests/slow: it {' and '.join(dict.fromkeys(offences))}", pytrace=False)


def _measure_slowness() -> float:
    """The time of a loop now, relative to idle cores; at least 1."""
    begun, total = time.process_time(), 0
    for number in range(LOOP):
        total += number * number % 7
    return max((time.process_time() - begun) / LOOP_SECONDS, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    yield from _watch(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield from _watch(item)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a unit file that imports torch itself, because no single test would reveal it."""
    if {folder(item.path) for item in session.items} == {"unit"} and "torch" in sys.modules:
        raise pytest.UsageError("a file of tests/unit imports torch")


def _is_required(path: Path) -> bool:
    """Whether the caller declares that all requirements of this folder's tests are installed."""
    return os.environ.get("DISTRACT_PUBLISHED" if folder(path) == "published" else "DISTRACT_CI") == "1"


def _refuse(report: pytest.TestReport | pytest.CollectReport, path: Path) -> None:
    """Turn a skip into a failure if the test must run."""
    if not report.skipped or hasattr(report, "wasxfail") or not _is_required(path):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if any(one in reason for one in MAY_SKIP):
        return
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: may not be skipped here. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse(report, item.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Module):
        _refuse(report, collector.path)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests of published data ran, if any was collected."""
    ran, skipped = (
        sum("published/" in report.nodeid for kind in kinds for report in terminalreporter.getreports(kind))
        for kinds in (("passed", "failed"), ("skipped",))
    )
    if ran or skipped:
        terminalreporter.line(f"tests of published data: {ran} ran, {skipped} skipped")
