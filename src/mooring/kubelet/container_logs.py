"""The endpoint `/containerLogs/<namespace>/<pod>/<container>` of a kubelet's port.

Input: a request with PodLogOptions as its query. Output: the log as a stream, or an error with the text of kubelet
v1.36.

 1. Only pods of nodes of this process have logs here.
 2. The secure port has authorized the request before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.well_known import TRUE_TEXTS
from mooring.client.errors import BadRequestError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import TimestampError, parse_rfc3339
from mooring.kubelet.runtime import LogRequest
from mooring.serving.pages import PageRequest, PageResponse, not_found, text

_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
PATH = "/containerLogs/"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def log_error(pod: Document, container: str, *, is_previous: bool) -> str:
    """Why the log cannot be read; empty if it can."""
    name, reported = pod["metadata"]["name"], _container_status_of(pod, container)
    subject = f'container "{container}" in pod "{name}"'
    if reported is None:
        return f"{subject} is not available"
    state = reported.get("state") or {}
    last = (reported.get("lastState") or {}).get("terminated") or {}
    if is_previous:
        return "" if last.get("containerID") else f"previous terminated {subject} not found"
    if state.get("running") is not None:
        return ""
    if state.get("terminated") is not None or last:
        has_id = (state.get("terminated") or {}).get("containerID") or last.get("containerID")
        return "" if has_id else f"{subject} is terminated"
    reason = (state.get("waiting") or {}).get("reason", "")
    return f"{subject} is waiting to start: {_WAITING.get(reason, reason)}"


def log_attempt(pod: Document, container: str, *, is_previous: bool) -> int:
    """The run whose log is meant: the reported one, or the one before (`is_previous`).

    While a container waits for its restart, both are the run that ended last, as in a kubelet.
    """
    reported = _container_status_of(pod, container) or {}
    state, attempt = reported.get("state") or {}, int(reported.get("restartCount", 0))
    has_run = state.get("running") is not None or state.get("terminated") is not None
    return attempt - 1 if is_previous and has_run else attempt


def _container_status_of(pod: Document, container: str) -> Document | None:
    status = pod.get("status") or {}
    return next(
        (
            container_status
            for field in _LISTS
            for container_status in status.get(field) or ()
            if container_status["name"] == container
        ),
        None,
    )


class LogSource(Protocol):
    """The owner of the containers."""

    def has_node(self, name: str) -> bool: ...

    async def logs(self, pod: Document, container: str, options: LogRequest) -> AsyncGenerator[bytes, None]: ...


@dataclass(frozen=True, slots=True)
class RunLogOptions:
    """PodLogOptions of a request."""

    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


async def container_logs_page(request: PageRequest, client: Client, kubelets: LogSource) -> PageResponse:
    parts = request.path.removeprefix(PATH).split("/")
    if len(parts) != 3 or not all(parts):
        return not_found()
    namespace, name, container = parts
    try:
        pod: Document = msgspec.json.decode(await client.get(POD, namespace, name))
    except NotFoundError:
        return text(f'pod "{name}" does not exist\n', 404)
    spec = pod.get("spec") or {}
    if not kubelets.has_node(spec.get("nodeName", "")):
        return text(f'pod "{name}" does not exist\n', 404)
    if not any(declared["name"] == container for field in _CONTAINERS for declared in spec.get(field) or ()):
        return text(f'container "{container}" not found in pod "{name}"\n', 404)
    try:
        return PageResponse(b"", stream=await kubelets.logs(pod, container, log_options(request)))
    except BadRequestError as error:
        return text(str(error), 400)


def log_options(request: PageRequest) -> RunLogOptions:
    """Raises `BadRequestError`."""
    since_time = _parameter(request, "sinceTime") or None
    if since_time is not None:
        try:
            parse_rfc3339(since_time)
        except TimestampError as error:
            raise BadRequestError(str(error)) from None
    return RunLogOptions(
        follows=_flag(request, "follow"),
        is_previous=_flag(request, "previous"),
        since_s=_number(request, "sinceSeconds", 1),
        since_time=since_time,
        has_timestamps=_flag(request, "timestamps"),
        tail_lines=_number(request, "tailLines", 0),
        limit_bytes=_number(request, "limitBytes", 1),
    )


def _parameter(request: PageRequest, name: str) -> str:
    return (request.query.get(name) or [""])[0]


def _flag(request: PageRequest, name: str) -> bool:
    return _parameter(request, name) in TRUE_TEXTS


def _number(request: PageRequest, name: str, least: int) -> int | None:
    text = _parameter(request, name)
    if not text:
        return None
    if not text.isdecimal() or int(text) < least:
        raise BadRequestError(f"{name}: found {text!r}, wanted a number of at least {least}")
    return int(text)
