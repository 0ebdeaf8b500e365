"""Paths, operations and parameters, before they are written as v2 or v3.

Input: the resources of an API version, and kinds that are not stored. Output: `Path`s with `Operation`s.

    /apis/apps/v1/deployments                                  list, over all namespaces
    /apis/apps/v1/namespaces/{namespace}/deployments           list, post, deletecollection
    /apis/apps/v1/namespaces/{namespace}/deployments/{name}    get, put, patch, delete
    …/{name}/status                                            get, put, patch
    /apis/apps/v1/watch/…                                      deprecated watches

1. The id of an operation consists of its verb, group, version and kind: generated clients name their methods by it.
2. A parameter has the same meaning everywhere, except the path of a proxied request, which is part of the path or of
   the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mooring.api.kinds import NAMESPACE, Kind, Subresource
from mooring.apiserver.resources import Resource

LISTING = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
WRITING = ("dryRun", "fieldManager", "fieldValidation")
PATCHING = (*WRITING, "force")
DELETING = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
DELETING_MANY = tuple(sorted((*(name for name in LISTING if name not in ("allowWatchBookmarks", "watch")), *DELETING)))
LOG = (
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
_STREAMS = ("container", "stderr", "stdin", "stdout", "tty")
CONNECTED: Mapping[str, tuple[str, ...]] = {
    "NodeProxyOptions": ("pathQuery",),
    "PodAttachOptions": _STREAMS,
    "PodExecOptions": ("command", *_STREAMS),
    "PodPortForwardOptions": ("ports",),
    "PodProxyOptions": ("pathQuery",),
    "ServiceProxyOptions": ("pathQuery",),
}
"""The subresources that connect a client with a pod, a node or a service."""

IN_PATH = frozenset({"name", "namespace", "path"})

_INTEGERS = frozenset(
    {"gracePeriodSeconds", "limit", "limitBytes", "ports", "sinceSeconds", "tailLines", "timeoutSeconds"}
)
_FLAGS = frozenset(
    {
        "allowWatchBookmarks",
        "follow",
        "force",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "insecureSkipTLSVerifyBackend",
        "orphanDependents",
        "previous",
        "sendInitialEvents",
        "stderr",
        "stdin",
        "stdout",
        "timestamps",
        "tty",
        "watch",
    }
)


def type_of(name: str) -> str:
    if name in _INTEGERS:
        return "integer"
    return "boolean" if name in _FLAGS else "string"


def shown_name(name: str) -> str:
    """As clients write it."""
    return "path" if name == "pathQuery" else name


DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT, TEXT = "DeleteOptions", "Patch", "Status", "WatchEvent", "text"
"""Bodies and answers that are no kind of the resource's own group."""

_METHODS = {"get": "get", "update": "put", "patch": "patch", "create": "post"}
_ACTIONS = {"get": "read", "put": "replace", "patch": "patch", "post": "create"}
_PROXY_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


