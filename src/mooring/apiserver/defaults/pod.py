"""Defaults of pods and of the templates of pods.

Comes in   a document as somebody wrote it
Goes out   the same, with what nobody said filled in

 1. A pod gets more than a template: requests from limits, host ports, service links. A template stays open until a pod
    is made of it.
 2. The aliases of the first version are kept in step here too, where the Go server converts to its inner form:
    `serviceAccount` follows `serviceAccountName`, `podIP` and `podIPs` follow each other, a negative grace period of a
    pod means one second, and annotations that once stood for init containers go.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.resource_names import HUGE_PAGES_PREFIX, is_pod_level_resource
from mooring.apiserver.defaults.empty_labels import note_empty_labels
from mooring.apiserver.defaults.pod_containers import default_container, round_amounts
from mooring.apiserver.defaults.pod_volumes import default_volume
from mooring.apiserver.validation.containers_walk import CONTAINER_LISTS
from mooring.apiserver.validation.pod_resources import containers_sum
from mooring.apiserver.validation.resources import allows_overcommit

TERMINATION_GRACE_S = 30

_INIT_CONTAINER_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/{what}"
    for stage in ("alpha", "beta")
    for what in ("init-containers", "init-container-statuses")
)


def default_pod(pod: Document) -> None:
    """Fill in a pod."""
    default_spec_of_pod(pod["spec"])
    default_rest_of_pod(pod)


def default_spec_of_pod(spec: Document) -> None:
    """Fill in the spec of a pod."""
    _default_requests(spec)
    if spec.get("resources") is not None:
        _default_pod_limits(spec)
        _default_pod_requests(spec)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def default_rest_of_pod(pod: Document) -> None:
    """Fill in everything else."""
    _drop_init_container_annotations(pod["metadata"])
    status = pod.get("status")
    if status:
        _default_status(status)


def default_pod_template(template: Document) -> None:
    """Fill in a template of pods (`spec.template` of a workload)."""
    note_empty_labels(template)
    default_pod_spec(template["spec"])
    _drop_init_container_annotations(template.get("metadata") or {})


def default_pod_spec(spec: Document) -> None:
    """Fill in what pods and templates share."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = TERMINATION_GRACE_S
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for containers in CONTAINER_LISTS:
        for container in spec.get(containers) or ():
            default_container(container)
    if "overhead" in spec:
        round_amounts(spec["overhead"])
    if spec.get("resources") is not None:
        _round_requirements(spec["resources"])
    _default_service_account(spec)


# --- pods only --------------------------------------------------------------------------------------------------


def _default_requests(spec: Document) -> None:
    """Who limits a resource and requests nothing requests the limit."""
    for containers in ("containers", "initContainers"):
        for container in spec.get(containers) or ():
            resources = container["resources"]
            limits = resources.get("limits")
            if not limits:
                continue
            requests = resources.setdefault("requests", {})
            for name, amount in limits.items():
                requests.setdefault(name, amount)


def _default_pod_limits(spec: Document) -> None:
    """Huge pages that containers are limited to are a limit of the pod, if the pod says anything about resources."""
    resources = spec["resources"]
    if not resources.get("limits") and not resources.get("requests"):
        return
    limits, requests = dict(resources.get("limits") or {}), resources.get("requests") or {}
    for name, amount in containers_sum(spec, "limits").items():
        if name.startswith(HUGE_PAGES_PREFIX) and name not in requests:
            limits.setdefault(name, str(amount))
    if limits:
        resources["limits"] = limits


def _default_pod_requests(spec: Document) -> None:
    """What the pod limits it requests: as much as its containers do, or else the limit."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in containers_sum(spec, "requests").items():
        if is_pod_level_resource(name) and allows_overcommit(name):
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def _default_host_ports(spec: Document) -> None:
    """By copies: of a patched pod that is on the host's network now, the containers may be the very stored ones."""
    for containers in ("containers", "initContainers"):
        if spec.get(containers):
            spec[containers] = [_with_host_ports(container) for container in spec[containers]]


def _with_host_ports(container: Document) -> Document:
    ports = container.get("ports")
    return {**container, "ports": [_with_host_port(port) for port in ports]} if ports else container


def _with_host_port(port: Document) -> Document:
    if port.get("hostPort") or not port.get("containerPort"):
        return port
    return {**port, "hostPort": port["containerPort"]}


def _default_status(status: Document) -> None:
    for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(kind) or ():
            if "allocatedResources" in each:
                round_amounts(each["allocatedResources"])
            if each.get("resources"):
                _round_requirements(each["resources"])
    if "allocatedResources" in status:
        round_amounts(status["allocatedResources"])
    if status.get("resources"):
        _round_requirements(status["resources"])
    _default_addresses(status)


def _default_addresses(status: Document) -> None:
    """The single address is the first of the many; where they differ, the single one is believed."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip", "") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


# --- parts ------------------------------------------------------------------------------------------------------


def _round_requirements(requirements: Document) -> None:
    for side in ("limits", "requests"):
        if side in requirements:
            round_amounts(requirements[side])


def _default_service_account(spec: Document) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _drop_init_container_annotations(metadata: Document) -> None:
    annotations = metadata.get("annotations")
    if not annotations or not any(key in annotations for key in _INIT_CONTAINER_ANNOTATIONS):
        return
    kept = {key: value for key, value in annotations.items() if key not in _INIT_CONTAINER_ANNOTATIONS}
    if kept:
        metadata["annotations"] = kept
    else:
        del metadata["annotations"]
