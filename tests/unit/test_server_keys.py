"""Test keys: each goes to its own server only, and no output shows one."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from builders import error_line
from command_result import CommandResult, Run
from loopback import CHAT, Answer, FakeServer, ReceivedRequest, completion, refusal, token
from loops import each
from test_server_backend import ask, backend, words

from distract.core.errors import DistractError, UsageError
from distract.core.loop import answer
from distract.core.records import Message, Reply, Request
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.catalogue import catalogue
from distract.models.opener import open_judge, open_models, resolve
from distract.models.options import Options
from distract.models.server.addresses import OPENAI
from distract.models.server.backend import OpenAI
from distract.models.server.secrets import MARK

openai = pytest.importorskip("openai")

KEY = "sk-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1-WXYZ"
SHOWN = f"{KEY[:8]}{'*' * 28}{KEY[-4:]}"
PASSWORD = "pass-word"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def is_shown(text: str) -> bool:
    return KEY[-4:] in text or any(KEY[start : start + 12] in text for start in range(len(KEY) - 11))


def replies(url: str, *requests: Request, **more: Any) -> list[Reply]:
    return ask(backend(url, **{"backoff": 0.0, "attempts": 2, "concurrency": 1, **more}), *requests)


def split_content(*texts: str) -> dict[str, Any]:
    data = completion(None)
    data["choices"][0]["message"]["content"] = [{"type": "text", "text": text} for text in texts]
    return data


ECHOES: list[Answer | dict[str, Any]] = [
    completion(f"Your key is {KEY}!"),
    completion(f"Your key is {KEY[5:20]}!"),
    completion(f"Your key is {SHOWN}!"),
    completion(KEY),
    split_content("Your key is ", KEY[:10], KEY[10:]),
    completion(None, refusal=f"I do not like {KEY}."),
    completion("", finish=KEY),
    completion("x", finish=KEY),
    completion("x", reasoning_content=KEY, tool_calls=[{"function": {"name": KEY, "arguments": KEY}}]),
    Answer(json.dumps(completion(KEY)).replace("proj", "pr\\u006fj").encode()),
    Answer(json.dumps({KEY: KEY, "choices": [KEY]}).encode()),
    Answer(f"<html>{KEY}".encode()),
    refusal(400, f"violates our content policy: {KEY}"),
    refusal(400, KEY, code=KEY, param=KEY, type=KEY),
    refusal(403, f"your input was flagged: {SHOWN}"),
    Answer({"detail": [{"loc": [KEY], KEY: SHOWN}]}, 422),
    Answer({"error": KEY}, 500),
    Answer([KEY], 500),
    Answer(f"upstream said {KEY} {SHOWN}".encode(), 502),
    Answer({}, 429, {"retry-after": KEY, "retry-after-ms": KEY}),
    Answer({}, 307, {"location": f"http://{KEY}@h/{KEY}"}),
    Answer(b"{}", headers={"content-encoding": KEY}),
    Answer({"error": {"message": "a" * 190 + KEY}}, 400),
]


@pytest.mark.parametrize("echo", ECHOES)
def test_echoed_key_reaches_neither_reply_nor_store(echo: Answer | dict[str, Any], tmp_path: Path) -> None:
    class Patient(FakeServer):
        """Answers the odd request after the fine one, because a server without any valid answer would end the run."""

        async def answer(self, request: ReceivedRequest) -> Answer:
            is_odd = request.path == CHAT and request.content == "odd"
            while is_odd and not any(one.content == "fine" for one in self.chats):
                await asyncio.sleep(0.001)
            return await super().answer(request)

    with Patient(lambda request: echo if request.content == "odd" else completion("fine")) as server:
        model = OpenAI("m", base_url=server.url, backoff=0.0, attempts=2, concurrency=2)
        with Store(tmp_path / "s", model.identity) as store:
            replies = answer([words("odd"), words("fine")], {"judge": (model, store)}, {}, Tally())
        assert {one.headers["authorization"] for one in server.chats} == {f"Bearer {KEY}"}
    assert not is_shown(repr(replies))
    assert replies[1].text == "fine"
    assert not any(is_shown(path.read_bytes().decode("latin-1")) for path in tmp_path.iterdir())


@each(
    "probed",
    refusal(401, f"Incorrect API key provided: {KEY}"),
    refusal(401, f"Incorrect API key provided: {SHOWN}"),
    refusal(404, f"no model for {KEY}"),
    refusal(400, KEY),
    Answer(KEY.encode(), 500),
    Answer({"error": {"message": "", "code": KEY}}, 402),
)
def test_no_server_message_shows_a_key(probed: Answer) -> None:
    class Named(FakeServer):
        async def answer(self, request: ReceivedRequest) -> Answer:
            names = [{"id": KEY, "owned_by": KEY}, {"id": f"{SHOWN}", "owned_by": "x"}]
            return Answer({"data": names}) if request.path == "/v1/models" else await super().answer(request)

    named = Named(lambda request: completion("x"), probed=lambda request: probed)
    with named as server, pytest.raises(DistractError) as error:
        replies(server.url, words("x"))
    assert not is_shown(str(error.value))


def test_key_of_another_server_is_scrubbed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRACT_API_KEY", "sk-other-0123456789abcdef")
    OpenAI("m", base_url="https://other.example/v1", key_names=("DISTRACT_API_KEY",))
    with FakeServer(lambda request: completion("so sk-other-0123456789abcdef it is")) as server:
        (reply,) = replies(server.url, words("x"))
    assert reply.text == f"so {MARK} it is"


@each("dummy", "none", "EMPTY")
def test_dummy_key_is_not_scrubbed(dummy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", dummy)
    with FakeServer(lambda request: completion(f"It is {dummy}.")) as server:
        assert replies(server.url, words("x"))[0].text == f"It is {dummy}."


def test_verdicts_by_probability_do_not_depend_on_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [token("So "), token(KEY[:9]), token(KEY[9:]), token(" [["), token("A", {"A": 0.6, "B": 0.2, "C": 0.1})]
    message = "".join(piece["token"] for piece in pieces) + "]]"

    def free(received: ReceivedRequest) -> dict[str, Any] | Answer:
        if "continue_final_message" in received.body:
            return refusal(400, "Unrecognized request argument supplied: continue_final_message")
        return completion(message, logprobs=[*pieces, token("]]")])

    request = Request((Message("user", "x"),), choices=("A", "B", "C"), prefill="[[")
    results = []
    for key in (KEY, "none"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with FakeServer(free, owner="someone", probed=free) as server:
            results += replies(server.url, request)
    assert results[0].probabilities == results[1].probabilities == pytest.approx((2 / 3, 2 / 9, 1 / 9))
    assert (results[0].text, results[1].text) == (f"So {MARK} [[A]]", message)


def test_run_store_and_tables_show_no_key(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRACT_API_KEY", KEY)

    def chat(request: ReceivedRequest) -> dict[str, Any]:
        keys = f"{request.headers['authorization']} {SHOWN} {KEY[3:18]}"
        return completion(f"{keys}: more words than before. Rating: [[5]]")

    with FakeServer(chat, owner="someone", probed=chat) as server:
        name = f"{server.url}#m"
        options = ["--attack", "severity-1", "--limit", "2", "--out", tmp_path / "run", "--store", tmp_path / "s"]
        done = run("attack", "--judge", name, "--generator", name, *options)
        report = run("check", tmp_path / "run")
        assert {request.headers["authorization"] for request in server.asked} == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(MARK in path.read_text("utf-8") for path in files if path.name == "rewrites.jsonl")
    for text in (done.out, done.err, report.out, report.err, *(path.read_bytes().decode("latin-1") for path in files)):
        assert not is_shown(text)


ACCOUNT = {"OPENAI_ORG_ID": "org-secret", "OPENAI_PROJECT_ID": "proj-secret"}
OTHERS = {
    "OPENAI_ADMIN_KEY": "sk-admin-secret",
    "OPENAI_WEBHOOK_SECRET": "hook-secret",
    "OPENAI_CUSTOM_HEADERS": "X-Custom: header-secret",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/secret",
}


def test_openai_secrets_go_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ACCOUNT, **OTHERS}.items():
        monkeypatch.setenv(name, value)
    with FakeServer(lambda request: completion("x")) as server:
        replies(server.url, words("x"))
        assert {request.path for request in server.asked} == {CHAT, "/v1/models", "/tokenize"}
        assert "secret" not in repr([(request.headers, request.raw) for request in server.asked])


def headers_for(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The headers that the HTTP client of a server sends with every call."""
    headers: list[dict[str, str]] = []
    client = openai.DefaultAsyncHttpxClient

    def noted(**more: Any) -> Any:
        headers.append(more["headers"])
        return client(**more)

    monkeypatch.setattr(openai, "DefaultAsyncHttpxClient", noted)
    OpenAI("m", base_url=url).open().close()
    return headers[0]


