"""Logs: what the containers of a pod have written.

Input: a call and PodLogOptions.
Output: the bytes; None for a pod that has no node yet; or a `StatusError`.

 1. What is asked for is checked here: options first, then the pod, the container, the node, in this order.
 2. Nodes of this process have their logs at hand (`Logs`); of all others their kubelets are asked (`RemoteLogs`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.interface import Lookup
from mooring.apiserver.call import Call
from mooring.apiserver.registry.errors import invalid_object
from mooring.apiserver.storage.errors import not_found
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.apiserver.wire.scalars import TimeFormatError, canonical_time
from mooring.client.errors import BadRequestError


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which part of the log."""

    container: str = ""
    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ""


class Logs(Protocol):
    """The logs of pods on nodes of this process."""

    def has_node(self, name: str) -> bool: ...

    async def logs(self, pod: Document, container: str, options: LogOptions) -> AsyncIterator[bytes]: ...


class RemoteLogs(Protocol):
    """Reads logs from the kubelets of other nodes."""

    async def logs(
        self, node: Document, pod: Document, container: str, options: LogOptions
    ) -> AsyncIterator[bytes]: ...


class Parameters(Protocol):
    """The parameters of a request. Raises `BadRequestError` for what is no number."""

    def text(self, name: str) -> str: ...

    def flag(self, name: str) -> bool: ...

    def integer(self, name: str) -> int | None: ...


def read_log_options(parameters: Parameters) -> LogOptions:
    """What the parameters ask for. Raises `BadRequestError`."""
    since_time = parameters.text("sinceTime") or None
    if since_time is not None:
        try:
            since_time = canonical_time(since_time)
        except TimeFormatError as error:
            raise BadRequestError(str(error)) from None
    return LogOptions(
        container=parameters.text("container"),
        follows=parameters.flag("follow"),
        is_previous=parameters.flag("previous"),
        since_s=parameters.integer("sinceSeconds"),
        since_time=since_time,
        has_timestamps=parameters.flag("timestamps"),
        tail_lines=parameters.integer("tailLines"),
        limit_bytes=parameters.integer("limitBytes"),
        stream=parameters.text("stream"),
    )


async def open_log(
    lookup: Lookup, call: Call, options: LogOptions, own: Logs | None, remote: RemoteLogs
) -> AsyncIterator[bytes] | None:
    """The log of a container; None if there can be none yet."""
    errors = _errors(options)
    if errors:
        raise invalid_object("PodLogOptions", "", call.name, errors)
    pod = await lookup.get(POD, call.namespace, call.name)
    if pod is None:
        raise not_found(POD, call.name)
    container = _container(pod, options.container)
    node_name = pod["spec"].get("nodeName")
    if not node_name:
        return None
    node = await lookup.get(NODE, "", node_name)
    if node is None:
        # So kube-apiserver says it: it takes every miss on this way for the pod's.
        raise not_found(POD, node_name)
    if own is not None and own.has_node(node_name):
        return await own.logs(pod, container, options)
    return await remote.logs(node, pod, container, options)


def _errors(options: LogOptions) -> list[FieldError]:
    errors = []
    if options.tail_lines is not None and options.tail_lines < 0:
        errors.append(invalid("tailLines", options.tail_lines, "must be greater than or equal to 0"))
    if options.limit_bytes is not None and options.limit_bytes < 1:
        errors.append(invalid("limitBytes", options.limit_bytes, "must be greater than 0"))
    if options.since_s is not None and options.since_time is not None:
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif options.since_s is not None and options.since_s < 1:
        errors.append(invalid("sinceSeconds", options.since_s, "must be greater than 0"))
    if options.stream:
        errors.append(forbidden("stream", "may not be specified"))
    return errors


def _container(pod: Document, wanted: str) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = [one["name"] for one in spec.get("containers") or []]
    if not wanted and len(own) == 1:
        return str(own[0])
    # Only a pod's own containers can be left out, but any of its containers can be named.
    others = {
        field: [one["name"] for one in spec.get(field) or []] for field in ("initContainers", "ephemeralContainers")
    }
    everybody = [*others["initContainers"], *own, *others["ephemeralContainers"]]
    if not wanted:
        choices = f", choose one of: [{' '.join(everybody)}]" if own else ""
        raise BadRequestError(f"a container name must be specified for pod {name}{choices}")
    if wanted not in everybody:
        raise BadRequestError(f"container {wanted} is not valid for pod {name}")
    return wanted
