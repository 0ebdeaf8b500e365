"""Addresses: where a kind and an object are on an API server.

Comes in   a kind, a namespace, a name, a selection
Goes out   the path with its query; or a `BadRequestError` for a name that would lead elsewhere

 1. A name is never empty: the address of nothing is that of everything, and deleting that is not what was meant.
 2. A name stays one step of the path, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from mooring.api.kinds import POD, Kind
from mooring.client.errors import BadRequestError
from mooring.client.interface import Selection

_HARMLESS = ":@!$&'()*+,;=~"
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""Nearly every name: nothing in it has to be quoted."""
_roots: dict[Kind, str] = {}


def collection_path(kind: Kind, namespace: str) -> str:
    """All objects of a kind in a namespace; in all namespaces if it is empty."""
    root = _roots.get(kind)
    if root is None:
        root = _roots[kind] = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if namespace and kind.is_namespaced:
        return f"{root}/namespaces/{_step(namespace, 'namespace')}/{kind.plural}"
    return f"{root}/{kind.plural}"


def object_path(kind: Kind, namespace: str, name: str, subresource: str = "") -> str:
    """One object, or a part of it."""
    if not name:
        raise BadRequestError("resource name may not be empty")
    if kind.is_namespaced and not namespace:
        raise BadRequestError("an empty namespace may not be set when a resource name is provided")
    path = f"{collection_path(kind, namespace)}/{_step(name, 'resource name')}"
    return f"{path}/{subresource}" if subresource else path


def creation_path(kind: Kind, namespace: str) -> str:
    """Where a new object is sent."""
    if kind.is_namespaced and not namespace:
        raise BadRequestError("an empty namespace may not be set during creation")
    return collection_path(kind, namespace)


def binding_path(namespace: str, name: str) -> str:
    """Where a pod is given its node."""
    return object_path(POD, namespace, name, "binding")


def with_query(path: str, selection: Selection, parameters: Mapping[str, str | int]) -> str:
    """A path with a selection and other parameters; those that are empty or 0 are left out."""
    given = {"labelSelector": selection.labels, "fieldSelector": selection.fields, **parameters}
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{path}?{query}" if query else path


def _step(text: str, what: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if text in (".", "..") or "/" in text or "%" in text:
        raise BadRequestError(f"invalid {what} {text!r}: may not be '.' or '..', or contain '/' or '%'")
    return quote(text, safe=_HARMLESS)
