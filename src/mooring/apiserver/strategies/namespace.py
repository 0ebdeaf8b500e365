"""Namespaces: born active, and gone only when nothing in their spec holds them any more.

Comes in   a namespace, written as a whole, through `status` or through `finalize`
Goes out   the same, prepared and judged

 1. `spec.finalizers` is changed through `finalize` only; a new namespace always has `kubernetes` among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.namespace import NAME_LABEL, default_namespace
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import (
    name_is_dns_label,
)
from mooring.apiserver.validation.namespace import (
    ACTIVE,
    KUBERNETES_FINALIZER,
    namespace_faults,
    namespace_finalize_faults,
    namespace_status_faults,
)


class NamespaceStrategy(Strategy):
    """Writing a namespace."""

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {
            "status": NamespaceStatusStrategy(self.kind, self),
            "finalize": NamespaceFinalizeStrategy(self.kind, self),
        }

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def default(self, obj: Document) -> None:
        default_namespace(obj)

    def canonicalize(self, obj: Document) -> None:
        # Once more: a generated name did not exist when defaults were set.
        metadata = obj["metadata"]
        metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": ACTIVE}
        finalizers = obj["spec"].get("finalizers") or []
        if KUBERNETES_FINALIZER not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, KUBERNETES_FINALIZER]

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return namespace_faults(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj["spec"], old["spec"], "finalizers")
        keep(obj, old, "status")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += namespace_faults(obj)
        faults += self.meta_update_faults(obj, old)
        return faults

    def is_held(self, obj: Document) -> bool:
        return bool(obj["spec"].get("finalizers"))

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"status.phase": obj["status"].get("phase", "")}


class NamespaceStatusStrategy(StatusStrategy):
    """Writing the status: the phase follows from whether the namespace is being deleted."""

    def canonicalize(self, obj: Document) -> None:
        self.main.canonicalize(obj)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return namespace_status_faults(obj)


class NamespaceFinalizeStrategy(StatusStrategy):
    """Saying that somebody is done with a namespace that is being deleted."""

    reset_fields = (("status",),)

    def canonicalize(self, obj: Document) -> None:
        self.main.canonicalize(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return namespace_finalize_faults(obj)
