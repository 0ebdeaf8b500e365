"""Builders of workloads and related kinds.

body("Deployment", spec__replicas=-1)     a valid object with changes; `__` separates a path, `GONE` removes a field
defaulted(body(...))                      the same with defaults
created(body(...)), updated(new, old)     the same after prepare, with errors and warnings
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.kinds import Kind, kind_named
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.call import Call
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.wire.canonical import canonical, forget_empty_lists
from mooring.serving.users import User
from tests.apiserver.core_documents import messages

UID = "11111111-2222-3333-4444-555555555555"
NOW = "2026-01-01T00:00:00Z"
GONE: Any = object()

_POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
_TASK = {"spec": {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"}}
_SET = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": _POD}}
_RBAC = "rbac.authorization.k8s.io"

_VALID: dict[str, tuple[str, Document]] = {
    "Deployment": ("apps/v1", _SET),
    "ReplicaSet": ("apps/v1", _SET),
    "StatefulSet": ("apps/v1", _SET),
    "DaemonSet": ("apps/v1", _SET),
    "ControllerRevision": ("apps/v1", {"data": {"a": 1}, "revision": 1}),
    "Job": ("batch/v1", {"spec": {"template": _TASK}}),
    "CronJob": ("batch/v1", {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": _TASK}}}}),
    "PodDisruptionBudget": ("policy/v1", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    "PriorityClass": ("scheduling.k8s.io/v1", {"value": 5}),
    "Lease": ("coordination.k8s.io/v1", {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5}}),
    "EndpointSlice": (
        "discovery.k8s.io/v1",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]},
    ),
    "RuntimeClass": ("node.k8s.io/v1", {"handler": "runc"}),
    "Role": (f"{_RBAC}/v1", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "ClusterRole": (f"{_RBAC}/v1", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "RoleBinding": (
        f"{_RBAC}/v1",
        {"roleRef": {"kind": "Role", "name": "reader"}, "subjects": [{"kind": "User", "name": "anna"}]},
    ),
    "ClusterRoleBinding": (
        f"{_RBAC}/v1",
        {"roleRef": {"kind": "ClusterRole", "name": "reader"}, "subjects": [{"kind": "User", "name": "anna"}]},
    ),
}


class Outcome(NamedTuple):
    """The result of a write."""

    obj: Document
    errors: list[str]
    warnings: list[str]


def body(kind: str, **changes: Any) -> Document:
    """The body of a request: a valid object of a kind, with changes."""
    api_version, rest = _VALID[kind]
    return changed({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, **rest}, **changes)


def changed(obj: Document, **changes: Any) -> Document:
    obj = copy.deepcopy(obj)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = obj
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is GONE:
            place.pop(last, None)
        else:
            place[last] = value
    return obj


def defaulted(raw: Document) -> Document:
    """The object after decoding and defaulting."""
    kind, strategy = _strategy(raw)
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None, raw
    obj = canonical(struct, copy.deepcopy(raw), [])
    if kind.is_namespaced:
        obj["metadata"].setdefault("namespace", "n")
    strategy.default(obj)
    return obj


def created(raw: Document) -> Outcome:
    kind, strategy = _strategy(raw)
    obj, call = defaulted(raw), _call(kind)
    obj["metadata"] |= {"uid": UID, "creationTimestamp": NOW}
    strategy.prepare_for_create(obj, call)
    errors = strategy.validate(obj, call)
    warnings = [] if errors else strategy.warnings_on_create(obj, call)
    _stored(kind, strategy, obj)
    return Outcome(obj, messages(errors), warnings)


def updated(raw: Document, old: Document, subresource: str = "") -> Outcome:
    kind, strategy = _strategy(raw)
    obj, call = defaulted(raw), _call(kind)
    if subresource:
        strategy = strategy.subresources[subresource]
    system = ("uid", "creationTimestamp", "generation")
    obj["metadata"] |= {name: value for name, value in old["metadata"].items() if name in system}
    obj["metadata"]["resourceVersion"] = "1"
    before = copy.deepcopy(old)
    strategy.prepare_for_update(obj, old, call)
    errors = strategy.validate_update(obj, old, call)
    warnings = [] if errors else strategy.warnings_on_update(obj, old, call)
    _stored(kind, strategy, obj)
    assert old == before, "the old object was changed"
    return Outcome(obj, messages(errors), warnings)


def _stored(kind: Kind, strategy: Strategy, obj: Document) -> None:
    """Final changes before storage, as the registry applies them."""
    strategy.canonicalize(obj)
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None, kind
    forget_empty_lists(struct, obj)


def _strategy(raw: Document) -> tuple[Kind, Strategy]:
    kind = kind_named(raw["apiVersion"], raw["kind"])
    return kind, strategy_of(kind)


def _call(kind: Kind) -> Call:
    return Call("create", kind, User("anna"), 0.0, NOW)
