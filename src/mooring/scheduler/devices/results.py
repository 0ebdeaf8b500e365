"""An allocation as it is written to the claim's status.

Input: the devices for a claim, the claim's specification. Output: `AllocationResult` with the devices, the
configuration for their drivers, and the nodes where the claim can be used.

1. Configuration of classes comes first, once for each class with the names of its requests; then the configuration of
   the claim for the allocated requests.
2. A claim with a device of one node can be used on that node only. Node selectors of several devices are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mooring.api.nodeselector import NAME_FIELD
from mooring.api.views.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClassConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaimSpec,
)
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.scheduler.devices.allocator import DeviceResult
from mooring.scheduler.devices.requests import DeviceAllocationError, RequestAlternative, RequestedClaim

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def allocation_of(
    spec: ResourceClaimSpec,
    claim: RequestedClaim,
    alternatives: Sequence[int],
    taken: Sequence[DeviceResult],
    node_name: str,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    """The allocation of a claim on a node. Raises `DeviceAllocationError`."""
    chosen = [requests[number] for requests, number in zip(claim.requests, alternatives, strict=True)]
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(each, new_share_id) for each in taken),
            config=(*_class_configuration(chosen), *_claim_configuration(spec.devices, chosen)),
        ),
        node_selector=_node_selector(taken, node_name),
    )


def _result(taken: DeviceResult, new_share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    request, device, share = taken
    driver, pool, name = device.id
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if request.admin_access else None,
        tolerations=request.tolerations,
        binding_conditions=device.kind.binding_conditions,
        binding_failure_conditions=device.kind.binding_failure_conditions,
        share_id=new_share_id() if share is not None else None,
        consumed_capacity={name: str(amount) for name, amount in (share or {}).items()},
    )


def _class_configuration(chosen: Iterable[RequestAlternative]) -> list[DeviceAllocationConfiguration]:
    users: dict[str, list[str]] = {}
    configured: dict[str, tuple[DeviceClassConfiguration, ...]] = {}
    for request in chosen:
        device_class = request.device_class
        if device_class is not None:
            users.setdefault(device_class.metadata.name, []).append(request.full_name)
            configured[device_class.metadata.name] = device_class.spec.config
    return [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=tuple(requests), opaque=config.opaque)
        for name, requests in users.items()
        for config in configured[name]
    ]


def _claim_configuration(
    claim: DeviceClaim, chosen: Sequence[RequestAlternative]
) -> list[DeviceAllocationConfiguration]:
    found: list[DeviceAllocationConfiguration] = []
    for config in claim.config:
        meant = [each for each in chosen if each.base_name in config.requests or each.full_name in config.requests]
        own = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        found += [own] * (len(meant) if config.requests else 1)
    return found


def _node_selector(taken: Iterable[DeviceResult], node_name: str) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in taken:
        place = each.device.view if each.device.slice.selects_per_device else each.device.slice.view.spec
        if place.node_name is not None or each.device.kind.binds_to_node:
            return only_on(node_name)
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        if len(terms) > 1:
            raise DeviceAllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def only_on(node_name: str) -> NodeSelector:
    """Selects one node by its name."""
    field = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        is_known = any(
            each.key == other.key and each.operator == other.operator and set(each.values) == set(other.values)
            for other in known
        )
        if not is_known:
            known.append(each)
