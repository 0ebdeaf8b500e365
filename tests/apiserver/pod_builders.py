"""Builders of pods: canonical, with defaults, and one valid container."""

from __future__ import annotations

from copy import deepcopy

from mooring.api.document import Document
from mooring.api.kinds import POD, Kind
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod
from mooring.apiserver.kinds.pod.options import STRICT_POD
from mooring.apiserver.kinds.pod.spec import validate_pod
from mooring.apiserver.wire.canonical import canonical
from mooring.serving.users import User
from tests.apiserver.core_documents import messages

NOW = "2026-01-01T00:00:00Z"


def pod(spec: Document | None = None, container: Document | None = None, metadata: Document | None = None) -> Document:
    """A pod with a container `c`, with the given changes."""
    raw: Document = {
        "metadata": {"name": "p", "namespace": "n", **(metadata or {})},
        "spec": {"containers": [{"name": "c", "image": "nginx:1", **(container or {})}], **(spec or {})},
    }
    struct = struct_of_kind("v1", "Pod")
    assert struct is not None
    made = canonical(struct, deepcopy(raw), [])
    default_pod(made)
    return made


def with_volume(source: Document, **mount: object) -> Document:
    """A pod with a volume `v`, which its container mounts if the mount is given."""
    container: Document = {"volumeMounts": [{"name": "v", **mount}]} if mount else {}
    return pod({"volumes": [{"name": "v", **source}]}, container)


def changed(old: Document, spec: Document | None = None, metadata: Document | None = None) -> Document:
    """A copy of a stored pod with some fields of its spec or metadata replaced; None removes a field."""
    new = deepcopy(old)
    for part, changes in (("spec", spec or {}), ("metadata", metadata or {})):
        for field, value in changes.items():
            if value is None:
                new[part].pop(field, None)
            else:
                new[part][field] = value
    return new


def stored(made: Document) -> Document:
    """The pod as stored by the server."""
    made["metadata"].update(uid="u", resourceVersion="1", generation=1, creationTimestamp=NOW)
    made["status"] = {"phase": "Pending", "qosClass": "BestEffort", **(made.get("status") or {})}
    return made


def errors_of(made: Document) -> list[str]:
    """Field errors of a pod, without those of its metadata."""
    return messages(validate_pod(made, STRICT_POD))


def call_for(kind: Kind = POD) -> Call:
    user = User(name="somebody", groups=())
    return Call("create", kind, user, 0.0, NOW, namespace="n")
