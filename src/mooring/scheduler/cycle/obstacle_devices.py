"""Devices in words: what a node lacks for the claims of a pod.

Comes in   a place (pod and node), what DynamicResources knows of the pod
Goes out   `Obstacle`s: "needs 2 of class gpu with memory >= 40Gi: 1 free, 3 in use, 4 too small"

 1. A device counts once, under the first thing that speaks against it: in use, too small, of another sort, tainted.
    Devices of other classes do not count at all.
 2. Where every request could be satisfied alone, it is said that they cannot be together.
 3. Expressions that compare one attribute or one capacity are put into words; others stand there as they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from mooring.scheduler.cycle.obstacle import Kind, Obstacle, Place
from mooring.scheduler.devices.capacity import consumption, fits
from mooring.scheduler.devices.ledger import DeviceLedger
from mooring.scheduler.devices.pools import DeviceKind, PooledDevice, PoolView
from mooring.scheduler.devices.requests import Request, SearchError, WantedClaim
from mooring.scheduler.devices.selection import is_selected, matches_class
from mooring.scheduler.plugins.dynamic_resources_state import PodDevices

PLUGIN = "DynamicResources"
FREE = "free"
_ORDER = (FREE, "in use", "too small", "of another sort", "tainted")

_CAPACITY = re.compile(
    r'device\.capacity\["[^"]*"\]\.(\w+)\.(?:compareTo\(quantity\("([^"]+)"\)\) (>=|>|==|<=|<) 0'
    r'|isGreaterThan\(quantity\("([^"]+)"\)\))'
)
_ATTRIBUTE = re.compile(r'device\.attributes\["[^"]*"\]\.(\w+)(?: (==|!=|>=|<=|>|<) ("[^"]*"|-?\d+|true|false))?')


def device_obstacles(place: Place, state: PodDevices) -> list[Obstacle]:
    """What is in the way of a pod's claims on one node; nothing, if that is not a matter of devices."""
    found = [_out_of_reach(place, state, index) for index in state.out_of_reach(place.row)]
    part = state.part_at(place.row)
    if part is None:
        return found
    pools = place.columns.shared(DeviceLedger).inventory.pools(place.row)
    for name, claim in zip(part.names, part.answers.wanted.claims, strict=True):
        found += _of_claim(place, name, claim, pools)
    if not found:
        claims = " and ".join(part.names)
        found.append(Obstacle(PLUGIN, Kind.DEVICE, f"the devices for {claims} cannot be had together"))
    return found


def _out_of_reach(place: Place, state: PodDevices, index: int) -> Obstacle:
    key = state.claims[index].key
    return Obstacle(PLUGIN, Kind.DEVICE, f"claim {key} has devices that cannot be used from here", {"claim": key})


def _of_claim(place: Place, name: str, claim: WantedClaim, pools: Iterable[PoolView]) -> list[Obstacle]:
    found = []
    for alternatives in claim.requests:
        counts = [_counted(place, request, pools) for request in alternatives]
        if all(count[FREE] < _needed(request, count) for request, count in zip(alternatives, counts, strict=True)):
            wanted = " or ".join(_wanted(request) for request in alternatives)
            told = " or ".join(_told(count) for count in counts)
            text = f"needs {wanted}: {told}{_troubled(pools)}"
            details: dict[str, str | int] = {
                "claim": name,
                "request": alternatives[0].base_name,
                "needs": wanted,
                **{word.replace(" ", "-"): number for word, number in _in_order(counts[0])},
            }
            found.append(Obstacle(PLUGIN, Kind.DEVICE, text, details))
    if not found and claim.constraints and any(claim.requests):
        attributes = ", ".join(each.match_attribute or each.distinct_attribute or "" for each in claim.constraints)
        if attributes:
            text = f"no free devices for {name} that agree on {attributes}"
            found.append(Obstacle(PLUGIN, Kind.DEVICE, text, {"claim": name, "needs": attributes}))
    return found


def _needed(request: Request, counts: Counter[str]) -> int:
    return max(1, sum(counts.values())) if request.is_all else request.count


def _counted(place: Place, request: Request, pools: Iterable[PoolView]) -> Counter[str]:
    """How many devices of the request's class there are, by what speaks against them."""
    counts: Counter[str] = Counter({FREE: 0})
    for pool in pools:
        for device, is_reached in zip(pool.devices, pool.reached, strict=True):
            try:
                is_one = request.device_class is not None and matches_class(request.device_class, device.kind)
                if is_one and is_reached:
                    counts[_against(place, request, device)] += 1
            except SearchError:
                continue  # the decision has ended in this error, which is told elsewhere
    return counts


def _against(place: Place, request: Request, device: PooledDevice) -> str:
    usage = place.columns.shared(DeviceLedger).usage
    kind = device.kind
    if not is_selected(request, kind):
        return "too small" if _is_about_size(request, kind) else "of another sort"
    if usage.is_taken(device.id) and not request.admin_access:
        return "in use"
    if request.capacity or kind.capacities:
        consumed = consumption(kind.capacities, request.capacity)
        if consumed is None or not fits(kind.capacities, consumed):
            return "too small"
        if not fits(kind.capacities, consumed, usage.consumed.get(device.id, {})):
            return "in use"
    return FREE if request.tolerates(kind) else "tainted"


def _is_about_size(request: Request, kind: DeviceKind) -> bool:
    """Whether it is an expression about capacity that does not take the device."""
    refusing = [each for each in request.expressions if kind.selected.get(each) is False]
    return bool(refusing) and all(_CAPACITY.fullmatch(each.strip()) for each in refusing)


def _wanted(request: Request) -> str:
    number = "all" if request.is_all else str(request.count)
    name = request.device_class.metadata.name if request.device_class is not None else "?"
    demands = [in_words(expression) for expression in request.expressions]
    demands += [f"{amount} {what} left" for what, amount in request.capacity.items()]
    return f"{number} of class {name}" + (f" with {' and '.join(demands)}" if demands else "")


def in_words(expression: str) -> str:
    """`memory >= 40Gi` for the expression that says so; any other expression as it is."""
    said = [_comparison(part.strip()) for part in expression.split("&&")]
    return " and ".join(said) if all(said) else expression


def _comparison(part: str) -> str:
    capacity = _CAPACITY.fullmatch(part)
    if capacity is not None:
        name, amount, operator, more_than = capacity.groups()
        return f"{name} {operator} {amount}" if amount is not None else f"{name} > {more_than}"
    attribute = _ATTRIBUTE.fullmatch(part)
    if attribute is None:
        return ""
    name, operator, value = attribute.groups()
    return f"{name} {operator} {value.strip(chr(34))}" if operator is not None else name


def _told(counts: Counter[str]) -> str:
    if not any(counts.values()):
        return "the node has none"
    return ", ".join(f"{number} {word}" for word, number in _in_order(counts) if number or word == FREE)


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(word, counts[word]) for word in _ORDER]


def _troubled(pools: Iterable[PoolView]) -> str:
    updating = [pool.id[1] for pool in pools if pool.is_incomplete]
    broken = [pool.id[1] for pool in pools if pool.is_invalid]
    said = [f"pool {name} is being updated" for name in updating] + [
        f"pool {name} contradicts itself" for name in broken
    ]
    return f" ({', '.join(said)})" if said else ""
