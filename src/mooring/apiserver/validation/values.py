"""Values as the Go types of kube-apiserver compare and print them.

1. Quantities are equal by amount (`1Gi` is `1024Mi`), and an empty list or map equals an absent one.
2. An internal value prints every field of the Go struct. Go's field names are derived by a capital first letter.
"""

from __future__ import annotations

import difflib
import json

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.quantity import quantity_nano
from mooring.api.schema.types import Basic, ListOf, MapOf, Scalar, Struct, Type, struct_named, struct_of_kind
from mooring.apiserver.wire.json_text import json_syntax_error


def means_the_same(one: object, other: object, package: str, struct_name: str) -> bool:
    """Whether two documents of a struct are semantically equal."""
    return one == other or _is_same(one, other, struct_named(package, struct_name))


def has_same_spec(kind: Kind, one: object, other: object) -> bool:
    """Whether two specs of a kind are semantically equal."""
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None, f"{kind} has no schema"
    return _is_same(one, other, struct.fields["spec"].type)


def _is_same(one: object, other: object, kind: Type) -> bool:
    if one == other:
        return True
    match kind:
        case Struct():
            if not isinstance(one, dict) or not isinstance(other, dict):
                return False
            keys = one.keys() | other.keys()
            return all(
                _is_same(one.get(key), other.get(key), kind.fields[key].type)
                if key in kind.fields
                else one.get(key) == other.get(key)
                for key in keys
            )
        case ListOf(item):
            ones, others = one or [], other or []
            if not isinstance(ones, list) or not isinstance(others, list) or len(ones) != len(others):
                return False
            return all(_is_same(first, second, item) for first, second in zip(ones, others, strict=True))
        case MapOf(item):
            ours, theirs = one or {}, other or {}
            if not isinstance(ours, dict) or not isinstance(theirs, dict) or ours.keys() != theirs.keys():
                return False
            return all(_is_same(value, theirs[key], item) for key, value in ours.items())
        case Scalar():
            is_quantity = kind.basic is Basic.QUANTITY and isinstance(one, str) and isinstance(other, str)
            return is_quantity and quantity_nano(str(one)) == quantity_nano(str(other))


_ZEROS = {Basic.STRING: "", Basic.BOOL: False, Basic.INT32: 0, Basic.INT64: 0, Basic.INT: 0, Basic.QUANTITY: "0"}
_CONTEXT_LINES = 3


def internal_value(value: Document, struct_name: str, package: str = "core") -> Document:
    """A struct of one of the groups with all its fields."""
    return _struct(value, struct_named(package, struct_name))


def internal_values(values: object, struct_name: str) -> list[Document] | None:
    """A list of structs; None prints as Go's empty list."""
    assert values is None or isinstance(values, list)
    return [internal_value(value, struct_name) for value in values] if values is not None else None


def internal_diff(old: Document, new: Document, struct_name: str) -> str:
    """What differs, as lines of JSON with a few lines around."""
    before, after = (
        json.dumps(internal_value(value, struct_name), indent=1, ensure_ascii=False).splitlines()
        for value in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES))[2:]
    return "".join(f"{line}\n" for line in lines)


def _struct(value: Document, struct: Struct) -> Document:
    shown: Document = {}
    for name, field in struct.fields.items():
        if name == "metadata" and not struct.is_object:
            shown |= value.get(name) or {}  # embedded, with the names that it has in JSON
        else:
            shown[_go_name(name)] = _value(value.get(name), field.type, field.is_pointer)
    return _internal_pod_spec(shown) if struct.name == "PodSpec" else shown


_GO_NAMES = {
    "apiVersion": "APIVersion",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "cephfs": "CephFS",
    "csi": "CSI",
    "dnsConfig": "DNSConfig",
    "dnsPolicy": "DNSPolicy",
    "fc": "FC",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk",
    "grpc": "GRPC",
    "httpGet": "HTTPGet",
    "httpHeaders": "HTTPHeaders",
    "ip": "IP",
    "iscsi": "ISCSI",
    "nfs": "NFS",
    "os": "OS",
    "rbd": "RBD",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "tcpSocket": "TCPSocket",
    "tty": "TTY",
    "uid": "UID",
    "uri": "URI",
}
"""Fields whose names in Go are not just capitalised."""
_HOST_FIELDS = ("HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers")
_PLACED_BEFORE = {"SetHostnameAsFQDN": "Affinity", "PreemptionPolicy": "DNSConfig"}
"""Fields that have another position in the internal pod than in v1, and the field after them."""


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or name[:1].upper() + name[1:]


def _internal_pod_spec(shown: Document) -> Document:
    """kube-apiserver holds the namespaces of the host in the security context, and has no `serviceAccount`."""
    moved = {name: shown.pop(name, None) for name in _PLACED_BEFORE}
    host = {name: shown.pop(name, None) for name in _HOST_FIELDS}
    shown.pop("ServiceAccount", None)
    behind = {field: name for name, field in _PLACED_BEFORE.items()}
    spec: Document = {}
    for name, value in shown.items():
        if name in behind:
            spec[behind[name]] = moved[behind[name]]
        # An empty security context is printed too, because it contains the host namespaces.
        spec[name] = {**host, **(value or {})} if name == "SecurityContext" else value
    return spec


def _value(value: object, kind: Type, is_pointer: bool) -> object:
    match kind:
        case Struct():
            if isinstance(value, dict):
                return _struct(value, kind)
            return None if is_pointer else _struct({}, kind)
        case ListOf(item):
            return [_value(entry, item, True) for entry in value] if isinstance(value, list) else None
        case MapOf(item):
            return {key: _value(entry, item, True) for key, entry in value.items()} if isinstance(value, dict) else None
        case Scalar():
            return value if value is not None or is_pointer else _ZEROS.get(kind.basic)


_TYPE_NAMES = {"{": "object", "[": "array", '"': "string", "t": "bool", "f": "bool", "n": "null"}


def json_error(data: bytes, expected_type: str = "") -> str:
    """The first error with Go's message, or an empty text. `expected_type` is the expected Go type."""
    error = json_syntax_error(data)
    if error is not None or not expected_type:
        return error or ""
    found = _TYPE_NAMES.get(chr(data.lstrip()[0]), "number")
    return (
        "" if found in ("object", "null") else f"json: cannot unmarshal {found} into Go value of type {expected_type}"
    )
