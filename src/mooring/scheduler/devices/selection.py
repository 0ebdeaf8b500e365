"""Selection: does a device suit the class and the selectors of a request?

Comes in   a kind of device and a request
Goes out   yes, no, or the failure of an expression, in Kubernetes' words

 1. An expression is evaluated once for each kind of device, whatever the number of devices and requests, and the answer
    is kept with the kind.
 2. Selectors are asked in order, those of the class first; the first that says no, or fails, ends it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.views.devices import DeviceClass
from mooring.scheduler.devices.pools import DeviceKind
from mooring.scheduler.devices.requests import Request, SearchError


def is_selected(request: Request, kind: DeviceKind) -> bool:
    """Whether the class and the request take such a device. Raises `SearchError`."""
    known = request.selected.get(kind.number)
    if known is None:
        device_class = request.device_class
        assert device_class is not None, f"request {request.name} has no class"
        known = request.selected[kind.number] = matches_class(device_class, kind) and _all_match(
            request.expressions, kind, None, request.claim
        )
    return known


def matches_class(device_class: DeviceClass, kind: DeviceKind) -> bool:
    """Whether a device belongs to a class. Raises `SearchError`."""
    expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel is not None]
    return _all_match(expressions, kind, device_class.metadata.name, None)


def counts_for(device_class: DeviceClass, kind: DeviceKind) -> bool:
    """Whether a device belongs to a class, to those who only count devices. Raises `SearchError`.

    kube-scheduler v1.36 does not tell expressions there that a device may be shared.
    """
    if not kind.allows_multiple:
        return matches_class(device_class, kind)
    for each in device_class.spec.selectors:
        if each.cel is not None:
            key = f"{each.cel.expression} (for counting)"
            answer = kind.selected.get(key)
            if answer is None:
                answer = kind.selected[key] = _evaluated(each.cel.expression, kind, may_be_shared=None)
            if isinstance(answer, str):
                raise SearchError(answer)
            if not answer:
                return False
    return True


def _all_match(expressions: Iterable[str], kind: DeviceKind, class_name: str | None, claim: int | None) -> bool:
    for index, expression in enumerate(expressions):
        answer = kind.selected.get(expression)
        if answer is None:
            answer = kind.selected[expression] = _evaluated(expression, kind, kind.view.allow_multiple_allocations)
        if isinstance(answer, str):
            where = f"class {class_name}" if class_name is not None else ""
            raise SearchError(f"{where}: selector #{index}: {answer}", claim)
        if not answer:
            return False
    return True


def _evaluated(expression: str, kind: DeviceKind, may_be_shared: bool | None) -> bool | str:
    # Only clusters with devices need it, and it takes longer to import than everything else here.
    from mooring.api.cel import CelDevice, DeviceSelectorError, SelectorEvaluationError, compile_device_selector

    view = kind.view
    # Made each time: it is large, and hardly ever asked again.
    device = CelDevice(
        driver=kind.driver,
        attributes=view.attributes,
        capacity={name: capacity.value for name, capacity in view.capacity.items()},
        allow_multiple_allocations=may_be_shared,
    )
    try:
        return compile_device_selector(expression).matches(device)
    except DeviceSelectorError as error:
        return f"CEL compile error: {error}"
    except SelectorEvaluationError as error:
        return f"CEL runtime error: {error}"
