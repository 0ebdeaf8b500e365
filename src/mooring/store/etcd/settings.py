"""The address and the limits of a store on etcd.

An address is `etcd://[user:password@]host:port[,host:port…][?cacert=…&cert=…&key=…&servername=…]`, or endpoints as in
kube-apiserver's `--etcd-servers`: `http://host:port,http://host:port`.

1. `etcds`, `https` and any option about certificates mean TLS. Without `cacert`, the system's authorities are used.
2. No text that is printed or logged contains a password.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from mooring.store.etcd.errors import EtcdAddressWrong
from mooring.store.memory import HISTORY_CHANGES_MAX, HISTORY_REPLACED_BYTES_MAX, WATCH_BUFFER_MAX

DEFAULT_PORT = 2379

_HAS_TLS: Final = {"etcd": False, "http": False, "etcds": True, "https": True}
_OPTIONS: Final = ("cacert", "cert", "key", "servername")
_WANTED: Final = "expected one such as etcd://127.0.0.1:2379"


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """The contents of certificate files; empty: not given."""

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
    endpoints = tuple(_endpoint(scheme, host) for host in hosts.split(","))
    return EtcdAddress(endpoints, _tls(scheme, query), unquote(user), unquote(password))


def _endpoint(scheme: str, text: str) -> str:
    host = text.strip().removeprefix(f"{scheme}://").removesuffix("/")
    if "://" in host:
        raise EtcdAddressWrong(f"the endpoints of an etcd all begin with {scheme}://, but there is {text!r}")
    # An IPv6 address is in brackets.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdLimits:
    """Limits of the mirror, timeouts, and the compaction interval. etcd limits the size of values."""

    # The history of the mirror. Older changes are read from etcd.
    changes_max: int = HISTORY_CHANGES_MAX
    replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX

    # Watches: one with more pending changes gets `RevisionGone`, and so does one that missed more than
    # `missed_changes_max` at its start.
    buffer_max: int = WATCH_BUFFER_MAX
    missed_changes_max: int = 100_000

    # Writes: further ones are refused (`StoreBusy`).
    waiting_writes_max: int = 10_000

    # Timeouts: of a call, and of all attempts of a call on all endpoints. The delay between two rounds of the endpoints
    # doubles.
    request_s_max: float = 5.0
    unreachable_s_max: float = 10.0
    retry_s: float = 0.05
    retry_s_max: float = 2.0

    # Records in one request while loading.
    loaded_records_max: int = 2_000

    # Revisions older than one interval are compacted, as in kube-apiserver; 0: never.
    compaction_interval_s: float = 300.0
