"""Users, and the names of service accounts and nodes.

1. A `User` is a value, the same in the API server and in other components.
2. A user is in the group `system:authenticated`, or is `system:anonymous`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ANONYMOUS = "system:anonymous"
AUTHENTICATED_GROUP = "system:authenticated"
UNAUTHENTICATED_GROUP = "system:unauthenticated"
MASTERS_GROUP = "system:masters"
NODES_GROUP = "system:nodes"
NODE_NAME_PREFIX = "system:node:"
SERVICE_ACCOUNTS_GROUP = "system:serviceaccounts"
SERVICE_ACCOUNT_NAME_PREFIX = "system:serviceaccount:"

CREDENTIAL_KEY = "authentication.kubernetes.io/credential-id"
POD_NAME_KEY = "authentication.kubernetes.io/pod-name"
POD_UID_KEY = "authentication.kubernetes.io/pod-uid"
NODE_NAME_KEY = "authentication.kubernetes.io/node-name"
NODE_UID_KEY = "authentication.kubernetes.io/node-uid"

_LABEL_LENGTH_MAX = 63
_SUBDOMAIN_LENGTH_MAX = 253
_is_label = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?").fullmatch
_is_subdomain = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*").fullmatch


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request. `extra` has further facts of the authenticator: the credential, the pod."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def anonymous() -> User:
    """The anonymous user."""
    return User(ANONYMOUS, groups=(UNAUTHENTICATED_GROUP,))


def authenticated(user: User) -> User:
    """The user with the group `system:authenticated`."""
    if user.name == ANONYMOUS or AUTHENTICATED_GROUP in user.groups or UNAUTHENTICATED_GROUP in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED_GROUP))


def with_group(user: User, group: str) -> User:
    """The user as a member of the group, at the end of the list if that is news."""
    return user if group in user.groups else replace(user, groups=(*user.groups, group))


def node_name_of(user: User) -> str | None:
    """The node whose kubelet the user is; empty if the user name lacks it, None for other users."""
    if NODES_GROUP not in user.groups or not user.name.startswith(NODE_NAME_PREFIX):
        return None
    return user.name[len(NODE_NAME_PREFIX) :]


def service_account_username(namespace: str, name: str) -> str:
    return f"{SERVICE_ACCOUNT_NAME_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    return (SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}")


def service_account_of(username: str) -> tuple[str, str] | None:
    """The namespace and the name of the service account with this user name; None for any other user."""
    if not username.startswith(SERVICE_ACCOUNT_NAME_PREFIX):
        return None
    namespace, separator, name = username[len(SERVICE_ACCOUNT_NAME_PREFIX) :].partition(":")
    if not separator or len(namespace) > _LABEL_LENGTH_MAX or not _is_label(namespace) or not _is_dns_name(name):
        return None
    return namespace, name


def node_of(username: str) -> str | None:
    """The name of the node with this user name; None for any other user."""
    if not username.startswith(NODE_NAME_PREFIX):
        return None
    name = username[len(NODE_NAME_PREFIX) :]
    return name if _is_dns_name(name) else None


def _is_dns_name(name: str) -> bool:
    return len(name) <= _SUBDOMAIN_LENGTH_MAX and _is_subdomain(name) is not None
