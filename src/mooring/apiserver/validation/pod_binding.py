"""What is wrong with a binding: the order to run a pod on a node.

Comes in   a `Binding`
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, not_supported, required


def binding_faults(binding: Document) -> list[Fault]:
    target = binding.get("target") or {}
    kind = target.get("kind", "")
    faults = [not_supported("target.kind", kind, ("Node", "<empty>"))] if kind not in ("", "Node") else []
    return faults if target.get("name") else [*faults, required("target.name")]
