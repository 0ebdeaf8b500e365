"""Addresses: what the path and the method of a request mean.

Input: a method, a path, whether it watches. Output: an `Address`: an object, a collection, or no resource.

    /api/v1/namespaces/default/pods/web/log       core, one object, a subresource
    /apis/apps/v1/deployments                     a group, a collection over all namespaces
    /api/v1/watch/namespaces/default/pods         the deprecated path of watches
    /healthz                                      no resource

1. Authorization and the handlers use the same `Address`, so that both mean the same resource.
2. Escapes are decoded before the path is split: `%2F` is a slash.
3. Paths of custom objects are rejected in other cases than those of built-in kinds, as in kube-apiserver.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from mooring.api.kinds import ALL_VERBS
from mooring.api.memory import Memory
from mooring.apiserver.registry.errors import method_not_supported
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.errors import not_found
from mooring.client.errors import BadRequestError

ADDRESSES_CACHED_MAX = 1_024

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes."""

    path: str
    verb: str
    """As authorization calls it; empty for a method that is no verb."""
    is_resource: bool = False
    api_prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows the subresource: the path of a proxied request."""
    is_old_watch: bool = False
    is_below_namespace: bool = False
    """Whether the path says a namespace, which a resource that has none does not understand."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def read_address(method: str, path: str, *, is_watch: bool) -> Address:
    """What a request is about."""
    question = (method, path, is_watch)
    return _read.get(question) or _read.put(question, _address(method, path, is_watch))


_read: Memory[tuple[str, str, bool], Address] = Memory(ADDRESSES_CACHED_MAX)


def _address(method: str, path: str, is_watch: bool) -> Address:
    verb = _VERBS.get(method, method.lower())
    path = unquote(path)
    parts = path.strip("/").split("/")
    is_core = parts[0] == "api"
    if parts[0] not in ("api", "apis") or len(parts) < (3 if is_core else 4):
        return Address(path, method.lower())  # only requests for resources have verbs such as create
    group, version, parts = ("", parts[1], parts[2:]) if is_core else (parts[1], parts[2], parts[3:])
    prefix = "api" if is_core else "apis"
    is_old_watch = parts[0] in ("watch", "proxy") and len(parts) > 1
    if is_old_watch:
        verb, parts = parts[0], parts[1:]
    namespace, is_below_namespace = "", False
    if parts[0] == "namespaces":
        namespace = parts[1] if len(parts) > 1 else ""
        if len(parts) > 2 and not (parts[2] in _NAMESPACE_SUBRESOURCES and len(parts) == 3):
            parts, is_below_namespace = parts[2:], True
    resource, name, subresource = (*parts[:3], "", "")[:3]
    if not name and verb == "get":
        verb = "watch" if is_watch else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Address(
        path=path,
        verb=verb,
        is_resource=True,
        api_prefix=prefix,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        rest=tuple(parts[3:]),
        is_old_watch=is_old_watch,
        is_below_namespace=is_below_namespace,
    )


_ACROSS_NAMESPACES = ("list", "watch")


def is_custom_address(resource: Resource, address: Address) -> bool:
    """Whether the address leads anywhere."""
    kind = resource.kind
    if address.is_below_namespace and not kind.is_namespaced:
        return False
    if kind.is_namespaced and not address.namespace and address.verb not in _ACROSS_NAMESPACES:
        return False
    if address.subresource and address.subresource not in resource.subresources:
        raise not_found(kind, address.name)
    allowed = resource.subresources[address.subresource].verbs if address.subresource else ALL_VERBS
    if address.verb not in allowed:
        raise method_not_supported(kind, address.verb)
    if address.verb in ("update", "patch") and not address.name:
        raise BadRequestError("name must be provided")
    return True
