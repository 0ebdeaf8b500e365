"""One extender: what it is asked about, and what its answers mean.

Comes in   the `extenders` of a configuration; answers as values (see `wire`)
Goes out   who is asked and in which order; nodes that are left, refusals, scores; what went wrong, in words

 1. An extender with managed resources is asked only about pods that request one of them.
 2. Extenders whose failures may be ignored are asked after all others.
 3. An extender only ever takes nodes away. One that brings in a node it was not asked about has failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.api.field_errors import quoted
from mooring.api.views.pod import Container
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.config import types as config
from mooring.scheduler.extenders.wire import EXTENDER_PRIORITY_MAX, FilterResult, HostPriority
from mooring.scheduler.framework.plugin import SCORE_MAX
from mooring.scheduler.framework.status import Code, Status

EXTENDER = "Extender"
"""The name under which extenders are rejectors: there is no such plugin, and so anything may wake the pod."""


class ExtenderFailure(NamedTuple):
    """An extender could not be asked, or gave an answer that cannot be used."""

    text: str


class Narrowed(NamedTuple):
    """What an extender left."""

    node_names: tuple[str, ...]
    node_to_status: Mapping[str, Status]


class Extender:
    """The rules of one extender."""

    __slots__ = ("_managed", "settings")

    def __init__(self, settings: config.Extender) -> None:
        self.settings = settings
        self._managed = frozenset(resource.name for resource in settings.managed_resources)

    def __repr__(self) -> str:
        return f"Extender({self.name})"

    @property
    def name(self) -> str:
        return self.settings.url_prefix

    @property
    def is_ignorable(self) -> bool:
        return self.settings.ignorable

    @property
    def filters(self) -> bool:
        return bool(self.settings.filter_verb)

    @property
    def prioritizes(self) -> bool:
        return bool(self.settings.prioritize_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self.settings.preempt_verb)

    @property
    def binds(self) -> bool:
        return bool(self.settings.bind_verb)

    def url(self, verb: str) -> str:
        return f"{self.settings.url_prefix.rstrip('/')}/{verb}"

    def is_interested(self, pod: PodInfo) -> bool:
        if not self._managed:
            return True
        spec = pod.signature.spec
        return self._is_managed(spec.containers) or self._is_managed(spec.init_containers)

    def narrowed(self, asked: Sequence[str], result: FilterResult) -> Narrowed | ExtenderFailure:
        """Which of the nodes it was asked about it left, and why not the others."""
        if result.error:
            return ExtenderFailure(result.error)
        left = result.node_names if self.settings.node_cache_capable and result.node_names is not None else result.nodes
        known = frozenset(asked)
        for name in left or ():
            if name not in known:
                return ExtenderFailure(
                    f"extender {quoted(self.name)} claims a filtered node {quoted(name)} which is not found in the "
                    "input node list"
                )
        node_to_status = {name: Status(Code.UNSCHEDULABLE, (text,)) for name, text in result.failed.items()}
        node_to_status |= {name: Status(Code.UNRESOLVABLE, (text,)) for name, text in result.failed_for_good.items()}
        return Narrowed(tuple(dict.fromkeys(left or ())), node_to_status)

    def scores(self, priorities: Iterable[HostPriority]) -> dict[str, int]:
        """What it adds to the total score of each node."""
        factor = self.settings.weight * (SCORE_MAX // EXTENDER_PRIORITY_MAX)
        added: dict[str, int] = {}
        for host, score in priorities:
            added[host] = _wrapped(added.get(host, 0) + score * factor)
        return added

    def _is_managed(self, containers: Iterable[Container]) -> bool:
        return any(
            not self._managed.isdisjoint(container.resources.requests)
            or not self._managed.isdisjoint(container.resources.limits)
            for container in containers
        )


def extenders_of(configuration: SchedulerConfiguration) -> tuple[Extender, ...]:
    """All extenders, in the order in which they are asked."""
    ordered = sorted(configuration.extenders, key=lambda settings: settings.ignorable)
    return tuple(Extender(settings) for settings in ordered)


def _wrapped(number: int) -> int:
    """As a sum of 64 bits: an extender may say what it likes, and must not stop anybody with it."""
    return (number + 2**63) % 2**64 - 2**63
