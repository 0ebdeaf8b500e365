"""What can go wrong on the way to a kubelet, in the words of kube-apiserver v1.36.

Comes in   an error of the network, or a kubelet's answer that is no success
Goes out   the `StatusError` to raise

 1. What the network says is told as Go tells it, because people search for these sentences.
 2. The name server that did not know a name is not told: we ask the system's resolver, which does not say.
"""

from __future__ import annotations

import os
import ssl

from mooring.apiserver.registry.refusals import internal, plain_error
from mooring.client.errors import BadRequestError, StatusError
from mooring.client.http_errors import error_of_answer

_NOT_TLS = "WRONG_VERSION_NUMBER"


def unreachable(location: str, error: Exception, address: str) -> StatusError:
    """`address` is where the connection went, once the name was looked up."""
    return plain_error(f'Get "{location}": {_words(error, address)}')


def redirected(location: str) -> StatusError:
    return plain_error(f'Get "{location}": redirects forbidden')


def refused(code: int, body: bytes, pod: str) -> StatusError:
    """What a kubelet answers instead of a log."""
    text = body.decode(errors="replace")
    if code == 500:
        return internal(text)
    if code == 400:
        return BadRequestError(text)
    error = error_of_answer(code, {}, body, method="", about=f"pods/log {pod}")
    # The kubelet's own words are in the log of who asks; clients get none of them.
    error.causes = ()
    error.details, error.has_details = {"name": pod, "kind": "pods/log"}, True
    return error


def _words(error: Exception, address: str) -> str:
    import aiohttp  # whoever asks here has it already; see `logs`

    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, TimeoutError):
        return f"dial tcp {address}: i/o timeout"
    # The library's own error of this kind is one in name only: what OpenSSL said is inside, or before.
    tls = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    if isinstance(tls, ssl.SSLError):
        reason = tls.reason or "handshake failure"
        is_plain = reason == _NOT_TLS
        words = reason.lower().replace("_", " ")
        return "http: server gave HTTP response to HTTPS client" if is_plain else f"tls: {words}"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return f"dial tcp {address}: connect: {os.strerror(error.os_error.errno).lower()}"
    if isinstance(error, OSError) and error.errno:
        return f"read tcp {address}: read: {os.strerror(error.errno).lower()}"
    return "EOF" if isinstance(error, aiohttp.ServerDisconnectedError) else str(error) or type(error).__name__
