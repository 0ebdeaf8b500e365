"""The scheduler's client for extenders: sends the requests of a decision, and binds pods through extenders.

1. While a decision waits for responses the columns do not change (see `event_buffer`).
2. A request that cannot be sent, or whose response cannot be read, has the response `ExtenderFailure`. The decision
   decides what that means.
3. The first extender that binds and is interested in the pod binds it, instead of the Bind plugins. If it fails and
   is ignorable, the next one is called, and then the plugins.
4. Extenders that are not `nodeCacheCapable` are sent whole objects. `RawObjectCache` holds the JSON of nodes and
   pending pods for them, from a watch of its own; of pods with a node only if an extender gets whole victims.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from mooring.api.decode import UntypedObject
from mooring.client.interface import Change
from mooring.kit.logs import fields
from mooring.kit.tasks import run_bounded
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders.cycle import decide_with_extenders
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderBindingArgs,
    ExtenderError,
    ExtenderFailure,
    InvalidResponseError,
    Transport,
    encode,
    extenders_of,
    read_binding_result,
)
from mooring.scheduler.extenders.requests import Exchange, ExtenderRequest, ExtenderResponse, RawObjects
from mooring.scheduler.framework.plugin import SKIP, Skip
from mooring.scheduler.framework.status import Status

logger = logging.getLogger(__name__)

REQUESTS_AT_ONCE_MAX = 16
"""Limit of the extenders that are called at the same time."""


class ExtenderClient:
    """Decides about pods and binds pods with the extenders of a configuration."""

    def __init__(self, engine: Engine, transport: Transport, event_buffer: EventBuffer) -> None:
        self._engine = engine
        self._transport = transport
        self._event_buffer = event_buffer
        self._extenders = extenders_of(engine.configuration)
        sends_victims = any(
            extender.settings.preempt_verb and not extender.settings.node_cache_capable for extender in self._extenders
        )
        self.objects = RawObjectCache(holds_assigned_pods=sends_victims)

    async def decide(self, pod: PodInfo) -> Decision:
        return await run_exchange(self._engine, pod, self._transport, self.objects, self._event_buffer)

    async def bind(self, pod: PodInfo, node_name: str) -> Skip | Status | None:
        """None if an extender has bound the pod; SKIP if no extender binds it; a status if the extender failed."""
        try:
            is_bound = await bind_with_extenders(self._extenders, pod, node_name, self._transport)
        except ExtenderError as error:
            return Status.error(str(error))
        return None if is_bound else SKIP

    async def close(self) -> None:
        await self._transport.close()


async def run_exchange(
    engine: Engine,
    pod: PodInfo,
    transport: Transport,
    objects: RawObjects,
    event_buffer: EventBuffer,
) -> Decision:
    """Decide about a pod: send the requests of the decision, and return the responses to it until it has ended."""

    async def send(request: ExtenderRequest) -> ExtenderResponse:
        return await _send(request, transport, objects)

    with event_buffer.held():
        exchange = decide_with_extenders(engine, pod)
        position = _position(engine.columns)
        step = _advance(exchange, None)
        while not isinstance(step, Decision):
            responses = await run_bounded(send, step, limit=REQUESTS_AT_ONCE_MAX, name="extenders")
            assert _position(engine.columns) == position, (
                "the columns changed during a decision with extenders: every change must go through the event buffer"
            )
            step = _advance(exchange, tuple(responses))
        return step


async def bind_with_extenders(
    extenders: Sequence[Extender], pod: PodInfo, node_name: str, transport: Transport
) -> bool:
    """Whether an extender has bound the pod; if not, the Bind plugins do. Raises `ExtenderError` if it failed."""
    for extender in extenders:
        if not extender.settings.bind_verb or not extender.is_interested(pod):
            continue
        try:
            await _bind(extender, pod, node_name, transport)
        except ExtenderError as error:
            if not extender.settings.ignorable:
                raise
            logger.info(
                "ignorable extender %s failed to bind pod %s: %s",
                extender.name,
                pod.key,
                error,
                extra=fields(pod=pod.key, node=node_name, reason=error),
            )
            continue
        return True
    return False


async def _bind(extender: Extender, pod: PodInfo, node_name: str, transport: Transport) -> None:
    verb = extender.settings.bind_verb
    raw = await transport.send(extender, verb, encode(ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name)))
    try:
        result = read_binding_result(raw)
    except InvalidResponseError as error:
        raise ExtenderError(_invalid_response(extender, verb, error)) from error
    if result.error:
        raise ExtenderError(result.error)


async def _send(request: ExtenderRequest, transport: Transport, objects: RawObjects) -> ExtenderResponse:
    extender, verb = request.extender, request.verb
    try:
        return request.read(await transport.send(extender, verb, request.body(objects)))
    except InvalidResponseError as error:
        return ExtenderFailure(_invalid_response(extender, verb, error))
    except ExtenderError as error:
        return ExtenderFailure(str(error))
    except LookupError as error:
        return ExtenderFailure(f"extender {extender.name} could not be asked to {verb}: {error.args[0]}")


def _invalid_response(extender: Extender, verb: str, error: InvalidResponseError) -> str:
    return f"extender at URL {extender.url(verb)} gave an answer that cannot be read: {error}"


def _advance(
    exchange: Exchange[Decision], responses: tuple[ExtenderResponse, ...] | None
) -> tuple[ExtenderRequest, ...] | Decision:
    """The next requests, or the decision at the end. The first call has no responses."""
    try:
        return next(exchange) if responses is None else exchange.send(responses)
    except StopIteration as end:
        decision: Decision = end.value
        return decision


def _position(columns: Columns) -> tuple[int, int]:
    return columns.usage_changes.position, columns.fact_changes.position


class RawObjectCache:
    """The JSON of nodes by name and of pods by uid, from two reflectors. Implements `RawObjects`."""

    def __init__(self, *, holds_assigned_pods: bool) -> None:
        self.nodes = RawSink(lambda node: node.metadata.name, lambda node: True)
        self.pods = RawSink(lambda pod: pod.metadata.uid, lambda pod: holds_assigned_pods or not pod.node_name)

    def node(self, name: str) -> bytes:
        found = self.nodes.raw.get(name)
        if found is None:
            raise LookupError(f"node {name} is gone")
        return found

    def pod(self, pod: PodInfo) -> bytes:
        found = self.pods.raw.get(pod.uid)
        if found is None:
            raise LookupError(f"pod {pod.key} is gone")
        return found


class RawSink:
    """The sink of a reflector: the JSON of the objects that it holds, by key."""

    def __init__(self, key: Callable[[UntypedObject], str], holds: Callable[[UntypedObject], bool]) -> None:
        self.raw: dict[str, bytes] = {}
        self._key = key
        self._holds = holds

    def replace(self, views: Sequence[UntypedObject], revision: str) -> None:
        self.raw = {self._key(view): view.raw for view in views if self._holds(view)}

    def apply(self, change: Change, view: UntypedObject) -> None:
        if change is Change.DELETED or not self._holds(view):
            self.raw.pop(self._key(view), None)
        else:
            self.raw[self._key(view)] = view.raw
