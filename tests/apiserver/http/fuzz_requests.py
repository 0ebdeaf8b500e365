"""Bad requests: recorded ones, with changed method, path, parameters, headers or body.

Input: a seed. Output: an endless sequence of requests; request `n` of a seed always has the same bytes.

A session is a recorded transcript with its own object names. Each step is sent as recorded, so that the server has
objects, and then several times with changes.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from mooring.api.kinds import all_kinds
from mooring.kit.entropy import Entropy
from tests.apiserver.http.fuzz_bodies import (
    APPLY,
    CONTENT_TYPES,
    JSON,
    PATCHES,
    STRANGE_BODIES,
    TEXTS,
    garbled,
    spoiled,
    written,
)
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN

RECORDINGS = Path(__file__).parents[2] / "recordings" / "api.jsonl.xz"
SPOILED_MAX = 8
"""Maximum number of changed requests after each recorded one."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FROB", "get")
METHODS_KNOWN = 8
SUBRESOURCES = (
    *("status", "scale", "log", "exec", "attach", "portforward", "proxy", "binding", "eviction", "resize", "token"),
    *("ephemeralcontainers", "finalize", "approval", "frob", ""),
)
PARAMETERS = (
    *("watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch"),
    *("timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks", "dryRun", "fieldManager", "fieldValidation"),
    *("force", "pretty", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "includeObject", "follow"),
    *("container", "tailLines", "sinceSeconds", "sinceTime", "limitBytes", "timestamps", "previous", "verbose", "frob"),
    *("ignoreStoreReadErrorWithClusterBreakingPotential", "exclude", "shardSelector", "stream", "hash", "timeout"),
)
PARAMETER_VALUES = (
    *("1", "0", "-1", "true", "false", "All", "None", "Strict", "Ignore", "Exact", "NotOlderThan", "Foreground"),
    *("a=b", "a in (b,c)", "a notin (", "!a", "a,", "a==b,c!=d", "a>1", "a<x", "=", ",", "a=b=c", "a in ()", "((("),
    *("metadata.name=a", "metadata.name!=", "spec.nodeName=x", "status.phase=Running", "metadata.name=a\\,b", "a\\"),
    *(
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoi",
    ),
    *("eyJ2IjoieCJ9", "e30", "bnVsbA", "W10", "####", "18446744073709551615", "18446744073709551616", "9" * 40),
    *("1.5", "1e3", "0x10", "99999999", "2026-01-01T00:00:00Z", "１", "²", "Metadata", "Object", "\x00", "\udcff"),
)
ACCEPTS = (
    *("", "*/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"),
    *("text/html", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9"),
    *("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/yaml;as=Table;g=meta.k8s.io;v=v1"),
    *("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", ";;;,,,", "application/*"),
    *("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/json;q=x", "a" * 2_000),
    *("application/json;stream=watch", 'application/json;as="Table";g=meta.k8s.io;v=v1', "/", "application/json;as"),
)
PLAIN_PATHS = (
    *(
        "/",
        "/api",
        "/apis",
        "/apis/",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/frob",
        "/apis/frob/v1",
        "/version",
    ),
    *("/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/frob", "/metrics", "/openapi/v2", "/openapi/v3", "//"),
    *("/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/frob", "/logs", "/debug/pprof", "/favicon.ico"),
    *("/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1/", "/api//v1/pods", "/%", "/%zz", "/..", "*"),
    *("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews"),
    *(
        "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
        "/api/v1/namespaces/default/bindings",
    ),
    *("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
    *(
        "/api/v1/componentstatuses",
        "/apis/apiregistration.k8s.io/v1/apiservices",
        "/api/v1/watch/pods",
        "/api/v1/proxy/a",
    ),
)
_is_plain_path = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*").fullmatch
_KINDS = tuple(all_kinds())


@dataclass(slots=True)
class Request:
    """One request before encoding."""

    method: str
    path: str
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    document: Any = None
    body: bytes | None = None
    """Replaces the document if set."""

    @property
    def may_stream(self) -> bool:
        """Whether the response may have no end."""
        message = f"{self.path}?{self.query}"
        return "watch" in message or "follow" in message

    @property
    def may_wait(self) -> bool:
        """Whether the server waits for a revision that may never come."""
        return any(name == "resourceVersion" and len(value) > 6 for name, value in self.query)

    @property
    def is_risky(self) -> bool:
        """Whether it may be invalid HTTP: the parser then discards pipelined requests before it."""
        return (
            self.method not in METHODS[:METHODS_KNOWN]
            or not _is_plain_path(self.path)
            or "Upgrade" in self.headers
            or not self.headers.get("User-Agent", "").isascii()
        )

    def sent(self, entropy: Entropy) -> bytes:
        """The encoded request, with its body."""
        body = self.body
        if body is None:
            body = (
                b"" if self.document is None else written(self.document, self.headers.get("Content-Type", ""), entropy)
            )
        query = "?" + urlencode(self.query, errors="surrogateescape") if self.query else ""
        lines = [f"{self.method} {self.path}{query} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in self.headers.items() if value]
        if body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + body


def requests(seed: int) -> Iterator[tuple[Request, Entropy]]:
    """An endless sequence of requests, each with the random numbers for its encoding."""
    steps_of = _recorded()
    chance = Entropy(seed, "sessions")
    number = 0
    while True:
        run = f"z{chance.suffix()}"
        for step in chance.choose(steps_of):
            for round_number in range(1 + chance.integer_below(SPOILED_MAX)):
                number += 1
                entropy = Entropy(seed, str(number))
                request = _request(step, run)
                if round_number:
                    spoil(request, entropy, _request(chance.choose(chance.choose(steps_of)), run).document)
                yield request, entropy


def spoil(request: Request, entropy: Entropy, other: Any) -> None:
    """Apply one to three random changes to a request."""
    for _ in range(1 + entropy.integer_below(3)):
        match entropy.integer_below(16):
            case 0:
                request.method = entropy.choose(METHODS)
            case 1 | 2:
                request.path = _spoiled_path(request.path, entropy)
            case 3 | 4:
                request.query.append((entropy.choose(PARAMETERS), entropy.choose((*PARAMETER_VALUES, *TEXTS))))
            case 5:
                _spoil_headers(request, entropy)
            case 6:
                _change_form(request, entropy)
            case 7 | 8:
                kept = _written_or_none(request, entropy)
                request.body = garbled(kept or b"", entropy)
            case 9:
                request.body = entropy.choose(STRANGE_BODIES)
            case _:
                if request.document is not None:
                    request.document = spoiled(request.document, entropy, other)


# ------------------------------------------------------------------------------------------- recorded requests


def _recorded() -> list[list[bytes]]:
    """The requests of each transcript, as bytes: decoding them is the cheapest copy."""
    with lzma.open(RECORDINGS, "rt", encoding="utf-8") as lines:
        transcripts = [json.loads(line) for line in lines]
    steps = [[step["request"] for step in transcript["steps"] if "request" in step] for transcript in transcripts]
    return [[msgspec.json.encode(_repeated(step)) for step in each] for each in steps]


def _repeated(value: Any) -> Any:
    match value:
        case {"$repeat": [text, count]}:
            return text * min(count, 2_000)
        case dict():
            return {key: _repeated(item) for key, item in value.items()}
        case list():
            return [_repeated(item) for item in value]
        case _:
            return value


_INTEGER = re.compile(rb'"\{int:\w+\}"')
_NAME = re.compile(rb"\{[a-z_0-9A-Z]+\}")


def _request(step: bytes, run: str) -> Request:
    # Placeholders for values of earlier responses are replaced by constants.
    step = _NAME.sub(b"1", _INTEGER.sub(b"1", step.replace(b"{run}", run.encode())))
    raw = msgspec.json.decode(step)
    headers = {"Content-Type": JSON, "Accept": JSON, "User-Agent": "fuzzer/1.0"}
    headers |= {name: value or "" for name, value in raw.get("headers", {}).items()}
    token = {"limited": LIMITED_TOKEN, "none": ""}.get(raw.get("auth", ""), raw.get("auth") or ADMIN_TOKEN)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    query = raw.get("query", {})
    pairs = query.items() if isinstance(query, dict) else query
    flat = [(name, str(each)) for name, value in pairs for each in (value if isinstance(value, list) else [value])]
    body = raw.get("body")
    if isinstance(body, str):
        return Request(
            raw.get("method", "GET"), raw["path"], flat, headers, None, body.encode("utf-8", "surrogatepass")
        )
    return Request(raw.get("method", "GET"), raw["path"], flat, headers, body)


# -------------------------------------------------------------------------------------------- changed requests


def _spoiled_path(path: str, entropy: Entropy) -> str:
    parts = path.split("/")
    place = entropy.integer_below(len(parts))
    match entropy.integer_below(8):
        case 0:
            return entropy.choose(PLAIN_PATHS)
        case 1 | 2:
            kind = entropy.choose(_KINDS)
            prefix = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
            namespace = entropy.choose(("/namespaces/default", "/namespaces/kube-system", "", "/namespaces/none"))
            name = entropy.choose(("", "/a", "/kubernetes", "/default", "/" + quote(entropy.choose(TEXTS), safe="")))
            below = "/" + entropy.choose(SUBRESOURCES) if name and entropy.integer_below(2) else ""
            return f"{prefix}{namespace}/{kind.plural}{name}{below}"
        case 3:
            parts[place] = quote(entropy.choose(TEXTS), safe=entropy.choose(("", "/%")))
        case 4:
            del parts[place]
        case 5:
            parts.insert(place, entropy.choose(("watch", "proxy", "namespaces", "v1", "", "x", "pods", "status")))
        case 6:
            return f"{path}/{entropy.choose(SUBRESOURCES)}"
        case _:
            return path.swapcase() if entropy.integer_below(2) else f"{path}/"
    return "/".join(parts) or "/"


def _spoil_headers(request: Request, entropy: Entropy) -> None:
    match entropy.integer_below(12):
        case 0 | 1 | 2:
            request.headers["Accept"] = entropy.choose(ACCEPTS)
        case 3 | 4:
            request.headers["Content-Type"] = entropy.choose(CONTENT_TYPES)
        case 5:
            tokens = (
                f"Bearer {LIMITED_TOKEN}",
                "Bearer ",
                "Bearer a.b.c",
                "Basic YTpi",
                "",
                "Bearer eyJ.eyJ.x",
                "frob",
            )
            request.headers["Authorization"] = entropy.choose(tokens)
        case 6:
            name = entropy.choose(("User", "Group", "Uid", "Extra-scopes", "Extra-%zz", "Frob"))
            request.headers[f"Impersonate-{name}"] = entropy.choose(("a", "system:masters", "system:serviceaccount:a"))
        case 7:
            request.headers["User-Agent"] = entropy.choose(
                ("", "/", "é" * 200, "kubectl/v1.36", "x" * 2_000, "Mozilla/5.0")
            )
        case 8:
            request.headers["Accept-Encoding"] = entropy.choose(("gzip", "br", "gzip;q=0", "identity", "*"))
        case 9:
            request.headers["Content-Encoding"] = entropy.choose(("gzip", "deflate", "br", "frob"))
            if entropy.integer_below(2) and request.document is not None:
                request.body = gzip.compress(msgspec.json.encode(str(request.document)[:1_000]), 1, mtime=0)
        case 10:
            request.headers["Connection"] = entropy.choose(("close", "keep-alive", "upgrade", "frob"))
            request.headers["Upgrade"] = entropy.choose(("websocket", "SPDY/3.1", "h2c"))
        case _:
            request.headers[entropy.choose(("If-None-Match", "If-Match", "Range", "Cookie", "X-Forwarded-For"))] = (
                "bytes=0-"
            )


def _change_form(request: Request, entropy: Entropy) -> None:
    """Change the type of the patch, or the content type of the body."""
    if request.method in ("PATCH", "PUT") or entropy.integer_below(2):
        request.method = "PATCH"
        request.headers["Content-Type"] = entropy.choose((*PATCHES, APPLY, APPLY))
        request.query += [("fieldManager", "fuzz")] if entropy.integer_below(4) else []
    else:
        request.headers["Content-Type"] = entropy.choose(CONTENT_TYPES)


def _written_or_none(request: Request, entropy: Entropy) -> bytes | None:
    if request.document is None:
        return request.body
    return written(request.document, request.headers.get("Content-Type", ""), entropy)
