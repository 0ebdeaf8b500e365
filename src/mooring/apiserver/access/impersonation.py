"""Impersonation: a user acts as another user.

Input: the headers `Impersonate-User`, `-Uid`, `-Group` and `-Extra-KEY`, and the attributes of the request. Output: the
other user; or `ForbiddenError`.

There are five modes, tried in this order until one allows:

    associated-node   a service account acts as the node that its own pod runs on
    arbitrary-node    as any node
    serviceaccount    as any service account
    user-info         as any other user, with groups and extra
    (legacy)          as any user, whatever the request is for

1. Each of the first four needs two permissions: `impersonate-on:MODE:VERB` on the resource of the request, and
   `impersonate:MODE` on each impersonated attribute. The legacy mode needs `impersonate` on each attribute.
2. The error is that of the mode that worked last for this user, otherwise that of the first mode that applies.
3. Only the legacy mode can impersonate members of `system:masters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from mooring.api.caches import BoundedCache
from mooring.api.field_errors import invalid_value, quoted
from mooring.apiserver.access.authorization import Attributes, Authorizer, forbidden
from mooring.client.errors import BadRequestError, ForbiddenError
from mooring.serving.users import (
    ANONYMOUS,
    AUTHENTICATED_GROUP,
    MASTERS_GROUP,
    NODE_NAME_KEY,
    NODES_GROUP,
    UNAUTHENTICATED_GROUP,
    User,
    node_of,
    service_account_groups,
    service_account_of,
    with_group,
)

AUTHENTICATION_GROUP = "authentication.k8s.io"
REMEMBERED_USERS_MAX = 10_000
"""For how many users the way that worked last is remembered. When it is reached, all are forgotten."""

_PREFIX = "impersonate-"
_EXTRA_PREFIX = "impersonate-extra-"
_MANY = 4
"""From this number of groups or extra values on, permission for all of them is checked first."""
_has_bad_escape = re.compile(r"%(?![0-9a-fA-F]{2})").search
_is_http_path = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch


@dataclass(frozen=True, slots=True)
class _ImpersonationHeader:
    name: str
    verb: str
    api_group: str
    """Where users and groups are looked for, to be allowed or not."""


_ASSOCIATED_NODE, _ARBITRARY_NODE, _SERVICE_ACCOUNT, _USER_INFO = (
    _ImpersonationHeader(name, f"impersonate:{name}", AUTHENTICATION_GROUP)
    for name in ("associated-node", "arbitrary-node", "serviceaccount", "user-info")
)
_LEGACY = _ImpersonationHeader("", "impersonate", "")
_WAYS = (_ASSOCIATED_NODE, _ARBITRARY_NODE, _SERVICE_ACCOUNT, _USER_INFO, _LEGACY)


class Impersonation:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last_way: BoundedCache[str, _ImpersonationHeader] = BoundedCache(REMEMBERED_USERS_MAX)

    def impersonated(self, requested: User, request: Attributes) -> User:
        """The impersonated user of a request. Raises `ForbiddenError`."""
        last = self._last_way.get(request.user.name)
        ways = _WAYS if last is None else (last, *(way for way in _WAYS if way is not last))
        first_error: ForbiddenError | None = None
        for way in ways:
            if not _applies(way, requested, request.user):
                continue
            try:
                actual = self._as_allowed(way, requested, request)
            except ForbiddenError as error:
                first_error = first_error or error
                continue
            self._last_way.put(request.user.name, way)
            return actual
        assert first_error is not None, "the legacy check applies to every user, and neither allowed nor denied"
        raise first_error

    def _as_allowed(self, way: _ImpersonationHeader, requested: User, request: Attributes) -> User:
        if way is not _LEGACY:
            self._require(replace(request, verb=f"impersonate-on:{way.name}:{request.verb}"))
        actual = self._with_allowed_name(way, requested, request.user)
        if requested.uid:
            self._require(_question(request.user, AUTHENTICATION_GROUP, way.verb, "uids", requested.uid))
        if requested.groups:
            self._require_groups(way, requested.groups, request.user)
        if requested.extra:
            self._require_extra(way, requested.extra, request.user)
        if actual.name == ANONYMOUS:
            return with_group(actual, UNAUTHENTICATED_GROUP)
        return actual if UNAUTHENTICATED_GROUP in actual.groups else with_group(actual, AUTHENTICATED_GROUP)

    def _with_allowed_name(self, way: _ImpersonationHeader, requested: User, requestor: User) -> User:
        actual, question = requested, _question(requestor, way.api_group, way.verb, "users", requested.name)
        node, account = node_of(requested.name), service_account_of(requested.name)
        if node is not None and way is not _LEGACY:
            # Permission to impersonate one's own node covers all nodes: pods of one service account run on many.
            name = "*" if way is _ASSOCIATED_NODE else node
            question = replace(question, resource="nodes", name=name)
            actual = replace(requested, groups=(NODES_GROUP,))
        elif account is not None:
            namespace, name = account
            question = replace(question, resource="serviceaccounts", namespace=namespace, name=name)
            if not requested.groups:
                actual = replace(requested, groups=service_account_groups(namespace))
        self._require(question)
        return actual

    def _require_groups(self, way: _ImpersonationHeader, groups: tuple[str, ...], requestor: User) -> None:
        question = _question(requestor, way.api_group, way.verb, "groups", "")
        if way is not _LEGACY:
            if "" in groups:
                raise forbidden(question, "impersonating the empty string group is not allowed")
            if MASTERS_GROUP in groups:
                question = replace(question, name=MASTERS_GROUP)
                raise forbidden(question, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and self._is_allowed(replace(question, name="*")):
                return
        for group in groups:
            self._require(replace(question, name=group))

    def _require_extra(self, way: _ImpersonationHeader, extra: Mapping[str, tuple[str, ...]], requestor: User) -> None:
        question = _question(requestor, AUTHENTICATION_GROUP, way.verb, "userextras", "")
        if way is not _LEGACY:
            error = _extra_error(extra)
            if error:
                raise forbidden(question, error)
            is_many = len(extra) >= _MANY or sum(len(values) for values in extra.values()) >= _MANY
            if is_many and self._is_allowed(replace(question, subresource="*", name="*")):
                return
        for key, values in extra.items():
            for value in values:
                self._require(replace(question, subresource=key, name=value))

    def _require(self, question: Attributes) -> None:
        decision = self._authorizer.authorize(question)
        if not decision.is_allowed:
            raise forbidden(question, decision.reason)

    def _is_allowed(self, question: Attributes) -> bool:
        return self._authorizer.authorize(question).is_allowed


def requested_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user in the impersonation headers; None without such headers. Raises `BadRequestError`."""
    found = [(name.lower(), value) for name, value in headers if name[: len(_PREFIX)].lower() == _PREFIX]
    if not found:
        return None
    extra: dict[str, list[str]] = {}
    for name, value in found:
        if name.startswith(_EXTRA_PREFIX):
            extra.setdefault(_unescaped(name[len(_EXTRA_PREFIX) :]), []).append(value)
    user = User(
        next((value for name, value in found if name == "impersonate-user"), ""),
        next((value for name, value in found if name == "impersonate-uid"), ""),
        tuple(value for name, value in found if name == "impersonate-group"),
        {key: tuple(values) for key, values in extra.items()},
    )
    if user.name:
        return user
    if user.uid or user.groups or user.extra:
        raise BadRequestError(f"requested {_as_go_prints(user)} without impersonating a user name")
    return None


