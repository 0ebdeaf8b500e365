"""The downward API: values of fields and resources of a pod.

Input: a pod, its node, and a fieldRef or resourceFieldRef. Output: a text; or a `ContainerConfigError` with the text of
the kubelet.

 1. All labels or annotations are lines of `key="value"`, sorted; a single one is its value, empty if it is absent.
 2. A resource is divided by the divisor and rounded up: half a core is 1 core.
 3. A container without a limit gets the limit of the pod, or the allocatable resources of the node.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.quantity import quantity_milli, quantity_value
from mooring.api.views.base import RawQuantity
from mooring.kubelet.environment.references import ContainerConfigError, NodeFacts
from mooring.kubelet.full_views import FieldSource, FullContainer, FullPod, ResourceSource

_LIMITED_BY_NODE = ("cpu", "memory", "ephemeral-storage")
_LIMITED_BY_POD = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b"} | {
    "\f": "\\f",
    "\v": "\\v",
}


def field_value(source: FieldSource, pod: FullPod, place: NodeFacts) -> str:
    """The value of a fieldRef. Raises `ContainerConfigError`."""
    if source.api_version != "v1":
        raise ContainerConfigError(f"unsupported pod version: {source.api_version}")
    path, key = _split(source.field_path)
    metadata = pod.metadata
    if key is not None:
        maps = {"metadata.labels": metadata.labels, "metadata.annotations": metadata.annotations}
        if path not in maps:
            raise ContainerConfigError(f"field label does not support subscript: {source.field_path}")
        return maps[path].get(key, "")
    match path:
        case "metadata.labels":
            return _lines(metadata.labels)
        case "metadata.annotations":
            return _lines(metadata.annotations)
    values = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.host": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
    }
    if path not in values:
        raise ContainerConfigError(f"field label not supported: {path}")
    return values[path]


def resource_value(source: ResourceSource, pod: FullPod, container: FullContainer | None, place: NodeFacts) -> str:
    """The value of a resourceFieldRef. Raises `ContainerConfigError`.

    `container` is the container with the reference; None where the reference must name one.
    """
    if source.container_name or container is None:
        container = _container_named(source.container_name, pod)
    side, _, name = source.resource.partition(".")
    is_known = name in _LIMITED_BY_NODE or name.startswith(_HUGE_PAGES)
    if side not in ("limits", "requests") or not is_known:
        raise ContainerConfigError(f"unsupported container resource : {source.resource}")
    amount = container.resources.requests.get(name, 0)
    if side == "limits":
        amount = _limit(name, pod, container, place)
    if name == "cpu":
        return _divided(quantity_milli(amount), quantity_milli(source.divisor) or 1000)
    return _divided(quantity_value(amount), quantity_value(source.divisor) or 1)


def _limit(name: str, pod: FullPod, container: FullContainer, place: NodeFacts) -> RawQuantity:
    own = container.resources.limits.get(name, 0)
    if quantity_milli(own) or name not in _LIMITED_BY_NODE or name not in place.allocatable:
        return own
    limits = pod.spec.resources.limits if pod.spec.resources is not None else {}
    of_pod = limits.get(name, 0) if name in _LIMITED_BY_POD else 0
    return of_pod if quantity_milli(of_pod) else place.allocatable[name]


def _container_named(name: str, pod: FullPod) -> FullContainer:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            return container
    raise ContainerConfigError(f"container {name} not found")


def _divided(amount: int, divisor: int) -> str:
    return str(-(-amount // divisor))


def _split(path: str) -> tuple[str, str | None]:
    """Splits `metadata.labels['x']`."""
    front, bracket, key = path.partition("['")
    return (front, key[:-2]) if front and bracket and key.endswith("']") else (path, None)


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """Quotes as Go does: printable characters stay, others are escaped."""
    return '"' + "".join(_ESCAPES.get(character) or _printable(character) for character in text) + '"'


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
