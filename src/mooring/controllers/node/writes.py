"""Writing nodes: taints and labels, as patches that lose nobody else's change.

Comes in   a node's name, and what is to be changed
Goes out   patches; or a `ClientError`

 1. The list of taints is replaced as a whole, so a patch of it carries the resourceVersion from which it was made, and
    is made anew if somebody was faster. Five times, as kube-controller-manager.
 2. Adding and taking away is one write: nobody sees a node with both, or with neither.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import NODE
from mooring.client.errors import ConflictError
from mooring.client.interface import Client, PatchForm
from mooring.controllers.node.taints import TaintChange, taints_after
from mooring.kit.clock import Clock, format_rfc3339
from mooring.kit.entropy import Entropy

TRIES_MAX = 5
RETRY_S = 0.1

_decode = msgspec.json.Decoder(dict[str, object]).decode


class NodeWriter:
    """Writes for one controller."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy

    async def change_taints(self, name: str, change: TaintChange) -> None:
        """Raises `ClientError`."""
        for left in reversed(range(TRIES_MAX)):
            node: Document = _decode(await self._client.get(NODE, "", name))
            spec: Document = node.get("spec") or {}
            taints = taints_after(spec.get("taints") or [], change, format_rfc3339(self._clock.wall_s()))
            if taints is None:
                return
            metadata = {"resourceVersion": node["metadata"]["resourceVersion"]}
            patch = {"metadata": metadata, "spec": {"taints": taints or None}}
            try:
                await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC)
                return
            except ConflictError:
                if not left:
                    raise
            await self._clock.wait(RETRY_S * (1.0 + self._entropy.uniform()))

    async def set_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Raises `ClientError`."""
        await self._client.patch(NODE, "", name, {"metadata": {"labels": dict(labels)}}, form=PatchForm.STRATEGIC)

    async def set_conditions(self, name: str, uid: str, revision: str, conditions: list[Document]) -> None:
        """Only on the very state from which they were decided: a heartbeat may have come. Raises `ClientError`."""
        patch = {"metadata": {"uid": uid, "resourceVersion": revision}, "status": {"conditions": conditions}}
        await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")
