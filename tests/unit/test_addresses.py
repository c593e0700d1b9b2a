"""Test server addresses: each has one normal form or fails in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from command_result import check_refusal
from hypothesis import example, given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import DataError, UsageError
from distract.models.catalogue import catalogue
from distract.models.names import resolve
from distract.models.options import Options
from distract.models.server.addresses import parse_address
from distract.models.server.backend import OpenAI

ODD = (
    "http://[x/v1",
    "http://[v1.a]/v1",
    "http://[fe80::1%eth0]/v1",
    "http://ｅｘａｍｐｌｅ/v1",
    "http://a℀b/v1",
    "http://bücher.example/v1",
    "http://a..b/v1",
    "http://.a/v1",
    "http://-a/v1",
    f"http://{'a' * 64}/v1",
    f"http://{'a.' * 150}b/v1",
    f"http://a/{'v' * 2000}",
    "http://a:0/v1",
    "http://a:65536/v1",
    "http://a:-1/v1",
    "http://a:１/v1",
    "http://999.1.1.1/v1",
    "http://a\tb/v1",
    "http://a\x00b/v1",
    "http://a\u202eb/v1",
    "http://a/\udcff",
    "http://a b/v1",
    "http:///v1",
    "http://",
    "ftp://a/v1",
    "a/v1",
)


@each("address", *ODD)
def test_malformed_address_is_one_line_everywhere(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        parse_address(address)
    assert len(str(error.value).splitlines()) == 1
    assert len(address) < 9 or address not in str(error.value)
    with pytest.raises(UsageError):
        OpenAI("m", base_url=address)
    with pytest.raises(UsageError):
        resolve("openai:m", Options(base_url=address), {})
    if address.startswith("http"):
        with pytest.raises(UsageError):
            resolve(f"{address}#m", Options(), {})
    file = tmp_path / "own.toml"
    written = "".join(f"\\U{ord(one):08x}" if one != "\udcff" else "\\u0000" for one in address)
    file.write_text(f'[a]\nmodel = "x"\nengine = "openai"\nbase_url = "{written}"\n', encoding="utf-8")
    with pytest.raises(DataError, match="base_url"):
        catalogue(file)


def test_malformed_address_exits_with_2(run: Any) -> None:
    for arguments in (
        ("http://[x/v1#m",),
        ("openai:m", "--base-url", "http://ｅｘａｍｐｌｅ/v1"),
        ("http://a..b/v1#m",),
    ):
        check_refusal(run("attack", "--judge", *arguments), "server's address")


@each(
    "address, form",
    (" HTTP://Example.COM:80/v1/ ", "http://example.com/v1"),
    ("https://h:443", "https://h"),
    ("https://h:80/", "https://h:80"),
    ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ("http://my_host-1.local./v1", "http://my_host-1.local./v1"),
    ("https://xn--bcher-kva.example/v1", "https://xn--bcher-kva.example/v1"),
)
def test_addresses_have_one_normal_form(address: str, form: str) -> None:
    assert parse_address(address).geturl() == form
    assert parse_address(form).geturl() == form


hosts = st.text("ab.-_:[]%@#?/\\\u2100\uff41é0159 \x00", max_size=20)


@given(st.text() | hosts.map("http://{}/v1".format))
@example("http://[::ffff:1.2.3.4]/v1")
@example("http://xn--a/v1")
def test_accepted_addresses_work_in_the_client(address: str) -> None:
    try:
        form = parse_address(address).geturl()
    except UsageError:
        return
    assert parse_address(form).geturl() == form
    openai = pytest.importorskip("openai")
    if re.search(r"xn--", form):
        return  # name resolution raises it
    assert openai.AsyncOpenAI(api_key="none", base_url=form).base_url.host


def test_addresses_are_parsed_in_one_place() -> None:
    folder = Path(__file__).parents[2] / "distract"
    readers = [path.name for path in folder.rglob("*.py") if "urlsplit" in path.read_text(encoding="utf-8")]
    assert readers == ["addresses.py"]
