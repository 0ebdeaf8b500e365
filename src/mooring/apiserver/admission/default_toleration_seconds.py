"""DefaultTolerationSeconds: new and changed pods tolerate the taints `not-ready` and `unreachable` for five minutes.

A pod that has a toleration for one of these taints keeps it unchanged.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import POD, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part
from mooring.apiserver.call import Operation

TOLERATION_S = 300
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EFFECT = "NoExecute"


class DefaultTolerationSeconds(Admission):
    """Adds the two tolerations."""

    name = "DefaultTolerationSeconds"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        tolerations = attempt.obj["spec"].get("tolerations") or []
        missing = [key for key in _KEYS if not any(_covers(toleration, key) for toleration in tolerations)]
        if missing:
            own_part(attempt.obj, "spec")["tolerations"] = [*tolerations, *map(_toleration, missing)]


def _covers(toleration: Document, key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or _EFFECT) == _EFFECT


def _toleration(key: str) -> Document:
    return {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": TOLERATION_S}
