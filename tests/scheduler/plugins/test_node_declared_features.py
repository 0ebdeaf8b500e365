"""NodeDeclaredFeatures: features of the kubelet without which a pod cannot run as it is written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.pod import ContainerRestartRule, Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
    needed_features,
)
from tests.api.builders import container
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by

RESTARTING = replace(container(), restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
PLAIN = pod()


def with_network(*, host_network: bool, host_users: bool | None) -> Pod:
    return replace(PLAIN, spec=replace(PLAIN.spec, host_network=host_network, host_users=host_users))


@pytest.mark.parametrize(
    ("view", "needed"),
    [
        (PLAIN, set()),
        (pod(containers=[container(), RESTARTING]), {RESTART_ALL_CONTAINERS}),
        (pod(init=[RESTARTING]), {RESTART_ALL_CONTAINERS}),
        (with_network(host_network=True, host_users=False), {USER_NAMESPACES_HOST_NETWORK}),
        (with_network(host_network=True, host_users=None), set()),
        (with_network(host_network=True, host_users=True), set()),
        (with_network(host_network=False, host_users=False), set()),
    ],
)
def test_what_a_pod_needs(view: Pod, needed: set[str]) -> None:
    assert needed_features(view.spec) == needed


def test_nodes_must_declare_all_of_it() -> None:
    engine = engine_of(node("old"), node("new", features=[RESTART_ALL_CONTAINERS, "Other"]), node("gone"))
    engine.remove(node("gone"))
    rejected = rejected_by(engine, NodeDeclaredFeatures, pod(containers=[RESTARTING]))
    assert rejected == {"old": ("node(s) didn't match Pod's required features",)}
    assert rejected_by(engine, NodeDeclaredFeatures, PLAIN) is SKIP