def _applies(way: _ImpersonationHeader, requested: User, requestor: User) -> bool:
    if way is _LEGACY:
        return True
    node, account = node_of(requested.name), service_account_of(requested.name)
    if way is _USER_INFO:
        return node is None and account is None
    if requested.uid or requested.groups or requested.extra:
        return False
    if way is _SERVICE_ACCOUNT:
        return account is not None
    if way is _ARBITRARY_NODE:
        return node is not None
    is_of_that_node = requestor.extra.get(NODE_NAME_KEY) == (node,)
    return node is not None and is_of_that_node and service_account_of(requestor.name) is not None


def _question(requestor: User, api_group: str, verb: str, resource: str, name: str) -> Attributes:
    return Attributes(requestor, verb, api_group=api_group, api_version="v1", resource=resource, name=name)


def _extra_error(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        error = _key_error(key)
        if error:
            return f"impersonating an invalid key in extra is not allowed: {error}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_error(key: str) -> str:
    host, _, path = key.partition("/")
    if not host or not path:
        return invalid_value("extra.key", key, 'must be a domain-prefixed path (such as "acme.io/foo")')
    if not _is_http_path(path):
        rule = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
        return invalid_value("extra.key", path, rule)
    return ""


def _unescaped(key: str) -> str:
    return key if _has_bad_escape(key) else unquote(key)


def _as_go_prints(user: User) -> str:
    groups = f"[]string{{{', '.join(quoted(group) for group in user.groups)}}}" if user.groups else "[]string(nil)"
    pairs = (f"{quoted(key)}:[]string{{{', '.join(map(quoted, user.extra[key]))}}}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{', '.join(pairs)}}}" if user.extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"
