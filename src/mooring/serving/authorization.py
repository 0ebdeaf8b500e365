"""Authorization: may this user request this path?

    an always-allowed path ─────────────> yes
    the group system:masters ───────────> yes
    SubjectAccessReview ────────────────> the result
    no API server to ask ───────────────> no

1. A positive decision is cached for `allowed_s`, a negative one for `denied_s`. An error is a no and is not cached.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from mooring.api.kinds import Kind
from mooring.client.errors import ClientError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.serving.authentication import ExpiringCache
from mooring.serving.users import MASTERS_GROUP, User

_REVIEW = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", is_namespaced=False)

logger = logging.getLogger(__name__)


class AuthorizationDecision(NamedTuple):
    is_allowed: bool
    reason: str = ""


class AllowedPathError(ValueError):
    """A pattern with a star before its end."""


class AllowedPaths:
    """Paths, and path prefixes that end with a star."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises `AllowedPathError`."""
        exact, beginnings = [], []
        for pattern in patterns:
            path = pattern.removeprefix("/")
            if "*" in path[:-1]:
                raise AllowedPathError(f'only trailing * allowed in "{path}"')
            if path.endswith("*"):
                beginnings.append(path[:-1])
            else:
                exact.append(path)
        self._exact = frozenset(exact)
        self._beginnings = tuple(beginnings)

    def __contains__(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._exact or (bool(self._beginnings) and bare.startswith(self._beginnings))


Attributes = Callable[[str, str], dict[str, object]]
"""The attributes of a SubjectAccessReview for a verb and a path."""


def by_path(verb: str, path: str) -> dict[str, object]:
    return {"nonResourceAttributes": {"path": path, "verb": verb}}


def of_node(name: str) -> Attributes:
    """As a kubelet: requires access to the subresource nodes/proxy."""

    def attributes(verb: str, path: str) -> dict[str, object]:
        resource = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": "proxy", "name": name}
        return {"resourceAttributes": resource}

    return attributes


class DelegatingAuthorizer:
    """Decides locally where possible, otherwise by a SubjectAccessReview of the API server."""

    def __init__(
        self,
        allowed: AllowedPaths,
        client: Client | None,
        clock: Clock,
        *,
        allowed_s: float = 10.0,
        denied_s: float = 10.0,
        attributes: Attributes = by_path,
    ) -> None:
        self._allowed = allowed
        self._client = client
        self._decisions: ExpiringCache[tuple[User, str, str], AuthorizationDecision] = ExpiringCache(clock)
        self._allowed_s = allowed_s
        self._denied_s = denied_s
        self._attributes = attributes

    async def decide(self, caller: User, verb: str, path: str) -> AuthorizationDecision:
        if path in self._allowed or MASTERS_GROUP in caller.groups:
            return AuthorizationDecision(True)
        return await self._reviewed(caller, verb, path, self._attributes(verb, path))

    async def may_list_pods(self, caller: User, namespace: str) -> bool:
        """In one namespace; in all, if it is empty."""
        if MASTERS_GROUP in caller.groups:
            return True
        resource = {"verb": "list", "version": "v1", "resource": "pods", "namespace": namespace}
        decision = await self._reviewed(caller, "list", f"pods of {namespace}", {"resourceAttributes": resource})
        return decision.is_allowed

    async def _reviewed(
        self, caller: User, verb: str, path: str, attributes: dict[str, object]
    ) -> AuthorizationDecision:
        if self._client is None:
            return AuthorizationDecision(False)
        key = (caller, verb, path)
        is_known, known = self._decisions.get(key)
        if is_known and known is not None:
            return known
        try:
            response = await self._client.create(_REVIEW, "", _review(caller, attributes))
        except ClientError as error:
            logger.error("SubjectAccessReview of %s for %s %s failed: %s", caller.name, verb, path, error)
            return AuthorizationDecision(False, str(error))
        decision = _decision_in(response)
        self._decisions.put(key, decision, self._allowed_s if decision.is_allowed else self._denied_s)
        return decision


def _review(caller: User, attributes: dict[str, object]) -> dict[str, object]:
    spec: dict[str, object] = {"user": caller.name, "groups": list(caller.groups), **attributes}
    if caller.uid:
        spec["uid"] = caller.uid
    if caller.extra:
        spec["extra"] = {name: list(values) for name, values in caller.extra.items()}
    return {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}


def _decision_in(response: bytes) -> AuthorizationDecision:
    review: dict[str, Any] = msgspec.json.decode(response)
    status = review.get("status") or {}
    is_allowed = bool(status.get("allowed")) and not status.get("denied")
    return AuthorizationDecision(is_allowed, status.get("reason") or "")
