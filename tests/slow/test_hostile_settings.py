"""Fuzz files of settings that come with a stranger's project: they run, ask, read and write nothing elsewhere."""

import json
import os
import re
import sys
from pathlib import Path
from random import Random

import click
import pytest
from command_result import CommandResult, Run
from fuzzer import Fuzz
from shard_runs import judge_shards

from distract.cli.command import list_options
from distract.cli.main import cli
from distract.cli.parameters import Option
from distract.cli.settings import list_keys
from distract.models.provider import known_settings
from distract.models.ranges import Choice, DataText, Flag, NumberRange, WholeRange

Events = list[tuple[str, str]]
_events: Events | None = None
"""What the interpreter does while a command runs: reading, writing, or an event by name; and a path or address."""

STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.getaddrinfo")
WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "sqlite3.connect")


def _record_event(event: str, arguments: tuple[object, ...]) -> None:
    if _events is None:
        return
    if event == "open" and isinstance(arguments[0], str | bytes):
        is_writing = int(str(arguments[2])) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        _events.append(("write" if is_writing else "read", os.path.realpath(os.fsdecode(arguments[0]))))
    elif event in STARTS or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        _events.append((event, str(arguments)))
    elif event in WRITES:
        _events.extend(("write", os.path.realpath(one)) for one in arguments if isinstance(one, str))


sys.addaudithook(_record_event)

JUDGED = "--judge planted:longer --limit 1 --store {out}/s --out {out}/r"
WRITTEN = "--limit 1 --out {out}/w.jsonl --generator"
LINES = {
    name: line.split()
    for name, line in {
        "attack": JUDGED, "consistency": f"{JUDGED} --sets 1", "leaderboard": f"{JUDGED} --draws 20",
        "meta": f"{JUDGED} --data tweakset", "gate": f"{JUDGED} --max-flip-rate 0.9 --generator rules",
        "rewrite": f"{WRITTEN} rules --store {{out}}/s", "make-pairs": f"{WRITTEN} openai:m --dry-run",
        "make-tweakset": f"{WRITTEN} openai:m --data p.jsonl --dry-run", "flips": "r", "report": "r", "card": "r",
        "try": "--judge planted:longer --store {out}/s", "check": "a.txt a.txt --store {out}/s", "compare": "r r",
        "explain": "r --store {out}/s", "merge": "1 2 --out {out}/m", "list": "judges", "demo": "--html {out}/d.html",
        "anchors make": "--judge planted:longer --limit 40 --size 20 --store {out}/s --out {out}/a",
        "anchors check": "a.json --store {out}/s",
    }.items()
}  # fmt: skip
"""A line of each command; a setting takes the place of its option."""
TARGETS = (
    "own.py", "own.py", "own.py", "own.py ", "own.py\u00a0", "judge.toml", "zero", "file", "link/d.jsonl", "..",
    "{home}/own.py", "{home}/d.jsonl", "../home/years.txt", "deep/../../home", "~/years.txt", "/dev/full", "/dev/zero",
    "/proc/self/environ", "evil.example:6379", "ray://evil.example:1", "https://evil.example/v1#m", "python:own:judge",
    "http://127.0.0.1/v1,http://evil.example/v1#m", "//evil.example/v1", "http://localhost/own.py", "new",
)  # fmt: skip
"""Code, files, links and servers."""
FORMS = (
    *["{}"] * 20, "./{}", "python:{}:judge", "table:{}", "native://{}", "hub:{}", "replay:{}", "openai:{}", "nli:{}",
    "{}:x", "{}#m", "{}?a=1", "prolixity+{}", "{}+null", "transformers:{}", "file://{}", "elo:k={}", "{}:k=1", "{},m",
)  # fmt: skip
BLANKS = ("", "", "", "", " ", "\t", "\u00a0", "\u200b", "\n", "\u3000")


def list_settings(name: str) -> list[Option]:
    command: click.Command | None = cli
    for part in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), part)
    assert command is not None
    return [*list_keys(command).values()]


HARMLESS = (Choice, DataText, Flag, NumberRange, WholeRange)


