"""What is wrong with a namespace.

1. The finalizers of its spec are named without an index when the namespace is written as a whole, and with one when
   they are: two functions of kube-apiserver that never agreed.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from mooring.apiserver.validation.names import qualified_name_faults

KUBERNETES_FINALIZER = "kubernetes"
ACTIVE, TERMINATING = "Active", "Terminating"

_STANDARD_FINALIZERS = (KUBERNETES_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER)
_UNKNOWN_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"


def namespace_faults(namespace: Document) -> list[Fault]:
    faults: list[Fault] = []
    for name in namespace["spec"].get("finalizers") or ():
        faults += _finalizer_faults(name, "spec.finalizers")
    return faults


def namespace_finalize_faults(namespace: Document) -> list[Fault]:
    faults: list[Fault] = []
    for index, name in enumerate(namespace["spec"].get("finalizers") or ()):
        faults += _finalizer_faults(name, f"spec.finalizers[{index}]")
    return faults


def namespace_status_faults(namespace: Document) -> list[Fault]:
    phase = namespace["status"].get("phase", "")
    if namespace["metadata"].get("deletionTimestamp"):
        if phase != TERMINATING:
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, detail)]
    elif phase != ACTIVE:
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


def _finalizer_faults(name: str, path: str) -> list[Fault]:
    faults = [invalid(path, name, text) for text in qualified_name_faults(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        faults.append(invalid(path, name, _UNKNOWN_FINALIZER))
    return faults
