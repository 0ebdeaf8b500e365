"""Requests drawn from our own OpenAPI documents by schemathesis, sent to a running API server.

    python -m tests.fuzz.openapi --seed N --seconds N --findings DIRECTORY
    python -m tests.fuzz.openapi --repeat FILE

Input: a seed and a time; or the file of a finding. Output: exit code 0; or 1, and each finding as a file in the
directory: one JSON object with the request, which `--repeat` sends to a new server.

 1. Findings: an answer of 5xx that Kubernetes does not give; an answer that breaks the schema that the document
    declares for it; no answer within `ANSWER_S_MAX`.
 2. Schemas are read strictly: an object with declared fields has no others. Any field may be null, as Go writes empty
    lists and times. Where Kubernetes' own document declares another answer than it gives, so does ours
    (`_is_declared_otherwise`).
 3. Before each turn some objects are created. Half of the requests are helped: they name these objects, and their
    bodies have the right kind and a name. Without that nearly everything would end at the first check.
 4. The seed decides the order of operations and the cases. The answers depend on the objects that exist by then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode

from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from tests.apiserver.http.fuzzer import is_meant_failure
from tests.cluster.running import ADMIN_TOKEN, WITHOUT_OTHERS, Up, running

ANSWER_S_MAX = 10.0
"""For one answer, on a machine that may be busy. Beyond it the request is a finding: a stall."""
CASES_OF_OPERATION = 4
"""Cases of an operation before the next one. When all had their turn, the first begins again, with other cases."""
FINDINGS_MAX = 20
PROGRESS_S = 10.0
NAMES = ("one", "two", "three")
"""The first two exist at the beginning of a turn."""

_POD: Document = {"containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]}
_TEMPLATE: Document = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {"metadata": {"labels": {"app": "a"}}, "spec": _POD},
}
_NAMESPACED = "/namespaces/default"
OBJECTS: Mapping[str, Document] = {
    f"/api/v1{_NAMESPACED}/configmaps": {"data": {"a": "b"}},
    f"/api/v1{_NAMESPACED}/secrets": {"data": {"a": "Yg=="}},
    f"/api/v1{_NAMESPACED}/pods": {"spec": _POD},
    f"/api/v1{_NAMESPACED}/services": {"spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}},
    f"/api/v1{_NAMESPACED}/serviceaccounts": {},
    f"/api/v1{_NAMESPACED}/persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    f"/api/v1{_NAMESPACED}/resourcequotas": {"spec": {"hard": {"pods": "100"}}},
    "/api/v1/nodes": {"status": {"allocatable": {"cpu": "8", "pods": "110"}}},
    "/api/v1/namespaces": {},
    f"/apis/apps/v1{_NAMESPACED}/deployments": {"spec": _TEMPLATE},
    f"/apis/apps/v1{_NAMESPACED}/statefulsets": {"spec": {**_TEMPLATE, "serviceName": "one"}},
    f"/apis/apps/v1{_NAMESPACED}/daemonsets": {"spec": _TEMPLATE},
    f"/apis/batch/v1{_NAMESPACED}/jobs": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
    f"/apis/rbac.authorization.k8s.io/v1{_NAMESPACED}/roles": {"rules": []},
    f"/apis/coordination.k8s.io/v1{_NAMESPACED}/leases": {"spec": {"holderIdentity": "a"}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 7},
    f"/apis/resource.k8s.io/v1{_NAMESPACED}/resourceclaims": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "one"}}]}}
    },
}

Document = dict[str, Any]
Print = Callable[[str], None]


@dataclass(slots=True)
class Findings:
    """What came out."""

    sent: int = 0
    operations: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.sent} requests of {self.operations} operations, answered {dict(sorted(self.codes.items()))}"


class Sender:
    """Sends the cases of all documents to one server, and checks the answers."""

    def __init__(self, up: Up, directory: Path, say: Print) -> None:
        self.findings = Findings()
        self._url = up.url
        self._directory = directory
        self._say = say
        self._seen: set[str] = set()
        self._session = requests.Session()
        authority = up.kubeconfig.with_name("authority.pem")
        authority.write_text(up.authority(), encoding="ascii")
        self._session.verify = str(authority)
        self._session.headers["Authorization"] = f"Bearer {ADMIN_TOKEN}"
        self._session.trust_env = False

    def run(self, operations: list[tuple[Any, Any]], seed: int, until_s: float) -> None:
        """Send cases of every operation in turn, until the time is over."""
        clock, turn, next_s = SystemClock(), 0, 0.0
        self.findings.operations = len(operations)
        while True:
            self._create_objects()
            for number in _shuffled(len(operations), Entropy(seed, f"order-{turn}")):
                now_s = clock.now_s()
                if now_s >= until_s or len(self.findings.files) >= FINDINGS_MAX:
                    return
                if now_s >= next_s:
                    next_s = now_s + PROGRESS_S
                    self._say(f"openapi: {self.findings.sent} requests, {len(self.findings.files)} findings")
                self._send_cases(*operations[number], seed + turn)
            turn += 1

    def _create_objects(self) -> None:
        for path, body in OBJECTS.items():
            for name in NAMES[:2]:
                document = {"metadata": {"name": name, "labels": {"app": name}}, **body}
                self._session.post(f"{self._url}{path}", json=document, timeout=ANSWER_S_MAX)

    def _send_cases(self, operation: Any, validating: Any, seed: int) -> None:
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
        cases = st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])

        @seeded(seed)
        @settings(
            max_examples=CASES_OF_OPERATION,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
            verbosity=Verbosity.quiet,
        )
        @given(case=cases, is_helped=st.booleans(), name=st.sampled_from(NAMES))
        def send(case: Any, is_helped: bool, name: str) -> None:
            if is_helped:
                _help(case, name)
            self._send(case, validating)

        send()

    def _send(self, case: Any, validating: Any) -> None:
        request = case.as_transport_kwargs(base_url=self._url)
        request.setdefault("headers", {})["Authorization"] = f"Bearer {ADMIN_TOKEN}"
        prepared = self._session.prepare_request(
            requests.Request(**{name: value for name, value in request.items() if name in _REQUEST_FIELDS})
        )
        self.findings.sent += 1
        try:
            answer = self._session.send(prepared, timeout=ANSWER_S_MAX)
        except requests.Timeout:
            self._report(case, prepared, f"no answer within {ANSWER_S_MAX:g} s")
            return
        self.findings.codes[answer.status_code] += 1
        problem = problem_of(case, validating, answer)
        if problem:
            self._report(case, prepared, problem)

    def _report(self, case: Any, request: requests.PreparedRequest, problem: str) -> None:
        """Each kind of problem of an operation once."""
        label = f"{case.operation.label}: {problem.partition(chr(10))[0][:60]}"
        if label in self._seen:
            return
        self._seen.add(label)
        body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
        kept = {
            "problem": problem,
            "method": request.method,
            "path": request.path_url,
            "contentType": request.headers.get("Content-Type", ""),
            "body": body.decode("latin-1"),
        }
        file = self._directory / f"openapi-{len(self.findings.files) + 1}.json"
        file.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
        self.findings.files.append(file)
        self.findings.texts.append(f"{request.method} {request.path_url[:200]}: {problem}")


_REQUEST_FIELDS = ("method", "url", "headers", "cookies", "params", "data", "json", "files")


def problem_of(case: Any, validating: Any, answer: requests.Response) -> str:
    """What is wrong with an answer; empty if nothing is. `validating` is the operation with the schemas of answers."""
    if answer.status_code >= 500:
        return (
            "" if is_meant_failure(answer.status_code, answer.content) else f"{answer.status_code}: {answer.text[:400]}"
        )
    if not answer.headers.get("Content-Type", "").startswith("application/json"):
        return ""
    try:
        document = msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        return f"{answer.status_code} with bad JSON ({error}): {answer.text[:400]}"
    if answer.status_code >= 400:
        is_status = document.get("kind") == "Status" and document.get("code") == answer.status_code
        return "" if is_status else f"{answer.status_code} without a Status: {answer.text[:400]}"
    if _is_declared_otherwise(case, document):
        return ""
    try:
        validating.validate_response(answer)
    except (Failure, FailureGroup) as failure:
        shown = failure.exceptions[0] if isinstance(failure, FailureGroup) else failure
        return f"breaks its schema: {getattr(shown, 'message', shown)}\n{answer.text[:2_000]}"
    return ""


def _is_declared_otherwise(case: Any, document: Document) -> bool:
    """A DELETE declares a Status and answers the deleted object or list; a binding and an eviction declare themselves
    and answer a Status; the documents of OpenID Connect declare text and answer JSON."""
    is_status = document.get("kind") == "Status"
    match case.operation.method.upper():
        case "DELETE":
            return not is_status
        case "POST":
            return is_status
        case _:
            return str(case.operation.path).startswith(("/.well-known/openid-configuration", "/openid/v1/jwks"))


def _help(case: Any, name: str) -> None:
    """Turn a case into one that gets further: into an existing namespace, with a body of the right kind."""
    for parameter in case.path_parameters or ():
        case.path_parameters[parameter] = "default" if parameter == "namespace" else name
    case.query.clear()
    kind = case.operation.definition.raw.get("x-kubernetes-group-version-kind")
    if isinstance(case.body, dict) and kind:
        version = f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"]
        metadata = case.body.get("metadata")
        kept = (
            {key: value for key, value in metadata.items() if key in ("labels",)} if isinstance(metadata, dict) else {}
        )
        case.body.update(apiVersion=version, kind=kind["kind"], metadata={**kept, "name": name})


# --- documents ----------------------------------------------------------------------------------------------------


def operations_of(up: Up) -> Iterator[tuple[Any, Any]]:
    """All operations of all documents that the server publishes, each twice: to draw cases, and to check answers."""
    for path in sorted(up.ask("GET", "/openapi/v3").document()["paths"]):
        text = up.ask("GET", f"/openapi/v3/{path}").body
        drawing, validating = _prepared(text), _prepared(text)
        if not drawing["paths"]:
            continue
        for schema in validating.get("components", {}).get("schemas", {}).values():
            for name, declared in schema.get("properties", {}).items():
                schema["properties"][name] = {"allOf": [declared], "nullable": True}
        pairs = [schemathesis.openapi.from_dict(each).get_all_operations() for each in (drawing, validating)]
        yield from zip(*([operation.ok() for operation in operations] for operations in pairs))


def _prepared(text: bytes) -> Document:
    """A document without watches and proxies, whose answers do not end; bodies as JSON; schemas strict."""
    document: Document = msgspec.json.decode(text)
    document["paths"] = {path: item for path, item in document.get("paths", {}).items() if not _is_endless(path)}
    for item in document["paths"].values():
        for operation in (item, *(part for part in item.values() if isinstance(part, dict))):
            named = operation.get("parameters", [])
            operation["parameters"] = [each for each in named if each["name"] not in ("watch", "follow")]
            content = operation.get("requestBody", {}).get("content", {})
            if "*/*" in content:
                content["application/json"] = content.pop("*/*")
    for schema in document.get("components", {}).get("schemas", {}).values():
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema["additionalProperties"] = False
    return document


def _is_endless(path: str) -> bool:
    return "/watch/" in path or path.endswith("/proxy") or "/proxy/" in path


def _shuffled(count: int, entropy: Entropy) -> list[int]:
    return sorted(range(count), key=lambda _: entropy.integer_below(1 << 32))


# --- the command --------------------------------------------------------------------------------------------------


def run(seed: int, seconds: float, directory: Path, say: Print) -> Findings:
    """Fuzz a new server for so many seconds."""
    clock = SystemClock()
    until_s = clock.now_s() + seconds
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as up:
        sender = Sender(up, directory, say)
        sender.run(list(operations_of(up)), seed, until_s)
    return sender.findings


def repeat(file: Path, say: Print) -> bool:
    """Send the request of a finding to a new server. Whether the answer is good."""
    kept: Mapping[str, str] = msgspec.json.decode(file.read_bytes())
    with tempfile.TemporaryDirectory() as directory, _server(Path(directory)) as up:
        path = quote(kept["path"], safe="/?&=%~-._:;,+@!$'()*[]")
        headers = {"Content-Type": kept["contentType"]} if kept["contentType"] else {}
        answer = up.ask(kept["method"], path, kept["body"].encode("latin-1"), headers=headers)
    say(f"{kept['method']} {path}: {answer.code} {answer.body[:2_000]!r}\nit was: {kept['problem']}")
    return answer.code < 500 or is_meant_failure(answer.code, answer.body)


def _server(directory: Path) -> Any:
    return running(directory, "--ephemeral", *WITHOUT_OTHERS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.openapi", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--repeat", type=Path)
    given_ = parser.parse_args()
    if given_.repeat is not None:
        sys.exit(0 if repeat(given_.repeat, print) else 1)
    given_.findings.mkdir(parents=True, exist_ok=True)
    findings = run(given_.seed, given_.seconds, given_.findings, print)
    print(findings)
    for file, text in zip(findings.files, findings.texts):
        print(f"{file}: {text}")
    sys.exit(1 if findings.files else 0)


if __name__ == "__main__":
    main()
