"""The asker: the running scheduler's way to its extenders.

Comes in   an engine with extenders, a transport, the whole objects that extenders are sent
Goes out   decisions that extenders had their say in; bindings that an extender made
"""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.asking import bind_with_extenders, decide_asking
from mooring.scheduler.extenders.transport import ExtenderError, Transport
from mooring.scheduler.extenders.whole_objects import WholeObjects
from mooring.scheduler.framework.plugin import SKIP, Skip
from mooring.scheduler.framework.status import Status
from mooring.scheduler.standstill import Standstill


class Asker:
    """Asks extenders on behalf of the loop and of the binding cycle."""

    def __init__(self, engine: Engine, transport: Transport, standstill: Standstill) -> None:
        self._engine = engine
        self._transport = transport
        self._standstill = standstill
        sends_victims = any(
            extender.settings.preempt_verb and not extender.settings.node_cache_capable for extender in engine.extenders
        )
        self.objects = WholeObjects(keeps_placed_pods=sends_victims)

    async def decide(self, pod: PodInfo) -> Decision:
        return await decide_asking(self._engine, pod, self._transport, self.objects, self._standstill)

    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None:
        """SKIP if no extender binds this pod; None if one has."""
        try:
            is_bound = await bind_with_extenders(self._engine.extenders, pod, node_name, self._transport)
        except ExtenderError as error:
            return Status.error(str(error))
        return None if is_bound else SKIP

    async def close(self) -> None:
        await self._transport.close()
