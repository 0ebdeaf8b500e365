r"""Objects as kube-apiserver v1.36 has them in its etcd: built-in ones, definitions of v1beta1 and custom resources.

Writes objects as kube-apiserver stores them in protobuf: a `runtime.Unknown` behind the prefix `k8s\0`.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.schema.types import Basic, ListOf, MapOf, Scalar, Struct, Type, struct_of_kind

_META: Document = {"uid": "6f1a4c1e-0000-4000-8000-000000000001", "creationTimestamp": "2026-01-02T03:04:05Z"}

POD: Document = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web",
        "namespace": "default",
        **_META,
        "generation": 1,
        "labels": {"app": "web"},
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}},
            }
        ],
    },
    "spec": {
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "web",
                "image": "registry.example/web:1",
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": "MODE", "value": "quiet"}],
                "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": "web", "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {"supplementalGroups": [1, 2]},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
        "priority": -5,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    },
    "status": {"phase": "Pending", "qosClass": "Burstable"},
}
SECRET: Document = {
    "kind": "Secret",
    "apiVersion": "v1",
    "metadata": {"name": "key", "namespace": "default", **_META},
    "data": {"key": "AAEC/w=="},
    "type": "Opaque",
}
DEPLOYMENT: Document = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {"name": "web", "namespace": "default", **_META, "generation": 1},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "registry.example/web:1",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "IfNotPresent",
                    }
                ],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
            },
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "status": {"replicas": 3},
}

_SCHEMA: Document = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 10}}}},
    }
}
_COLUMNS = [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}]
_COLUMNS_V1 = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
_NAMES: Document = {
    "plural": "widgets",
    "singular": "widget",
    "kind": "Widget",
    "listKind": "WidgetList",
}
_CONFIG: Document = {"service": {"namespace": "default", "name": "hook", "port": 443}, "caBundle": "Zm9v"}
_STATUS: Document = {
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": reason,
            "message": text,
        }
        for kind, reason, text in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ],
    "acceptedNames": _NAMES,
    "storedVersions": ["v1"],
}


def _definition(api_version: str, spec: Document) -> Document:
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": f"apiextensions.k8s.io/{api_version}",
        "metadata": {"name": "widgets.example.com", **_META, "generation": 1},
        "spec": {"group": "example.com", "names": _NAMES, "scope": "Namespaced", **spec},
        "status": _STATUS,
    }


ONE_VERSION = _definition(
    "v1beta1",
    {
        "version": "v1",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "validation": _SCHEMA,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _COLUMNS,
        "conversion": {"strategy": "None"},
        "preserveUnknownFields": False,
    },
)
ONE_VERSION_V1 = _definition(
    "v1",
    {
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": _SCHEMA,
                "subresources": {"status": {}},
                "additionalPrinterColumns": _COLUMNS_V1,
            }
        ],
        "conversion": {"strategy": "None"},
    },
)
OLDEST = _definition("v1beta1", {"version": "v1"})
"""An early definition of v1beta1: one version, no schema, and unknown fields are preserved."""
OLDEST_V1 = _definition(
    "v1",
    {
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "conversion": {"strategy": "None"},
        "preserveUnknownFields": True,
    },
)
TWO_VERSIONS = _definition(
    "v1beta1",
    {
        "version": "v1",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": _SCHEMA, "additionalPrinterColumns": _COLUMNS},
            {"name": "v0", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
        "selectableFields": [{"jsonPath": ".spec.size"}],
        "conversion": {
            "strategy": "Webhook",
            "webhookClientConfig": _CONFIG,
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
        "preserveUnknownFields": False,
    },
)
TWO_VERSIONS_V1 = _definition(
    "v1",
    {
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": _SCHEMA,
                "additionalPrinterColumns": _COLUMNS_V1,
                "selectableFields": [{"jsonPath": ".spec.size"}],
            },
            {
                "name": "v0",
                "served": False,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "selectableFields": [{"jsonPath": ".spec.size"}],
            },
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"clientConfig": _CONFIG, "conversionReviewVersions": ["v1", "v1beta1"]},
        },
    },
)
# With its fields in the order in which kube-apiserver writes them: sorted.
WIDGET: Document = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {**_META, "generation": 1, "name": "small", "namespace": "default"},
    "spec": {"size": 3},
}
WIDGET_WITHOUT_SCHEMA: Document = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "inner": {"metadata": {"name": "another"}},
    "metadata": {**_META, "generation": 1, "name": "small", "namespace": "default"},
    "spec": {"anything": {"goes": [1, 2.5, None]}},
}


PREFIX = b"k8s\x00"


def protobuf_value(document: Document, extra: bytes = b"") -> bytes:
    """A stored value. `extra` are further fields of the object."""
    struct = struct_of_kind(document["apiVersion"], document["kind"])
    assert struct is not None
    raw = _message(struct, document) + extra
    return PREFIX + envelope(document["apiVersion"], document["kind"], raw)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return part(1, part(1, api_version.encode()) + part(2, kind.encode())) + part(2, raw) + part(3, b"") + part(4, b"")


def part(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _message(struct: Struct, document: Document) -> bytes:
    out = b""
    for number, each in struct.messages.items():
        if isinstance(each, Struct):
            inlined = _message(each, document)
            out += part(number, inlined) if inlined else b""
        elif document.get(each.name) is not None:
            out += b"".join(_field(number, each.type, document[each.name]))
    return out


def _field(number: int, kind: Type, value: Any) -> list[bytes]:
    match kind:
        case ListOf():
            return [_single(number, kind.item, item) for item in value]
        case MapOf():
            return [part(number, part(1, key.encode()) + _single(2, kind.value, item)) for key, item in value.items()]
        case _:
            return [_single(number, kind, value)]


def _single(number: int, kind: Type, value: Any) -> bytes:
    if isinstance(kind, Struct):
        return part(number, _message(kind, value))
    assert isinstance(kind, Scalar), kind
    match kind.basic:
        case Basic.STRING:
            return part(number, value.encode())
        case Basic.BOOL | Basic.INT | Basic.INT32 | Basic.INT64:
            return _varint(number << 3) + _varint(int(value))
        case Basic.BYTES:
            return part(number, base64.b64decode(value))
        case Basic.QUANTITY:
            return part(number, part(1, value.encode()))
        case Basic.TIME:
            return part(number, _varint(8) + _varint(int(datetime.fromisoformat(value).timestamp())))
        case Basic.INT_OR_STRING if isinstance(value, int):
            return part(number, _varint(8) + _varint(0) + _varint(16) + _varint(value))
        case Basic.INT_OR_STRING:
            return part(number, _varint(8) + _varint(1) + part(3, value.encode()))
        case Basic.FIELDS_V1 | Basic.RAW_EXTENSION | Basic.ANY:
            return part(number, part(1, msgspec.json.encode(value)))
        case _:
            raise NotImplementedError(kind.basic)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
