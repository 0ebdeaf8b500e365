"""The node authorizer: what a kubelet may do, by the pods that are bound to its node.

Input: requests of users named `system:node:NAME` in the group `system:nodes`. Output: allowed, or no opinion and why.

1. A node reads its own Node, writes its own Lease and CSINode, and lists the pods that are bound to it.
2. A node reads secrets, config maps, claims, volumes and pods one by one, and only those that are related to it
   (`NodeGraph`).
3. The default cluster role `system:node`, which is bound to no user, allows the rest.
4. The content of what a node writes is checked by the admission plugin NodeRestriction.

`NodeGraph` holds which node has which objects. Input: pods, volumes, volume attachments and resource slices, as they
change. Output: `is_related`, for the node authorizer. The relations are those of kube-apiserver:

    node <- pod <- secret, config map, service account, resource claim, volume claim
                                                volume claim <- volume <- secret
    node <- volume attachment, resource slice

1. A mirror pod relates its node to itself only: nodes create mirror pods.
2. The graph is filled when a node first sends a request. A cluster whose kubelets run in the process never fills it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, POD, RESOURCE_SLICE, VOLUME_ATTACHMENT, Kind
from mooring.api.pod_references import (
    config_map_names,
    resource_claim_names,
    secret_names,
    volume_claim_names,
    volume_secrets,
)
from mooring.api.well_known import MIRROR_POD_ANNOTATION
from mooring.apiserver.access.authorization import ALLOWED, NO_OPINION, Attributes, Rule, SubjectRules
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import User, node_name_of

NODE_LEASE_NAMESPACE = "kube-node-lease"

IsRelated = Callable[[str, str, str, str], bool]
"""Whether a node, by name, is related to an object, by resource, namespace and name."""

_Authorize = Callable[["NodeAuthorizer", str, Attributes], AuthorizationDecision]


class NodeAuthorizer:
    def __init__(self, rules: Sequence[Rule], is_related: IsRelated) -> None:
        self._rules = tuple(rules)
        self._is_related = is_related

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        user = attributes.user
        node = node_name_of(user)
        if node is None:
            return NO_OPINION
        if not node:
            return AuthorizationDecision(False, f'unknown node for user "{user.name}"')
        authorize_kind = (
            _AUTHORIZERS.get((attributes.api_group, attributes.resource)) if attributes.is_resource_request else None
        )
        if authorize_kind is not None:
            return authorize_kind(self, node, attributes)
        return ALLOWED if any(rule.allows(attributes) for rule in self._rules) else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        if node_name_of(user) is None:
            return SubjectRules(())
        return SubjectRules((), ("node authorizer does not support user rule resolution",), is_incomplete=True)

    def authorize_related(self, node: str, attributes: Attributes) -> AuthorizationDecision:
        if not attributes.name:
            return AuthorizationDecision(False, "No Object name found")
        if self._is_related(node, attributes.resource, attributes.namespace, attributes.name):
            return ALLOWED
        return AuthorizationDecision(False, f"no relationship found between node '{node}' and this object")


def _authorize_reading(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.verb not in ("get", "list", "watch"):
        return AuthorizationDecision(False, "can only read resources of this type")
    if attributes.subresource:
        return AuthorizationDecision(False, "cannot read subresource")
    if not attributes.namespace:
        return AuthorizationDecision(False, "can only read namespaced object of this type")
    return nodes.authorize_related(node, attributes)


def _authorize_getting(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.verb != "get":
        return AuthorizationDecision(False, "can only get individual resources of this type")
    if attributes.subresource:
        return AuthorizationDecision(False, "cannot get subresource")
    return nodes.authorize_related(node, attributes)


def _authorize_claim(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.subresource != "status":
        return _authorize_getting(nodes, node, attributes)
    if attributes.verb not in ("update", "patch"):
        return AuthorizationDecision(False, "can only get/update/patch this type")
    return nodes.authorize_related(node, attributes)


def _authorize_service_account(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.verb == "get" and not attributes.subresource:
        return _authorize_reading(nodes, node, attributes)
    if attributes.verb != "create" or not attributes.name:
        return AuthorizationDecision(False, "can only create tokens for individual service accounts")
    if attributes.subresource != "token":
        return AuthorizationDecision(False, "can only create token subresource of serviceaccount")
    return nodes.authorize_related(node, attributes)


def _authorize_lease(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.verb not in _OWN_OBJECT_VERBS:
        return AuthorizationDecision(False, "can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != NODE_LEASE_NAMESPACE:
        return AuthorizationDecision(False, f'can only access leases in the "{NODE_LEASE_NAMESPACE}" system namespace')
    # A request to create has no name in its path; admission compares the object's.
    if attributes.verb != "create" and attributes.name != node:
        return AuthorizationDecision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _authorize_csi_node(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.verb not in _OWN_OBJECT_VERBS:
        return AuthorizationDecision(False, "can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return AuthorizationDecision(False, "cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return AuthorizationDecision(False, "can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _authorize_slice(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    if attributes.subresource:
        return AuthorizationDecision(False, "cannot authorize ResourceSlice subresources")
    match attributes.verb:
        case "create":
            return ALLOWED
        case "get" | "update" | "patch" | "delete":
            return nodes.authorize_related(node, attributes)
        case "watch" | "list" | "deletecollection":
            if ("spec.nodeName", node) in attributes.fields_equal:
                return ALLOWED
            text = "can only list/watch/deletecollection resourceslices with nodeName field selector"
            return AuthorizationDecision(False, text)
        case _:
            verbs = "get, watch, list, create, update, patch, delete, deletecollection"
            return AuthorizationDecision(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")


def _authorize_node(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
    match attributes.subresource, attributes.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ALLOWED
        case "", "get" | "list" | "watch":
            if attributes.name == node:
                return ALLOWED
            others = f"'{attributes.name}'" if attributes.name else "all nodes"
            return AuthorizationDecision(False, f"node '{node}' cannot read {others}, only its own Node object")
        case _:
            return NO_OPINION


def _authorize_pod(nodes: NodeAuthorizer, node: str, attributes: Attributes) -> AuthorizationDecision:
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
            return AuthorizationDecision(False, "can only list/watch pods with spec.nodeName field selector")
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


# --- the graph of nodes and objects ---------------------------------------------------------------------------


GRAPH_KINDS = (POD, PERSISTENT_VOLUME, VOLUME_ATTACHMENT, RESOURCE_SLICE)

ObjectKey = tuple[str, str, str]
"""Resource, namespace and name."""

_CLAIMS = "persistentvolumeclaims"


class NodeGraph:
    """Relations between nodes and objects. `put` and `remove` follow the store."""

    def __init__(self) -> None:
        self._nodes: dict[ObjectKey, Counter[str]] = defaultdict(Counter)
        self._edges: dict[ObjectKey, tuple[str, tuple[ObjectKey, ...]]] = {}
        """By pod, attachment or slice: its node, and the objects that it relates to the node."""
        self._claim_of_volume: dict[str, ObjectKey] = {}
        self._secrets_of_volume: dict[str, tuple[ObjectKey, ...]] = {}
        self._volumes_of_secret: dict[ObjectKey, set[str]] = defaultdict(set)
        self._fill: Callable[[], Awaitable[None]] | None = None

    def fill_with(self, fill: Callable[[], Awaitable[None]]) -> None:
        """Set the function that puts all objects and then follows their changes. It may be called more than once."""
        self._fill = fill

    async def wait_filled(self) -> None:
        if self._fill is not None:
            await self._fill()

    def is_related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        key = (resource, namespace, name)
        if node in self._nodes.get(key, ()):
            return True
        if resource == "persistentvolumes":
            return self._is_volume_related(node, name)
        return any(self._is_volume_related(node, volume) for volume in self._volumes_of_secret.get(key, ()))

    def _is_volume_related(self, node: str, volume: str) -> bool:
        claim = self._claim_of_volume.get(volume)
        return claim is not None and node in self._nodes.get(claim, ())

    def put(self, kind: Kind, document: Document) -> None:
        self.remove(kind, document)
        if kind is PERSISTENT_VOLUME:
            self._put_volume(document)
            return
        node = document["spec"].get("nodeName")
        if node:
            key = _key(kind, document)
            related = (key, *_pod_references(document)) if kind is POD else (key,)
            self._edges[key] = (node, related)
            for related_key in related:
                self._nodes[related_key][node] += 1

    def remove(self, kind: Kind, document: Document) -> None:
        if kind is PERSISTENT_VOLUME:
            self._remove_volume(document["metadata"]["name"])
            return
        node, related = self._edges.pop(_key(kind, document), ("", ()))
        for related_key in related:
            counts = self._nodes[related_key]
            counts[node] -= 1
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._nodes[related_key]

    def _put_volume(self, volume: Document) -> None:
        claim = volume["spec"].get("claimRef")
        if not claim:
            return
        name = volume["metadata"]["name"]
        self._claim_of_volume[name] = (_CLAIMS, claim.get("namespace", ""), claim.get("name", ""))
        secrets = tuple(("secrets", namespace, secret) for namespace, secret in volume_secrets(volume))
        self._secrets_of_volume[name] = secrets
        for secret in secrets:
            self._volumes_of_secret[secret].add(name)

    def _remove_volume(self, name: str) -> None:
        self._claim_of_volume.pop(name, None)
        for secret in self._secrets_of_volume.pop(name, ()):
            volumes = self._volumes_of_secret[secret]
            volumes.discard(name)
            if not volumes:
                del self._volumes_of_secret[secret]


def _key(kind: Kind, document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return kind.plural, metadata.get("namespace", ""), metadata["name"]


def _pod_references(pod: Document) -> tuple[ObjectKey, ...]:
    metadata, spec = pod["metadata"], pod["spec"]
    if MIRROR_POD_ANNOTATION in (metadata.get("annotations") or {}):
        return ()
    account = spec.get("serviceAccountName")
    names = {
        "secrets": secret_names(spec),
        "configmaps": config_map_names(spec),
        "serviceaccounts": (account,) if account else (),
        _CLAIMS: volume_claim_names(pod),
        "resourceclaims": resource_claim_names(pod),
    }
    namespace = metadata["namespace"]
    return tuple({(resource, namespace, name) for resource, found in names.items() for name in found})
