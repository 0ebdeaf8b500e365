"""Addresses of custom objects: what is refused differs from what is refused of the server's own kinds.

Comes in   the resource of an address, and the address
Goes out   whether there is such an address; or a `StatusError` for what cannot be done there

 1. A name behind the collection does not disturb a creation.
"""

from __future__ import annotations

from mooring.api.kinds import ALL_VERBS
from mooring.apiserver.http.address import Address
from mooring.apiserver.registry.refusals import method_not_supported
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.errors import not_found
from mooring.client.errors import BadRequestError

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
