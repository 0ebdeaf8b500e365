"""What priority classes, endpoint slices and role bindings are if nobody says otherwise.

Comes in   canonical documents
Goes out   the same, filled in place
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.rbac import GROUP


def default_priority_class(obj: Document) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_endpoint_slice(obj: Document) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_role_binding(obj: Document) -> None:
    role = obj.setdefault("roleRef", {"apiGroup": "", "kind": "", "name": ""})
    if not role.get("apiGroup"):
        role["apiGroup"] = GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP
