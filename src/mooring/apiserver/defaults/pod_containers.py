"""Defaults of a container: pull policy, messages at its end, ports, references, probes, amounts.

Comes in   a container of any sort
Goes out   the same, filled in

 1. An image without a tag and without a digest means `latest`, and what is `latest` is always pulled.
 2. Amounts are rounded up to thousandths, as they were when thousandths were all there was.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mooring.api.document import Document
from mooring.api.quantity import NANO_IN_MILLI, Quantity, parse_quantity, quantity_nano

IMAGES_REMEMBERED_MAX = 4_096

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_match_image = re.compile(
    rf"(?:{_HOST}/)?{_PATH}(?:/{_PATH})*"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch


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
    """When an image is pulled, if nobody says."""
    parts = _match_image(image)
    if parts is None or _is_identifier(image):
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
