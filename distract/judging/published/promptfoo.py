"""Results of promptfoo, as JSON or JSON Lines: the verdict of each assertion on an output, one run per assertion.

A result has ``gradingResult.componentResults``: a list of ``{pass, score, reason, assertion: {type, metric?}}``. Swap
convention: none, an assertion sees one output. The protocol is the assertion's metric, else its type, numbered where a
test has several of one name; ``pass`` is the verdict, since only promptfoo knows the threshold of a score. An error of
the grader (``metadata.graderError``) is no verdict. The judge is the provider that grades, if the test names it, for
assertions that ask a model, else promptfoo; the data set is the description of the configuration, else the file.
Outputs that no assertion has graded, as after an error of the provider, are counted in a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from distract.core.printable import count
from distract.core.records import Case, Judgment
from distract.data.fields import Item
from distract.data.formats.logs import name_results, read_provider, read_result
from distract.data.tables import Table, open_table
from distract.judging.published import published_runs
from distract.judging.published.graded_responses import GradedResponse, assemble_runs, grade
from distract.judging.published.published_runs import PublishedRun

JUDGE = "promptfoo"
_JSON = re.compile(rb'\{\s*(?:"evalId":\s*(?:"[^"]*"|null),\s*)?"results":\s*\{\s*"version":\s*\d+,\s*"timestamp":')


def can_read(path: Path) -> bool:
    """Whether a file begins like JSON of promptfoo."""
    return _JSON.match(published_runs.head(path)) is not None


def is_result(value: Mapping[str, Any]) -> bool:
    """Whether an object is a line of promptfoo's JSON Lines."""
    return value.keys() >= {"promptIdx", "testIdx", "provider", "prompt"}


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the runs of files."""
    tables, ungraded = [open_table(path) for path in paths], Counter[str]()
    responses = [response for table in tables for response in _read_table(table, ungraded)]
    remarks = [f"not graded: {count(number, 'output')} ({reason})" for reason, number in ungraded.items()]
    return assemble_runs(responses, tables, remarks)


def _read_table(table: Table, ungraded: Counter[str]) -> Iterator[GradedResponse]:
    config = Item(table.header, table.where, 1)
    config = config.object(config.value.get("config") or {}, "config")
    data = config.name("description") if config.has("description") else Path(table.where).name
    for name, item in name_results(table):
        case = read_result(item, name)
        author = read_provider(item)
        grading = item.value.get("gradingResult")
        parts = grading.get("componentResults") if isinstance(grading, dict) else None
        if not parts:
            ungraded["the output failed" if item.has("error") else "no assertion"] += 1
            continue
        seen = Counter[str]()
        for part in item.object(grading, "gradingResult").items("componentResults"):
            assertion = part.object(part.value.get("assertion") or {}, "assertion")
            key = "metric" if assertion.has("metric") else "type"
            protocol = assertion.name(key) if part.has("assertion") else "assertion"
            seen[protocol] += 1
            protocol += f" {seen[protocol]}" if seen[protocol] > 1 else ""
            names = (_name_judge(item, part, assertion), protocol, data)
            yield GradedResponse(names, name, author, case if isinstance(case, Case) else None, _judge(part))


def _name_judge(item: Item, part: Item, assertion: Item) -> str:
    """The provider that an assertion asks; only those that ask one count tokens."""
    if not part.has("tokensUsed"):
        return JUDGE
    test = item.value.get("testCase")
    options = test.get("options") if isinstance(test, dict) else None
    for provider in (assertion.value.get("provider"), options.get("provider") if isinstance(options, dict) else None):
        name = provider.get("id") if isinstance(provider, dict) else provider
        if isinstance(name, str) and name.strip():
            return published_runs.check_name(name, Path(item.path), "provider")
    return JUDGE


def _judge(part: Item) -> Judgment:
    details, is_passed = part.value.get("metadata"), part.value.get("pass")
    words = part.value.get("reason") if part.has("tokensUsed") else None
    if isinstance(details, dict) and details.get("graderError"):
        return grade(None, words, failure="the grader failed")
    return grade(is_passed if isinstance(is_passed, bool) else None, words, failure="unreadable grade")
