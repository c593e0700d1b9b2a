"""Models of OpenAI and of any server with its interface."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.models.opener import OPENAI_KEY, OWN_KEY, check_address, resolve_server
from distract.models.options import Options, setting
from distract.models.provider import Entries, Provider, Target
from distract.models.ranges import WholeRange
from distract.models.server.addresses import parse_addresses


@dataclass(frozen=True)
class ServerOptions:
    """The settings of requests to a server."""

    base_url: str | None = None
    concurrency: int = 16
    timeout: float = 120.0
    same_as: str | None = None
    attempts: int = setting(6, "attempts per request", WholeRange(1, 1000))
    dry_run: bool = False


def _open(target: Target, options: ServerOptions) -> Backend:
    from distract.models.server.backend import OpenAI

    limits = {name: getattr(options, name) for name in ("concurrency", "timeout", "attempts", "same_as")}
    server = OpenAI(target.model, base_url=target.server, key_names=target.keys, name=target.name, **limits)
    if not options.dry_run:
        server.check_key()
    return server


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    model = name.removeprefix("openai:")
    check_address("openai", model)
    return resolve_server(model, options)


def _resolve_url(name: str, options: Options, entries: Entries) -> Target:
    addresses, _, model = name.partition("#")
    if not model or not all(address.partition("//")[2] for address in addresses.split(",")):
        # The message leaves out the name, which may hold a password.
        raise UsageError(
            "name the server's address, or several separated by commas, and, after #, the model, as in "
            "http://HOST:8000/v1#MODEL"
        )
    if "://" in model:
        raise UsageError("name all addresses before the #, separated by commas, and the model once")
    server = ",".join(parse_addresses(addresses))
    if options.base_url and ",".join(parse_addresses(options.base_url)) != server:
        raise UsageError("the judge's name already contains the server; remove --base-url")
    # OpenAI's key is sent only to OpenAI and to a server that the user named in its place.
    return Target("openai", model, server=server, keys=(OWN_KEY,))


openai = Provider(
    "openai",
    {
        "openai:MODEL": f"a model of OpenAI or, with --base-url, of any compatible server; the key is in {OPENAI_KEY}",
        "http(s)://HOST/v1#MODEL": "a model of an OpenAI-compatible server, or of several, separated by commas; the "
        f"key, if it needs one, is in {OWN_KEY}",
    },
    _open,
    prefix=("openai:", "http:", "https:"),
    options=ServerOptions,
    extra="openai",
    library="openai",
    resolve=lambda name, *more: (_resolve if name.startswith("openai:") else _resolve_url)(name, *more),
    title="an OpenAI-compatible server",
    place="is asked on a server",
)
