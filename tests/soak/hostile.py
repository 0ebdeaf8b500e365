"""Hostile requests: each is valid HTTP, and as expensive as its kind can be.

All of them are dry runs, so that they leave nothing behind. What the server answers does not matter, unless it is 5xx;
`/readyz` must answer in time meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

BODY_BYTES = 2_800_000
"""Just below the limit of a request body (3 MiB)."""
_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DRY = "?dryRun=All"
_JSON, _YAML, _JSON_PATCH = "application/json", "application/yaml", "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class HostileRequest:
    name: str
    method: str
    path: str
    body: bytes | None = None
    form: str = _JSON


def hostile_requests() -> list[HostileRequest]:
    """One of each kind."""
    config_map = {"metadata": {"name": "a"}}
    copies = [{"op": "add", "path": "/data", "value": {"a": "x" * 1_000}}]
    copies += [{"op": "copy", "from": "/data", "path": f"/metadata/annotations/{step}"} for step in range(40)]
    doubled = [{"op": "add", "path": "/x", "value": {"a": "x" * 100}}]
    doubled += [{"op": "copy", "from": "/x", "path": f"/x/{step}"} for step in range(60)]
    labels = {f"key-{number}": "v" for number in range(100_000)}
    steps = [{"op": "test", "path": "/kind", "value": "ConfigMap"} for _ in range(10_000)]
    service_accounts = f"/api/v1/namespaces/default/serviceaccounts/default{_DRY}"
    return [
        _posted("pattern of a definition", _definition({"type": "string", "pattern": "a*a*a*b"})),
        _posted("nested repeats", _definition({"type": "string", "pattern": "(((a|b){100}){100}){100}"})),
        _posted("rule of a definition", _definition(_rule("self.matches('(a+)+b') && " * 200 + "true"))),
        _posted("rule that costs much", _definition(_rule("self.size() < 3 ? true : " * 80 + "self.all(x, x == x)"))),
        _claimed("selector with a pattern", "device.driver.matches('(a*)*(a*)*b')"),
        _claimed("selector that grows a text", "'a'" + ".replace('a', 'aaaaaaaaaa')" * 30 + ".size() > 0"),
        _claimed("selector of many lists", "lists.range(1000).map(x, lists.range(1000)).flatten().size() > 0"),
        HostileRequest("copies of a document", "PATCH", service_accounts, msgspec.json.encode(doubled), _JSON_PATCH),
        HostileRequest("many copies", "PATCH", service_accounts, msgspec.json.encode(copies), _JSON_PATCH),
        HostileRequest("many patch operations", "PATCH", service_accounts, msgspec.json.encode(steps), _JSON_PATCH),
        HostileRequest("a list of YAML", "POST", _CONFIG_MAPS + _DRY, b"data:\n" + b"- a\n" * (BODY_BYTES // 4), _YAML),
        HostileRequest("a map of YAML", "POST", _CONFIG_MAPS + _DRY, _yaml_map(), _YAML),
        HostileRequest("nested YAML", "POST", _CONFIG_MAPS + _DRY, b"data: " + b"[" * 100_000, _YAML),
        HostileRequest("aliases", "POST", _CONFIG_MAPS + _DRY, _aliases(), _YAML),
        HostileRequest("many labels", "POST", _CONFIG_MAPS + _DRY, _encoded(config_map, labels=labels)),
        HostileRequest("nested JSON", "POST", _CONFIG_MAPS + _DRY, b'{"data":' * 300_000),
        HostileRequest("repeated keys", "POST", _CONFIG_MAPS + _DRY, b'{"data":{' + b'"a":"",' * 400_000 + b'"a":""}}'),
        HostileRequest("unknown fields", "POST", _CONFIG_MAPS + _DRY, msgspec.json.encode(dict.fromkeys(labels, 1))),
        HostileRequest("a long label selector", "GET", f"{_CONFIG_MAPS}?labelSelector=a%20in%20({'b,' * 7_000}b)"),
        HostileRequest("a long field selector", "GET", f"{_CONFIG_MAPS}?fieldSelector={'a.' * 7_000}a%3Db"),
        HostileRequest("a large number", "POST", _CONFIG_MAPS + _DRY, b'{"data":{"a":' + b"9" * 1_000_000 + b"}}"),
    ]


def _posted(name: str, body: bytes) -> HostileRequest:
    return HostileRequest(name, "POST", _DEFINITIONS + _DRY, body)


def _claimed(name: str, expression: str) -> HostileRequest:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": expression}}]}}
    body = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}}
    return HostileRequest(name, "POST", _CLAIMS + _DRY, msgspec.json.encode(body))


def _definition(schema: dict[str, object]) -> bytes:
    root = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return msgspec.json.encode({"metadata": {"name": "widgets.example.com"}, "spec": spec})


def _rule(expression: str) -> dict[str, object]:
    return {"type": "string", "x-kubernetes-validations": [{"rule": expression}]}


def _encoded(document: dict[str, dict[str, str]], **metadata: object) -> bytes:
    return msgspec.json.encode({**document, "metadata": {**document["metadata"], **metadata}})


def _yaml_map() -> bytes:
    return b"metadata: {name: a}\ndata:\n" + b"".join(
        b"  key-%d: value\n" % number for number in range(BODY_BYTES // 18)
    )


def _aliases() -> bytes:
    lines = [b"a: &a [x,x,x,x,x,x,x,x]\n"]
    for letter in range(ord("b"), ord("j")):
        lines.append(b"%c: &%c [%b]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 8)))
    return b"".join(lines)
