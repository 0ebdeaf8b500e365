"""The most expensive requests of each kind that the limits of the API server allow.

Output: `INPUTS`, by name: requests that create objects, and the measured request. Each is as large as its limit allows:
a body of `BODY_BYTES`, or an object of `OBJECT_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

BODY_BYTES = 3 * 1024 * 1024 - 20_000
OBJECT_BYTES = 1_400_000
JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"

encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Sent:
    """A request."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    impersonated: str = ""
    """The user, if it is not the administrator."""


Input = Callable[[], Iterator[Sent]]
"""Yields requests that create required objects, and the measured request last."""
INPUTS: dict[str, Input] = {}


def _input(name: str) -> Callable[[Input], Input]:
    def registered(requests: Input) -> Input:
        assert name not in INPUTS, name
        INPUTS[name] = requests
        return requests

    return registered


# ------------------------------------------------------------------------------------------------------- builders


def _named(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": "worst"}, **fields}


def _config_map(name: str = "worst", **fields: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, **fields}


def _pod(**spec: Any) -> dict[str, Any]:
    return _named("Pod", spec={"containers": [{"name": "c", "image": "i"}], **spec})


def _filled(item: Callable[[int], Any], size: int = OBJECT_BYTES) -> list[Any]:
    """As many items as fit into `size` bytes."""
    each = len(encode(item(100_000))) + 1
    return [item(index) for index in range(size // each)]


def _many(item: Callable[[int], tuple[str, Any]], size: int = OBJECT_BYTES) -> dict[str, Any]:
    return dict(_filled(item, size))


def _create_map() -> Sent:
    return Sent("POST", MAPS, encode(_config_map(data={"a": "b"})))


def _definition(schema: dict[str, Any]) -> Sent:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    document = _named(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        spec={"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    )
    document["metadata"]["name"] = "things.example.com"
    return Sent("POST", DEFINITIONS, encode(document))


def _thing(spec: Any) -> Sent:
    return Sent("POST", THINGS, encode(_named("Thing", "example.com/v1", spec=spec)))


def _things(schema: dict[str, Any], spec: Any) -> Iterator[Sent]:
    yield _definition(schema)
    yield _thing(spec)


def _objects(count: int) -> Iterable[Sent]:
    for index in range(count):
        labels = {f"label-{number}": f"value-{index}" for number in range(20)}
        document = _config_map(f"map-{index:05}", data={"a": "b" * 100})
        document["metadata"]["labels"] = labels
        yield Sent("POST", MAPS, encode(document))


# ------------------------------------------------------------------------------------------------------------ YAML


def _yaml(text: str) -> Iterator[Sent]:
    head = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: worst}\n"
    yield Sent("POST", MAPS, (head + text).encode()[:BODY_BYTES], YAML)


def _yaml_lines(line: Callable[[int], str], size: int = BODY_BYTES - 1_000) -> str:
    return "".join(line(index) for index in range(size // len(line(100_000))))


@_input("YAML: map entries")
def _yaml_entries() -> Iterator[Sent]:
    return _yaml("data:\n" + _yaml_lines(lambda index: f"  k{index}: v\n"))


@_input("YAML: numbers in a list of an unknown field")
def _yaml_flow() -> Iterator[Sent]:
    return _yaml("x: [" + _yaml_lines(lambda index: f"{index % 10},") + "]\n")


@_input("YAML: nested lists")
def _yaml_nested() -> Iterator[Sent]:
    return _yaml("x: [" + _yaml_lines(lambda index: "[[]],") + "]\n")


@_input("YAML: repeated keys")
def _yaml_repeated() -> Iterator[Sent]:
    return _yaml("data:\n" + _yaml_lines(lambda index: "  k: v\n"))


@_input("YAML: aliases")
def _yaml_aliases() -> Iterator[Sent]:
    return _yaml("x: &a [1]\ny: [" + _yaml_lines(lambda index: "*a,") + "]\n")


@_input("YAML: aliases of aliases")
def _yaml_nested_aliases() -> Iterator[Sent]:
    lines = [f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 30)]
    return _yaml("a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(lines))


@_input("YAML: merge keys")
def _yaml_merge() -> Iterator[Sent]:
    return _yaml("x: &a {b: c}\ny:\n" + _yaml_lines(lambda index: "- <<: *a\n"))


@_input("YAML: many documents")
def _yaml_documents() -> Iterator[Sent]:
    return _yaml(_yaml_lines(lambda index: "---\na\n"))


@_input("YAML: quoted escapes")
def _yaml_escapes() -> Iterator[Sent]:
    return _yaml('data: {a: "' + _yaml_lines(lambda index: "\\x41") + '"}\n')


@_input("YAML: invalid at the end")
def _yaml_invalid() -> Iterator[Sent]:
    return _yaml("data:\n" + _yaml_lines(lambda index: f"  k{index}: v\n") + "\t}")


# ------------------------------------------------------------------------------------------------------------ JSON


@_input("JSON: one text")
def _json_text() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(data={"a": "b" * 1_000_000})))


@_input("JSON: map entries")
def _json_entries() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(data=_many(lambda index: (f"k{index}", ""), 600_000))))


@_input("JSON: escaped text with spaces between")
def _json_escaped() -> Iterator[Sent]:
    text = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"worst"},"data":{"a" : "'
    yield Sent("POST", MAPS, text + b"\\u0041" * ((BODY_BYTES - 200) // 6) + b'"}}')


@_input("JSON: repeated keys")
def _json_repeated() -> Iterator[Sent]:
    text = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"worst"},"data":{'
    yield Sent("POST", MAPS, text + b'"a":"b",' * ((BODY_BYTES - 200) // 8) + b'"a":"b"}}')


@_input("JSON: unknown fields")
def _json_unknown() -> Iterator[Sent]:
    unknown = _many(lambda index: (f"f{index}", 1), BODY_BYTES)
    yield Sent("POST", MAPS + "?fieldValidation=Strict", encode(_config_map(**unknown)))


@_input("JSON: numbers in a list of an unknown field")
def _json_numbers() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(x=_filled(lambda index: 1, BODY_BYTES))))


@_input("JSON: digits of a number")
def _json_digits() -> Iterator[Sent]:
    text = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"worst"},"x":'
    yield Sent("POST", MAPS, text + b"1" * (BODY_BYTES - 200) + b"}")


@_input("JSON: nested to the limit, many times")
def _json_nested() -> Iterator[Sent]:
    nested: Any = 1
    for _ in range(200):
        nested = {"a": nested}
    yield Sent("POST", MAPS, encode(_config_map(x=_filled(lambda index: nested, BODY_BYTES))))


@_input("JSON: lists in a list of an unknown field")
def _json_lists() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(x=_filled(lambda index: [], BODY_BYTES))))


@_input("JSON: invalid at the end")
def _json_invalid() -> Iterator[Sent]:
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), BODY_BYTES - 1000)))
    yield Sent("POST", MAPS, body[:-1])


