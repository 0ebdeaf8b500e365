"""What claims request, compiled; and whether a device satisfies a request.

Input: the specifications of claims, the DeviceClasses that they name. Output: `AllocationRequest`, the same for all
claims of one template; checks of one device by class, selectors and tolerations; constraints between devices.

1. Requests do not contain names of claims. `DeviceAllocationError.text` adds the name.
2. The error of a request is stored with it and raised in its turn: kube-scheduler checks requests in order.
3. A selector is evaluated once for each kind of device, and the result is cached with the kind. Selectors are evaluated
   in order, those of the class first. The first that does not match, or fails, ends the evaluation.
4. A device without the attribute of a constraint satisfies no constraint. A constraint that names requests applies to
   their devices only; an alternative is named by its request or by itself.
5. `DistinctAttribute` stores the last value of each request, and drops it when a device of the request is
   released, as in kube-scheduler v1.36: of three devices for one request, the first and third may have the same value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from mooring.api.views.devices import (
    DeviceAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from mooring.api.views.meta import RawQuantity
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.pools import DeviceKind

EXACT_COUNT = "ExactCount"
ALL = "All"
DEVICES_PER_CLAIM_MAX = 32
ALTERNATIVES_MAX = 8
_KNOWN_MODES = ("", EXACT_COUNT, ALL)
_TAINT_EFFECTS = ("NoSchedule", "NoExecute")


class DeviceAllocationError(Exception):
    """An invalid claim, class or pool. The decision ends in an error."""

    def __init__(self, text: str, claim: int | None = None) -> None:
        super().__init__(text)
        self._text = text
        self._claim = claim

    def text(self, claim_names: Sequence[str]) -> str:
        return self._text if self._claim is None else f"claim {claim_names[self._claim]}{self._text}"


class RequestAlternative:
    """A request, or one alternative of a request."""

    def __init__(
        self,
        claim: int,
        base_name: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        device_class: DeviceClass | None,
    ) -> None:
        is_alternative = isinstance(spec, DeviceSubRequest)
        self.claim = claim
        self.base_name = base_name
        self.sub_name = spec.name if isinstance(spec, DeviceSubRequest) else ""
        self.name = self.sub_name if is_alternative else base_name
        self.full_name = f"{base_name}/{self.sub_name}" if is_alternative else base_name
        self.device_class = device_class
        self.expressions = tuple(selector.cel.expression for selector in spec.selectors if selector.cel is not None)
        self.is_all = spec.allocation_mode == ALL
        self.count = spec.count if spec.allocation_mode else spec.count or 1
        self.admin_access = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        self.tolerations = spec.tolerations
        self.capacity: Mapping[str, RawQuantity] = spec.capacity.requests if spec.capacity is not None else {}
        self.portion_key = tuple(self.capacity.items())
        self.error = self._find_error(spec)
        self.selected: dict[int, bool] = {}
        """By number of a device kind: whether the selectors match."""
        self.tolerated: dict[int, bool] = {}
        """By number of a device kind: whether the request tolerates its taints."""

    def tolerates(self, kind: DeviceKind) -> bool:
        known = self.tolerated.get(kind.number)
        if known is None:
            known = self.tolerated[kind.number] = all(
                any(_tolerates(toleration, taint.key, taint.value, taint.effect) for toleration in self.tolerations)
                for taint in kind.view.taints
                if taint.effect in _TAINT_EFFECTS
            )
        return known

    def _find_error(self, spec: ExactDeviceRequest | DeviceSubRequest) -> str | None:
        for index, selector in enumerate(spec.selectors):
            if selector.cel is None:
                return f", request {self.name}, selector #{index}: CEL expression empty (unsupported selector type?)"
        if not spec.device_class_name:
            return f", request {self.name}: missing device class name (unsupported request type?)"
        if self.device_class is None:
            name = spec.device_class_name
            return (
                f", request {self.name}: could not retrieve device class {name}: "
                f'deviceclass.resource.k8s.io "{name}" not found'
            )
        if spec.allocation_mode not in _KNOWN_MODES:
            return f", request {self.name}: unsupported count mode {spec.allocation_mode}"
        return None


class RequestedClaim:
    """One claim: for each request its alternatives, in order of preference."""

    def __init__(self, index: int, spec: ResourceClaimSpec, classes: ObjectStore[DeviceClass]) -> None:
        devices = spec.devices
        self.requests = tuple(_alternatives(index, request, classes) for request in devices.requests)
        self.is_prioritised = tuple(bool(request.first_available) for request in devices.requests)
        self.constraints = devices.constraints
        self.error = _constraint_error(devices.constraints)


class AllocationRequest:
    """The requests of all claims of a pod."""

    def __init__(self, specs: Sequence[ResourceClaimSpec], classes: ObjectStore[DeviceClass]) -> None:
        self.claims = tuple(RequestedClaim(index, spec, classes) for index, spec in enumerate(specs))
        self.scores_alternatives = any(flag for claim in self.claims for flag in claim.is_prioritised)


def _alternatives(
    claim: int, request: DeviceRequest, classes: ObjectStore[DeviceClass]
) -> tuple[RequestAlternative, ...]:
    if request.first_available:
        return tuple(
            RequestAlternative(claim, request.name, subrequest, classes.get(subrequest.device_class_name))
            for subrequest in request.first_available
        )
    exactly = request.exactly or ExactDeviceRequest()
    return (RequestAlternative(claim, request.name, exactly, classes.get(exactly.device_class_name)),)


def _constraint_error(constraints: Sequence[DeviceConstraint]) -> str | None:
    for index, constraint in enumerate(constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            return f", constraint #{index}: empty constraint (unsupported constraint type?)"
    return None


def _tolerates(toleration: DeviceToleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == value
    return toleration.operator == "Exists"


def is_selected(request: RequestAlternative, kind: DeviceKind) -> bool:
    """Whether the class and the selectors match a device. Raises `DeviceAllocationError`."""
    known = request.selected.get(kind.number)
    if known is None:
        device_class = request.device_class
        assert device_class is not None, f"request {request.name} has no class"
        known = request.selected[kind.number] = matches_class(device_class, kind) and _all_match(
            request.expressions, kind, None, request.claim
        )
    return known


def matches_class(device_class: DeviceClass, kind: DeviceKind) -> bool:
    """Whether a device belongs to a class. Raises `DeviceAllocationError`."""
    expressions = [selector.cel.expression for selector in device_class.spec.selectors if selector.cel is not None]
    return _all_match(expressions, kind, device_class.metadata.name, None)


def counts_for(device_class: DeviceClass, kind: DeviceKind) -> bool:
    """Whether a device belongs to a class, for `DeviceTotals`. Raises `DeviceAllocationError`.

    kube-scheduler v1.36 does not set `allowMultipleAllocations` for expressions there.
    """
    if not kind.allows_multiple:
        return matches_class(device_class, kind)
    for selector in device_class.spec.selectors:
        if selector.cel is not None:
            key = f"{selector.cel.expression} (for counting)"
            result = kind.selected.get(key)
            if result is None:
                result = kind.selected[key] = _evaluated(selector.cel.expression, kind, may_be_shared=None)
            if isinstance(result, str):
                raise DeviceAllocationError(result)
            if not result:
                return False
    return True


def _all_match(expressions: Iterable[str], kind: DeviceKind, class_name: str | None, claim: int | None) -> bool:
    for index, expression in enumerate(expressions):
        result = kind.selected.get(expression)
        if result is None:
            result = kind.selected[expression] = _evaluated(expression, kind, kind.view.allow_multiple_allocations)
        if isinstance(result, str):
            where = f"class {class_name}" if class_name is not None else ""
            raise DeviceAllocationError(f"{where}: selector #{index}: {result}", claim)
        if not result:
            return False
    return True


def _evaluated(expression: str, kind: DeviceKind, may_be_shared: bool | None) -> bool | str:
    # Only clusters with devices need CEL, and its import is slow.
    from mooring.api.cel import CelDevice, DeviceSelectorError, SelectorEvaluationError, compile_device_selector

    view = kind.view
    # Not cached: it is large, and each expression is evaluated once.
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


AttributeValue = tuple[str, object]
"""The type of a value, and the value."""


class AttributeConstraint(ABC):
    """A constraint during one allocation."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._count = 0

    def add(self, request: RequestAlternative, kind: DeviceKind) -> bool:
        """Adds a device; False if the constraint forbids it."""
        if not self._applies_to(request):
            return True
        attribute = kind.attribute(self._attribute)
        if attribute is None or not self._accepts(request, attribute_value(attribute)):
            return False
        self._count += 1
        return True

    def remove(self, request: RequestAlternative) -> None:
        """Removes the last device of a request."""
        if self._applies_to(request):
            self._count -= 1
            self._forget(request)

    def _applies_to(self, request: RequestAlternative) -> bool:
        requests = self._requests
        return not requests or request.base_name in requests or request.full_name in requests

    @abstractmethod
    def _accepts(self, request: RequestAlternative, value: AttributeValue | None) -> bool: ...

    def _forget(self, request: RequestAlternative) -> None:  # noqa: B027 - optional hook
        """Drops the last device of a request."""


class MatchAttribute(AttributeConstraint):
    """All devices have the same value."""

    def _accepts(self, request: RequestAlternative, value: AttributeValue | None) -> bool:
        if self._count == 0:
            self._value = value
            return True
        return value is not None and value == self._value


class DistinctAttribute(AttributeConstraint):
    """No two devices have the same value, as far as values are stored."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, AttributeValue | None] = {}

    def _accepts(self, request: RequestAlternative, value: AttributeValue | None) -> bool:
        others = self._values.values()
        if self._count and others and (value is None or value in others):
            return False
        self._values[request.base_name] = value
        return True

    def _forget(self, request: RequestAlternative) -> None:
        self._values.pop(request.base_name, None)


def constraint_of(constraint: DeviceConstraint) -> AttributeConstraint:
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, constraint.requests)
    assert constraint.distinct_attribute is not None, "a constraint has no attribute"
    return DistinctAttribute(constraint.distinct_attribute, constraint.requests)


def attribute_value(attribute: DeviceAttribute) -> AttributeValue | None:
    """The value with its type; None for an unknown type, which equals nothing."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version is not None:
        return "version", attribute.version
    return None
