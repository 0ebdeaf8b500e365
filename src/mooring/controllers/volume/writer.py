"""Writing volumes and claims: the executor of the binder.

Comes in   a volume, a claim, and what is to be true of them
Goes out   writes, each only if it changes something; the objects as the API answered

 1. Every write carries the version that was looked at: who was faster wins, and we look again.
 2. What was written is what the binder believes from then on (`latest`).
"""

from __future__ import annotations

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.client.events.recorder import EventRecorder
from mooring.client.interface import Client
from mooring.controllers.volume.changes import (
    bound_claim,
    bound_volume,
    claim_in_phase,
    unbound_volume,
    volume_in_phase,
)
from mooring.controllers.volume.latest import Latest
from mooring.controllers.volume.plan import Tell


class VolumeWriter:
    """Raises `ClientError` from everything that waits."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        volumes: Latest[PersistentVolume],
        claims: Latest[PersistentVolumeClaim],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._volumes = volumes
        self._claims = claims

    def tell(self, about: PersistentVolume | PersistentVolumeClaim, event: Tell) -> None:
        self._recorder.event(about, event.type, event.reason, event.message)

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Whatever is missing of the binding."""
        document = bound_volume(volume, claim)
        if document is not None:
            volume = await self.write_volume(volume, document)
        volume = await self.set_volume_phase(volume, "Bound")
        document = bound_claim(claim, volume)
        if document is not None:
            claim = await self.write_claim(claim, document)
        await self.set_claim_phase(claim, "Bound", volume)

    async def unbind(self, volume: PersistentVolume) -> None:
        volume = await self.write_volume(volume, unbound_volume(volume))
        await self.set_volume_phase(volume, "Available")

    async def set_claim_phase(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> PersistentVolumeClaim:
        """Raises `CapacityError` too."""
        document = claim_in_phase(claim, phase, volume)
        return claim if document is None else await self.write_claim(claim, document, "status")

    async def set_volume_phase(
        self, volume: PersistentVolume, phase: str, event: Tell | None = None
    ) -> PersistentVolume:
        """With an event, if there is one, which is told only if the phase is new."""
        document = volume_in_phase(volume, phase, event.message if event is not None else "")
        if document is None:
            return volume
        volume = await self.write_volume(volume, document, "status")
        if event is not None:
            self.tell(volume, event)
        return volume

    async def write_volume(
        self, volume: PersistentVolume, document: Document, subresource: str = ""
    ) -> PersistentVolume:
        name = volume.metadata.name
        answer = await self._client.update(PERSISTENT_VOLUME, "", name, document, subresource=subresource)
        written = decode_as(PersistentVolume, answer)
        self._volumes.remember(written)
        return written

    async def write_claim(
        self, claim: PersistentVolumeClaim, document: Document, subresource: str = ""
    ) -> PersistentVolumeClaim:
        namespace, name = claim.metadata.namespace, claim.metadata.name
        kind = PERSISTENT_VOLUME_CLAIM
        answer = await self._client.update(kind, namespace, name, document, subresource=subresource)
        written = decode_as(PersistentVolumeClaim, answer)
        self._claims.remember(written)
        return written