@_input("JSON: not UTF-8 at the end")
def _json_encoding() -> Iterator[Sent]:
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), BODY_BYTES - 1000)))
    yield Sent("POST", MAPS, body[:-3] + b'\xff"}}')


@_input("protobuf: map entries")
def _protobuf_entries() -> Iterator[Sent]:
    entry = b"\x12\x06\x0a\x01a\x12\x01b"
    data = b"\x0a\x07\x0a\x05worst" + entry * (BODY_BYTES // len(entry) - 100)
    yield Sent("POST", MAPS, _protobuf("v1", "ConfigMap", data), PROTOBUF)


def _field(number: int, data: bytes) -> bytes:
    """A protobuf field of bytes."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*digits, value))


def _protobuf(api_version: str, kind: str, raw: bytes) -> bytes:
    identity = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, identity) + _field(2, raw)


@_input("protobuf: containers of a pod")
def _protobuf_containers() -> Iterator[Sent]:
    container = _field(2, _field(1, b"c") + _field(2, b"i"))
    raw = _field(1, _field(1, b"worst")) + _field(2, container * (OBJECT_BYTES // len(container)))
    yield Sent("POST", PODS, _protobuf("v1", "Pod", raw), PROTOBUF)


@_input("protobuf: schemas inside of each other")
def _protobuf_schemas() -> Iterator[Sent]:
    schema = b""
    for _ in range(20_000):  # each is the `not` of the next
        schema = _field(30, schema)
    version = _field(1, b"v1") + _field(4, _field(1, schema))
    raw = _field(1, _field(1, b"things.example.com")) + _field(2, _field(1, b"example.com") + _field(7, version))
    yield Sent("POST", DEFINITIONS, _protobuf("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw), PROTOBUF)


# -------------------------------------------------------------------------------------------------------- metadata


def _with_metadata(**metadata: Any) -> Iterator[Sent]:
    document = _config_map()
    document["metadata"].update(metadata)
    yield Sent("POST", MAPS, encode(document))


@_input("metadata: labels")
def _labels() -> Iterator[Sent]:
    return _with_metadata(labels=_many(lambda index: (f"l{index}", "")))


@_input("metadata: invalid labels")
def _invalid_labels() -> Iterator[Sent]:
    return _with_metadata(labels=_many(lambda index: (f"l/{index}/", "-")))


@_input("metadata: annotations")
def _annotations() -> Iterator[Sent]:
    return _with_metadata(annotations=_many(lambda index: (f"a{index}", ""), 256 * 1024))


@_input("metadata: annotations beyond the limit")
def _too_many_annotations() -> Iterator[Sent]:
    return _with_metadata(annotations=_many(lambda index: (f"a{index}", ""), BODY_BYTES))


@_input("metadata: owner references")
def _owners() -> Iterator[Sent]:
    return _with_metadata(
        ownerReferences=_filled(
            lambda index: {"apiVersion": "v1", "kind": "A", "name": f"o{index}", "uid": f"u{index}"}
        )
    )


@_input("metadata: finalizers")
def _finalizers() -> Iterator[Sent]:
    return _with_metadata(finalizers=_filled(lambda index: f"a.b/{index}"))


@_input("metadata: managed fields")
def _managed_fields() -> Iterator[Sent]:
    fields = _many(lambda index: (f"f:{index}", {}))
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": fields},
        "time": "2026-01-01T00:00:00Z",
    }
    return _with_metadata(managedFields=[entry])


def _many_managers(size: int = OBJECT_BYTES) -> Iterator[Sent]:
    return _with_metadata(
        managedFields=_filled(
            lambda index: {
                "manager": f"m{index}",
                "operation": "Apply",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:a": {}}},
                "time": "2026-01-01T00:00:00Z",
            },
            size,
        )
    )


@_input("metadata: managers")
def _managers() -> Iterator[Sent]:
    return _many_managers()


@_input("metadata: a label of an object with many managers")
def _managed_label() -> Iterator[Sent]:
    yield from _many_managers()
    yield Sent("PATCH", f"{MAPS}/worst", encode({"metadata": {"labels": {"a": "b"}}}), MERGE_PATCH)


@_input("metadata: a name of a megabyte")
def _long_name() -> Iterator[Sent]:
    return _with_metadata(name="a" * 1_000_000)


# ------------------------------------------------------------------------------------------------------------ pods


@_input("pod: containers")
def _containers() -> Iterator[Sent]:
    yield Sent("POST", PODS, encode(_pod(containers=_filled(lambda index: {"name": f"c{index}", "image": "i"}))))


def _fitting_containers(size: int = 600_000) -> Sent:
    """A pod below the size limit of objects: with defaults, containers are five to ten times as large."""
    containers = _filled(lambda index: {"name": f"c{index}", "image": "i"}, size)
    return Sent("POST", PODS, encode(_pod(containers=containers)))


@_input("pod: containers, with a quota and a limit range")
def _limited_containers() -> Iterator[Sent]:
    limits = [{"type": "Container", "default": {"cpu": "1"}, "min": {"memory": "1"}, "max": {"cpu": "2"}}]
    path = "/api/v1/namespaces/default"
    yield Sent("POST", f"{path}/limitranges", encode(_named("LimitRange", spec={"limits": limits})))
    hard = {"requests.cpu": "1000000", "limits.cpu": "1000000", "pods": "10"}
    yield Sent("POST", f"{path}/resourcequotas", encode(_named("ResourceQuota", spec={"hard": hard})))
    yield _fitting_containers()


@_input("pod: containers in a restricted namespace")
def _restricted_containers() -> Iterator[Sent]:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    patch = encode({"metadata": {"labels": labels}})
    yield Sent("PATCH", "/api/v1/namespaces/default", patch, MERGE_PATCH)
    yield _fitting_containers()


@_input("pod: a change of many containers")
def _changed_containers() -> Iterator[Sent]:
    yield _fitting_containers(140_000)
    patch = {"metadata": {"labels": {"a": "b"}}}
    yield Sent("PATCH", f"{PODS}/worst", encode(patch), MERGE_PATCH)


@_input("pod: containers with one name")
def _same_containers() -> Iterator[Sent]:
    yield Sent("POST", PODS, encode(_pod(containers=_filled(lambda index: {"name": "c", "image": "i"}))))


@_input("pod: variables")
def _variables() -> Iterator[Sent]:
    env = _filled(lambda index: {"name": f"E{index}"})
    yield Sent("POST", PODS, encode(_pod(containers=[{"name": "c", "image": "i", "env": env}])))


@_input("pod: invalid variables")
def _invalid_variables() -> Iterator[Sent]:
    env = _filled(lambda index: {"name": "="})
    yield Sent("POST", PODS, encode(_pod(containers=[{"name": "c", "image": "i", "env": env}])))


@_input("pod: tolerations")
def _tolerations() -> Iterator[Sent]:
    yield Sent("POST", PODS, encode(_pod(tolerations=_filled(lambda index: {"operator": "Exists"}))))


@_input("pod: node affinity terms")
def _affinity() -> Iterator[Sent]:
    terms = _filled(lambda index: {"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    yield Sent("POST", PODS, encode(_pod(affinity={"nodeAffinity": required})))


@_input("pod: values of one expression")
def _affinity_values() -> Iterator[Sent]:
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": _filled(lambda index: f"{index}")}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    yield Sent("POST", PODS, encode(_pod(affinity={"nodeAffinity": required})))


@_input("pod: inter-pod affinity terms")
def _pod_affinity() -> Iterator[Sent]:
    terms = _filled(lambda index: {"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b"}}})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    yield Sent("POST", PODS, encode(_pod(affinity={"podAntiAffinity": required})))


@_input("pod: volumes and mounts")
def _volumes() -> Iterator[Sent]:
    volumes = _filled(lambda index: {"name": f"v{index}", "emptyDir": {}}, OBJECT_BYTES // 2)
    mounts = _filled(lambda index: {"name": f"v{index}", "mountPath": f"/{index}"}, OBJECT_BYTES // 2)
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    yield Sent("POST", PODS, encode(_pod(containers=[container], volumes=volumes)))


@_input("pod: ports")
def _ports() -> Iterator[Sent]:
    ports = _filled(lambda index: {"containerPort": index % 60_000 + 1})
    yield Sent("POST", PODS, encode(_pod(containers=[{"name": "c", "image": "i", "ports": ports}])))


@_input("pod: resources")
def _resources() -> Iterator[Sent]:
    requests = _many(lambda index: (f"a.b/{index}", "1"))
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
    yield Sent("POST", PODS, encode(_pod(containers=[container])))


@_input("pod: quantities with many digits")
def _quantities() -> Iterator[Sent]:
    requests = _many(lambda index: (f"a.b/{index}", "1" * 10_000))
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    yield Sent("POST", PODS, encode(_pod(containers=[container])))


@_input("pod: one quantity of a megabyte")
def _quantity() -> Iterator[Sent]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9" * 1_000_000}}}
    yield Sent("POST", PODS, encode(_pod(containers=[container])))


@_input("pod: quantity with a huge exponent")
def _exponent() -> Iterator[Sent]:
    requests = _many(lambda index: (f"a.b/{index}", "1e2147483647"), 100_000)
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    yield Sent("POST", PODS, encode(_pod(containers=[container])))


@_input("pod: topology spread constraints")
def _constraints() -> Iterator[Sent]:
    constraint = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
    yield Sent(
        "POST",
        PODS,
        encode(_pod(topologySpreadConstraints=_filled(lambda index: {**constraint, "topologyKey": f"a{index}"}))),
    )


@_input("pod: scheduling gates and host aliases")
def _gates() -> Iterator[Sent]:
    gates = _filled(lambda index: {"name": f"a.b/{index}"}, OBJECT_BYTES // 2)
    aliases = _filled(lambda index: {"ip": "1.2.3.4", "hostnames": ["a"]}, OBJECT_BYTES // 2)
    yield Sent("POST", PODS, encode(_pod(schedulingGates=gates, hostAliases=aliases)))


# ---------------------------------------------------------------------------------------------------- other kinds


@_input("service: ports")
def _service_ports() -> Iterator[Sent]:
    ports = _filled(lambda index: {"name": f"p{index}", "port": index % 60_000 + 1})
    yield Sent("POST", "/api/v1/namespaces/default/services", encode(_named("Service", spec={"ports": ports})))


@_input("storage class: empty topologies")
def _topologies() -> Iterator[Sent]:
    body = _named("StorageClass", "storage.k8s.io/v1", provisioner="p", allowedTopologies=_filled(lambda index: {}))
    yield Sent("POST", "/apis/storage.k8s.io/v1/storageclasses", encode(body))


@_input("endpoint slice: endpoints")
def _endpoints() -> Iterator[Sent]:
    endpoints = _filled(lambda index: {"addresses": [f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"]})
    body = _named("EndpointSlice", "discovery.k8s.io/v1", addressType="IPv4", endpoints=endpoints)
    yield Sent("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", encode(body))


@_input("endpoints: subsets")
def _subsets() -> Iterator[Sent]:
    subsets = _filled(lambda index: {"addresses": [{"ip": f"10.1.{index >> 8 & 255}.{index & 255}"}]})
    yield Sent("POST", "/api/v1/namespaces/default/endpoints", encode(_named("Endpoints", subsets=subsets)))


@_input("role: rules")
def _rules() -> Iterator[Sent]:
    rules = _filled(lambda index: {"apiGroups": [""], "resources": [f"r{index}"], "verbs": ["get"]})
    body = _named("ClusterRole", "rbac.authorization.k8s.io/v1", rules=rules)
    yield Sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", encode(body))


@_input("role: a rule of many combinations")
def _combinations() -> Iterator[Sent]:
    path, group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default", "rbac.authorization.k8s.io"
    subject = {"kind": "User", "name": "somebody", "apiGroup": group}
    role = {"kind": "ClusterRole", "name": "admin", "apiGroup": group}
    binding = _named("RoleBinding", f"{group}/v1", subjects=[subject], roleRef=role)
    yield Sent("POST", f"{path}/rolebindings", encode(binding))
    names = [f"n{index}" for index in range(1_000)]
    rules = [{"apiGroups": names, "resources": names, "verbs": names}]
    yield Sent("POST", f"{path}/roles", encode(_named("Role", f"{group}/v1", rules=rules)), impersonated="somebody")


@_input("role binding: subjects")
def _subjects() -> Iterator[Sent]:
    subjects = _filled(lambda index: {"kind": "User", "name": f"u{index}", "apiGroup": "rbac.authorization.k8s.io"})
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    body = _named("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", subjects=subjects, roleRef=role)
    yield Sent("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", encode(body))


@_input("node: status")
def _node() -> Iterator[Sent]:
    yield Sent("POST", "/api/v1/nodes", encode(_named("Node")))
    images = _filled(lambda index: {"names": [f"i{index}"], "sizeBytes": 1})
    yield Sent("PATCH", "/api/v1/nodes/worst/status", encode({"status": {"images": images}}), STRATEGIC_PATCH)


@_input("secret: entries")
def _secret() -> Iterator[Sent]:
    data = _many(lambda index: (f"k{index}", "YQ=="), 1_000_000)
    yield Sent("POST", "/api/v1/namespaces/default/secrets", encode(_named("Secret", data=data)))


@_input("deployment: variables")
def _deployment() -> Iterator[Sent]:
    env = _filled(lambda index: {"name": f"E{index}"})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = _named("Deployment", "apps/v1", spec=spec)
    yield Sent("POST", "/apis/apps/v1/namespaces/default/deployments", encode(body))


@_input("resource slice: devices")
def _devices() -> Iterator[Sent]:
    attributes = {f"a{index}": {"int": 1} for index in range(24)}
    devices = [{"name": f"d{index}", "attributes": attributes} for index in range(3_000)]
    spec = {
        "driver": "a.b",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    body = _named("ResourceSlice", "resource.k8s.io/v1", spec=spec)
    yield Sent("POST", "/apis/resource.k8s.io/v1/resourceslices", encode(body))


def _claim(expressions: list[str]) -> Sent:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    body = _named("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [request]}})
    return Sent("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", encode(body))


@_input("resource claim: long selectors")
def _claim_selectors() -> Iterator[Sent]:
    yield _claim(
        [" && ".join([f'device.driver != "{number}"'] * 400)[:10_000].rpartition(" && ")[0] for number in range(32)]
    )


@_input("resource claim: deep selectors")
def _claim_deep() -> Iterator[Sent]:
    yield _claim([f'{"(" * 240}device.driver == "{number}"{")" * 240}' for number in range(32)])


@_input("resource claim: lists in selectors")
def _claim_lists() -> Iterator[Sent]:
    yield _claim([f"[{','.join(['1'] * 4_900)}].all(x, x == {number})" for number in range(32)])


@_input("resource claim: more selectors than allowed")
def _claim_many() -> Iterator[Sent]:
    yield _claim([f'device.driver == "{number}"' for number in range(20_000)])


@_input("resource claim: selectors that compute much")
def _claim_costly() -> Iterator[Sent]:
    numbers = ",".join(map(str, range(60)))
    loop = f"[{numbers}].all(x, [{numbers}].all(y, [{numbers}].exists(z, x + y + z < 0)))"
    yield _claim([f"{loop} || device.driver == '{number}'" for number in range(32)])


@_input("device class: long selectors")
def _class_selectors() -> Iterator[Sent]:
    long = [" || ".join([f'device.driver == "{number}"'] * 400)[:10_000] for number in range(32)]
    selectors = [{"cel": {"expression": each.rpartition(" || ")[0]}} for each in long]
    body = _named("DeviceClass", "resource.k8s.io/v1", spec={"selectors": selectors})
    yield Sent("POST", "/apis/resource.k8s.io/v1/deviceclasses", encode(body))


@_input("disruption budget: expressions of a selector")
def _budget_selector() -> Iterator[Sent]:
    expressions = _filled(lambda index: {"key": f"k{index}", "operator": "In", "values": ["a"]})
    spec = {"selector": {"matchExpressions": expressions}, "maxUnavailable": 1}
    body = _named("PodDisruptionBudget", "policy/v1", spec=spec)
    yield Sent("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", encode(body))


# --------------------------------------------------------------------------------------------------------- patches


@_input("JSON patch: operations")
def _json_patch() -> Iterator[Sent]:
    yield _create_map()
    steps = [{"op": "add", "path": f"/data/k{index}", "value": "v"} for index in range(10_000)]
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: operations beyond the limit")
def _json_patch_many() -> Iterator[Sent]:
    yield _create_map()
    steps = _filled(lambda index: {"op": "add", "path": "/data/k", "value": "v"}, BODY_BYTES)
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: insertions at the front of a long list")
def _json_patch_list() -> Iterator[Sent]:
    document = _config_map()
    document["metadata"]["finalizers"] = _filled(lambda index: f"a.b/{index}", 500_000)
    yield Sent("POST", MAPS, encode(document))
    steps = [{"op": "add", "path": "/metadata/finalizers/0", "value": f"b.c/{index}"} for index in range(10_000)]
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: tests of a large value")
def _json_patch_tests() -> Iterator[Sent]:
    data = _many(lambda index: (f"k{index}", ""), 100_000)
    yield Sent("POST", MAPS, encode(_config_map(data=data)))
    steps: list[Any] = [{"op": "test", "path": "/data", "value": data}] * 20
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: copies up to the limit")
def _json_patch_copies() -> Iterator[Sent]:
    data = _many(lambda index: (f"k{index}", ""), 100_000)
    yield Sent("POST", MAPS, encode(_config_map(data=data)))
    steps = [{"op": "copy", "from": "/data", "path": f"/x{index}"} for index in range(25)]
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: long paths")
def _json_patch_paths() -> Iterator[Sent]:
    yield _create_map()
    steps = [{"op": "add", "path": "/data/" + "~0" * 10_000, "value": "v"}] * 100
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("JSON patch: nested values")
def _json_patch_nested() -> Iterator[Sent]:
    yield _create_map()
    nested: Any = 1
    for _ in range(90):
        nested = [nested]
    steps = [{"op": "add", "path": f"/x{index}", "value": nested} for index in range(9_000)]
    yield Sent("PATCH", f"{MAPS}/worst", encode(steps), JSON_PATCH)


@_input("merge patch: entries")
def _merge_patch() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(data=_many(lambda index: (f"k{index}", "a"), 600_000))))
    yield Sent("PATCH", f"{MAPS}/worst", encode({"data": _many(lambda index: (f"k{index}", "b"))}), MERGE_PATCH)


@_input("strategic patch: variables")
def _strategic_patch() -> Iterator[Sent]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    env = _filled(lambda index: {"name": f"E{index:07}"}, OBJECT_BYTES // 4)
    template["spec"]["containers"][0]["env"] = env  # type: ignore[index]
    yield Sent("POST", path, encode(_named("Deployment", "apps/v1", spec=spec)))
    changed = [{**each, "value": "v"} for each in reversed(env)]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": changed}]}}}}
    yield Sent("PATCH", f"{path}/worst", encode(patch), STRATEGIC_PATCH)


@_input("strategic patch: element order")
def _strategic_order() -> Iterator[Sent]:
    yield from _node_with_conditions()
    names = _filled(lambda index: {"type": f"c{index:07}"}, OBJECT_BYTES // 6)
    patch = {"status": {"conditions": names, "$setElementOrder/conditions": list(reversed(names))}}
    yield Sent("PATCH", "/api/v1/nodes/worst/status", encode(patch), STRATEGIC_PATCH)


def _node_with_conditions() -> Iterator[Sent]:
    yield Sent("POST", "/api/v1/nodes", encode(_named("Node")))
    conditions = _filled(lambda index: {"type": f"c{index:07}", "status": "True"}, OBJECT_BYTES // 4)
    yield Sent("PATCH", "/api/v1/nodes/worst/status", encode({"status": {"conditions": conditions}}), STRATEGIC_PATCH)


@_input("strategic patch: deletions of primitives")
def _strategic_primitives() -> Iterator[Sent]:
    document = _config_map()
    document["metadata"]["finalizers"] = names = _filled(lambda index: f"a.b/{index}", 500_000)
    yield Sent("POST", MAPS, encode(document))
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": names}}
    yield Sent("PATCH", f"{MAPS}/worst", encode(patch), STRATEGIC_PATCH)


@_input("server-side apply: entries")
def _apply() -> Iterator[Sent]:
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), OBJECT_BYTES // 3)))
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=a", body, APPLY_PATCH)


@_input("server-side apply: entries again, by another manager")
def _apply_again() -> Iterator[Sent]:
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), OBJECT_BYTES // 4)))
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=a", body, APPLY_PATCH)
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=b&force=true", body.replace(b'""', b'"c"'), APPLY_PATCH)


@_input("server-side apply: conflicts")
def _apply_conflicts() -> Iterator[Sent]:
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), OBJECT_BYTES // 4)))
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=a", body, APPLY_PATCH)
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=b", body.replace(b'""', b'"c"'), APPLY_PATCH)


@_input("server-side apply: containers as YAML")
def _apply_yaml() -> Iterator[Sent]:
    env = _yaml_lines(lambda index: f"    - {{name: E{index}}}\n", OBJECT_BYTES // 2)
    head = "kind: Pod\napiVersion: v1\nmetadata: {name: worst}\nspec:\n  containers:\n"
    text = f"{head}  - name: c\n    image: i\n    env:\n{env}"
    yield Sent("PATCH", f"{PODS}/worst?fieldManager=a", text.encode(), APPLY_PATCH)


@_input("server-side apply: to an object with many managers")
def _apply_managers() -> Iterator[Sent]:
    yield from _many_managers(OBJECT_BYTES // 2)
    body = encode(_config_map(data=_many(lambda index: (f"k{index}", ""), OBJECT_BYTES // 6)))
    yield Sent("PATCH", f"{MAPS}/worst?fieldManager=a&force=true", body, APPLY_PATCH)


@_input("server-side apply: containers and their ports")
def _apply_containers() -> Iterator[Sent]:
    ports = [{"containerPort": number + 1, "protocol": "TCP"} for number in range(40)]
    containers = _filled(lambda index: {"name": f"c{index}", "image": "i", "ports": ports}, OBJECT_BYTES // 6)
    yield Sent("PATCH", f"{PODS}/worst?fieldManager=a", encode(_pod(containers=containers)), APPLY_PATCH)


# ------------------------------------------------------------------------------------------------- custom resources


@_input("definition: properties")
def _definition_properties() -> Iterator[Sent]:
    yield _definition({"type": "object", "properties": _many(lambda index: (f"p{index}", {"type": "string"}))})


@_input("definition: nested properties")
def _definition_nested() -> Iterator[Sent]:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        nested = {"type": "object", "properties": {"a": nested}}
    yield _definition({"type": "object", "properties": _many(lambda index: (f"p{index}", nested))})


@_input("definition: rules")
def _definition_rules() -> Iterator[Sent]:
    rules = _filled(lambda index: {"rule": f"self.a != {index}"}, 200_000)
    yield _definition({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules})


@_input("definition: a long rule")
def _definition_rule() -> Iterator[Sent]:
    rule = " && ".join(["self.a != 1"] * 6_000)
    yield _definition(
        {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": rule}]}
    )


@_input("definition: patterns")
def _definition_patterns() -> Iterator[Sent]:
    yield _definition(
        {
            "type": "object",
            "properties": _many(
                lambda index: (f"p{index}", {"type": "string", "pattern": f"(a|b{index}){{100}}"}), 400_000
            ),
        }
    )


@_input("definition: an enum and a default")
def _definition_enum() -> Iterator[Sent]:
    values = _filled(lambda index: f"{index}", 600_000)
    yield _definition({"type": "object", "properties": {"a": {"type": "string", "enum": values, "default": "1"}}})


@_input("definition: versions")
def _definition_versions() -> Iterator[Sent]:
    version = {"served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    versions = _filled(lambda index: {"name": f"v{index + 2}", **version})
    sent = _definition({"type": "object"})
    document = msgspec.json.decode(sent.body)
    document["spec"]["versions"] += versions
    yield Sent(sent.method, sent.path, encode(document))


_PRESERVED = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@_input("custom: preserved fields")
def _custom_preserved() -> Iterator[Sent]:
    return _things(_PRESERVED, _many(lambda index: (f"k{index}", 1)))


@_input("custom: pruned fields")
def _custom_pruned() -> Iterator[Sent]:
    return _things({"type": "object"}, _many(lambda index: (f"k{index}", 1), BODY_BYTES))


@_input("custom: objects with defaults")
def _custom_defaults() -> Iterator[Sent]:
    properties = {name: {"type": "integer", "default": 1} for name in "abcde"}
    schema = {"type": "array", "items": {"type": "object", "properties": properties}}
    return _things({"type": "object", "properties": {"a": schema}}, {"a": _filled(lambda index: {}, 100_000)})


@_input("custom: large defaults")
def _custom_large_defaults() -> Iterator[Sent]:
    properties = {"a": {"type": "string", "default": "x" * 500_000}}
    schema = {"type": "array", "items": {"type": "object", "properties": properties}}
    return _things({"type": "object", "properties": {"a": schema}}, {"a": _filled(lambda index: {})})


@_input("custom: values outside of a large enum")
def _custom_outside_enum() -> Iterator[Sent]:
    items = {"type": "string", "enum": _filled(lambda index: f"{index}", 500_000)}
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": items}}}
    return _things(schema, {"a": _filled(lambda index: "x")})


@_input("custom: a schema of many properties, many objects")
def _custom_many_properties() -> Iterator[Sent]:
    properties = _many(lambda index: (f"p{index}", {"type": "string"}), 500_000)
    properties["a"] = {"type": "string", "default": ""}
    items = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": items}}}
    return _things(schema, {"a": _filled(lambda index: {"p1": "a"}, 500_000)})


@_input("custom: pattern")
def _custom_pattern() -> Iterator[Sent]:
    items = {"type": "string", "pattern": "^a*a*a*b?$"}
    return _things(
        {"type": "object", "properties": {"a": {"type": "array", "items": items}}},
        {"a": _filled(lambda index: "aaaaaaaa")},
    )


@_input("custom: pattern on a long text")
def _custom_long() -> Iterator[Sent]:
    return _things(
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(x+x+)+y"}}}, {"a": "x" * OBJECT_BYTES}
    )


@_input("custom: enum")
def _custom_enum() -> Iterator[Sent]:
    items = {"type": "string", "enum": [f"{index}" for index in range(20_000)]}
    return _things(
        {"type": "object", "properties": {"a": {"type": "array", "items": items}}},
        {"a": _filled(lambda index: "19999", 1_000_000)},
    )


@_input("custom: set")
def _custom_set() -> Iterator[Sent]:
    items = {"type": "integer"}
    schema = {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
    return _things({"type": "object", "properties": {"a": schema}}, {"a": _filled(lambda index: index)})


@_input("custom: uniqueItems of objects")
def _custom_unique() -> Iterator[Sent]:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    schema["x-kubernetes-list-type"] = "set"
    schema["items"]["x-kubernetes-map-type"] = "atomic"  # type: ignore[index]
    return _things({"type": "object", "properties": {"a": schema}}, {"a": _filled(lambda index: {"a": index})})


@_input("custom: map keys")
def _custom_map_keys() -> Iterator[Sent]:
    properties = {"a": {"type": "integer"}, "b": {"type": "string"}}
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": properties, "required": ["a", "b"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
    }
    return _things({"type": "object", "properties": {"a": schema}}, {"a": _filled(lambda index: {"a": index, "b": ""})})


@_input("custom: invalid values")
def _custom_invalid() -> Iterator[Sent]:
    items = {"type": "string", "maxLength": 1}
    return _things(
        {"type": "object", "properties": {"a": {"type": "array", "items": items}}},
        {"a": _filled(lambda index: "ab")},
    )


@_input("custom: one of many")
def _custom_any_of() -> Iterator[Sent]:
    choices = [{"required": [f"k{index}"]} for index in range(1_000)]
    items = {
        "type": "object",
        "properties": {f"k{index}": {"type": "integer"} for index in range(1_000)},
        "oneOf": choices,
    }
    return _things(
        {"type": "object", "properties": {"a": {"type": "array", "items": items}}},
        {"a": _filled(lambda index: {"k999": 1}, 100_000)},
    )


@_input("custom: formats")
def _custom_formats() -> Iterator[Sent]:
    items = {"type": "string", "format": "date-time"}
    return _things(
        {"type": "object", "properties": {"a": {"type": "array", "items": items}}},
        {"a": _filled(lambda index: "2026-01-01T00:00:00Z")},
    )


def _list_rules(rule: str, count: int, **bounds: int) -> Iterator[Sent]:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, **bounds}},
        "x-kubernetes-validations": [{"rule": rule.replace("7", str(7 + number))} for number in range(count)],
    }
    yield _definition(schema)
    yield _thing({"a": list(range(bounds.get("maxItems", 1)))})


@_input("CEL: nested loops")
def _cel_loops() -> Iterator[Sent]:
    return _list_rules("self.a.all(x, self.a.all(y, x + y != -7))", 10, maxItems=400)


@_input("CEL: a long loop")
def _cel_loop() -> Iterator[Sent]:
    return _list_rules("self.a.all(x, x != -7)", 30, maxItems=100_000)


@_input("CEL: rules on items")
def _cel_items() -> Iterator[Sent]:
    items = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]}
    schema = {"type": "object", "properties": {"a": {"type": "array", "maxItems": 100_000, "items": items}}}
    return _things(schema, {"a": list(range(100_000))})


@_input("CEL: growing texts")
def _cel_texts() -> Iterator[Sent]:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 1_000}},
        "x-kubernetes-validations": [
            {"rule": "self.a.replace('a', self.a).replace('a', self.a).size() > 7"},
            {"rule": "[1,2,3,4,5,6,7,8].map(x, self.a.replace('a', 'bbbb').split('')).size() > 7"},
        ],
    }
    return _things(schema, {"a": "a" * 1_000})


@_input("CEL: matches")
def _cel_matches() -> Iterator[Sent]:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 100_000}},
        "x-kubernetes-validations": [{"rule": f"!self.a.matches('(x+x+)+y{number}')"} for number in range(20)],
    }
    return _things(schema, {"a": "x" * 100_000})


@_input("CEL: sorted and quantities")
def _cel_functions() -> Iterator[Sent]:
    return _list_rules(
        "self.a.map(x, quantity('1')).all(q, q.isGreaterThan(quantity('0'))) && self.a.sum() > -7", 5, maxItems=2_000
    )


@_input("server-side apply: nested fields of a custom kind")
def _apply_custom() -> Iterator[Sent]:
    yield _definition(_PRESERVED)
    nested: Any = 1
    for _ in range(60):
        nested = {"a": nested}
    document = _named("Thing", "example.com/v1", spec=_many(lambda index: (f"k{index}", nested), OBJECT_BYTES // 4))
    yield Sent("PATCH", f"{THINGS}/worst?fieldManager=a", encode(document), APPLY_PATCH)


# ---------------------------------------------------------------------------------------------------------- reading


@_input("list: a label selector with many values")
def _list_in() -> Iterator[Sent]:
    values = ",".join(f"{index:04}" for index in range(2_500))
    yield from _objects(200)
    yield Sent("GET", f"{MAPS}?labelSelector=label-1%20in%20({values})")


@_input("list: many requirements")
def _list_requirements() -> Iterator[Sent]:
    yield from _objects(200)
    yield Sent("GET", f"{MAPS}?labelSelector=" + ",".join(f"a{index}!=b" for index in range(1_500)))


@_input("list: many field requirements")
def _list_fields() -> Iterator[Sent]:
    yield from _objects(200)
    yield Sent("GET", f"{MAPS}?fieldSelector=" + ",".join(["metadata.name!=b"] * 900))


def _large_maps(count: int, entries: int) -> Iterable[Sent]:
    for index in range(count):
        data = {f"key-{number:06}": "v" for number in range(entries)}
        yield Sent("POST", MAPS, encode(_config_map(f"map-{index:05}", data=data)))


@_input("list: a table of large objects")
def _list_table() -> Iterator[Sent]:
    yield from _large_maps(60, 10_000)
    yield Sent("GET", MAPS, accept=TABLE)


@_input("list: metadata of large objects")
def _list_metadata() -> Iterator[Sent]:
    yield from _large_maps(60, 10_000)
    yield Sent("GET", MAPS, accept=METADATA)


@_input("watch: a table of large objects")
def _watch_table() -> Iterator[Sent]:
    yield from _large_maps(60, 10_000)
    yield Sent("GET", f"{MAPS}?watch=true&timeoutSeconds=1", accept=TABLE)


@_input("watch: initial events and bookmarks of many objects")
def _watch_list() -> Iterator[Sent]:
    yield from _objects(1_500)
    options = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    yield Sent("GET", f"{MAPS}?{options}&timeoutSeconds=1")


@_input("watch: many requirements of a selector")
def _watch_requirements() -> Iterator[Sent]:
    yield from _objects(200)
    selector = ",".join(f"a{index}!=b" for index in range(1_500))
    yield Sent("GET", f"{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=1&labelSelector={selector}")


@_input("list: sets of values of many labels")
def _list_sets() -> Iterator[Sent]:
    yield from _objects(200)
    sets = ",".join(f"label-{index % 20}%20notin%20(a,b,c,d,e,f,g,h)" for index in range(350))
    yield Sent("GET", f"{MAPS}?labelSelector={sets}")


@_input("list: large objects as YAML")
def _list_yaml() -> Iterator[Sent]:
    yield from _large_maps(20, 10_000)
    yield Sent("GET", MAPS, accept=YAML)


@_input("list: large objects, indented")
def _list_pretty() -> Iterator[Sent]:
    yield from _large_maps(60, 10_000)
    yield Sent("GET", f"{MAPS}?pretty=true")


@_input("list: large objects by a label")
def _list_labels() -> Iterator[Sent]:
    yield from _large_maps(60, 10_000)
    yield Sent("GET", f"{MAPS}?labelSelector=!a")


@_input("list: a table of many objects")
def _list_many() -> Iterator[Sent]:
    yield from _objects(1_500)
    yield Sent("GET", MAPS, accept=TABLE)


@_input("get: a large object as YAML")
def _get_yaml() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(data=_many(lambda index: (f"k{index}", ""), 600_000))))
    yield Sent("GET", f"{MAPS}/worst", accept=YAML)


@_input("delete collection: many objects")
def _delete_collection() -> Iterator[Sent]:
    yield from _objects(1_500)
    yield Sent("DELETE", MAPS)


@_input("delete: a large object")
def _delete_large() -> Iterator[Sent]:
    yield Sent("POST", MAPS, encode(_config_map(data=_many(lambda index: (f"k{index}", ""), 600_000))))
    yield Sent("DELETE", f"{MAPS}/worst")


@_input("delete options: unknown fields")
def _delete_options() -> Iterator[Sent]:
    yield _create_map()
    options = {"kind": "DeleteOptions", "apiVersion": "v1", **_many(lambda index: (f"k{index}", 1), BODY_BYTES)}
    yield Sent("DELETE", f"{MAPS}/worst", encode(options))


@_input("OpenAPI: v2")
def _openapi_2() -> Iterator[Sent]:
    yield Sent("GET", "/openapi/v2")


@_input("OpenAPI: v2 after a definition")
def _openapi_2_again() -> Iterator[Sent]:
    yield Sent("GET", "/openapi/v2")
    yield _definition({"type": "object", "properties": _many(lambda index: (f"p{index}", {"type": "string"}), 500_000)})
    yield Sent("GET", "/openapi/v2")


@_input("OpenAPI: v3 of pods")
def _openapi_3() -> Iterator[Sent]:
    yield Sent("GET", "/openapi/v3/api/v1")


@_input("OpenAPI: v3 of a large definition")
def _openapi_3_custom() -> Iterator[Sent]:
    yield _definition({"type": "object", "properties": _many(lambda index: (f"p{index}", {"type": "string"}), 500_000)})
    yield Sent("GET", "/openapi/v3/apis/example.com/v1")


@_input("OpenAPI: v3 index")
def _openapi_index() -> Iterator[Sent]:
    yield Sent("GET", "/openapi/v3")


@_input("discovery")
def _discovery() -> Iterator[Sent]:
    yield Sent("GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")


# ---------------------------------------------------------------------------------------------------------- reviews


@_input("review: groups of a subject")
def _access_review() -> Iterator[Sent]:
    spec = {
        "user": "u",
        "groups": _filled(lambda index: f"g{index}", BODY_BYTES),
        "resourceAttributes": {"verb": "get"},
    }
    body = _named("SubjectAccessReview", "authorization.k8s.io/v1", spec=spec)
    yield Sent("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", encode(body))


@_input("review: requirements of a selector")
def _selector_review() -> Iterator[Sent]:
    requirements = _filled(lambda index: {"key": f"k{index}", "operator": "In", "values": ["a"]}, BODY_BYTES)
    attributes = {"verb": "list", "resource": "pods", "fieldSelector": {"requirements": requirements}}
    body = _named(
        "SubjectAccessReview", "authorization.k8s.io/v1", spec={"user": "u", "resourceAttributes": attributes}
    )
    yield Sent("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", encode(body))


@_input("review: a long token")
def _token_review() -> Iterator[Sent]:
    token = ".".join(["e" * ((BODY_BYTES - 300) // 3)] * 3)
    body = _named("TokenReview", "authentication.k8s.io/v1", spec={"token": token})
    yield Sent("POST", "/apis/authentication.k8s.io/v1/tokenreviews", encode(body))


@_input("token request: audiences")
def _token_request() -> Iterator[Sent]:
    account = _named("ServiceAccount")
    yield Sent("POST", "/api/v1/namespaces/default/serviceaccounts", encode(account))
    spec = {"audiences": _filled(lambda index: f"a{index}", BODY_BYTES)}
    body = _named("TokenRequest", "authentication.k8s.io/v1", spec=spec)
    yield Sent("POST", "/api/v1/namespaces/default/serviceaccounts/worst/token", encode(body))
