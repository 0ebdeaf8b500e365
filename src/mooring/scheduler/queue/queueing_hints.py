"""Queueing hints: which plugins registered an event, and whether the event makes a pod worth another attempt.

Inputs   the events that the plugins of all profiles register; an event; the plugins that rejected a pod
Outputs  a `QueueingStrategy`: skip, queue after the backoff, or queue immediately; the extra kinds to watch

 1. Only plugins that can reject a pod register events: PreEnqueue, PreFilter, Filter, Reserve and Permit plugins.
 2. Only hints of plugins that rejected the pod are called, and of those only the hints for the event.
 3. The strategy is the best that any of them allows: IMMEDIATELY for a plugin in the pod's pending plugins,
    AFTER_BACKOFF for another one. A hint that cannot improve the strategy is not called.
 4. A hint that raises counts as QUEUE, and is logged with its plugin.
 5. A plugin that the profile does not contain (an extender, or a wrong name) counts as registered for every event.
 6. A wildcard event queues every pod after its backoff, without calling hints.
 7. A plugin that registers added nodes but not changed taints is registered for changed taints too, without a hint. As
    of v1.36 kube-scheduler does so for every such plugin. Otherwise our pods would be retried at other times.
 8. A kind that several plugins register is watched once, with one view.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mooring.api.kinds import Kind
from mooring.kit.logs import fields
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    ANY_EVENT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHintFn,
    is_same_resource,
)
from mooring.scheduler.framework.guard import is_interrupt
from mooring.scheduler.framework.node_plugins import FilterPlugin
from mooring.scheduler.framework.plugin import Filter, Permit, Plugin, PreEnqueue, PreFilter, Reserve
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import BadPluginError

logger = logging.getLogger(__name__)

EXTENDER: Final = "Extender"
"""Plugin name that stands for all extenders."""

_CAN_REJECT = (PreEnqueue, PreFilter, Filter, FilterPlugin, Reserve, Permit)
_NODE_TAINT = ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


# What plugins register


def registered_events(profile: Profile) -> Mapping[str, tuple[ClusterEventWithHint, ...]]:
    """The events of each plugin of the profile that can reject a pod, by plugin name. Raises `BadPluginError`."""
    return {name: plugin_events(plugin) for name, plugin in profile.plugins.items() if isinstance(plugin, _CAN_REJECT)}


def plugin_events(plugin: Plugin) -> tuple[ClusterEventWithHint, ...]:
    """The events that the plugin registers, and changed taints by rule 7. Raises `BadPluginError`."""
    try:
        events = tuple(plugin.events_to_register())
    except ValueError as error:
        raise BadPluginError(f"{plugin.name}: {error}") from error
    node_actions = [event.action_type for event in events if event.resource is EventResource.NODE]
    has_node_add = any(actions & ActionType.ADD for actions in node_actions)
    has_node_taint = any(actions & ActionType.UPDATE_NODE_TAINT for actions in node_actions)
    return (*events, _NODE_TAINT) if has_node_add and not has_node_taint else events


def registered_kinds(profiles: Iterable[Profile]) -> tuple[Kind, ...]:
    """The kinds that plugins register and `EventResource` does not list. Raises `BadPluginError`."""
    kinds: dict[str, Kind] = {}
    for profile in profiles:
        for plugin, events in registered_events(profile).items():
            for kind in (event.resource for event in events if isinstance(event.resource, Kind)):
                if not is_same_resource(kinds.setdefault(kind.resource, kind), kind):
                    raise BadPluginError(
                        f"{plugin}: registers {kind} with another view than another plugin; both must use one view"
                    )
    return tuple(kinds.values())


# What an event means for a pod


class QueueingStrategy(IntEnum):
    """Whether to queue a pod again, and how soon."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class QueueingHintFunction(NamedTuple):
    """A plugin's hint, and the strategy if it returns QUEUE."""

    plugin: str
    queueing_hint_fn: QueueingHintFn
    strategy: QueueingStrategy


class EventHints(NamedTuple):
    """The registrations of certain plugins for one event."""

    without_hint: QueueingStrategy
    """The strategy of the registrations that have no hint."""
    per_signature: tuple[QueueingHintFunction, ...]
    """Called once for all pods of a signature."""
    per_pod: tuple[QueueingHintFunction, ...]
    is_per_signature_pair: bool = False
    """Whether every result depends only on the signatures of the unschedulable pod and of the assigned pod."""

    def strategy(self, pod: PodInfo, old: Any, new: Any) -> QueueingStrategy:
        best = run_hints(self.per_signature, self.without_hint, pod, old, new)
        return run_hints(self.per_pod, best, pod, old, new)


