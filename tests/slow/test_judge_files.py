"""Judge files against a server on this machine: words, JSON and a regular expression, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from loopback import FakeServer, ReceivedRequest, completion

pytest.importorskip("openai")
pytestmark = pytest.mark.usefixtures("no_keys")

PAIR = "[system]\nCompare.\n[user]\n{question}\n<1>{response_a}</1>\n<2>{response_b}</2>\n"
FILES = {
    "words": f"prompt = '''{PAIR}End with one line:\nWinner: {{A|B|tie}}'''\n",
    "json": """prompt = '''{question}\n<1>{response}</1>\nAnswer with {"score": 7, "reason": "..."}'''
[verdict]\njson = "$.score"\nscale = [0, 10]\npass_mark = 6\n""",
    "regex": f"prompt = '''{PAIR}'''\n[verdict]\nregex = 'verdict=(?P<verdict>first|second)'\n"
    "words = ['first', 'second']\n",
}
ANSWERS = {
    "words": "Both are fine, though.\n**Winner:** {}",
    "json": 'Here you are:\n```json\n{{"score": {}, "reason": "..."}}\n```',
    "regex": "<verdict={}>",
}
WORDS = {"words": ("A", "B"), "regex": ("first", "second")}


def answer(kind: str, request: ReceivedRequest) -> dict[str, Any]:
    """Prefer the longer response."""
    lengths = [len(part.split("<", 1)[0]) for part in request.content.split(">")[1::2]]
    verdict = str(min(10, lengths[0] // 60)) if kind == "json" else WORDS[kind][lengths[1] > lengths[0]]
    reply: dict[str, Any] = completion(ANSWERS[kind].format(verdict))
    return reply


@pytest.mark.parametrize("kind", [*FILES])
def test_judge_file_runs_on_a_server(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeServer(lambda request: answer(kind, request)) as server:
        head = f"model = 'openai:m'\nbase_url = '{server.url}'\nconcurrency = 4\ntemperature = 0.2\nmax_tokens = 77\n"
        Path("judge.toml").write_text(head + FILES[kind])
        tried = run("try", "judge.toml")
        assert tried.code == 0, tried.err
        assert "read: " in tried.out
        assert ANSWERS[kind].format(0)[:8] in tried.out
        body = server.chats[0].body
        assert body.get("max_tokens", body.get("max_completion_tokens")) == 77
        assert body["temperature"] == 0.2
        assert len(server.chats) == 2
        attacked = run("attack", "--judge", "judge.toml", "--limit", "6", "--out", "r", "--json")
        assert attacked.code == 0, attacked.err
        assert server.peak <= 4
    assert all(result["invalid"] == 0 for result in attacked.results)
    flips = [r for r in attacked.results if r["measure"] == "flip_rate" and r["attack"] == "prolixity"]
    assert flips[0]["n"] > 0
    assert flips[0]["value"] > 0.5
    run_file = json.loads(Path("r/run.json").read_text())
    assert run_file["parameters"]["identity"]["engine"] == "openai"
