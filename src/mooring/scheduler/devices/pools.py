"""ResourceSlices as pools of devices, as one node sees them; consumable capacity.

Input: the slices of a pool, and which of them match a node. Output: `PoolView`, with the devices in the order of
allocation, or marked as incomplete or invalid.

Drivers publish a pool in slices, which are created and updated one by one. Nodes that match the same slices share one
view of the pool.

1. Only the newest generation that matches a node counts. A pool with missing slices is incomplete; one that contradicts
   itself is invalid. Both are visible and offer no devices.
2. Slices are sorted by name. Devices keep the order of their slice.
3. Slices with counters are visible on every node, and so is an incomplete or invalid pool, as in kube-scheduler v1.36.
4. Devices that differ only in name share one `DeviceKind`, which caches what was evaluated for it.

Consumable capacity:

5. A request that does not mention a capacity consumes the default of its request policy, or all of it.
6. A requested amount is rounded up to the next step of the range, or to the next valid value.
7. Every device is checked, also one that is not shared: it must be large enough.
8. An amount that equals the default in value and in format is always valid, as in kube-scheduler v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from mooring.api.quantity import NANO, Format, Quantity, parse_quantity, quantity_nano
from mooring.api.views.devices import CapacityRequestPolicy, Device, DeviceAttribute, DeviceCapacity, ResourceSlice
from mooring.api.views.meta import RawQuantity

Amounts = Mapping[str, int]
"""Capacity name -> billionths."""


class RequestPolicy(NamedTuple):
    """The amounts of a capacity that a request may consume."""

    default: Quantity | None
    valid_values: tuple[Quantity, ...]
    has_range: bool
    least: Quantity | None
    most: Quantity | None
    step: Quantity | None


class Capacity(NamedTuple):
    """The size of a capacity, and its request policy."""

    whole: Quantity
    policy: RequestPolicy | None


def read_capacities(published: Mapping[str, DeviceCapacity]) -> dict[str, Capacity]:
    return {
        name: Capacity(parse_quantity(capacity.value), _read_policy(capacity.request_policy))
        for name, capacity in published.items()
    }


def consumption(capacities: Mapping[str, Capacity], requested: Mapping[str, RawQuantity]) -> dict[str, Quantity] | None:
    """What a request consumes of each capacity; None if it violates a policy or requests an unknown capacity."""
    if any(name not in capacities for name in requested):
        return None
    consumed: dict[str, Quantity] = {}
    for name, capacity in capacities.items():
        amount = _portion(capacity, requested.get(name))
        if _violates_policy(amount, capacity.policy):
            return None
        consumed[name] = amount
    return consumed


def fits(capacities: Mapping[str, Capacity], consumed: Mapping[str, Quantity], *others: Amounts) -> bool:
    """Whether each capacity suffices for this and all other consumption."""
    for name, amount in consumed.items():
        total_nano = amount.amount_nano
        for other in others:
            total_nano += other.get(name, 0)
        if total_nano > capacities[name].whole.amount_nano:
            return False
    return True


def _portion(capacity: Capacity, requested: RawQuantity | None) -> Quantity:
    policy = capacity.policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.whole
    amount = parse_quantity(requested)
    if policy is None:
        return amount
    if policy.has_range and policy.least is not None:
        return _rounded_to_range(amount, policy.least, policy.step)
    return next((valid for valid in policy.valid_values if amount <= valid), amount)


def _rounded_to_range(amount: Quantity, least: Quantity, step: Quantity | None) -> Quantity:
    if amount < least:
        return least
    if step is None or not step.value():
        return amount
    steps = -((least.value() - amount.value()) // step.value())
    return Quantity((least.value() + step.value() * steps) * NANO, Format.BINARY_SI)


def _violates_policy(amount: Quantity, policy: RequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and _is_identical(amount, policy.default)):
        return False
    if policy.has_range:
        if policy.most is not None and amount > policy.most:
            return True
        if policy.step is None or not policy.step.value() or policy.least is None:
            return False
        return (amount.value() - policy.least.value()) % policy.step.value() != 0
    return bool(policy.valid_values) and all(amount != valid for valid in policy.valid_values)


def _is_identical(one: Quantity, other: Quantity) -> bool:
    return one == other and one.format is other.format and one.written == other.written


def _read_policy(policy: CapacityRequestPolicy | None) -> RequestPolicy | None:
    if policy is None:
        return None
    valid_range = policy.valid_range
    return RequestPolicy(
        default=_optional(policy.default),
        valid_values=tuple(parse_quantity(value) for value in policy.valid_values),
        has_range=valid_range is not None,
        least=_optional(valid_range.min) if valid_range is not None else None,
        most=_optional(valid_range.max) if valid_range is not None else None,
        step=_optional(valid_range.step) if valid_range is not None else None,
    )


def _optional(raw: RawQuantity | None) -> Quantity | None:
    return parse_quantity(raw) if raw is not None else None


DeviceId = tuple[str, str, str]
"""Driver, pool, device."""
PoolId = tuple[str, str]
CounterSets = Mapping[str, Mapping[str, int]]
"""Counter set -> counter -> billionths."""

_encode = msgspec.msgpack.Encoder().encode


class DeviceKind:
    """What identical devices have in common: everything but the name."""

    def __init__(self, number: int, driver: str, view: Device) -> None:
        self.number = number
        self.driver = driver
        self.view = view
        self.allows_multiple = bool(view.allow_multiple_allocations)
        self.binds_to_node = view.binds_to_node
        self.binding_conditions = view.binding_conditions
        self.binding_failure_conditions = view.binding_failure_conditions
        self.has_taints = bool(view.taints)
        self.capacities = read_capacities(view.capacity)
        self.counters = tuple(
            (consumed.counter_set, name, quantity_nano(counter.value))
            for consumed in view.consumes_counters
            for name, counter in consumed.counters.items()
        )
        self.selected: dict[str, bool | str] = {}
        """By expression: whether a selector matches, or the text of its error."""
        self.portions: dict[object, dict[str, Quantity] | None] = {}
        """By requested capacity: what a request consumes of the device; None if the request is invalid."""

    def attribute(self, name: str) -> DeviceAttribute | None:
        """An attribute by its full name. Without a domain it belongs to the driver."""
        attributes = self.view.attributes
        if name in attributes:
            return attributes[name]
        domain, slash, short = name.partition("/")
        return attributes.get(short) if slash and domain == self.driver else None


class PooledDevice:
    """One device of a slice."""

    __slots__ = ("id", "kind", "slice", "view")

    def __init__(self, id_: DeviceId, kind: DeviceKind, view: Device, in_slice: PooledSlice) -> None:
        self.id = id_
        self.kind = kind
        self.view = view
        self.slice = in_slice


class PooledSlice:
    """A slice with its devices."""

    def __init__(self, view: ResourceSlice, kinds: DeviceKinds) -> None:
        spec = view.spec
        self.view = view
        self.name = view.metadata.name
        self.devices = tuple(
            PooledDevice((spec.driver, spec.pool.name, device.name), kinds.of(spec.driver, device), device, self)
            for device in spec.devices
        )

    @property
    def pool_id(self) -> PoolId:
        return self.view.spec.driver, self.view.spec.pool.name

    @property
    def generation(self) -> int:
        return self.view.spec.pool.generation

    @property
    def has_counters(self) -> bool:
        return bool(self.view.spec.shared_counters)

    @property
    def selects_per_device(self) -> bool:
        return bool(self.view.spec.per_device_node_selection)


class DeviceKinds:
    """All kinds of devices. A kind without devices is garbage collected."""

    def __init__(self) -> None:
        self._kinds: WeakValueDictionary[bytes, DeviceKind] = WeakValueDictionary()
        self._count = 0

    def of(self, driver: str, device: Device) -> DeviceKind:
        nameless = msgspec.structs.replace(device, name="", node_name=None, node_selector=None, all_nodes=None)
        key = _encode((driver, nameless))
        kind = self._kinds.get(key)
        if kind is None:
            self._count += 1
            kind = self._kinds[key] = DeviceKind(self._count, driver, nameless)
        return kind


class PoolView:
    """A pool as some nodes see it."""

    def __init__(
        self,
        pool_id: PoolId,
        devices: tuple[PooledDevice, ...] = (),
        matching: tuple[bool, ...] = (),
        others: tuple[PooledDevice, ...] = (),
        counter_sets: CounterSets | None = None,
        *,
        is_incomplete: bool = False,
        is_invalid: bool = False,
    ) -> None:
        self.id = pool_id
        self.devices = devices
        self.matching = matching
        """Per device: whether it matches the node. False occurs only with per-device node selection."""
        self.others = others
        """Devices that do not match the node but consume the same counters."""
        self.counter_sets: CounterSets = counter_sets or {}
        self.is_incomplete = is_incomplete
        self.is_invalid = is_invalid
        self.has_binding_conditions = any(device.kind.binding_conditions for device in devices)
        self.content = (
            pool_id[0],
            is_incomplete,
            is_invalid,
            tuple([device.kind.number for device in devices]),
            matching if not all(matching) else (),
            tuple([device.kind.number for device in others]),
            tuple([(name, *sorted(counters.items())) for name, counters in sorted(self.counter_sets.items())]),
        )
        """Equal for views that differ only in names and allocations."""

    @property
    def is_irrelevant(self) -> bool:
        """Whether the pool has no effect on the allocator."""
        return not self.devices and not self.is_incomplete and not self.is_invalid


def view_of(
    pool_id: PoolId, slices: Sequence[PooledSlice], matching: Mapping[str, tuple[bool, ...] | None]
) -> PoolView | None:
    """The view of a pool on nodes that match some of its slices; None if the pool is not visible there.

    `slices` are all slices of the pool, by name. `matching` has the names of those that match the nodes, and with
    per-device node selection, which devices match.
    """
    seen = [pooled for pooled in slices if pooled.name in matching]
    if not seen:
        return None
    generation = max(pooled.generation for pooled in seen)
    seen = [pooled for pooled in seen if pooled.generation == generation]
    slice_count = seen[0].view.spec.pool.resource_slice_count
    whole = seen
    if len(seen) != slice_count:
        if any(pooled.generation > generation for pooled in slices):
            return None  # replaced by slices that do not match these nodes
        whole = [pooled for pooled in slices if pooled.generation == generation]
        if len(whole) != slice_count:
            return PoolView(pool_id, is_incomplete=True)
    return _build_view(pool_id, seen, whole, matching)


def _build_view(
    pool_id: PoolId,
    seen: Sequence[PooledSlice],
    whole: Sequence[PooledSlice],
    matching: Mapping[str, tuple[bool, ...] | None],
) -> PoolView:
    offering = [pooled for pooled in seen if not pooled.has_counters]
    devices = tuple(device for pooled in offering for device in pooled.devices)
    counter_sets = _counter_sets(seen)
    others = tuple(device for pooled in whole if pooled not in seen for device in pooled.devices)
    if (
        counter_sets is None
        or len({device.id for device in devices}) != len(devices)
        or not _counters_exist(counter_sets, [device for pooled in seen for device in pooled.devices])
        or not _counters_exist(counter_sets, others)
    ):
        return PoolView(pool_id, is_invalid=True)
    matching_devices = tuple(
        flag for pooled in offering for flag in (matching[pooled.name] or (True,) * len(pooled.devices))
    )
    return PoolView(pool_id, devices, matching_devices, others, counter_sets)


def _counter_sets(slices: Iterable[PooledSlice]) -> dict[str, dict[str, int]] | None:
    """The counter sets of a pool; None if two have the same name."""
    found: dict[str, dict[str, int]] = {}
    for pooled in slices:
        for counter_set in pooled.view.spec.shared_counters:
            if counter_set.name in found:
                return None
            found[counter_set.name] = {
                name: quantity_nano(counter.value) for name, counter in counter_set.counters.items()
            }
    return found


def _counters_exist(counter_sets: CounterSets, devices: Iterable[PooledDevice]) -> bool:
    for device in devices:
        for consumed in device.view.consumes_counters:
            known = counter_sets.get(consumed.counter_set)
            if known is None or any(name not in known for name in consumed.counters):
                return False
    return True
