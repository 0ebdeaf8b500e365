"""Errors of a store on etcd, from the code and the text of a failed call. Each text has the cause and a remedy.

   StoreError
   ├── EtcdAddressWrong             the address is invalid, or names a file that cannot be read
   ├── EtcdNotInstalled             the extra `etcd` is not installed
   ├── StoreUnreachable
   │   └── EtcdUnreachable          no answer; a retry can help
   │       └── EtcdTlsFailed        the TLS handshake failed
   ├── EtcdAuthenticationRefused    etcd rejects the user
   │   └── EtcdTokenExpired         a new login helps
   ├── EtcdCompacted, EtcdAhead     internal: the store raises `RevisionGone` or `RevisionAhead`
   ├── EtcdReplaced                 internal: another etcd, or one that was restored
   ├── EtcdRefused                  any other error of etcd
   └── WriteRefused
       └── EtcdFull                 the database is at its quota

1. etcd reports compacted, full and too large only in its text. Only these texts are parsed.
2. Whether a write was carried out is never derived from a text: `Endpoints` knows whether it was sent.
"""

from __future__ import annotations

from typing import Final

from mooring.store.interface import StoreBusy, StoreError, StoreUnreachable, ValueTooLarge, WriteRefused


class EtcdAddressWrong(StoreError):
    """The address of an etcd is invalid."""


class EtcdNotInstalled(StoreError):
    """The extra `etcd` is not installed."""


class EtcdUnreachable(StoreUnreachable):
    """No answer."""


class EtcdTlsFailed(EtcdUnreachable):
    """The handshake failed."""


class EtcdAuthenticationRefused(StoreError):
    """etcd rejects the user."""


class EtcdTokenExpired(EtcdAuthenticationRefused):
    """The login has expired."""


class EtcdRefused(StoreError):
    """etcd rejected the call."""


class EtcdCompacted(EtcdRefused):
    """The revision is compacted."""

    def __init__(self, message: str, compacted: int = 0) -> None:
        super().__init__(message)
        self.compacted = compacted  # 0: etcd did not report the revision


class EtcdRevisionAhead(EtcdRefused):
    """The revision is not reached yet."""


class EtcdReplaced(EtcdRefused):
    """It is not the etcd that was followed so far."""


class EtcdFull(WriteRefused):
    """The database has reached its quota."""


# Texts of etcd, and their errors and remedies; searched in this order.
_MEANINGS: Final[tuple[tuple[str, type[StoreError], str], ...]] = (
    ("required revision has been compacted", EtcdCompacted, ""),
    ("required revision is a future revision", EtcdRevisionAhead, ""),
    ("request is too large", ValueTooLarge, "; see --max-request-bytes of etcd"),
    ("received message larger than max", ValueTooLarge, "; see --max-request-bytes of etcd"),
    ("database space exceeded", EtcdFull, "; compact and defragment it, then `etcdctl alarm disarm`"),
    ("too many requests", StoreBusy, "; try again later"),
    ("invalid auth token", EtcdTokenExpired, ""),
    ("invalid user ID or password", EtcdAuthenticationRefused, "; correct the user and the password in the address"),
    ("user name is empty", EtcdAuthenticationRefused, "; put a user into the address: etcd://user:password@host:port"),
    ("permission denied", EtcdAuthenticationRefused, "; grant the user reading and writing of all keys"),
)
_TLS_SIGNS: Final = ("ssl", "handshake", "certificate")


def error_of_call(code: str, message: str, endpoint: str) -> StoreError:
    """The `StoreError` for the gRPC code and the text of a failed call."""
    where = f"etcd at {endpoint}"
    for text, kind, advice in _MEANINGS:
        if text in message:
            return kind(f"{where}: {message}{advice}")
    match code:
        case "UNAVAILABLE" if any(sign in message.lower() for sign in _TLS_SIGNS):
            return EtcdTlsFailed(f"{where}: no TLS connection: {message}; check cacert, cert and key of the address")
        case "UNAVAILABLE":
            return EtcdUnreachable(f"{where} cannot be reached: {message}")
        case "DEADLINE_EXCEEDED":
            return EtcdUnreachable(f"{where} did not answer in time: {message}")
        # The server stops, or fails within itself: another one may do better.
        case "UNKNOWN" | "INTERNAL" | "CANCELLED" | "ABORTED":
            return EtcdUnreachable(f"{where} broke off: {message} ({code})")
        case "UNAUTHENTICATED" | "PERMISSION_DENIED":
            return EtcdAuthenticationRefused(f"{where}: {message}; correct the user and the password in the address")
        case _:
            return EtcdRefused(f"{where}: {message} ({code})")


def copied(error: StoreError) -> StoreError:
    """A copy of an error for another waiter: a shared exception would collect their tracebacks."""
    return type(error)(*error.args)
