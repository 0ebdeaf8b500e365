"""The node authorizer: what a kubelet may do.

Input: requests of users named `system:node:NAME` in the group `system:nodes`. Output: allowed, or no opinion and why.

1. A node reads its own Node, writes its own Lease and CSINode, and lists the pods that are bound to it.
2. A node reads secrets, config maps, claims, volumes and pods one by one, and only those that are related to it
   (`node_graph`).
3. The default cluster role `system:node`, which is bound to no user, allows the rest.
4. The content of what a node writes is checked by the admission plugin NodeRestriction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.apiserver.access.authorization import ALLOWED, NO_OPINION, Decision, HeldRules
from mooring.apiserver.access.rules import Attributes, Rule
from mooring.apiserver.access.users import User, node_name_of

NODE_LEASE_NAMESPACE = "kube-node-lease"

IsRelated = Callable[[str, str, str, str], bool]
"""Whether a node, by name, has something to do with an object, by resource, namespace and name."""

_Authorize = Callable[["NodeAuthorizer", str, Attributes], Decision]


class NodeAuthorizer:
    def __init__(self, rules: Sequence[Rule], is_related: IsRelated) -> None:
        self._rules = tuple(rules)
        self._is_related = is_related

    def authorize(self, attributes: Attributes) -> Decision:
        user = attributes.user
        node = node_name_of(user)
        if node is None:
            return NO_OPINION
        if not node:
            return Decision(False, f'unknown node for user "{user.name}"')
        authorize_kind = (
            _AUTHORIZERS.get((attributes.api_group, attributes.resource)) if attributes.is_resource_request else None
        )
        if authorize_kind is not None:
            return authorize_kind(self, node, attributes)
        return ALLOWED if any(rule.allows(attributes) for rule in self._rules) else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> HeldRules:
        if node_name_of(user) is None:
            return HeldRules(())
        return HeldRules((), ("node authorizer does not support user rule resolution",), is_incomplete=True)

    def authorize_related(self, node: str, attributes: Attributes) -> Decision:
        if not attributes.name:
            return Decision(False, "No Object name found")
        if self._is_related(node, attributes.resource, attributes.namespace, attributes.name):
            return ALLOWED
        return Decision(False, f"no relationship found between node '{node}' and this object")


def _authorize_reading(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in ("get", "list", "watch"):
        return Decision(False, "can only read resources of this type")
    if attributes.subresource:
        return Decision(False, "cannot read subresource")
    if not attributes.namespace:
        return Decision(False, "can only read namespaced object of this type")
    return nodes.authorize_related(node, attributes)


def _authorize_getting(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.verb != "get":
        return Decision(False, "can only get individual resources of this type")
    if attributes.subresource:
        return Decision(False, "cannot get subresource")
    return nodes.authorize_related(node, attributes)


def _authorize_claim(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.subresource != "status":
        return _authorize_getting(nodes, node, attributes)
    if attributes.verb not in ("update", "patch"):
        return Decision(False, "can only get/update/patch this type")
    return nodes.authorize_related(node, attributes)


def _authorize_service_account(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.verb == "get" and not attributes.subresource:
        return _authorize_reading(nodes, node, attributes)
    if attributes.verb != "create" or not attributes.name:
        return Decision(False, "can only create tokens for individual service accounts")
    if attributes.subresource != "token":
        return Decision(False, "can only create token subresource of serviceaccount")
    return nodes.authorize_related(node, attributes)


def _authorize_lease(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_OBJECT_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != NODE_LEASE_NAMESPACE:
        return Decision(False, f'can only access leases in the "{NODE_LEASE_NAMESPACE}" system namespace')
    # A request to create has no name in its path; admission compares the object's.
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _authorize_csi_node(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN_OBJECT_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return Decision(False, "can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _authorize_slice(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    if attributes.subresource:
        return Decision(False, "cannot authorize ResourceSlice subresources")
    match attributes.verb:
        case "create":
            return ALLOWED
        case "get" | "update" | "patch" | "delete":
            return nodes.authorize_related(node, attributes)
        case "watch" | "list" | "deletecollection":
            if ("spec.nodeName", node) in attributes.fields_equal:
                return ALLOWED
            text = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            return Decision(False, text)
        case _:
            verbs = "get, watch, list, create, update, patch, delete, deletecollection"
            return Decision(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")


def _authorize_node(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    match attributes.subresource, attributes.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ALLOWED
        case "", "get" | "list" | "watch":
            if attributes.name == node:
                return ALLOWED
            others = f"'{attributes.name}'" if attributes.name else "all nodes"
            return Decision(False, f"node '{node}' cannot read {others}, only its own Node object")
        case _:
            return NO_OPINION


def _authorize_pod(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> Decision:
    match attributes.subresource, attributes.verb:
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return ALLOWED
        case "", "get":
            return _authorize_getting(nodes, node, attributes)
        case "", "list" | "watch":
            if ("spec.nodeName", node) in attributes.fields_equal:
                return ALLOWED
            if attributes.name:
                return nodes.authorize_related(node, attributes)
            return Decision(False, "can only list/watch pods with spec.nodeName field selector")
        case _:
            return NO_OPINION


_OWN_OBJECT_VERBS = ("get", "create", "update", "patch", "delete")

_AUTHORIZERS: dict[tuple[str, str], _Authorize] = {
    ("", "secrets"): _authorize_reading,
    ("", "configmaps"): _authorize_reading,
    ("", "persistentvolumeclaims"): _authorize_claim,
    ("", "persistentvolumes"): _authorize_getting,
    ("resource.k8s.io", "resourceclaims"): _authorize_getting,
    ("storage.k8s.io", "volumeattachments"): _authorize_getting,
    ("", "serviceaccounts"): _authorize_service_account,
    ("coordination.k8s.io", "leases"): _authorize_lease,
    ("storage.k8s.io", "csinodes"): _authorize_csi_node,
    ("resource.k8s.io", "resourceslices"): _authorize_slice,
    ("", "nodes"): _authorize_node,
    ("", "pods"): _authorize_pod,
}
