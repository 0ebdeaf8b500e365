"""Authorization: may they see it?

Comes in   a caller, a verb, a path
Goes out   whether they may, and perhaps why not

    a path that everybody may see ──────────> yes
    an administrator (system:masters) ──────> yes
    the API server says so ─────────────────> yes, or no (SubjectAccessReview)
    there is nobody to ask ─────────────────> no

 1. A yes is remembered for `allowed_s`, a no for `denied_s`. No answer is a no, and not remembered.
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
from mooring.serving.authentication import Caller, Remembered

MASTERS = "system:masters"
_REVIEW = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", is_namespaced=False)

logger = logging.getLogger(__name__)


class Verdict(NamedTuple):
    is_allowed: bool
    reason: str = ""


class AllowedPathError(ValueError):
    """A pattern with a star in the middle."""


class AllowedPaths:
    """What everybody may see: paths, and beginnings of paths that end with a star."""

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
"""What a verb and a path are called when the API server is asked."""


def by_path(verb: str, path: str) -> dict[str, object]:
    return {"nonResourceAttributes": {"path": path, "verb": verb}}


def of_node(name: str) -> Attributes:
    """As a kubelet asks: whoever may reach through a node may."""

    def attributes(verb: str, path: str) -> dict[str, object]:
        resource = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": "proxy", "name": name}
        return {"resourceAttributes": resource}

    return attributes


class Authorizer:
    """Asks the API server, where nobody needs to be asked less."""

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
        self._verdicts: Remembered[tuple[Caller, str, str], Verdict] = Remembered(clock)
        self._allowed_s = allowed_s
        self._denied_s = denied_s
        self._attributes = attributes

    async def verdict(self, caller: Caller, verb: str, path: str) -> Verdict:
        if path in self._allowed or MASTERS in caller.groups:
            return Verdict(True)
        if self._client is None:
            return Verdict(False)
        key = (caller, verb, path)
        is_known, known = self._verdicts.get(key)
        if is_known and known is not None:
            return known
        try:
            answer = await self._client.create(_REVIEW, "", _question(caller, self._attributes(verb, path)))
        except ClientError as error:
            logger.error("whether %s may %s %s could not be asked: %s", caller.name, verb, path, error)
            return Verdict(False, str(error))
        verdict = _verdict_in(answer)
        self._verdicts.keep(key, verdict, self._allowed_s if verdict.is_allowed else self._denied_s)
        return verdict


def _question(caller: Caller, attributes: dict[str, object]) -> dict[str, object]:
    spec: dict[str, object] = {"user": caller.name, "groups": list(caller.groups), **attributes}
    if caller.uid:
        spec["uid"] = caller.uid
    if caller.extra:
        spec["extra"] = {name: list(values) for name, values in caller.extra.items()}
    return {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}


def _verdict_in(answer: bytes) -> Verdict:
    review: dict[str, Any] = msgspec.json.decode(answer)
    status = review.get("status") or {}
    is_allowed = bool(status.get("allowed")) and not status.get("denied")
    return Verdict(is_allowed, status.get("reason") or "")
