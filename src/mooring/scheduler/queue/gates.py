"""The gates: PreEnqueue plugins say whether a pod may be ready at all.

Comes in   a pod on its way into active or backoff
Goes out   the plugin that does not let it in, or None; noted in the entry

 1. Who gated the pod last is asked first: it is the one most likely to say no again.
 2. A plugin that gates a pod is one of its rejectors from then on, together with those of the last attempt: what can
    help is what any of them hears. It stays one after it has let the pod in, until the pod's next attempt is over.
 3. A plugin that fails gates the pod, as in kube-scheduler: better asleep, and asked again after `asleep_s_max`, than
    tried although somebody may object.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from mooring.scheduler.framework.plugin import PreEnqueue
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code
from mooring.scheduler.queue.entry import QueuedPod

logger = logging.getLogger(__name__)


class Gates:
    """The PreEnqueue plugins of all profiles."""

    __slots__ = ("_by_profile",)

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._by_profile: dict[str, tuple[PreEnqueue, ...]] = {
            name: profile.pre_enqueue for name, profile in profiles.items()
        }

    def __contains__(self, scheduler_name: object) -> bool:
        return scheduler_name in self._by_profile

    def let_in(self, entry: QueuedPod) -> bool:
        """Asks the gates; if one says no, notes who."""
        plugins: Sequence[PreEnqueue] = self._by_profile[entry.scheduler_name]
        last = entry.gated_by
        if last is not None:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != last)  # stable: the others keep their order
        pod = entry.pod
        for plugin in plugins:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception:
                logger.exception("PreEnqueue plugin %s failed for pod %s, which stays outside", plugin.name, pod.key)
                return _gated(entry, plugin)
            if status is not None:
                if status.code is Code.ERROR:
                    logger.error("PreEnqueue plugin %s failed for pod %s: %s", plugin.name, pod.key, status.message)
                return _gated(entry, plugin)
        entry.gated_by = None
        return True


def _gated(entry: QueuedPod, plugin: PreEnqueue) -> bool:
    entry.gated_by = plugin.name
    if plugin.name not in entry.rejectors:
        entry.rejectors = entry.rejectors | {plugin.name}
    return False
