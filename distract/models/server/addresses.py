"""Parse addresses of servers into the canonical form under which replies are stored, or raise a one-line error.

An address from the command line, a judge's name or a catalogue is passed to libraries that may raise any exception for
an odd one. So only the forms that all of them accept are allowed: printable ASCII, with a host of labels
or an IP address.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from distract.core.errors import UsageError

OPENAI = "https://api.openai.com/v1"
NO_SECRETS = "the server's address must not hold a user, a password or a query: keys come from the environment only"
PORTS = {"http": 80, "https": 443}
_LONGEST, _LONGEST_HOST = 2000, 253
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_EXAMPLE = "expected one such as http://127.0.0.1:8000/v1"


def parse_address(address: str) -> SplitResult:
    """Parts of a server's address, without surrounding blanks, default port or trailing slash."""
    address = address.strip()
    if not re.fullmatch(r"[!-~]*", address) or len(address) > _LONGEST:
        raise UsageError(
            "the server's address cannot be read: it is too long, or holds blanks or characters outside ASCII "
            f"(write a host such as bücher.example as xn--bcher-kva.example); {_EXAMPLE}"
        )
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError(f"the server's address cannot be read; {_EXAMPLE}") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(NO_SECRETS)
    if "," in address:
        raise UsageError(f"expected one server's address and not several; {_EXAMPLE}")
    if parts.scheme not in PORTS:
        raise UsageError(f"the server's address does not begin with http or https; {_EXAMPLE}")
    # Brackets are only for IPv6; resolvers accept nothing else in them.
    if not _is_host(host) or port == 0 or ("[" in parts.netloc) != (":" in host):
        raise UsageError(f"the server's address has no valid host name; {_EXAMPLE}")
    netloc = f"[{host}]" if ":" in host else host
    netloc += "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return parts._replace(netloc=netloc, path=parts.path.rstrip("/"), query="", fragment="")


def parse_addresses(text: str) -> list[str]:
    """Canonical addresses of the servers in a list with commas, each once."""
    addresses = [parse_address(part).geturl() for part in text.split(",")]
    if twice := next((one for one in addresses if addresses.count(one) > 1), ""):
        raise UsageError(f"the server {twice} is named twice; name it once")
    if len(addresses) > 1 and any(urlsplit(one).hostname == urlsplit(OPENAI).hostname for one in addresses):
        raise UsageError("OpenAI's own server shares no judge with others, which would get its key: name it alone")
    return addresses


def _is_host(host: str) -> bool:
    try:
        return not getattr(ipaddress.ip_address(host), "scope_id", None)
    except ValueError:
        labels = host.removesuffix(".").split(".")
        # A name that ends in a number would have to be an IPv4 address.
        return len(host) <= _LONGEST_HOST and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def are_near(servers: str) -> bool:
    """Whether all servers of a judge are on this machine."""
    return all(is_near(urlsplit(one).hostname or "") for one in servers.split(",") if one)


def is_near(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
