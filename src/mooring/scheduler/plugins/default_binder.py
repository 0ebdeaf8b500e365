"""DefaultBinder: tells the API server which node a pod was given."""

from __future__ import annotations

from typing import Protocol

from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.plugin import Bind
from mooring.scheduler.framework.status import Rejection, failure


class Binder(Protocol):
    """The one thing that binding needs of a client."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Binds the pod, or raises."""


class DefaultBinder(Bind):
    name = "DefaultBinder"

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    async def bind(self, pod: PodRecord, node_name: str) -> Rejection | None:
        try:
            await self._binder.bind(pod.namespace, pod.name, pod.uid, node_name)
        except OSError as error:
            return failure(str(error))
        return None