class Stranger:
    """A project with files and links of all kinds, beside a folder with the user's own."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.run, self.out, self.mark = run, folder / "out", folder / "mark"
        self.project, self.home = folder / "project", folder / "home"
        for one in (self.out, self.project, self.home, self.project / "deep"):
            one.mkdir()
        os.chdir(self.project)
        for number, shard in enumerate(judge_shards("consistency", 2), 1):
            shard.rename(str(number))
        for line in (f"attack {JUDGED}", "anchors make " + " ".join(LINES["anchors make"])):
            assert run(*line.replace("{out}/a", "a.json").replace("{out}/r", "r").format(out=folder).split()).code == 0
        code = f"from pathlib import Path\nPath({str(self.mark)!r}).touch()\ndef judge(prompt, a, b): return 'a'\n"
        for place in (self.home, self.project):
            for name in ("own.py", "own.py ", "own.py\u00a0", "years.txt", "a.txt"):
                (place / name).write_text(code if "py" in name else "{question} {response_a} {response_b}", "utf-8")
            (place / "judge.toml").write_text('model = "openai:m"\nbase_url = "https://evil.example"\nprompt = "x"\n')
            (place / "p.jsonl").write_text('{"prompt": "x", "constraints": []}\n')
            (place / "d.jsonl").write_bytes(Path("d.jsonl").read_bytes())
        for name, target in {"link": self.home, "file": self.home / "years.txt", "zero": Path("/dev/zero")}.items():
            (self.project / name).symlink_to(target)
        self.before = self.snapshot()

    def snapshot(self) -> dict[str, bytes]:
        """The content of each file, links followed."""
        paths = [path for place in (self.home, self.project) for path in place.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in paths if path.name not in ("distract.toml", "pyproject.toml")}

    def go(self, name: str, replaced: set[str], *more: object) -> tuple[CommandResult, Events]:
        """Run the line of a command without some of its options."""
        global _events
        words = list(LINES[name])
        for flag in replaced & {*words}:
            del words[words.index(flag) : words.index(flag) + 2]
        out = self.out / str(len([*self.out.iterdir()]))
        out.mkdir()
        events = _events = Events()
        try:
            return self.run(*name.split(), *[word.format(out=out) for word in words], *more), events
        finally:
            _events = None

    def write(self, random: Random, options: list[Option]) -> str:
        """Write a file of settings."""
        lines = []
        for option in options:
            target = random.choice(TARGETS).format(home=self.home)
            value = random.choice(FORMS).format(target).join((random.choice(BLANKS[:6]), random.choice(BLANKS)))
            text = json.dumps([value] if option.multiple and random.random() < 0.5 else value)
            key = random.choice([one.key for one in known_settings().values()])
            is_engine = option.setting.name == "model_options"
            lines.append(f"{option.setting.key} = {f'{{{key} = {json.dumps(value)}}}' if is_engine else text}\n")
        text, other, name = "".join(lines), *random.sample(("distract.toml", "pyproject.toml"), 2)
        (self.project / other).unlink(missing_ok=True)
        (self.project / name).write_text("[tool.distract]\n" * (name == "pyproject.toml") + text, "utf-8")
        return text

    def find_fault(self, events: Events, options: list[Option]) -> list[object]:
        """Find what a command has done that no such file may bring about."""
        places = [str(self.project / ".distract"), str(self.project)]
        allowed = tuple(places[: 1 + any(option.setting.writes for option in options)])
        mine = (str(self.home), "/dev/zero", "/dev/full", f"/proc/{os.getpid()}/environ")
        faults: list[object] = [self.mark] if self.mark.exists() else []
        for event, where in events:
            is_fine = not where.startswith(mine) if event == "read" else where.startswith((*allowed, str(self.out)))
            is_fine |= bool(re.match("/dev/null|.*/cache(/|$)|.*__pycache__", where))
            if not is_fine or event not in ("read", "write"):
                faults.append((event, where))
        now = self.snapshot()
        changed = {path: content for path, content in self.before.items() if now.get(path) != content}
        faults += [path for path in changed if not path.startswith(allowed)]
        for path, content in changed.items():
            Path(path).write_bytes(content)
        created = now.keys() - self.before.keys()
        for path in created:
            Path(path).unlink()
        return faults + [path for path in created if not path.startswith(allowed)]


@pytest.fixture
def stranger(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stranger:
    for name, value in {"HOME": "home", "DISTRACT_CACHE": "cache"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return Stranger(tmp_path, run)


def test_settings_of_a_stranger_run_ask_read_and_write_nothing_elsewhere(stranger: Stranger, fuzz: Fuzz) -> None:
    codes = []

    def check(random: Random) -> int:
        name = random.choice([*LINES])
        options = list_settings(name)
        able = [one for one in options if not isinstance(getattr(one.setting.kind, "each", one.setting.kind), HARMLESS)]
        options = random.sample(able or options, min(len(able or options), random.choice((1, 1, 1, 2))))
        text = stranger.write(random, options)
        os.chdir(random.choice(("deep", ".")) if "--judge" in LINES[name] else ".")
        ran, events = stranger.go(name, {one.opts[0] for one in options})
        os.chdir(stranger.project)
        codes.append(ran.code)
        assert (ran.code in (0, 1, 2, 3), "Traceback" in ran.err) == (True, False), (name, text, ran)
        assert stranger.find_fault(events, options) == [], (name, text, ran)
        return 1

    fuzz.each(1000, check)
    assert {0, 2} <= {*codes} or fuzz.only is not None


def test_whatever_an_option_opens_for_writing_is_declared(stranger: Stranger) -> None:
    with click.Context(cli) as context:
        assert {command for _, commands in list_options(context) for command in commands} <= LINES.keys()
    for name in LINES:
        for option in list_settings(name):
            for place in ("file", "new", "folder/new") * (not option.is_flag):
                path = stranger.out / f"{name} {option.setting.key} {place.replace('/', ' ')}" / place
                path.parent.mkdir(parents=True)
                if place == "file":
                    path.write_bytes(Path("d.jsonl").read_bytes())
                _, events = stranger.go(name, {option.opts[0]}, option.opts[0], path)
                written = {where for event, where in events if event == "write" and where.startswith(str(path.parent))}
                assert bool(option.setting.writes) >= bool(written), (name, option.opts, written)