@dataclass(frozen=True, slots=True)
class OperationKind:
    """The kind of a body; an empty version is that of the document."""

    kind: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class OpenApiOperation:
    """One operation at a path."""

    method: str
    action: str
    name: str
    about: OperationKind
    """The kind that the operation is about."""
    answer: OperationKind
    codes: tuple[str, ...] = ("200",)
    body: OperationKind | None = None
    is_body_required: bool = True
    parameters: tuple[str, ...] = ()
    is_streaming: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A path; its parameters are those of all its operations."""

    path: str
    operations: tuple[OpenApiOperation, ...]
    parameters: tuple[str, ...] = field(default=())


def camel(api_version: str) -> str:
    """`AppsV1`, `RbacAuthorizationV1`, `CoreV1`: how operations call an API version."""
    group, _, version = api_version.rpartition("/")
    parts = (group or "core").removesuffix(".k8s.io").replace("-", ".").split(".")
    return "".join(part[:1].upper() + part[1:] for part in (*parts, version))


def tag(api_version: str) -> str:
    """The tag of an operation, by which client generators group operations: `apps_v1`, `rbacAuthorization_v1`."""
    version = api_version.rpartition("/")[2]
    name = camel(api_version).removesuffix(version[:1].upper() + version[1:])
    return f"{name[:1].lower()}{name[1:]}_{version}"


def base_path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


# --- stored kinds -----------------------------------------------------------------------------------------------


def resource_paths(resource: Resource) -> Iterator[Path]:
    """The paths of a stored kind."""
    kind = resource.kind
    base, where = base_path(kind.api_version), _where(kind)
    if kind.is_namespaced:
        yield Path(f"{base}/{kind.plural}", (_list(resource, is_everywhere=True),), ("pretty",))
        yield Path(f"{base}/namespaces/{{namespace}}/{kind.plural}", _of_collection(resource), ("namespace", "pretty"))
        single = f"{base}/namespaces/{{namespace}}/{kind.plural}/{{name}}"
    else:
        yield Path(f"{base}/{kind.plural}", _of_collection(resource), ("pretty",))
        single = f"{base}/{kind.plural}/{{name}}"
    given = _given(kind, "name")
    yield Path(single, tuple(_of_object(resource, where)), given)
    for subresource in resource.subresources.values():
        yield from _subresource_paths(resource, subresource, single, given)
    if resource.struct is not None:
        yield from _watch_paths(resource, base)


def _given(kind: Kind, *names: str) -> tuple[str, ...]:
    """The parameters of every operation at a path."""
    return (*names, "namespace", "pretty") if kind.is_namespaced else (*names, "pretty")


def _where(kind: Kind) -> str:
    return f"{camel(kind.api_version)}{'Namespaced' if kind.is_namespaced else ''}"


def _list(resource: Resource, *, is_everywhere: bool = False) -> OpenApiOperation:
    kind = resource.kind
    where = camel(kind.api_version) if is_everywhere else _where(kind)
    name = f"list{where}{kind.kind}{'ForAllNamespaces' if is_everywhere else ''}"
    shown, answer = OperationKind(kind.kind), OperationKind(resource.list_kind)
    return OpenApiOperation(
        "get", "list", name, shown, answer, parameters=LISTING, is_streaming=resource.struct is not None
    )


def _of_collection(resource: Resource) -> tuple[OpenApiOperation, ...]:
    kind, where = resource.kind, _where(resource.kind)
    shown = OperationKind(kind.kind)
    found = [
        _list(resource),
        OpenApiOperation(
            "post", "post", f"create{where}{kind.kind}", shown, shown, ("200", "201", "202"), shown, parameters=WRITING
        ),
    ]
    if "deletecollection" in resource.verbs:
        name = f"delete{where.removesuffix('Namespaced')}Collection"
        name += f"{'Namespaced' if kind.is_namespaced else ''}{kind.kind}"
        body = OperationKind(DELETE_OPTIONS) if resource.struct is not None else None
        parameters = DELETING_MANY if resource.struct is not None else LISTING
        found.append(
            OpenApiOperation(
                "delete",
                "deletecollection",
                name,
                shown,
                OperationKind(STATUS),
                body=body,
                is_body_required=False,
                parameters=parameters,
            )
        )
    return tuple(found)


def _of_object(resource: Resource, where: str) -> Iterator[OpenApiOperation]:
    kind = resource.kind
    shown = OperationKind(kind.kind)
    yield from _changing(resource, ("get", "update"), where, kind.kind, shown, shown)
    # The response can be a Namespace, too, but kube-apiserver does not document it.
    deleted = shown if resource.returns_deleted and kind is not NAMESPACE else OperationKind(STATUS)
    yield OpenApiOperation(
        "delete",
        "delete",
        f"delete{where}{kind.kind}",
        shown,
        deleted,
        ("200", "202"),
        OperationKind(DELETE_OPTIONS),
        is_body_required=False,
        parameters=DELETING,
    )
    yield from _changing(resource, ("patch",), where, kind.kind, shown, shown)


def _changing(
    resource: Resource, verbs: tuple[str, ...], where: str, name: str, about: OperationKind, shown: OperationKind
) -> Iterator[OpenApiOperation]:
    is_custom = resource.struct is None
    for verb in verbs:
        method = _METHODS[verb]
        operation_name = f"{_ACTIONS[method]}{where}{name}"
        match verb:
            case "get":
                parameters = ("resourceVersion",) if is_custom else ()
                yield OpenApiOperation(method, "get", operation_name, about, shown, parameters=parameters)
            case "patch":
                codes: tuple[str, ...] = ("200",) if is_custom else ("200", "201")
                yield OpenApiOperation(
                    method, "patch", operation_name, about, shown, codes, OperationKind(PATCH), parameters=PATCHING
                )
            case "update":
                yield OpenApiOperation(
                    method, "put", operation_name, about, shown, ("200", "201"), shown, parameters=WRITING
                )
            case _:
                codes = ("200", "201", "202")
                yield OpenApiOperation(method, "post", operation_name, about, shown, codes, shown, parameters=WRITING)


# --- what lies below an object ----------------------------------------------------------------------------------


def _subresource_paths(
    resource: Resource, subresource: Subresource, single: str, given: tuple[str, ...]
) -> Iterator[Path]:
    kind, where = resource.kind, _where(resource.kind)
    path = f"{single}/{subresource.name}"
    title = subresource.name[:1].upper() + subresource.name[1:]
    shown = OperationKind(subresource.kind or kind.kind, subresource.api_version)
    if subresource.name == "log":
        read = OpenApiOperation("get", "get", f"read{where}{kind.kind}Log", shown, OperationKind(TEXT), parameters=LOG)
        yield Path(path, (read,), given)
    elif shown.kind in CONNECTED:
        plain = tuple(name for name in given if name != "pretty")
        methods = _PROXY_METHODS if subresource.name == "proxy" else ("get", "post")
        yield Path(path, tuple(_connect(methods, where, f"{kind.kind}{title}", shown)), plain)
        if subresource.name == "proxy":
            below = tuple(_connect(methods, where, f"{kind.kind}ProxyWithPath", shown))
            yield Path(f"{path}/{{path}}", below, (*plain, "path"))
    else:
        name = f"{kind.kind}{title}"
        order = ("get", "update", "patch", "create")
        verbs = tuple(verb for verb in order if verb in subresource.verbs)
        about = OperationKind(kind.kind) if resource.struct is None else shown
        yield Path(path, tuple(_changing(resource, verbs, where, name, about, shown)), given)


def _connect(methods: tuple[str, ...], where: str, name: str, shown: OperationKind) -> Iterator[OpenApiOperation]:
    for method in methods:
        verb = method[:1].upper() + method[1:]
        operation_name = f"connect{where.removesuffix('Namespaced')}{verb}"
        operation_name += f"{'Namespaced' if where.endswith('Namespaced') else ''}{name}"
        parameters = CONNECTED[shown.kind]
        yield OpenApiOperation(method, "connect", operation_name, shown, OperationKind(TEXT), parameters=parameters)


# --- the old way to watch ---------------------------------------------------------------------------------------


def _watch_paths(resource: Resource, base: str) -> Iterator[Path]:
    kind, version = resource.kind, camel(resource.kind.api_version)
    if kind.is_namespaced:
        everywhere = _watch("watchlist", f"watch{version}{kind.kind}ListForAllNamespaces", kind)
        yield Path(f"{base}/watch/{kind.plural}", (everywhere,), ("pretty",))
        below = f"{base}/watch/namespaces/{{namespace}}"
    else:
        below = f"{base}/watch"
    where, given = _where(kind), _given(kind)
    many = _watch("watchlist", f"watch{where}{kind.kind}List", kind)
    yield Path(f"{below}/{kind.plural}", (many,), given)
    one = _watch("watch", f"watch{where}{kind.kind}", kind)
    yield Path(f"{below}/{kind.plural}/{{name}}", (one,), ("name", *given))


def _watch(action: str, name: str, kind: Kind) -> OpenApiOperation:
    return OpenApiOperation(
        "get", action, name, OperationKind(kind.kind), OperationKind(WATCH_EVENT), parameters=LISTING, is_streaming=True
    )


# --- kinds that are never stored --------------------------------------------------------------------------------


def virtual_path(kind: Kind) -> Path:
    """The path of a kind that can only be created."""
    base, shown = base_path(kind.api_version), OperationKind(kind.kind)
    name = f"create{_where(kind)}{kind.kind}"
    create = OpenApiOperation("post", "post", name, shown, shown, ("200", "201", "202"), shown, parameters=WRITING)
    if kind.is_namespaced:
        return Path(f"{base}/namespaces/{{namespace}}/{kind.plural}", (create,), ("namespace", "pretty"))
    return Path(f"{base}/{kind.plural}", (create,), ("pretty",))
