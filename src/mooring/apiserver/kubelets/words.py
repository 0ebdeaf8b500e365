"""Errors of requests to kubelets, in the words of kube-apiserver v1.36.

Input: a network error, or an answer of a kubelet without success. Output: the `StatusError` to raise.

1. The text of a network error is Go's, because people search for it.
2. A failed lookup does not name the DNS server: the system's resolver does not report it.
"""

from __future__ import annotations

from mooring.apiserver.registry.refusals import internal, plain_error
from mooring.client.errors import BadRequestError, StatusError
from mooring.client.http.errors import error_of_answer


def unreachable(location: str, text: str) -> StatusError:
    return plain_error(f'Get "{location}": {text}')


def redirected(location: str) -> StatusError:
    return plain_error(f'Get "{location}": redirects forbidden')


def error_of_response(code: int, body: bytes, pod: str) -> StatusError:
    """The error for a kubelet's answer that is not a log."""
    text = body.decode(errors="replace")
    if code == 500:
        return internal(text)
    if code == 400:
        return BadRequestError(text)
    error = error_of_answer(code, {}, body, method="", about=f"pods/log {pod}")
    # A client does not get the kubelet's own text.
    error.causes = ()
    error.details, error.has_details = {"name": pod, "kind": "pods/log"}, True
    return error
