"""Roles that gather the rules of others."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import CLUSTER_ROLE
from tests.controllers.world import World, play

READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
READ_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}


def role(name: str, *rules: Document, labels: dict[str, str] | None = None, gathers: str = "") -> Document:
    document: Document = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels or {}},
        "rules": [*rules],
    }
    if gathers:
        document["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"to": gathers}}]}
    return document


def test_rules_come_by_name_each_once_and_follow_changes() -> None:
    async def story(world: World) -> None:
        await world.create(
            role("all", gathers="all", labels={"to": "all"}),
            role("z", READ_NODES, READ_PODS, labels={"to": "all"}),
            role("a", READ_PODS, labels={"to": "all"}),
            role("other", READ_NODES),
        )
        await world.settle()
        assert (await world.get(CLUSTER_ROLE, "all"))["rules"] == [READ_PODS, READ_NODES]
        await world.delete(CLUSTER_ROLE, "z")
        await world.settle()
        assert (await world.get(CLUSTER_ROLE, "all"))["rules"] == [READ_PODS]

    play(story, controllers=["clusterrole-aggregation-controller"])
