"""What is wrong with the devices that a claim asks for.

Comes in   the spec of a claim, or of a template of claims
Goes out   faults; the requests that others may refer to

 1. A request asks for devices exactly, or names alternatives (sub-requests) and takes the first that can be had.
    Others refer to it as `request` or `request/alternative`.
 2. Specs never change: they are judged once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.device_names import each_faults, full_device_name_faults, label_faults, set_faults
from mooring.apiserver.validation.device_selectors import CONFIGS_COUNT_MAX, configuration_faults, selectors_faults
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_subdomain_faults
from mooring.apiserver.validation.selectors import label_name_faults
from mooring.apiserver.validation.volumes_claims import template_metadata_faults

REQUESTS_COUNT_MAX = 32
CONSTRAINTS_COUNT_MAX = 32
ALTERNATIVES_COUNT_MAX = 8
ALLOCATION_MODES = ("All", "ExactCount")
OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoExecute", "NoSchedule", "None")

RequestNames: TypeAlias = Mapping[str, frozenset[str]]
"""The names of the requests, and for each those of its alternatives."""

_ONE_WAY = "exactly one of `exactly` or `firstAvailable` is required"
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_NO_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'  # as it says
)


def claim_spec_faults(spec: Document, path: str) -> list[Fault]:
    devices = spec.get("devices") or {}
    here, names = f"{path}.devices", request_names(devices)
    faults = set_faults(
        devices.get("requests") or (), REQUESTS_COUNT_MAX, _request_faults, f"{here}.requests", key=_name_of
    )
    faults += each_faults(
        devices.get("constraints") or (),
        CONSTRAINTS_COUNT_MAX,
        partial(_constraint_faults, names=names),
        f"{here}.constraints",
    )
    return faults + each_faults(
        devices.get("config") or (), CONFIGS_COUNT_MAX, partial(_config_faults, names=names), f"{here}.config"
    )


def claim_template_faults(spec: Document, path: str) -> list[Fault]:
    faults = template_metadata_faults(spec.get("metadata") or {}, f"{path}.metadata")
    return faults + claim_spec_faults(spec.get("spec") or {}, f"{path}.spec")


def request_names(devices: Document) -> RequestNames:
    return {
        request.get("name", ""): frozenset(sub.get("name", "") for sub in request.get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def request_reference_faults(name: str, path: str, names: RequestNames) -> list[Fault]:
    """What is wrong with a name that should be one of the claim's requests."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _UNKNOWN_REQUEST)]
    faults: list[Fault] = []
    for part in parts:
        faults += label_faults(part, path)
    is_known = parts[0] in names and (len(parts) == 1 or parts[1] in names[parts[0]])
    return faults if is_known else [*faults, invalid(path, name, _UNKNOWN_REQUEST)]


def request_references_faults(names: Sequence[str], path: str, known: RequestNames) -> list[Fault]:
    return set_faults(names, REQUESTS_COUNT_MAX, lambda name, here: request_reference_faults(name, here, known), path)


# --- requests -----------------------------------------------------------------------------------------------------


def _name_of(named: Document) -> str:
    return str(named.get("name", ""))


def _request_faults(request: Document, path: str) -> list[Fault]:
    faults = label_faults(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        return [*faults, required(path, _ONE_WAY)]
    if exactly is not None and alternatives:
        return [*faults, invalid(path, None, f"{_ONE_WAY}, but multiple fields are set")]
    if exactly is not None:
        return faults + _wish_faults(exactly, f"{path}.exactly")
    return faults + set_faults(
        alternatives or (), ALTERNATIVES_COUNT_MAX, _alternative_faults, f"{path}.firstAvailable", key=_name_of
    )


def _alternative_faults(alternative: Document, path: str) -> list[Fault]:
    return label_faults(alternative.get("name", ""), f"{path}.name") + _wish_faults(alternative, path)


def _wish_faults(wish: Document, path: str) -> list[Fault]:
    """Which devices, and how many."""
    name = wish.get("deviceClassName", "")
    if name:
        faults = [invalid(f"{path}.deviceClassName", name, text) for text in dns_subdomain_faults(name)]
    else:
        faults = [required(f"{path}.deviceClassName")]
    faults += selectors_faults(wish.get("selectors") or (), f"{path}.selectors")
    faults += _count_faults(wish.get("allocationMode", ""), wish.get("count", 0), path)
    for index, toleration in enumerate(wish.get("tolerations") or ()):
        faults += _toleration_faults(toleration, f"{path}.tolerations[{index}]")
    return faults


def _count_faults(mode: str, count: int, path: str) -> list[Fault]:
    match mode:
        case "All":
            detail = "must not be specified when allocationMode is 'All'"
            return [invalid(f"{path}.count", count, detail)] if count else []
        case "ExactCount":
            return [invalid(f"{path}.count", count, "must be greater than zero")] if count <= 0 else []
        case _:
            return [not_supported(f"{path}.allocationMode", mode, ALLOCATION_MODES)]


def _toleration_faults(toleration: Document, path: str) -> list[Fault]:
    key, value, effect = toleration.get("key", ""), toleration.get("value", ""), toleration.get("effect", "")
    faults = label_name_faults(key, f"{path}.key") if key else []
    match toleration.get("operator", ""):
        case "Exists":
            if value:
                faults.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
        case "Equal":
            faults += [invalid(f"{path}.value", value, text) for text in label_value_faults(value)]
        case "":
            faults.append(required(f"{path}.operator"))
        case operator:
            faults.append(not_supported(f"{path}.operator", operator, OPERATORS))
    if effect and effect not in EFFECTS:
        faults.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return faults


# --- constraints and configuration --------------------------------------------------------------------------------


def _constraint_faults(constraint: Document, path: str, names: RequestNames) -> list[Fault]:
    faults = request_references_faults(constraint.get("requests") or (), f"{path}.requests", names)
    for field in ("matchAttribute", "distinctAttribute"):
        attribute = constraint.get(field)
        if attribute is not None:
            return faults + full_device_name_faults(attribute, f"{path}.{field}")
    return [*faults, required(path, _NO_ATTRIBUTE)]


def _config_faults(config: Document, path: str, names: RequestNames) -> list[Fault]:
    faults = request_references_faults(config.get("requests") or (), f"{path}.requests", names)
    return faults + configuration_faults(config, path)