WILDCARD_HINTS: Final = EventHints(QueueingStrategy.AFTER_BACKOFF, (), ())


def run_hints(
    hints: Sequence[QueueingHintFunction], best: QueueingStrategy, pod: PodInfo, old: Any, new: Any
) -> QueueingStrategy:
    """The best strategy of `best` and the hints. Calls only hints that can improve it."""
    for hint in hints:
        if hint.strategy > best and _is_queued(hint, pod, old, new):
            best = hint.strategy
    return best


def _is_queued(hint: QueueingHintFunction, pod: PodInfo, old: Any, new: Any) -> bool:
    try:
        return bool(hint.queueing_hint_fn(pod, old, new))
    except BaseException as error:
        if is_interrupt(error):
            raise
        logger.exception(
            "queueing hint of plugin %s failed for pod %s; the pod is queued",
            hint.plugin,
            pod.key,
            extra=fields(pod=pod.key, plugin=hint.plugin),
        )
        return True


class QueueingHintMap:
    """The registered events of all plugins, by profile and plugin."""

    def __init__(self, profiles: Mapping[str, Profile], *, with_extenders: bool) -> None:
        self._events: dict[str, dict[str, tuple[ClusterEventWithHint, ...]]] = {
            name: dict(registered_events(profile)) | ({EXTENDER: (ANY_EVENT,)} if with_extenders else {})
            for name, profile in profiles.items()
        }
        self._is_registered: dict[ClusterEvent, bool] = {}

    def is_event_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event."""
        known = self._is_registered.get(event)
        if known is None:
            registered = (event for plugins in self._events.values() for events in plugins.values() for event in events)
            known = event.is_wildcard or any(registered_event.matches(event) for registered_event in registered)
            self._is_registered[event] = known
        return known

    def labels(self, scheduler_name: str, plugins: frozenset[str]) -> tuple[str, ...]:
        """The labels of the events that the plugins registered, one for each action."""
        found: set[str] = set()
        for _, registered in self._registered(scheduler_name, plugins):
            found.update(registered.labels())
        return tuple(sorted(found))

    def is_registered(self, scheduler_name: str, plugin: str, event: ClusterEvent) -> bool:
        """Whether the plugin registered the event."""
        return any(registered.matches(event) for registered in self._events[scheduler_name].get(plugin, (ANY_EVENT,)))

    def hints(
        self,
        scheduler_name: str,
        unschedulable_plugins: frozenset[str],
        pending_plugins: frozenset[str],
        event: ClusterEvent,
    ) -> EventHints | None:
        """The registrations of the plugins that rejected a pod; None if none of them registered the event."""
        if event.is_wildcard:
            return WILDCARD_HINTS
        without_hint = QueueingStrategy.SKIP
        per_signature: list[QueueingHintFunction] = []
        per_pod: list[QueueingHintFunction] = []
        is_per_signature_pair = True
        for plugin, registered in self._registered(scheduler_name, unschedulable_plugins | pending_plugins):
            if not registered.matches(event):
                continue
            strategy = QueueingStrategy.IMMEDIATELY if plugin in pending_plugins else QueueingStrategy.AFTER_BACKOFF
            is_per_signature_pair = is_per_signature_pair and registered.per_signature_pair
            if registered.queueing_hint_fn is None:
                without_hint = max(without_hint, strategy)
            else:
                hint = QueueingHintFunction(plugin, registered.queueing_hint_fn, strategy)
                (per_signature if registered.per_signature else per_pod).append(hint)
        if without_hint is QueueingStrategy.SKIP and not per_signature and not per_pod:
            return None
        return EventHints(without_hint, tuple(per_signature), tuple(per_pod), is_per_signature_pair)

    def _registered(self, scheduler_name: str, plugins: frozenset[str]) -> Iterator[tuple[str, ClusterEventWithHint]]:
        known = self._events[scheduler_name]
        for plugin, events in known.items():
            if plugin in plugins:
                for event in events:
                    yield plugin, event
        for plugin in sorted(plugins - known.keys()):
            yield plugin, ANY_EVENT
