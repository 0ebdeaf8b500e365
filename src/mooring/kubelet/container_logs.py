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

PATH = "/containerLogs/"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


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
