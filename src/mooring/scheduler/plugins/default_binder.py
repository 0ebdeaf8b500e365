"""DefaultBinder: binds a pod to its node through the API server.

Errors are raised, not returned: the binding cycle distinguishes a rejected request from a lost response.
"""

from __future__ import annotations

from mooring.client.interface import Client
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import Bind


class DefaultBinder(Bind):
    name = "DefaultBinder"

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self._client.bind(pod.namespace, pod.name, pod.uid, node_name)
