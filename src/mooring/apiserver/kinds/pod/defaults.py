"""Defaults of pods, pod templates, containers and volumes.

1. A pod gets defaults that a template does not get: requests from limits, host ports, service links.
2. Deprecated aliases are kept equal: `serviceAccount` and `serviceAccountName`, `podIP` and `podIPs`. A negative
   grace period becomes one second, and annotations that stood for init containers are removed.
3. An image without a tag and a digest means `latest`, which is always pulled.
4. Quantities are rounded up to thousandths.
5. `labels: {}` of a template differs from absent labels in Go: a Job shares that map with its template, and errors
   print `{}` instead of `null`. The type `WithEmptyLabels` of the template's metadata records it for the time of the
   request; the empty map is not stored.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from mooring.api.document import Document
from mooring.api.quantity import NANO_IN_MILLI, Quantity, parse_quantity, quantity_nano
from mooring.api.resources import HUGE_PAGES_PREFIX, is_pod_level_resource
from mooring.apiserver.kinds.pod.options import CONTAINER_LISTS
from mooring.apiserver.kinds.pod.resources import allows_overcommit, containers_sum

IMAGES_REMEMBERED_MAX = 4_096

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_match_image = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_PATH}(?:/{_PATH})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch

IMAGE_NAME_LENGTH_MAX = 255
"""The longest name of an image, without tag and digest, that a registry accepts."""
FILE_MODE = 0o644
TOKEN_LIFE_S = 3600

_MODED = ("secret", "configMap", "downwardAPI", "projected")
SOURCE_DEFAULTS: dict[str, dict[str, object]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Fixed defaults of volume sources, of pods and of persistent volumes."""

TERMINATION_GRACE_S = 30

_INIT_CONTAINER_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/{what}"
    for stage in ("alpha", "beta")
    for what in ("init-containers", "init-container-statuses")
)


class WithEmptyLabels(dict[str, Any]):
    """Metadata to which empty labels were given."""


def note_empty_labels(template: Document) -> None:
    """Remove empty labels, and record that they were present."""
    metadata = template.get("metadata")
    if metadata is not None and metadata.get("labels") == {}:
        template["metadata"] = WithEmptyLabels({name: value for name, value in metadata.items() if name != "labels"})


def default_container(container: Document) -> None:
    """Fill in a container."""
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        _default_source(variable.get("valueFrom") or {})
    resources = container.get("resources")
    if resources:
        for side in ("limits", "requests"):
            if side in resources:
                round_amounts(resources[side])
    for name in _PROBES:
        if container.get(name) is not None:
            _default_probe(container[name])
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in _HOOKS:
            _default_http((lifecycle.get(name) or {}).get("httpGet"))


@lru_cache(maxsize=IMAGES_REMEMBERED_MAX)
def pull_policy(image: str) -> str:
    """The default pull policy of an image."""
    parts = _match_image(image)
    if parts is None or len(parts["name"]) > IMAGE_NAME_LENGTH_MAX or _is_identifier(image):
        return "IfNotPresent"
    is_latest = parts["tag"] == "latest" or (parts["tag"] is None and parts["digest"] is None)
    return "Always" if is_latest else "IfNotPresent"


def default_field_reference(reference: Document | None) -> None:
    """A reference to a field of the pod is one of version v1."""
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def round_amounts(amounts: dict[str, str]) -> None:
    """Round a list of amounts up to thousandths."""
    for name, raw in amounts.items():
        if quantity_nano(raw) % NANO_IN_MILLI:
            exact = parse_quantity(raw)
            rounded = exact.milli_value() * NANO_IN_MILLI
            amounts[name] = str(Quantity(rounded, exact.format))


def _default_source(source: Document) -> None:
    default_field_reference(source.get("fieldRef"))
    if source.get("fileKeyRef") is not None:
        source["fileKeyRef"].setdefault("optional", False)


def _default_probe(probe: Document) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _default_http(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(action: Document | None) -> None:
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


def default_volume(volume: Document) -> None:
    """Fill in a volume."""
    if len(volume) == 1 or all(source is None for key, source in volume.items() if key != "name"):
        volume["emptyDir"] = {}
        return
    for kind, source in volume.items():
        if kind == "name" or source is None:
            continue
        if kind in _MODED:
            _default_files(kind, source)
        elif kind in SOURCE_DEFAULTS:
            for field, value in SOURCE_DEFAULTS[kind].items():
                source.setdefault(field, value)
        elif kind == "image":
            _default_image(source)
        elif kind == "ephemeral":
            _default_claim_template(source.get("volumeClaimTemplate"))


def _default_files(kind: str, source: Document) -> None:
    source.setdefault("defaultMode", FILE_MODE)
    if kind == "downwardAPI":
        _default_files_of_fields(source)
    for projection in source.get("sources") or ():
        _default_files_of_fields(projection.get("downwardAPI") or {})
        if projection.get("serviceAccountToken") is not None:
            projection["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_LIFE_S)


def _default_files_of_fields(source: Document) -> None:
    for item in source.get("items") or ():
        default_field_reference(item.get("fieldRef"))


def _default_image(source: Document) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference", ""))


def _default_claim_template(template: Document | None) -> None:
    if template is None:
        return
    spec = template["spec"]
    spec.setdefault("volumeMode", "Filesystem")
    for side in ("limits", "requests"):
        amounts = spec.get("resources", {}).get(side)
        if amounts:
            round_amounts(amounts)


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
    """A limit without a request sets the request."""
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
    """Set pod-level limits of huge pages from containers, if the pod has pod-level resources."""
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
    """Set pod-level requests: the sum of the containers, or else the limit."""
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
        for container_status in status.get(kind) or ():
            if "allocatedResources" in container_status:
                round_amounts(container_status["allocatedResources"])
            if container_status.get("resources"):
                _round_requirements(container_status["resources"])
    if "allocatedResources" in status:
        round_amounts(status["allocatedResources"])
    if status.get("resources"):
        _round_requirements(status["resources"])
    _default_addresses(status)


def _default_addresses(status: Document) -> None:
    """The single address is the first of the list. If they differ, the single address wins."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip", "") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


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
