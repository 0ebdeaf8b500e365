"""ServiceAccount: as whom a pod speaks to the API, and the token that proves it.

Comes in   a new pod
Goes out   the same, with the service account, its image pull secrets and a mounted token; 403 if it does not exist

 1. A pod that names no account gets `default`.
 2. A token is mounted into every container that has nothing at its place, unless pod or account do not want one.
 3. A mirror of a static pod belongs to the kubelet: it is not changed, and must not use accounts, secrets or tokens.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE_ACCOUNT, Kind
from mooring.apiserver.admission.forbidding import refused
from mooring.apiserver.admission.owning import own_items, own_part
from mooring.apiserver.admission.promise import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation
from mooring.kit.entropy import Entropy

DEFAULT_ACCOUNT = "default"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_VALID_S = 3607
"""A little over an hour, by which the API server knows tokens that were mounted without being asked for."""
PROJECTED_MODE = 0o644

TOKEN_VOLUME_PREFIX = "kube-api-access-"

_MIRROR = "kubernetes.io/config.mirror"


class ServiceAccount(Admission):
    """Gives pods their account."""

    name = "ServiceAccount"

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if not _is_mirror(attempt.obj):
            spec = own_part(attempt.obj, "spec")
            if not spec.get("serviceAccountName"):
                # The old name of the field is written with the new one, as everywhere.
                spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT_ACCOUNT
            account = await _account_of(attempt, lookup)
            if _wants_token(account, spec):
                self._mount_token(spec)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]
        await self.check(attempt, lookup)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if _is_mirror(attempt.obj):
            why = _fault_of_mirror(attempt.obj["spec"])
            if why:
                raise refused(attempt, why)
            return
        await _account_of(attempt, lookup)

    def _mount_token(self, spec: Document) -> None:
        volumes = spec.get("volumes") or []
        mounted = next((one["name"] for one in volumes if one["name"].startswith(TOKEN_VOLUME_PREFIX)), None)
        name = mounted or f"{TOKEN_VOLUME_PREFIX}{self._entropy.suffix()}"
        is_needed = False
        for field in ("initContainers", "containers"):
            for container in own_items(spec, field) if spec.get(field) else []:
                mounts = container.get("volumeMounts") or []
                if any(mount.get("mountPath") == TOKEN_PATH for mount in mounts):
                    continue
                container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}]
                is_needed = True
        if is_needed and mounted is None:
            spec["volumes"] = [*volumes, _token_volume(name)]


async def _account_of(attempt: Attempt, lookup: Lookup) -> Document:
    assert attempt.obj is not None
    namespace, name = attempt.call.namespace, attempt.obj["spec"].get("serviceAccountName")
    if not name:
        named = f"{namespace}/{attempt.obj['metadata'].get('name', '')}"
        raise refused(attempt, f"no service account specified for pod {named}")
    account = await lookup.get(SERVICE_ACCOUNT, namespace, name)
    if account is None:
        missing = f'serviceaccount "{name}" not found'
        raise refused(attempt, f"error looking up service account {namespace}/{name}: {missing}")
    return account


def _wants_token(account: Document, spec: Document) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _token_volume(name: str) -> Document:
    namespace_field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[Document] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_VALID_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace_field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": PROJECTED_MODE}}


def _is_mirror(pod: Document) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def _fault_of_mirror(spec: Document) -> str:
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    volumes = spec.get("volumes") or []
    sources = [source for one in volumes for source in (one.get("projected") or {}).get("sources") or []]
    if spec.get("imagePullSecrets") or any(one.get("secret") is not None for one in [*volumes, *sources]):
        return "a mirror pod may not reference secrets"
    if any(source.get("serviceAccountToken") is not None for source in sources):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""
