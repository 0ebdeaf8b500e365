"""Plugins for one node at a time, and an engine that has one of them, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, NodePlugin, ScorePlugin, Status
from mooring.scheduler.framework.profile import Profile
from tests.scheduler.config.builders import with_profile
from tests.scheduler.harness import engine_of


class ByLabel(FilterPlugin):
    """Rejects nodes with the text of their label `rejects`; a text that starts with `never` is unresolvable."""

    name = "ByLabel"

    def __init__(self) -> None:
        self.evaluated: list[str] = []

    def applies_to(self, pod: Pod) -> bool:
        return pod.metadata.labels.get("filtered") != "no"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        self.evaluated.append(node_info.name)
        text = node_info.labels.get("rejects")
        if text is None:
            return Status.success()
        return Status.unresolvable(text) if text.startswith("never") else Status.unschedulable(text)


class OneLoudPod(FilterPlugin):
    """Two loud pods do not share a node."""

    name = "OneLoudPod"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        loud = [other for other in node_info.pods if "loud" in other.signature.labels]
        if loud and "loud" in pod.metadata.labels:
            return Status.unschedulable("node(s) were loud already")
        return None


class ByRank(ScorePlugin):
    """Scores nodes by their label `rank`."""

    name = "ByRank"

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.labels.get("rank", "0"))


class ByAnyRank(ByRank):
    name = "ByAnyRank"
    normalizes = True


class Limit(FilterPlugin):
    """At most so many pods on a node."""

    name = "Limit"
    limit = 0

    def configure(self, arguments: Mapping[str, object]) -> None:
        limit = arguments["limit"]
        if not isinstance(limit, int):
            raise ValueError(f"limit: found {limit!r}, wanted a number")
        self.limit = limit

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) were at their limit") if node_info.pod_count >= self.limit else None


class Marked(FilterPlugin):
    """Takes its arguments in the constructor, and calls no constructor of a base class."""

    name = "Marked"

    def __init__(self, arguments: Mapping[str, object], columns: Columns) -> None:
        self.mark = str(arguments["mark"])
        self.columns = columns

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return None if self.mark in node_info.labels else Status.unschedulable("node(s) were not marked")


class RoomForCpu(FilterPlugin):
    """NodeResourcesFit, as far as cpu and the number of pods go."""

    name = "RoomForCpu"

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        wanted = int(str(pod.spec.containers[0].resources.requests["cpu"]).removesuffix("m"))
        if node_info.free["pods"] >= 1 and node_info.free["cpu"] >= wanted:
            return None
        return Status.unresolvable("small") if node_info.allocatable["cpu"] < wanted else Status.unschedulable("full")


PLUGINS: tuple[type[NodePlugin], ...] = (
    ByLabel,
    OneLoudPod,
    ByRank,
    ByAnyRank,
    Limit,
    Marked,
    RoomForCpu,
)


def engine_with(plugin: type[NodePlugin], *views: ApiObject, disabled: str = "", arguments: object = None) -> Engine:
    registry = default_registry()
    for plugin_class in dict.fromkeys((*PLUGINS, plugin)):
        registry.register(plugin_class)
    plugins = {"multiPoint": {"enabled": [{"name": plugin.name}], "disabled": [{"name": disabled}] if disabled else []}}
    given_arguments = [{"name": plugin.name, "args": arguments}] if arguments is not None else []
    return engine_of(*views, config=with_profile(plugins=plugins, pluginConfig=given_arguments), registry=registry)


def profile_of(engine: Engine) -> Profile:
    return engine.cycles["default-scheduler"].profile


def node_info(engine: Engine, name: str) -> NodeInfo:
    return NodeInfo(engine.columns, engine.columns.row_of[name])
