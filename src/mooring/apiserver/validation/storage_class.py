"""What is wrong with a storage class, and with the parts that it shares with a class of volume attributes.

Comes in   a class, and what it was
Goes out   faults

 1. A class is a promise to its claims: who provisions, how, and when a volume is bound never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, not_supported, required, too_long
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.names import qualified_name_faults
from mooring.apiserver.validation.selectors import label_name_faults

PARAMETERS_BYTES_MAX = 256 * 1024
PARAMETERS_COUNT_MAX = 512
RECLAIM_POLICIES = ("Delete", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")

_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def storage_class_faults(obj: Document) -> list[Fault]:
    faults = provisioner_faults(obj.get("provisioner", ""), "provisioner")
    faults += parameters_faults(obj.get("parameters") or {}, "parameters")
    policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
    if policy and policy not in RECLAIM_POLICIES:
        faults.append(not_supported("reclaimPolicy", policy, RECLAIM_POLICIES))
    if mode is None:
        faults.append(required("volumeBindingMode"))
    elif mode not in BINDING_MODES:
        faults.append(not_supported("volumeBindingMode", mode, BINDING_MODES))
    return faults + _topologies_faults(obj.get("allowedTopologies") or (), "allowedTopologies")


def storage_class_update_faults(obj: Document, old: Document) -> list[Fault]:
    """What a change may not touch."""
    faults: list[Fault] = []
    for field in _FIXED:
        value = obj.get(field)
        shown = dict(sorted(value.items())) if isinstance(value, dict) else value
        faults += immutable_faults(shown, old.get(field), field)
    return faults


def provisioner_faults(name: str, path: str) -> list[Fault]:
    """Who makes the volumes: written in any case, and told in lower case."""
    if not name:
        return [required(path)]
    lowered = name.lower()
    return [invalid(path, lowered, text) for text in qualified_name_faults(lowered)]


def parameters_faults(parameters: Mapping[str, str], path: str) -> list[Fault]:
    if len(parameters) > PARAMETERS_COUNT_MAX:
        return [too_long(path, PARAMETERS_COUNT_MAX)]
    faults = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > PARAMETERS_BYTES_MAX:
        faults.append(too_long(path, PARAMETERS_BYTES_MAX))
    return faults


def _topologies_faults(terms: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(terms):
        here = f"{path}[{index}].matchLabelExpressions"
        wanted: dict[str, frozenset[str]] = {}
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = expression.get("key", ""), expression.get("values") or ()
            faults += _topology_faults(key, values, f"{here}[{position}]")
            if key in wanted:
                faults.append(duplicate(f"{here}[{position}].key", key))
            wanted[key] = frozenset(values)
        # A term that wants nothing is told once for each term of the class besides those before it: Kubernetes
        # compares with a list that begins with as many empty ones.
        equals = sum(1 for other in seen if other == wanted) + (0 if wanted else len(terms))
        faults += [duplicate(here, "")] * equals
        seen.append(wanted)
    return faults


def _topology_faults(key: str, values: Sequence[str], path: str) -> list[Fault]:
    faults = [] if values else [required(f"{path}.values")]
    faults += [
        duplicate(f"{path}.values[{index}]", value) for index, value in enumerate(values) if value in values[:index]
    ]
    return faults + label_name_faults(key, f"{path}.key")