def test_account_is_sent_only_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ACCOUNT, **OTHERS}.items():
        monkeypatch.setenv(name, value)
    headers = headers_for(OPENAI, monkeypatch)
    assert (headers["OpenAI-Organization"], headers["OpenAI-Project"]) == ("org-secret", "proj-secret")
    assert headers["Authorization"] == f"Bearer {KEY}"
    for url in ("https://api.openai.com.evil.example/v1", "https://openai.com/v1", "https://h/api.openai.com/v1"):
        assert "secret" not in repr(headers_for(url, monkeypatch))
    monkeypatch.setenv("OPENAI_ORG_ID", "org\n")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "two words")
    with pytest.raises(UsageError, match="OPENAI_PROJECT_ID holds characters that no id has"):
        OpenAI("m").open()


def own_options(tmp_path: Path, text: str) -> Options:
    """Options with a catalogue of one judge, ``mine``, behind a server."""
    (tmp_path / "own.toml").write_text(f'[mine]\nmodel = "m"\nengine = "openai"\n{text}\n')
    return Options(catalogue=tmp_path / "own.toml")


@each(
    "entry, allowed, message",
    ('key = "MY_API_KEY"', "", ""),
    ('key = "AWS_SECRET_ACCESS_KEY"', "", "only variables that end in _API_KEY are sent"),
    ('key = "HOME"', "OTHER", "only variables that end in _API_KEY are sent"),
    ('key = "API_KEY_FILE"', "", "only variables that end in _API_KEY are sent"),
    ('key = "AWS_SECRET_ACCESS_KEY"', "OTHER, AWS_SECRET_ACCESS_KEY", ""),
    ('key = "OPENAI_API_KEY"', "", "that is the key of api.openai.com"),
    ('key = "ANTHROPIC_API_KEY"', "", "that is the key of api.anthropic.com"),
    ('key = "OPENAI_API_KEY"', "OPENAI_API_KEY", ""),
)
def test_catalogue_sends_keys_only_to_its_own_servers(
    entry: str, allowed: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRACT_ALLOW_KEYS", allowed)
    options = own_options(tmp_path, f'base_url = "https://evil.example/v1"\n{entry}')
    name = entry.split('"')[1]
    if not message:
        monkeypatch.setenv(name, KEY)
        note, price = open_models({"judge": "mine"}, options).notes
        assert price.startswith("price unknown: mine; ")
        assert note == f"mine: {options.catalogue} sends the key in {name} to https://evil.example/v1"
        return
    refused = error_line(UsageError, open_judge, "mine", options)
    assert message in refused
    assert f"mine: its catalogue sends {name} to https://evil.example/v1, but" in refused
    assert refused.endswith(f"allow it with DISTRACT_ALLOW_KEYS={name} in the environment")


@each("name, key", ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"), ("gpt-4o", "OPENAI_API_KEY"))
def test_keys_of_built_in_judges_go_to_their_own_servers(name: str, key: str) -> None:
    assert resolve(name, Options(), catalogue()).keys == (key,)


def test_redefined_built_in_name_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        '["LLAMA-3.3-70b"]\nengine = "openai"\nmodel = "x"\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[mine]\nengine = "openai"\nmodel = "y"\nbase_url = "http://127.0.0.1:9/v1"\naliases = ["gpt-4"]\n'
    )
    options = Options(catalogue=path)
    changed = f"llama-3.3-70b is redefined by {path}, from meta-llama/Llama-3.3-70B-Instruct to x"
    assert open_models({"judge": "llama-3.3-70b"}, options).notes == (changed,)
    (note,) = open_models({"judge": "gpt-4"}, options).notes
    assert note.startswith(f"gpt-4 is redefined by {path}, from ")
    assert open_models({"judge": "mine", "generator": "mine"}, options).notes == ()
    for name in ("openai:gpt-4", "gpt-4-0613"):  # only its alias is gone
        assert "redefined" not in str(open_models({"judge": name}, options).notes)


def assert_no_password(done: CommandResult) -> None:
    assert done.code == 2
    assert PASSWORD not in done.out + done.err


@pytest.mark.parametrize(
    "address",
    [
        f"https://user:{PASSWORD}@h/v1",
        f"https://user:p@ss:{PASSWORD}@h:99999/v1",
        f"https://user:{PASSWORD}/x@h/v1",
        f"user:{PASSWORD}@h",
        f"//user:{PASSWORD}@h/v1",
        f"https:/user:{PASSWORD}@h/v1",
        f"https:user:{PASSWORD}@h/v1",
        f"https://user:{PASSWORD}@[::1/v1",
        f"HTTPS://{PASSWORD}@h/v1",
        f"https://h/v1?key={PASSWORD}",
    ],
)
def test_address_password_appears_in_no_message(
    address: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*arguments: object) -> None:
        assert_no_password(run("attack", *arguments))

    check("--judge", "openai:m", "--base-url", address)
    check("--judge", "planted:fair", "--base-url", address)
    for name in (address, f"{address}#m"):
        check("--judge", name)
        check("--judge", name, "--dtype", "float32")
        check("--judge", "planted:fair", "--generator", name, "--attack", "prolixity")
    options = own_options(tmp_path, f'base_url = "{address}"')
    assert PASSWORD not in error_line(UsageError, open_judge, "mine", options)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    check("--judge", "openai:m")
    assert not any(PASSWORD in path.read_text("latin-1") for path in Path().rglob("*") if path.name == "run.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("attack", "--judge", f"openai:https://u:{PASSWORD}@h/v1"),
        ("attack", "--judge", f"transformers:https://u:{PASSWORD}@h/v1"),
        ("attack", f"https://u:{PASSWORD}@h/v1"),
        ("attack", "--data", f"https://u:{PASSWORD}@h/v1"),
        ("list", f"https://u:{PASSWORD}@h/v1"),
        ("check", f"https://u:{PASSWORD}@h/v1"),
    ],
)
def test_misplaced_address_loses_its_password_in_the_message(arguments: tuple[str, ...], run: Run) -> None:
    assert_no_password(run(*arguments))


@each(
    "proxy",
    f"http://user:{PASSWORD}@127.0.0.1:9",
    f"http://user:p@s:{PASSWORD}@127.0.0.1:99999",
    f"ftp://user:{PASSWORD}@h",
    f"http://user:{PASSWORD}\n@h",
    f"socks5://user:{PASSWORD}@127.0.0.1:9",
)
def test_proxy_password_appears_in_no_message(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    with pytest.raises(DistractError) as error:
        replies("https://127.0.0.2:9/v1", words("x"))
    assert PASSWORD not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_proxy_that_repeats_its_password_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy(FakeServer):
        async def answer(self, request: ReceivedRequest) -> Answer:
            return Answer({})

        async def _send(self, answer: Answer, reader: Any, writer: Any) -> bool:
            writer.write(f"HTTP/1.1 407 wrong {PASSWORD}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
            return False

    with Proxy(lambda request: completion("x")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:{PASSWORD}@127.0.0.1:{proxy.port}")
        with pytest.raises(DistractError, match=r"the proxy answers 407 \(2 attempts\)"):
            replies("https://judge.example/v1", words("x"))
        assert [request.method for request in proxy.asked] == ["CONNECT", "CONNECT"]
