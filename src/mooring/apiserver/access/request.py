"""What is asked for, as far as access is concerned.

Comes in   the path, the method and the user of a request; or the attributes that a review names
Goes out   `Attributes`, which authorizers answer

 1. A request is for a resource or for a path, never for both: `is_resource_request` says which fields count.
 2. Of selectors only those of fields are kept, because only nodes are judged by them: a kubelet may list the pods of
    its own node, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.apiserver.access.users import User


@dataclass(frozen=True, slots=True)
class Attributes:
    """Who wants to do what with which object."""

    user: User
    verb: str
    namespace: str = ""
    api_group: str = ""
    api_version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True
    fields_equal: tuple[tuple[str, str], ...] = ()
    """The field selector's equalities, as (field, value)."""

    @property
    def combined_resource(self) -> str:
        """`pods`, or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def path_attributes(user: User, verb: str, path: str) -> Attributes:
    """A request for a path that is no resource: `/healthz`, `/apis`."""
    return Attributes(user, verb, path=path, is_resource_request=False)
