"""NodeRestriction: a node writes its own objects and those of its pods only.

Input: writes of users in the group `system:nodes`. Output: nothing, or 403. Rules and messages are kube-apiserver's.

1. A node creates and changes its own Node, Lease and CSINode, its own ResourceSlices, and the status of its pods.
2. A node creates mirror pods only: owned by its Node, and without secrets, config maps, accounts and claims.
3. A node neither changes its taints nor sets labels that place workloads of others (`node-restriction.kubernetes.io/`
   and labels of Kubernetes that are not a kubelet's).
4. A node requests tokens for its pods only, with an audience that a volume of the pod names, or for which a role allows
   the node the verb `request-serviceaccounts-token-audience`: the resource is the audience, the name the account.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import (
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
from mooring.api.pod_references import config_map_names, secret_names, volume_claim_names
from mooring.api.well_known import KUBELET_LABEL_DOMAINS, KUBELET_LABELS, MIRROR_POD_ANNOTATION
from mooring.apiserver.access.authorization import Attributes, Authorizer
from mooring.apiserver.access.node_authorizer import NODE_LEASE_NAMESPACE
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, name_of, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import not_found
from mooring.serving.users import node_name_of

_RESTRICTED_LABEL_DOMAIN = "node-restriction.kubernetes.io"
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
_CLAIM_STATUS_OF_NODES = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")


class NodeRestriction(Admission):
    """Rejects writes of a node beyond its own objects."""

    name = "NodeRestriction"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return (kind in _CHECKS or kind is SERVICE_ACCOUNT) and operation is not Operation.CONNECT

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        user = attempt.call.user
        node = node_name_of(user)
        if node is None:
            return
        if not node:
            raise refused(attempt, f"could not determine node from user {quoted(user.name)}")
        if attempt.call.kind is SERVICE_ACCOUNT:
            await _check_token(node, attempt, lookup, self._authorizer)
        else:
            await _CHECKS[attempt.call.kind](node, attempt, lookup)


# --- pods -------------------------------------------------------------------------------------------------------------


async def _check_pod(node: str, attempt: Attempt, lookup: Lookup) -> None:
    match attempt.call.subresource, attempt.operation:
        case "", Operation.CREATE:
            await _check_mirror_pod(node, attempt, lookup)
        case "", Operation.DELETE:
            if await _node_of_pod(attempt, lookup) != node:
                raise refused(attempt, f"node {quoted(node)} can only delete pods with spec.nodeName set to itself")
        case "", operation:
            text = f"unexpected operation {quoted(operation.value)}, node {quoted(node)}"
            raise refused(attempt, f"{text} can only create and delete mirror pods")
        case "status", Operation.UPDATE:
            _check_pod_status(node, attempt)
        case "eviction", Operation.CREATE:
            if await _node_of_pod(attempt, lookup) != node:
                raise refused(attempt, f"node {node} can only evict pods with spec.nodeName set to itself")
        case "status" | "eviction", operation:
            raise refused(attempt, f"unexpected operation {quoted(operation.value)}")
        case subresource, _:
            text = f"unexpected pod subresource {quoted(subresource)}, only 'status' and 'eviction' are allowed"
            raise refused(attempt, text)


async def _node_of_pod(attempt: Attempt, lookup: Lookup) -> str:
    name = name_of(attempt)
    pod = await lookup.get(POD, attempt.call.namespace, name)
    if pod is None:
        raise not_found(POD, name)
    return pod["spec"].get("nodeName") or ""


async def _check_mirror_pod(node: str, attempt: Attempt, lookup: Lookup) -> None:
    pod = attempt.obj
    assert pod is not None
    spec, who = pod["spec"], f"node {quoted(node)}"
    if MIRROR_POD_ANNOTATION not in (pod["metadata"].get("annotations") or {}):
        text = f"pod does not have {quoted(MIRROR_POD_ANNOTATION)} annotation, {who} can only create mirror pods"
        raise refused(attempt, text)
    if spec.get("nodeName") != node:
        raise refused(attempt, f"{who} can only create pods with spec.nodeName set to itself")
    await _check_mirror_pod_owner(node, attempt, pod["metadata"].get("ownerReferences") or [], lookup)
    volumes = spec.get("volumes") or ()
    bundles = (
        source.get("clusterTrustBundle")
        for volume in volumes
        for source in (volume.get("projected") or {}).get("sources") or ()
    )
    what = ""
    if spec.get("serviceAccountName"):
        what = "a service account"
    elif any(secret_names(spec)):
        what = "secrets"
    elif any(config_map_names(spec)):
        what = "configmaps"
    elif any(bundle is not None for bundle in bundles):
        what = "clustertrustbundles"
    elif any(volume.get("persistentVolumeClaim") is not None for volume in volumes):
        what = "persistentvolumeclaims"
    if what:
        raise refused(attempt, f"{who} can not create pods that reference {what}")


async def _check_mirror_pod_owner(node: str, attempt: Attempt, owners: list[Document], lookup: Lookup) -> None:
    who = f"node {quoted(node)}"
    if len(owners) > 1:
        raise refused(attempt, f"{who} can only create pods with a single owner reference set to itself")
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise refused(attempt, f"{who} can only create pods with an owner reference set to itself")
    if not owner.get("controller"):
        raise refused(attempt, f"{who} can only create pods with a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise refused(attempt, f"{who} must not set blockOwnerDeletion on an owner reference")
    found = await lookup.get(NODE, "", node)
    if found is None:
        raise not_found(NODE, node)
    uid = found["metadata"].get("uid")
    if owner.get("uid") != uid:
        raise refused(attempt, f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}")


def _check_pod_status(node: str, attempt: Attempt) -> None:
    pod, old = attempt.obj, attempt.old
    assert pod is not None
    assert old is not None
    who = f"node {quoted(node)}"
    if old["spec"].get("nodeName") != node:
        raise refused(attempt, f"{who} can only update pod status for pods with spec.nodeName set to itself")
    if (pod["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        raise refused(attempt, f"{who} cannot update labels through pod status")
    if _claim_statuses(pod) != _claim_statuses(old):
        raise refused(attempt, f"{who} cannot update resource claim statues")


def _claim_statuses(pod: Document) -> list[tuple[str | None, str | None]]:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return [(claim.get("name"), claim.get("resourceClaimName")) for claim in statuses]


# --- nodes ------------------------------------------------------------------------------------------------------------


async def _check_node(node: str, attempt: Attempt, lookup: Lookup) -> None:
    name = name_of(attempt)
    who = f"node {quoted(node)}"
    if name != node:
        raise refused(attempt, f"{who} is not allowed to modify node {quoted(name)}")
    if attempt.obj is None:
        return
    old = attempt.old or {"metadata": {}, "spec": {}}
    spec, spec_before = attempt.obj.get("spec") or {}, old.get("spec") or {}
    is_new = attempt.operation is Operation.CREATE
    source = spec.get("configSource")
    if source is not None and source != spec_before.get("configSource"):
        what = "create pods with a non-nil" if is_new else "update configSource to a new non-nil"
        raise refused(attempt, f"{who} is not allowed to {what} configSource")
    if not is_new and (spec.get("taints") or []) != (spec_before.get("taints") or []):
        raise refused(attempt, f"{who} is not allowed to modify taints")
    labels, labels_before = attempt.obj["metadata"].get("labels") or {}, old["metadata"].get("labels") or {}
    changed = {key for key, _ in labels.items() ^ labels_before.items()}
    forbidden = ", ".join(sorted(filter(_is_label_forbidden, changed)))
    if forbidden:
        what = f"{who} is not allowed to set the following labels" if is_new else "is not allowed to modify labels"
        raise refused(attempt, f"{what}: {forbidden}")


def _is_label_forbidden(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _is_within(domain, (_RESTRICTED_LABEL_DOMAIN,)):
        return True
    is_kubelet_label = key in KUBELET_LABELS or _is_within(domain, KUBELET_LABEL_DOMAINS)
    return _is_within(domain, _KUBERNETES_DOMAINS) and not is_kubelet_label


def _is_within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


# --- other kinds ------------------------------------------------------------------------------------------------------


async def _check_lease(node: str, attempt: Attempt, lookup: Lookup) -> None:
    if attempt.call.namespace != NODE_LEASE_NAMESPACE:
        raise refused(attempt, f"can only access leases in the {quoted(NODE_LEASE_NAMESPACE)} system namespace")
    if name_of(attempt) != node:
        raise refused(attempt, "can only access node lease with the same name as the requesting node")


async def _check_csi_node(node: str, attempt: Attempt, lookup: Lookup) -> None:
    if name_of(attempt) != node:
        raise refused(attempt, "can only access CSINode with the same name as the requesting node")


async def _check_slice(node: str, attempt: Attempt, lookup: Lookup) -> None:
    # Updates are the node authorizer's: it knows the stored object. It does not know the body of a create request.
    match attempt.operation:
        case Operation.CREATE:
            obj, verb = attempt.obj, "create"
        case Operation.DELETE:
            obj, verb = attempt.old, "delete"
        case _:
            return
    if ((obj or {}).get("spec") or {}).get("nodeName") != node:
        raise refused(attempt, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


async def _check_claim(node: str, attempt: Attempt, lookup: Lookup) -> None:
    if attempt.call.subresource != "status":
        raise refused(attempt, "may only update PVC status")
    if attempt.operation is not Operation.UPDATE:
        raise refused(attempt, f"unexpected operation {quoted(attempt.operation.value)}")
    assert attempt.obj is not None
    assert attempt.old is not None
    if _fixed_part_of_claim(attempt.obj) != _fixed_part_of_claim(attempt.old):
        text = "is not allowed to update fields other than status.capacity and status.conditions"
        raise refused(attempt, f"node {quoted(node)} {text}")


def _fixed_part_of_claim(claim: Document) -> Document:
    metadata = {name: value for name, value in claim["metadata"].items() if name not in _SERVER_METADATA}
    status = claim.get("status") or {}
    fixed = {name: value for name, value in status.items() if name not in _CLAIM_STATUS_OF_NODES}
    return {**claim, "metadata": metadata, "status": fixed}


_SERVER_METADATA = ("resourceVersion", "managedFields")


async def _check_token(node: str, attempt: Attempt, lookup: Lookup, authorizer: Authorizer) -> None:
    if attempt.operation is not Operation.CREATE or attempt.call.subresource != "token":
        return
    spec = (attempt.obj or {}).get("spec") or {}
    reference = spec.get("boundObjectRef") or {}
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        raise refused(attempt, "node requested token not bound to a pod")
    uid = reference.get("uid")
    if not uid:
        raise refused(attempt, "node requested token with a pod binding without a uid")
    pod = await lookup.get(POD, attempt.call.namespace, reference["name"])
    if pod is None:
        raise not_found(POD, reference["name"])
    if uid != pod["metadata"].get("uid"):
        text = f"the UID in the bound object reference ({uid}) does not match the UID in record."
        raise refused(attempt, f"{text} The object might have been deleted and then recreated")
    if pod["spec"].get("nodeName") != node:
        raise refused(attempt, "node requested token bound to a pod scheduled on a different node")
    audiences = spec.get("audiences") or [""]
    if len(audiences) > 1:
        raise refused(attempt, "node may only request 0 or 1 audiences")
    if audiences[0] in await _audiences_of_pod(pod, lookup):
        return
    user = attempt.call.user
    question = Attributes(
        user,
        "request-serviceaccounts-token-audience",
        namespace=attempt.call.namespace,
        api_version="v1",
        resource=audiences[0],
        name=name_of(attempt),
    )
    if not authorizer.authorize(question).is_allowed:
        text = f"audience {quoted(audiences[0])} not found in pod spec volume"
        raise refused(attempt, f"{text}, {user.name} is not authorized to request tokens for this audience")


async def _audiences_of_pod(pod: Document, lookup: Lookup) -> set[str]:
    """The audiences of the token volumes of a pod and of the CSI drivers of its volumes."""
    audiences, drivers = set(), set()
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                audiences.add(source["serviceAccountToken"].get("audience") or "")
        if volume.get("csi"):
            drivers.add(volume["csi"].get("driver") or "")
    for name in volume_claim_names(pod):
        claim = await lookup.get(PERSISTENT_VOLUME_CLAIM, pod["metadata"]["namespace"], name)
        volume_name = ((claim or {}).get("spec") or {}).get("volumeName")
        found = await lookup.get(PERSISTENT_VOLUME, "", volume_name) if volume_name else None
        if found is not None and found["spec"].get("csi"):
            drivers.add(found["spec"]["csi"].get("driver") or "")
    for name in sorted(drivers):
        driver = await lookup.get(CSI_DRIVER, "", name)
        for request in ((driver or {}).get("spec") or {}).get("tokenRequests") or ():
            audiences.add(request.get("audience") or "")
    return audiences


_CHECKS = {
    POD: _check_pod,
    NODE: _check_node,
    PERSISTENT_VOLUME_CLAIM: _check_claim,
    LEASE: _check_lease,
    CSI_NODE: _check_csi_node,
    RESOURCE_SLICE: _check_slice,
}
