"""Namespace (v1).

1. `spec.finalizers` changes only through `finalize`. A new namespace has the finalizer `kubernetes`.
2. Errors of `spec.finalizers` have no index when the whole namespace is written, and one when they are written through
   `finalize`, as in kube-apiserver.
3. A new namespace gets the label `kubernetes.io/metadata.name`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.well_known import NAMESPACE_FINALIZER
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.metadata import STANDARD_FINALIZERS, name_is_dns_label
from mooring.apiserver.validation.names import qualified_name_errors

NAME_LABEL = "kubernetes.io/metadata.name"

ACTIVE, TERMINATING = "Active", "Terminating"

_UNKNOWN_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"


# --- validation --------------------------------------------------------------------------------------------------


def validate_namespace(namespace: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in namespace["spec"].get("finalizers") or ():
        errors += _validate_finalizer(name, "spec.finalizers")
    return errors


def validate_namespace_finalize(namespace: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(namespace["spec"].get("finalizers") or ()):
        errors += _validate_finalizer(name, f"spec.finalizers[{index}]")
    return errors


def validate_namespace_status(namespace: Document) -> list[FieldError]:
    phase = namespace["status"].get("phase", "")
    if namespace["metadata"].get("deletionTimestamp"):
        if phase != TERMINATING:
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, detail)]
    elif phase != ACTIVE:
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


def _validate_finalizer(name: str, path: str) -> list[FieldError]:
    errors = [invalid(path, name, text) for text in qualified_name_errors(name)]
    if "/" not in name and name not in STANDARD_FINALIZERS:
        errors.append(invalid(path, name, _UNKNOWN_FINALIZER))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _namespace_cells(namespace: Document, now_s: float) -> list[Cell]:
    return [
        namespace["metadata"]["name"],
        (namespace.get("status") or {}).get("phase", ""),
        age(namespace, now_s),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class NamespaceStrategy(Strategy):
    """Writing a namespace."""

    table = KindTable((NAME, column("Status", "Whether it lives or is being deleted."), AGE), _namespace_cells)

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {
            "status": NamespaceStatusStrategy(self.kind, self),
            "finalize": NamespaceFinalizeStrategy(self.kind, self),
        }

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def default(self, obj: Document) -> None:
        metadata = obj["metadata"]
        name = metadata.get("name")
        if name:
            metadata.setdefault("labels", {})[NAME_LABEL] = name
        obj["status"].setdefault("phase", "Active")

    def canonicalize(self, obj: Document) -> None:
        # Again: a generated name did not exist when defaults were set.
        metadata = obj["metadata"]
        metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": ACTIVE}
        finalizers = obj["spec"].get("finalizers") or []
        if NAMESPACE_FINALIZER not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, NAMESPACE_FINALIZER]

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_namespace(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj["spec"], old["spec"], "finalizers")
        keep(obj, old, "status")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta(obj)
        errors += validate_namespace(obj)
        errors += self.validate_meta_update(obj, old)
        return errors

    def is_held(self, obj: Document) -> bool:
        return bool(obj["spec"].get("finalizers"))

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"status.phase": obj["status"].get("phase", "")}


class NamespaceStatusStrategy(StatusStrategy):
    """Writing the status: the phase follows from whether the namespace is being deleted."""

    def canonicalize(self, obj: Document) -> None:
        self.main.canonicalize(obj)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_namespace_status(obj)


class NamespaceFinalizeStrategy(StatusStrategy):
    """Strategy of `finalize`: removes finalizers of a namespace that is being deleted."""

    reset_fields = (("status",),)

    def canonicalize(self, obj: Document) -> None:
        self.main.canonicalize(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_namespace_finalize(obj)


STRATEGY = NamespaceStrategy
