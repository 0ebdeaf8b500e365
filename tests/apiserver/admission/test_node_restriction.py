"""NodeRestriction: a node may write only its own objects and those of its pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import (
    CONFIG_MAP,
    CSI_DRIVER,
    CSI_NODE,
    LEASE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_SLICE,
    SERVICE_ACCOUNT,
    Kind,
)
from mooring.apiserver.access.authorization import Attributes, SubjectRules
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.admission.node_restriction import NodeRestriction
from mooring.apiserver.call import Operation
from mooring.client.errors import ClientError
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import User
from tests.apiserver.admission.builders import NS, Known, attempt, container, named, pod, wait

N1 = User("system:node:n1", groups=("system:nodes",))
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "controller": True}


def on_node(name: str, node: str, **spec: Any) -> Document:
    one = pod(name, nodeName=node, **spec)
    one["metadata"]["uid"] = f"uid-{name}"
    return one


TOKEN_VOLUME = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault"}}]}}
CLAIM_VOLUME = {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}}
MINE = on_node("mine", "n1", volumes=[TOKEN_VOLUME, CLAIM_VOLUME])
OTHERS = on_node("others", "n2")
KNOWN = Known(
    {
        NODE: [{"metadata": {"name": "n1", "uid": "u1"}}],
        POD: [MINE, OTHERS],
        PERSISTENT_VOLUME_CLAIM: [named("claim", spec={"volumeName": "pv"})],
        PERSISTENT_VOLUME: [named("pv", spec={"csi": {"driver": "driver"}})],
        CSI_DRIVER: [named("driver", spec={"tokenRequests": [{"audience": "csi"}]})],
    }
)


class RoleOfN1:
    """A role that allows n1 the audience `audit` for tokens of the account `robot`."""

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        requested = (attributes.user, attributes.verb, attributes.namespace, attributes.resource, attributes.name)
        allowed = (N1, "request-serviceaccounts-token-audience", NS, "audit", "robot")
        return AuthorizationDecision(requested == allowed and not attributes.api_group)

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        raise AssertionError("NodeRestriction must not call rules_for")


def error_of(one: Attempt, user: User = N1) -> str:
    """The message with which the plugin rejects the attempt; empty if it does not."""
    call = replace(one.call, user=user)
    plugin = NodeRestriction(RoleOfN1())
    if not plugin.handles(call.kind, call.subresource, one.operation):
        return ""
    try:
        wait(plugin.admit(replace(one, call=call), KNOWN))
    except ClientError as error:
        return str(error)
    return ""


def mirror(**changes: Any) -> Document:
    one = on_node("m", "n1")
    one["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [OWNER]}
    metadata, spec = changes.pop("metadata", {}), changes
    one["metadata"] |= metadata
    one["spec"] |= spec
    return one


def node(name: str = "n1", labels: Document | None = None, **spec: Any) -> Document:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def deleted(kind: Kind, old: Document) -> Attempt:
    return attempt(kind, None, old, operation=Operation.DELETE)


def status(old: Document, **metadata: Any) -> Attempt:
    new = {**old, "metadata": {**old["metadata"], **metadata}, "status": {"phase": "Running"}}
    return attempt(POD, new, old, subresource="status")


def eviction(name: str) -> Attempt:
    return attempt(POD, named(name), operation=Operation.CREATE, subresource="eviction", name=name)


def token(reference: Document | None, *audiences: str) -> Attempt:
    request = {"spec": {"boundObjectRef": reference, "audiences": list(audiences)}}
    return attempt(SERVICE_ACCOUNT, request, operation=Operation.CREATE, subresource="token", name="robot")


MY_POD = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "uid-mine"}
LEASES = "kube-node-lease"


def lease(name: str, namespace: str) -> Attempt:
    one = attempt(LEASE, named(name))
    return replace(one, call=replace(one.call, namespace=namespace))


def claim(**fields: Any) -> Document:
    return {"metadata": {"name": "claim", "resourceVersion": "1"}, "spec": {}, "status": {"phase": "Bound"}, **fields}


def slice_of(node_name: str) -> Document:
    return named("s", spec={"nodeName": node_name})


@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(attempt(POD, mirror()), id="create a mirror pod"),
        pytest.param(deleted(POD, MINE), id="delete its pod"),
        pytest.param(status(MINE), id="write the status of its pod"),
        pytest.param(eviction("mine"), id="evict its pod"),
        pytest.param(attempt(NODE, node(labels={"kubernetes.io/os": "linux", "team": "a"})), id="create its node"),
        pytest.param(attempt(NODE, node(labels={"a.node.kubernetes.io/x": "1"}), node()), id="label of a kubelet"),
        pytest.param(attempt(NODE, node(), node(), subresource="status"), id="write the status of its node"),
        pytest.param(attempt(PERSISTENT_VOLUME_CLAIM, claim(status={"phase": "Bound", "capacity": {"storage": "1"}}),
                             claim(metadata={"name": "claim", "resourceVersion": "2"}), subresource="status"),
                     id="write the capacity of a claim"),
        pytest.param(lease("n1", LEASES), id="create its lease"),
        pytest.param(attempt(CSI_NODE, named("n1")), id="create its CSINode"),
        pytest.param(attempt(RESOURCE_SLICE, slice_of("n1")), id="create its slice"),
        pytest.param(deleted(RESOURCE_SLICE, slice_of("n1")), id="delete its slice"),
        pytest.param(token(MY_POD, "vault"), id="token with the audience of a volume"),
        pytest.param(token(MY_POD, "csi"), id="token with the audience of a CSI driver"),
        pytest.param(token(MY_POD, "audit"), id="token with an audience that a role allows"),
        pytest.param(attempt(CONFIG_MAP, named("x")), id="kinds that the authorizer decides"),
    ],
)  # fmt: skip
def test_writes_that_a_node_may_send(allowed: Attempt) -> None:
    assert error_of(allowed) == ""


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        (attempt(POD, on_node("p", "n1")), 'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can'),
        (attempt(POD, mirror(nodeName="n2")), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (attempt(POD, mirror(metadata={"ownerReferences": []})), "with an owner reference set to itself"),
        (attempt(POD, mirror(metadata={"ownerReferences": [OWNER, OWNER]})), "with a single owner reference set"),
        (attempt(POD, mirror(metadata={"ownerReferences": [{**OWNER, "name": "n2"}]})), "an owner reference set to"),
        (attempt(POD, mirror(metadata={"ownerReferences": [{**OWNER, "controller": False}]})), "with a controller"),
        (attempt(POD, mirror(metadata={"ownerReferences": [{**OWNER, "blockOwnerDeletion": True}]})), "must not set"),
        (
            attempt(POD, mirror(metadata={"ownerReferences": [{**OWNER, "uid": "x"}]})),
            "UID mismatch: expected x",
        ),
        (attempt(POD, mirror(serviceAccountName="robot")), "can not create pods that reference a service account"),
        (attempt(POD, mirror(imagePullSecrets=[{"name": "s"}])), "can not create pods that reference secrets"),
        (
            attempt(POD, mirror(containers=[container(envFrom=[{"configMapRef": {"name": "m"}}])])),
            "configmaps",
        ),
        (attempt(POD, mirror(volumes=[CLAIM_VOLUME])), "can not create pods that reference persistentvolumeclaims"),
        (attempt(POD, MINE, MINE), 'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'),
        (attempt(POD, MINE, MINE, subresource="resize"), "unexpected pod subresource \"resize\", only 'status' and"),
        (deleted(POD, OTHERS), 'pods "others" is forbidden: node "n1" can only delete pods with spec.nodeName set'),
        (deleted(POD, on_node("gone", "n1")), 'pods "gone" not found'),
        (status(OTHERS), 'node "n1" can only update pod status for pods with spec.nodeName set to itself'),
        (status(MINE, labels={"a": "b"}), 'node "n1" cannot update labels through pod status'),
        (eviction("others"), "node n1 can only evict pods with spec.nodeName set to itself"),
        (attempt(NODE, node("n2")), 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'),
        (attempt(NODE, node("n2"), node("n2"), subresource="status"), 'is not allowed to modify node "n2"'),
        (attempt(NODE, node(taints=[{"key": "a"}]), node()), 'node "n1" is not allowed to modify taints'),
        (
            attempt(NODE, node(labels={"node-restriction.kubernetes.io/a": "1"})),
            "to set the following labels",
        ),
        (
            attempt(NODE, node(), node(labels={"x.node-restriction.kubernetes.io/a": "1"})),
            "allowed to modify labels",
        ),
        (attempt(NODE, node(labels={"other.k8s.io/a": "1"}), node()), "modify labels: other.k8s.io/a"),
        (attempt(PERSISTENT_VOLUME_CLAIM, claim(), claim()), "may only update PVC status"),
        (
            attempt(PERSISTENT_VOLUME_CLAIM, claim(status={"phase": "Lost"}), claim(), subresource="status"),
            "other than",
        ),
        (lease("n2", LEASES), "can only access node lease with the same name as the requesting node"),
        (lease("n1", "team"), 'can only access leases in the "kube-node-lease" system namespace'),
        (attempt(CSI_NODE, named("n2")), "can only access CSINode with the same name as the requesting node"),
        (attempt(RESOURCE_SLICE, slice_of("n2")), "can only create ResourceSlice with the same NodeName"),
        (deleted(RESOURCE_SLICE, slice_of("n2")), "can only delete ResourceSlice with the same NodeName"),
        (token(None), "node requested token not bound to a pod"),
        (token({**MY_POD, "kind": "Secret"}), "node requested token not bound to a pod"),
        (token({**MY_POD, "uid": ""}), "node requested token with a pod binding without a uid"),
        (token({**MY_POD, "uid": "x"}), "the UID in the bound object reference (x) does not match"),
        (token({**MY_POD, "name": "others", "uid": "uid-others"}), "bound to a pod scheduled on a different node"),
        (token(MY_POD, "vault", "csi"), "node may only request 0 or 1 audiences"),
        (
            token(MY_POD, "bank"),
            'audience "bank" not found in pod spec volume, '
            "system:node:n1 is not authorized to request tokens for this audience",
        ),
        (token(MY_POD), 'audience "" not found in pod spec volume'),
    ],
)
def test_writes_that_a_node_may_not_send(forbidden: Attempt, message: str) -> None:
    assert message in error_of(forbidden)


def test_a_node_user_without_a_node_name_is_rejected() -> None:
    nameless = replace(N1, name="system:node:")
    assert 'could not determine node from user "system:node:"' in error_of(attempt(NODE, node()), nameless)


@pytest.mark.parametrize("user", [User("admin", groups=("system:masters",)), User("system:node:n1")])
def test_other_users_are_not_restricted(user: User) -> None:
    assert error_of(attempt(NODE, node("n2")), user) == ""
