"""The page of logs: `/containerLogs/<namespace>/<pod>/<container>` on a kubelet's port, for the API server.

Comes in   a question, with PodLogOptions as its query
Goes out   the log as it comes; or a sentence and a code, as a kubelet answers

 1. Only pods of our nodes have logs here.
 2. Who may ask was decided before: this page is behind the secure port.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.client.errors import BadRequestError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import TimestampError, parse_rfc3339
from mooring.kubelet.runtime import LogRequest
from mooring.serving.pages import Answer, Question, not_found, text

_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
PATH = "/containerLogs/"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def why_no_log(pod: Document, container: str, *, is_previous: bool) -> str:
    """Empty if there is one."""
    name, told = pod["metadata"]["name"], _told(pod, container)
    who = f'container "{container}" in pod "{name}"'
    if told is None:
        return f"{who} is not available"
    state = told.get("state") or {}
    last = (told.get("lastState") or {}).get("terminated") or {}
    if is_previous:
        return "" if last.get("containerID") else f"previous terminated {who} not found"
    if state.get("running") is not None:
        return ""
    if state.get("terminated") is not None or last:
        has_id = (state.get("terminated") or {}).get("containerID") or last.get("containerID")
        return "" if has_id else f"{who} is terminated"
    reason = (state.get("waiting") or {}).get("reason", "")
    return f"{who} is waiting to start: {_WAITING.get(reason, reason)}"


def logged_attempt(pod: Document, container: str, *, is_previous: bool) -> int:
    """Whose log is meant: of the run that the status tells, or of the one before.

    Of a container that waits to be started again both are the run that ended last: so a kubelet has it.
    """
    told = _told(pod, container) or {}
    state, attempt = told.get("state") or {}, int(told.get("restartCount", 0))
    is_told_of = state.get("running") is not None or state.get("terminated") is not None
    return attempt - 1 if is_previous and is_told_of else attempt


def _told(pod: Document, container: str) -> Document | None:
    status = pod.get("status") or {}
    return next((each for field in _LISTS for each in status.get(field) or () if each["name"] == container), None)


class Kubelets(Protocol):
    """Who has the logs."""

    def has_node(self, name: str) -> bool: ...

    async def logs(self, pod: Document, container: str, options: LogRequest) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class AskedLog:
    """Which part of a log was asked for."""

    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


async def log_page(question: Question, client: Client, kubelets: Kubelets) -> Answer:
    words = question.path.removeprefix(PATH).split("/")
    if len(words) != 3 or not all(words):
        return not_found()
    namespace, name, container = words
    try:
        pod: Document = msgspec.json.decode(await client.get(POD, namespace, name))
    except NotFoundError:
        return text(f'pod "{name}" does not exist\n', 404)
    spec = pod.get("spec") or {}
    if not kubelets.has_node(spec.get("nodeName", "")):
        return text(f'pod "{name}" does not exist\n', 404)
    if not any(each["name"] == container for field in _CONTAINERS for each in spec.get(field) or ()):
        return text(f'container "{container}" not found in pod "{name}"\n', 404)
    try:
        return Answer(b"", stream=await kubelets.logs(pod, container, asked_log(question)))
    except BadRequestError as error:
        return text(str(error), 400)


def asked_log(question: Question) -> AskedLog:
    """Raises `BadRequestError`."""
    since_time = _word(question, "sinceTime") or None
    if since_time is not None:
        try:
            parse_rfc3339(since_time)
        except TimestampError as error:
            raise BadRequestError(str(error)) from None
    return AskedLog(
        follows=_flag(question, "follow"),
        is_previous=_flag(question, "previous"),
        since_s=_number(question, "sinceSeconds", 1),
        since_time=since_time,
        has_timestamps=_flag(question, "timestamps"),
        tail_lines=_number(question, "tailLines", 0),
        limit_bytes=_number(question, "limitBytes", 1),
    )


def _word(question: Question, name: str) -> str:
    return (question.query.get(name) or [""])[0]


def _flag(question: Question, name: str) -> bool:
    return _word(question, name) in ("1", "t", "T", "true", "TRUE", "True")


def _number(question: Question, name: str, least: int) -> int | None:
    word = _word(question, name)
    if not word:
        return None
    if not word.isdecimal() or int(word) < least:
        raise BadRequestError(f"{name}: found {word!r}, wanted a number of at least {least}")
    return int(word)
