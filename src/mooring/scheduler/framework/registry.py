"""The registry: the plugin classes that a configuration may name, validated, and the profiles built from them.

A class that cannot work is rejected when it is registered (`BadPluginError`), never in a cycle. A plugin's
constructor names the services that it needs, and gets those:

    columns        the columns of the cluster
    arguments      its arguments from the configuration: typed for Kubernetes' plugins, a mapping for others
    entropy        the source of randomness
    clock          the time
    client         the client of the API server
    waiting_pods   the pods that wait for Permit, to be allowed or rejected
    activate       moves a pod, by uid, to the activeQ
    evictions      the preemptions whose victims are being evicted
    record_event   records an event about a pod
    record_write   records what PreBind has written, for replays (`AssumesWrites`)

A plugin for one node at a time (`node_plugins`) is constructed in the same way, and then configured. At Filter and
Score its adapter takes its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.config.profiles import ProfilePlan
from mooring.scheduler.config.types import ConfigProblem, ConfigurationError, ExtensionPoint
from mooring.scheduler.framework.adapter import NodePluginAdapter
from mooring.scheduler.framework.guard import describe, guard, is_interrupt
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodePlugin, ScorePlugin
from mooring.scheduler.framework.plugin import (
    Adjustable,
    Bind,
    Filter,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Scope,
    Score,
)
from mooring.scheduler.framework.profile import Profile, filter_use, score_use
from mooring.scheduler.framework.status import REASONS_MAX, Reason

POINTS: Mapping[ExtensionPoint, type[Plugin]] = {
    ExtensionPoint.PRE_ENQUEUE: PreEnqueue,
    ExtensionPoint.QUEUE_SORT: QueueSort,
    ExtensionPoint.PRE_FILTER: PreFilter,
    ExtensionPoint.FILTER: Filter,
    ExtensionPoint.POST_FILTER: PostFilter,
    ExtensionPoint.PRE_SCORE: PreScore,
    ExtensionPoint.SCORE: Score,
    ExtensionPoint.RESERVE: Reserve,
    ExtensionPoint.PERMIT: Permit,
    ExtensionPoint.PRE_BIND: PreBind,
    ExtensionPoint.BIND: Bind,
    ExtensionPoint.POST_BIND: PostBind,
}
NODE_PLUGINS: Mapping[ExtensionPoint, type[NodePlugin]] = {
    ExtensionPoint.FILTER: FilterPlugin,
    ExtensionPoint.SCORE: ScorePlugin,
}
"""The points that a class can serve for one node at a time."""
SERVICES = (
    "columns",
    "arguments",
    "entropy",
    "clock",
    "client",
    "waiting_pods",
    "activate",
    "evictions",
    "record_event",
    "record_write",
    "workload",
)


class BadPluginError(ValueError):
    """A plugin class that cannot work. The message has the reason and the remedy."""


class Registry:
    """The plugin classes by name."""

    def __init__(self, plugins: Iterable[type[Plugin]] = ()) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: type[Plugin]) -> None:
        """Register a plugin class, or raise `BadPluginError`."""
        problem = (
            _problem_of(plugin)
            if _is_plugin(plugin)
            else f"{plugin!r} is no plugin class: inherit from FilterPlugin, ScorePlugin, …"
        )
        if problem is not None:
            raise BadPluginError(problem)
        known = self._plugins.get(plugin.name)
        if known is not None and known is not plugin:
            raise BadPluginError(
                f"{_called(plugin)}: a plugin called {plugin.name!r} is registered already ({_called(known)}); "
                "give one of them another name"
            )
        self._plugins[plugin.name] = plugin

    def get(self, name: str) -> type[Plugin] | None:
        return self._plugins.get(name)

    def implements(self, name: str, point: ExtensionPoint) -> bool:
        plugin = self._plugins.get(name)
        return plugin is not None and _serves(plugin, point)

    def build(self, plan: ProfilePlan, services: Mapping[str, object]) -> Profile:
        """The profile of a plan. Each plugin is constructed once."""
        enabled = {use.name for uses in plan.at.values() for use in uses}
        plugins = {
            name: _construct(plugin, {**services, "arguments": plan.arguments.get(name) or {}})
            for name, plugin in self._plugins.items()
            if name in enabled
        }
        adapters = {
            name: _adapter(plugin, services) for name, plugin in plugins.items() if isinstance(plugin, NodePlugin)
        }

        def serving(name: str, point: ExtensionPoint) -> Any:
            plugin, per_node = plugins[name], NODE_PLUGINS.get(point)
            return adapters[name] if per_node is not None and isinstance(plugin, per_node) else plugin

        def at(point: ExtensionPoint) -> tuple[Any, ...]:
            return tuple(serving(use.name, point) for use in plan.at[point])

        filters = tuple(filter_use(plugin, number) for number, plugin in enumerate(at(ExtensionPoint.FILTER)))
        cluster_filters = tuple(use for use in filters if not use.is_row_local)
        cached_names = {use.plugin.name for use in filters if use.is_row_local}
        pre_filters = at(ExtensionPoint.PRE_FILTER)
        cluster_pre_filters = tuple(plugin for plugin in pre_filters if plugin.name not in cached_names)
        scores = tuple(
            score_use(plugin, use.weight)
            for use in plan.at[ExtensionPoint.SCORE]
            if isinstance(plugin := serving(use.name, ExtensionPoint.SCORE), Score)
        )
        return Profile(
            scheduler_name=plan.scheduler_name,
            plugins=plugins,
            pre_enqueue=at(ExtensionPoint.PRE_ENQUEUE),
            queue_sort=at(ExtensionPoint.QUEUE_SORT)[0],
            pre_filters=pre_filters,
            filters=filters,
            post_filters=at(ExtensionPoint.POST_FILTER),
            scores=scores,
            reserves=at(ExtensionPoint.RESERVE),
            permits=at(ExtensionPoint.PERMIT),
            pre_binds=at(ExtensionPoint.PRE_BIND),
            binds=at(ExtensionPoint.BIND),
            post_binds=at(ExtensionPoint.POST_BIND),
            percentage_of_nodes_to_score=plan.percentage_of_nodes_to_score,
            cluster_filters=cluster_filters,
            topology_filters=tuple(
                use
                for use in cluster_filters
                if use.plugin.filter_scope is Scope.TOPOLOGY and use.plugin in pre_filters
            ),
            filters_without_pre_filter=tuple(use for use in cluster_filters if use.plugin not in pre_filters),
            cluster_pre_filters=cluster_pre_filters,
            cluster_pre_filters_without_volumes=tuple(p for p in cluster_pre_filters if not p.only_for_volumes),
        )


def _construct(plugin: type[Plugin], services: Mapping[str, object]) -> Plugin:
    parameters = _parameters_of(plugin.__init__)
    missing = [name for name in parameters if name not in services]
    if missing:
        raise BadPluginError(f"{_called(plugin)} needs {', '.join(missing)}, which this scheduler was not given")
    needs = {name: services[name] for name in parameters}
    if plugin.is_built_in:
        return plugin(**needs)
    try:
        instance = plugin(**needs)
        if isinstance(instance, NodePlugin) and "arguments" not in parameters:
            instance.configure(services["arguments"])  # type: ignore[arg-type]  # services are not typed
    except BaseException as error:
        if is_interrupt(error):
            raise
        # ValueError is how a plugin rejects its arguments: the message is for the author of the configuration.
        is_message = isinstance(error, ValueError | msgspec.ValidationError) and str(error)
        what = str(error) if is_message else describe(error, plugin)
        problem = ConfigProblem("profiles", f"initializing plugin {quoted(plugin.name)}: {what}")
        raise ConfigurationError([problem]) from error
    return guard(instance)


def _adapter(plugin: NodePlugin, services: Mapping[str, object]) -> NodePluginAdapter:
    columns = services.get("columns")
    if not isinstance(columns, Columns):
        raise BadPluginError(f"{_called(type(plugin))} needs columns, which this scheduler was not given")
    return NodePluginAdapter(plugin, columns)


def _is_plugin(candidate: object) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Plugin)


def _serves(plugin: type[Plugin], point: ExtensionPoint) -> bool:
    served = tuple(table[point] for table in (POINTS, NODE_PLUGINS) if point in table)
    return issubclass(plugin, served)


def _problem_of(plugin: type[Plugin]) -> str | None:
    called = _called(plugin)
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        return f'{called} has no name: set `name = "…"`, which is what configurations call it'
    if not any(_serves(plugin, point) for point in ExtensionPoint):
        return f"{called} serves no extension point: inherit from FilterPlugin, ScorePlugin, …"
    if issubclass(plugin, NodePlugin):
        problem = _problem_of_node_plugin(plugin)
        if problem is not None:
            return problem
    unwritten = sorted(getattr(plugin, "__abstractmethods__", ()))
    if unwritten:
        return f"{called} does not define {', '.join(unwritten)}, which its extension points demand"
    unknown = [name for name in _parameters_of(plugin.__init__) if name not in SERVICES]
    if unknown:
        return f"{called} wants {', '.join(unknown)} in its constructor; a plugin is given only {', '.join(SERVICES)}"
    return _problem_of_filter(plugin) if issubclass(plugin, Filter) else None


def _problem_of_node_plugin(plugin: type[NodePlugin]) -> str | None:
    called = _called(plugin)
    for point, per_node in NODE_PLUGINS.items():
        if not issubclass(plugin, per_node):
            continue
        for_rows = POINTS[point]
        if issubclass(plugin, for_rows):
            return f"{called} inherits from both {per_node.__name__} and {for_rows.__name__}: keep one of them"
        scope = f"{point.config_field}_scope"
        if hasattr(plugin, scope):
            return (
                f"{called} sets {scope}, but results of a {per_node.__name__} are not cached; remove it, or inherit "
                f"from {for_rows.__name__} and answer for many rows"
            )
    if "arguments" in _parameters_of(plugin.__init__) and plugin.configure is not NodePlugin.configure:
        return f"{called} takes arguments in its constructor and in configure: keep one of them"
    return None


def _problem_of_filter(plugin: type[Filter[Any]]) -> str | None:
    called, reasons = _called(plugin), plugin.filter_reasons
    if not all(isinstance(reason, Reason) for reason in reasons):
        return f"{called}: filter_reasons must be Reason values, found {reasons!r}"
    if len(reasons) > REASONS_MAX:
        return f"{called} has {len(reasons)} reasons; a filter can have {REASONS_MAX}"
    if not reasons and plugin.reasons is Filter.reasons:
        return f"{called} can reject nodes but has no reasons: set filter_reasons, or define reasons(state)"
    if issubclass(plugin, Adjustable) and plugin.filter_scope < Scope.TOPOLOGY:
        return f"{called} counts pods beyond its row (Adjustable): filter_scope must be Scope.TOPOLOGY or Scope.CLUSTER"
    return None


@cache
def _parameters_of(constructor: Callable[..., None]) -> tuple[str, ...]:
    """Cached: reading a signature takes longer than constructing the plugin."""
    if constructor is object.__init__:
        return ()
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    return tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.default is p.empty)


def _called(plugin: type[Plugin]) -> str:
    return f"plugin {plugin.__qualname__} ({plugin.__module__})"
