"""Who is woken by what, in a profile: the declarations of its plugins, as the queue needs them.

Comes in   profiles with their plugins made
Goes out   the wakes of each plugin that can refuse a pod, by its name; the kinds to watch for them beside the usual

 1. Only plugins that can put a pod to sleep are asked: those at PreEnqueue, PreFilter, Filter, Reserve or Permit.
 2. A plugin that hears of new nodes, but not of changed taints, is woken by every change of taints too. As of v1.36
    kube-scheduler adds this to every such plugin, also with queueing hints, where it is not needed any more: without it
    our pods would be tried again at other times than its own.
 3. A kind that plugins name is watched once, and everybody reads it by the same view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.kinds import Kind
from mooring.scheduler.framework.events import Action, Subject, Wake, is_same
from mooring.scheduler.framework.node_plugins import FilterPlugin
from mooring.scheduler.framework.plugin import Filter, Permit, Plugin, PreEnqueue, PreFilter, Reserve
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import BadPluginError

_CAN_REFUSE = (PreEnqueue, PreFilter, Filter, FilterPlugin, Reserve, Permit)
_ANY_TAINT = Wake(Subject.NODE, Action.UPDATE_NODE_TAINT)


def wakes_of(profile: Profile) -> Mapping[str, tuple[Wake, ...]]:
    """The wakes of each plugin of the profile that can refuse a pod."""
    return {
        name: wakes_of_plugin(plugin) for name, plugin in profile.plugins.items() if isinstance(plugin, _CAN_REFUSE)
    }


def wakes_of_plugin(plugin: Plugin) -> tuple[Wake, ...]:
    """What the plugin declares, and what is added to it. Raises `BadPluginError`."""
    try:
        declared = tuple(plugin.wakes())
    except ValueError as error:
        raise BadPluginError(f"{plugin.name}: {error}") from error
    about_nodes = [wake.actions for wake in declared if wake.subject is Subject.NODE]
    hears_of_new = any(actions & Action.ADD for actions in about_nodes)
    hears_of_taints = any(actions & Action.UPDATE_NODE_TAINT for actions in about_nodes)
    return (*declared, _ANY_TAINT) if hears_of_new and not hears_of_taints else declared


def kinds_named(profiles: Iterable[Profile]) -> tuple[Kind, ...]:
    """The kinds without a subject of their own that some plugin wants to hear of. Raises `BadPluginError`."""
    rows: dict[str, Kind] = {}
    for profile in profiles:
        for plugin, wakes in wakes_of(profile).items():
            for row in (wake.subject for wake in wakes if isinstance(wake.subject, Kind)):
                if not is_same(rows.setdefault(row.resource, row), row):
                    raise BadPluginError(
                        f"{plugin}: wakes by {row}, which another plugin reads by another view; let them share one"
                    )
    return tuple(rows.values())
