"""The address of an etcd: where it listens, and how to be let in.

Comes in   `etcd://[user:password@]host:port[,host:port…][?cacert=…&cert=…&key=…&servername=…]`; or the endpoints as
           kube-apiserver's `--etcd-servers` has them: `http://host:port,http://host:port`
Goes out   an `EtcdAddress`, or an `EtcdAddressWrong` that says what is wrong with it

 1. `etcds` and `https`, or any option about certificates, mean TLS. Without `cacert` the system's authorities count.
 2. A password is in no text that is printed or logged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from mooring.store.etcd.errors import EtcdAddressWrong

DEFAULT_PORT = 2379

_HAS_TLS: Final = {"etcd": False, "http": False, "etcds": True, "https": True}
_OPTIONS: Final = ("cacert", "cert", "key", "servername")
_WANTED: Final = "wanted one such as etcd://127.0.0.1:2379"


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """The certificates, as they are in the files; empty means not given."""

    authorities: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    """One or more endpoints (`host:port`) of the same etcd."""

    endpoints: tuple[str, ...]
    tls: EtcdTls | None = None
    user: str = ""
    password: str = field(default="", repr=False)


def parse_address(text: str) -> EtcdAddress:
    """Raises `EtcdAddressWrong`."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _HAS_TLS:
        raise EtcdAddressWrong(f"an etcd address cannot begin like {text[:20]!r}; {_WANTED}")
    rest, _, query = rest.partition("?")
    login, _, hosts = rest.rpartition("@")
    user, _, password = login.partition(":")
    if login and not (user and password):
        raise EtcdAddressWrong("an etcd address has a user and a password, or neither")
    endpoints = tuple(_endpoint(scheme, each) for each in hosts.split(","))
    return EtcdAddress(endpoints, _tls(scheme, query), unquote(user), unquote(password))


def _endpoint(scheme: str, text: str) -> str:
    host = text.strip().removeprefix(f"{scheme}://").removesuffix("/")
    if "://" in host:
        raise EtcdAddressWrong(f"the endpoints of an etcd all begin with {scheme}://, but there is {text!r}")
    # An IPv6 address has colons of its own, and stands in brackets.
    name, separator, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not separator:
        name, port = host, str(DEFAULT_PORT)
    if not name or "/" in name or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise EtcdAddressWrong(f"{text!r} is no endpoint of an etcd; {_WANTED}")
    return f"{name}:{port}"


def _tls(scheme: str, query: str) -> EtcdTls | None:
    try:
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
    except ValueError:
        raise EtcdAddressWrong(f"the options {query!r} of an etcd address cannot be read") from None
    for option in options:
        if option not in _OPTIONS:
            raise EtcdAddressWrong(f"an etcd address has no option {option!r}; there are {', '.join(_OPTIONS)}")
    if ("cert" in options) != ("key" in options):
        raise EtcdAddressWrong("an etcd address has a cert and a key, or neither")
    if not options and not _HAS_TLS[scheme]:
        return None
    return EtcdTls(
        authorities=_contents(options, "cacert"),
        certificate=_contents(options, "cert"),
        key=_contents(options, "key"),
        server_name=options.get("servername", ""),
    )


def _contents(options: dict[str, str], option: str) -> bytes:
    if option not in options:
        return b""
    try:
        return Path(options[option]).read_bytes()
    except OSError as error:
        raise EtcdAddressWrong(f"the file {options[option]} ({option} of the etcd address): {error.strerror}") from None
