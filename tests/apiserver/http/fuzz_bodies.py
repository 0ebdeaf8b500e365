"""Bad values and bodies: documents with an invalid value, or with damaged bytes as JSON, YAML and protobuf."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from mooring.api.schema.types import Basic, ListOf, MapOf, Scalar, Struct, Type, struct_of_kind
from mooring.kit.entropy import Entropy

Path = tuple[str | int, ...]

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\n",
    "\u2028\ufeff",
    "é" * 40,
    "🦀",
    "-",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "a/b",
    "a/b/c",
    "%2F",
    "%00",
    "null",
    "true",
    "0",
    "-1",
    "1e9",
    "NaN",
    "Infinity",
    "9" * 30,
    "x" * 64,
    "x" * 254,
    "a." * 140,
    "UPPER",
    "with space",
    "with_underscore",
    "1Gi",
    "-1Gi",
    "1.5m",
    "1E400",
    "0.0000000000000000001",
    "1ki",
    "12e+8E",
    "50%",
    "-50%",
    "2026-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "9999-12-31T23:59:59.999999999Z",
    "0000-00-00T00:00:00Z",
    "1h",
    "-1h2m",
    "10.0.0.1",
    "256.0.0.1",
    "::1",
    "fe80::1%eth0",
    "10.0.0.0/33",
    "TCP",
    "kubernetes.io/hostname",
    "$(VAR)",
    "{{.}}",
    "$patch",
    "'; DROP TABLE",
    "*",
    "**",
    "(",
    "[",
    "^(a+)+$",
    "default",
    "kube-system",
    "Exists",
    "In",
    "Always",
)

NUMBERS: tuple[int | float, ...] = (
    *(0, 1, -1, 2, 7, 100, 101, 443, 65_535, 65_536, 1_000_000),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40),
    *(0.5, -0.0, 1e300, 1.5e-300),
)

KEYS: tuple[str, ...] = (
    *("name", "Name", "metadata", "spec", "status", "kind", "apiVersion", "labels", "annotations", "finalizers"),
    *("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "managedFields"),
    *("ownerReferences", "selector", "matchLabels", "template", "containers", "resources", "deletionTimestamp"),
    *("generateName", "uid", "resourceVersion", "creationTimestamp", "f:metadata", "k:{}", ".", "", "a\x00", "x" * 300),
)

NESTING_DEPTH = 600


def bad_value(entropy: Entropy) -> Any:
    """A random value of any type."""
    match entropy.integer_below(10):
        case 0 | 1 | 2:
            return entropy.choose(TEXTS)
        case 3 | 4:
            return entropy.choose(NUMBERS)
        case 5:
            return entropy.choose((None, True, False))
        case 6:
            return entropy.choose(([], {}, [[]], [{}], [None], {"": None}, [""], [0], {"a": {}}))
        case 7:
            return [bad_value(entropy) for _ in range(entropy.integer_below(4))]
        case 8:
            return {entropy.choose(KEYS): bad_value(entropy) for _ in range(entropy.integer_below(4))}
        case _:
            return _huge(entropy)


def spoiled(document: Any, entropy: Entropy, other: Any) -> Any:
    """Change a document in one place, in place where possible; `other` is a document to take parts from."""
    paths = _paths(document)
    if not paths:
        return bad_value(entropy)
    path = entropy.choose(paths)
    holder, key = _holder(document, path)
    match entropy.integer_below(12):
        case 0 | 1 | 2:
            holder[key] = bad_value(entropy)
        case 3 | 4:
            del holder[key]
        case 5:
            holder[key] = None
        case 6 if isinstance(holder, dict):
            holder[entropy.choose(KEYS)] = bad_value(entropy)
        case 7 if isinstance(key, int):
            holder.append(holder[key])
        case 8 if isinstance(holder, dict):
            holder[str(key).swapcase()] = holder.pop(key)
        case 9:
            holder[key] = [holder[key]]
        case 10:
            holder[key] = {entropy.choose(KEYS): holder[key]}
        case _:
            others = _paths(other)
            if others:
                from_holder, from_key = _holder(other, entropy.choose(others))
                holder[key] = from_holder[from_key]
    return document


def _huge(entropy: Entropy) -> Any:
    match entropy.integer_below(5):
        case 0:
            return "x" * 5_000
        case 1:
            return [entropy.choose(NUMBERS)] * 300
        case 2:
            return {f"key-{number}": "v" for number in range(200)}
        case 3:
            return _nested(NESTING_DEPTH, is_list=True)
        case _:
            return _nested(NESTING_DEPTH, is_list=False)


def _nested(depth: int, *, is_list: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


def _paths(document: Any) -> list[Path]:
    found: list[Path] = []
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        # Deeper levels contain only values of earlier changes.
        if len(path) > 12:
            continue
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in pairs:
            found.append((*path, key))
            waiting.append(((*path, key), item))
    return found


def _holder(document: Any, path: Path) -> tuple[Any, str | int]:
    for key in path[:-1]:
        document = document[key]
    return document, path[-1]


JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY = "application/apply-patch+yaml"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
CONTENT_TYPES = (
    *(JSON, YAML, PROTOBUF, APPLY, *PATCHES, "application/apply-patch+cbor", "application/cbor", ""),
    *("text/plain", "application/json; charset=utf-16", "application/json;", ";", "a/b/c", "application/JSON", "*/*"),
    *("application/vnd.kubernetes.protobuf;type=foo", "multipart/form-data", "application/x-www-form-urlencoded"),
)

_ALIASES = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 8)) for letter in range(ord("b"), ord("i"))
)
STRANGE_BODIES: tuple[bytes, ...] = (
    b"",
    b" ",
    b"null",
    b"{}",
    b"[]",
    b"0",
    b'""',
    b"{",
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"[" * 500 + b"]" * 500,
    b'{"kind":"Pod","kind":"Pod","apiVersion":"v1","metadata":{"name":"a","name":"b"}}',
    b'{"apiVersion":"v1","kind":"List","items":[{},{}]}',
    b'{"a":1}{"b":2}',
    b'\xef\xbb\xbf{"a":1}',
    b"\xff\xfe{\x00}\x00",
    b'{"a":"\xff\xfe\xfd"}',
    b'{"a":"\\ud800"}',
    b'{"a":1e999999}',
    b'{"a":-0}',
    b'{"a":01}',
    b'{"a":NaN}',
    b'{"a":' + b"9" * 5_000 + b"}",
    b"\x00" * 100,
    b"k8s\x00",
    b"k8s\x00\x0a\x00\x12\x00",
    b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"k8s\x00" + b"\xff" * 40,
    b"- a\n- b\n",
    b"a: b\n---\nc: d\n",
    b"a: &x [*x]\n",
    b"&x {a: *x}\n",
    b"!!python/object/apply:os.system ['true']\n",
    b"!!binary aaa\n",
    b"? [a, b]\n: c\n",
    b"<<: {a: b}\n",
    b"a: 2026-01-01\nb: 1_000\nc: 0x1F\nd: 1:30\ne: .nan\n",
    b"%YAML 9.9\n---\na: b\n",
    b"\t- a",
    _ALIASES,
    b'[{"op":"add","path":"/metadata/labels/a","value":"b"}]',
    b'[{"op":"remove","path":"/metadata"}]',
    b'[{"op":"replace","path":"","value":null}]',
    b'[{"op":"test","path":"/metadata/name","value":[[[]]]}]',
    b'[{"op":"copy","from":"/spec","path":"/spec/a"},{"op":"move","from":"/spec","path":"/spec/a/b"}]',
    b'[{"op":"copy","from":"/metadata","path":"/metadata/annotations"}]' + b" " * 10,
    b'[{"op":"add","path":"/metadata/finalizers/999999999","value":"a"}]',
    b'[{"op":"add","path":"/metadata/finalizers/-1","value":"a"}]',
    b'[{"op":"frob","path":"x"},{"path":1},{"op":null},[],1]',
    b'[{"op":"remove","path":"/~2/~"}]',
    b'{"metadata":{"$patch":"delete"}}',
    b'{"$patch":"replace"}',
    b'{"spec":{"containers":[{"$patch":"delete"}]}}',
    b'{"spec":{"containers":[{"$patch":"frob","name":"a"}]}}',
    b'{"spec":{"$retainKeys":["a",1]}}',
    b'{"spec":{"$setElementOrder/containers":[{"name":"z"},1]}}',
    b'{"metadata":{"$deleteFromPrimitiveList/finalizers":["a",{}]}}',
    b'{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":'
    b'{"f:spec":{"k:{}":{},"v:1":{},"i:-1":{},"x":1}}}]}}',
    b'{"metadata":{"managedFields":[{}]}}',
    b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":-5,"propagationPolicy":"Frob","dryRun":["x"]}',
    b'{"kind":"DeleteOptions","preconditions":{"uid":"a","resourceVersion":"zz"}}',
)


def written(document: Any, content_type: str, entropy: Entropy) -> bytes:
    """Encode a document for a content type; YAML sometimes as JSON."""
    if content_type.startswith(PROTOBUF):
        return protobuf_of(document, entropy)
    try:
        if "yaml" in content_type and entropy.integer_below(2):
            return yaml.dump(document, Dumper=yaml.CSafeDumper).encode("utf-8", "surrogatepass")
        return msgspec.json.encode(document)
    except RecursionError:
        return entropy.choose(STRANGE_BODIES)  # nested too deeply for the encoder


def garbled(data: bytes, entropy: Entropy) -> bytes:
    """Damage bytes in a random way."""
    if not data:
        return entropy.choose(STRANGE_BODIES)
    place = entropy.integer_below(len(data))
    until = min(len(data), place + 1 + entropy.integer_below(30))
    match entropy.integer_below(9):
        case 0 | 1:
            return data[:place]
        case 2:
            return data[:place] + bytes([entropy.integer_below(256)]) + data[place + 1 :]
        case 3:
            return data[:place] + data[until:]
        case 4:
            return data[:until] + data[place:]
        case 5:
            return (
                data[:place] + entropy.choose((b"\x00", b"\xff\xfe", b"\xc3(", b"\\u0000", b"\\ud800")) + data[place:]
            )
        case 6:
            return data + entropy.choose((data, b"}", b"]", b"\n---\n" + data, b"\x00"))
        case 7:
            # A duplicate key, if the document has an object.
            return data.replace(b'{"', b'{"name":"twice","name":1,"', 1)
        case _:
            return entropy.choose(STRANGE_BODIES)


# --------------------------------------------------------------------------------------------------- protobuf


def protobuf_of(document: Any, entropy: Entropy) -> bytes:
    """The kind of the document, in an envelope, with random content of the correct types."""
    named = document if isinstance(document, dict) else {}
    api_version, kind = str(named.get("apiVersion", "v1")), str(named.get("kind", "Pod"))
    struct = struct_of_kind(api_version, kind) or struct_of_kind("v1", "Pod")
    assert struct is not None
    raw = _message(struct, entropy, 4)
    identity = _bytes_field(1, api_version.encode("utf-8", "replace")) + _bytes_field(
        2, kind.encode("utf-8", "replace")
    )
    return b"k8s\x00" + _bytes_field(1, identity) + _bytes_field(2, raw) + _bytes_field(3, b"") + _bytes_field(4, b"")


def _message(struct: Struct, entropy: Entropy, depth: int) -> bytes:
    parts: list[bytes] = []
    for number, part in struct.messages.items():
        if entropy.integer_below(3) and number > 1:
            continue
        if isinstance(part, Struct):
            parts.append(_bytes_field(number, _message(part, entropy, depth)))
        else:
            parts.append(_field(number, part.type, entropy, depth))
    if not entropy.integer_below(20):
        parts.append(entropy.choose((b"\xff", b"\x08", b"\x0a\x7f", b"\x0b\x0c", b"\xfa\x07\x00", b"\x00")))
    return b"".join(parts)


def _field(number: int, kind: Type, entropy: Entropy, depth: int) -> bytes:
    match kind:
        case Struct():
            return _bytes_field(number, _message(kind, entropy, depth - 1)) if depth else b""
        case ListOf():
            return b"".join(_field(number, kind.item, entropy, depth) for _ in range(entropy.integer_below(3)))
        case MapOf():
            entry = _bytes_field(1, entropy.choose(KEYS).encode()) + _field(2, kind.value, entropy, depth)
            return _bytes_field(number, entry)
        case Scalar(basic=Basic.BOOL | Basic.INT32 | Basic.INT64 | Basic.INT) if entropy.integer_below(12):
            return _varint(number << 3) + _varint(int(entropy.choose(NUMBERS[:19])) & (2**64 - 1))
        case _:
            return _bytes_field(number, entropy.choose(TEXTS).encode())


def _bytes_field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
