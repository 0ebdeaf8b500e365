"""What is wrong with probes and with hooks of a container's life.

Comes in   `livenessProbe`, `readinessProbe`, `startupProbe`, `lifecycle`
Goes out   faults

 1. `stopSignal` has no rule: its gate is off in v1.36, and the field is dropped before it comes here.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import http_header_name_faults, port_name_faults, port_number_faults
from mooring.apiserver.validation.resources import non_negative_faults

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")


def probes_faults(container: Document, path: str) -> list[Fault]:
    """What is wrong with the probes of a container."""
    faults: list[Fault] = []
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if probe is None:
            continue
        here = f"{path}.{kind}"
        faults += _probe_faults(probe, here)
        if kind == "readinessProbe":
            grace_s = probe.get("terminationGracePeriodSeconds")
            if grace_s is not None:
                detail = "must not be set for readinessProbes"
                faults.append(invalid(f"{here}.terminationGracePeriodSeconds", grace_s, detail))
        elif probe.get("successThreshold", 0) != 1:
            faults.append(invalid(f"{here}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return faults


def lifecycle_faults(lifecycle: Document | None, grace_s: int | None, path: str) -> list[Fault]:
    """What is wrong with the hooks of a container."""
    if lifecycle is None:
        return []
    faults: list[Fault] = []
    for kind in ("postStart", "preStop"):
        if lifecycle.get(kind) is not None:
            faults += _handler_faults(lifecycle[kind], _HOOK_HANDLERS, grace_s, f"{path}.{kind}")
    return faults


def port_faults(port: object, path: str) -> list[Fault]:
    """A port by number or by name."""
    if isinstance(port, str):
        return [invalid(path, port, text) for text in port_name_faults(port)]
    number = port if isinstance(port, int) else 0
    return [invalid(path, number, text) for text in port_number_faults(number)]


# --- parts ------------------------------------------------------------------------------------------------------


def _probe_faults(probe: Document, path: str) -> list[Fault]:
    faults = _handler_faults(probe, _PROBE_HANDLERS, None, path)
    for field in _COUNTS:
        faults += non_negative_faults(probe.get(field, 0), f"{path}.{field}")
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        faults.append(invalid(f"{path}.terminationGracePeriodSeconds", grace_s, "must be greater than 0"))
    return faults


def _handler_faults(handler: Document, kinds: tuple[str, ...], grace_s: int | None, path: str) -> list[Fault]:
    """Exactly one way to ask, or to act."""
    faults: list[Fault] = []
    is_given = False
    for kind in kinds:
        action = handler.get(kind)
        if action is None:
            continue
        if is_given:
            faults.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
        else:
            is_given = True
            faults += _action_faults(kind, action, grace_s, f"{path}.{kind}")
    if not is_given:
        faults.append(required(path, "must specify a handler type"))
    return faults


def _action_faults(kind: str, action: Document, grace_s: int | None, path: str) -> list[Fault]:
    match kind:
        case "exec":
            return [] if action.get("command") else [required(f"{path}.command")]
        case "httpGet":
            return _http_faults(action, path)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_s is None or 0 <= seconds <= grace_s:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            return [invalid(path, seconds, detail)]
        case _:
            return port_faults(action.get("port", 0), f"{path}.port")


def _http_faults(action: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not action.get("path"):
        faults.append(required(f"{path}.path"))
    faults += port_faults(action.get("port", 0), f"{path}.port")
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        faults.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        faults += [invalid(f"{path}.httpHeaders", name, text) for text in http_header_name_faults(name)]
    return faults
