"""Who is woken by what, in a profile: the declarations of its plugins, as the queue needs them.

Comes in   profiles with their plugins made
Goes out   the wakes of each plugin that can refuse a pod, by its name; what has to be watched for them

 1. Only plugins that can put a pod to sleep are asked: those at PreEnqueue, PreFilter, Filter, Reserve or Permit.
 2. A plugin that hears of new nodes, but not of changed taints, is woken by every change of taints too. As of v1.36
    kube-scheduler adds this to every such plugin, also with queueing hints, where it is not needed any more: without it
    our pods would be tried again at other times than its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.plugin import Filter, Permit, Plugin, PreEnqueue, PreFilter, Reserve
from mooring.scheduler.framework.profile import Profile

_CAN_REFUSE = (PreEnqueue, PreFilter, Filter, Reserve, Permit)
_ALWAYS_WATCHED = (Subject.ASSIGNED_POD, Subject.PENDING_POD, Subject.NODE)
_ANY_TAINT = Wake(Subject.NODE, Action.UPDATE_NODE_TAINT)

_NOT_UNROLLED = (Subject.ANY, Subject.VOLUME_ATTACHMENT, Subject.RESOURCE_SLICE, Subject.NAMESPACE, Subject.SERVICE)
"""What nobody watches only because a plugin is woken by anything: kube-scheduler leaves these out too."""


def wakes_of(profile: Profile) -> Mapping[str, tuple[Wake, ...]]:
    """The wakes of each plugin of the profile that can refuse a pod."""
    return {
        name: wakes_of_plugin(plugin) for name, plugin in profile.plugins.items() if isinstance(plugin, _CAN_REFUSE)
    }


def wakes_of_plugin(plugin: Plugin) -> tuple[Wake, ...]:
    """What the plugin declares, and what is added to it."""
    declared = tuple(plugin.wakes())
    about_nodes = [wake.actions for wake in declared if wake.subject is Subject.NODE]
    hears_of_new = any(actions & Action.ADD for actions in about_nodes)
    hears_of_taints = any(actions & Action.UPDATE_NODE_TAINT for actions in about_nodes)
    return (*declared, _ANY_TAINT) if hears_of_new and not hears_of_taints else declared


def subjects_watched(profiles: Iterable[Profile]) -> tuple[Subject, ...]:
    """What some plugin of some profile wants to hear of, pods and nodes always included."""
    wanted = set(_ALWAYS_WATCHED)
    for profile in profiles:
        for wakes in wakes_of(profile).values():
            wanted.update(wake.subject for wake in wakes)
    if Subject.ANY in wanted:
        wanted.update(subject for subject in Subject if subject not in _NOT_UNROLLED)
    return tuple(subject for subject in Subject if subject in wanted and subject is not Subject.ANY)
