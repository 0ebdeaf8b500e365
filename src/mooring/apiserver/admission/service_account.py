"""ServiceAccount: the account of a pod, and the volume with its token.

Input: a pod to create, or ephemeral containers to add. Output: the pod with its account, image pull secrets and a
mounted token, or a `ForbiddenError`.

 1. A pod without `serviceAccountName` gets `default`.
 2. A token is mounted into every container that has no mount at its path, unless the pod or the account sets
    `automountServiceAccountToken: false`.
 3. A mirror pod is not changed. It must not use accounts, secrets or tokens.
 4. An account with the annotation `kubernetes.io/enforce-mountable-secrets` limits the secrets of its pods to its own.
 5. The name of the token volume follows from the account's uid, so that pods of one template have equal specs. A pod
    has at most one such volume.
 6. The serviceaccount controller creates `default` shortly after the namespace, so the plugin looks for it
    `DEFAULT_ACCOUNT_TRIES` times. Any other account is looked up once.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE_ACCOUNT, Kind
from mooring.api.pod_references import secret_names
from mooring.api.well_known import MIRROR_POD_ANNOTATION
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_items, own_part, refused
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import plain_error
from mooring.kit.clock import Clock
from mooring.kit.entropy import SUFFIX_ALPHABET, SUFFIX_LENGTH, Entropy

DEFAULT_ACCOUNT = "default"
DEFAULT_ACCOUNT_TRIES = 10
RETRY_S_MIN, RETRY_S_MAX = 0.1, 0.2
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_VALID_S = 3607
"""A little over an hour. By this duration the API server recognizes tokens that were mounted automatically."""
PROJECTED_MODE = 0o644
TOKEN_VOLUME_PREFIX = "kube-api-access-"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"

_EPHEMERAL_CONTAINERS = "ephemeralcontainers"
_ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
"""What Go's ParseBool takes for true."""
_CONTAINERS = {"initContainers": "init container", "containers": "container"}
_EPHEMERAL = {"ephemeralContainers": "ephemeral container"}


class ServiceAccountAdmission(Admission):
    """Sets the account of pods."""

    name = "ServiceAccount"

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if kind is not POD:
            return False
        if subresource == _EPHEMERAL_CONTAINERS:
            return operation is Operation.UPDATE
        return not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if attempt.operation is not Operation.CREATE:
            return
        if not _is_mirror(attempt.obj):
            spec = own_part(attempt.obj, "spec")
            if not spec.get("serviceAccountName"):
                # `serviceAccount` is the old name of the field; the API server always sets both.
                spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT_ACCOUNT
            account = await self._account_of(attempt, lookup)
            if _wants_token(account, spec):
                _mount_token(account, spec)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [
                    {"name": reference.get("name", "")} for reference in account["imagePullSecrets"]
                ]
        await self.check(attempt, lookup)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        if attempt.operation is not Operation.CREATE:
            account = await self._account_of(attempt, lookup)
            reason = next(_secrets_not_mountable(account, spec, _EPHEMERAL), "")
            if reason:
                raise plain_error(reason)  # kube-apiserver does not make this one a 403
            return
        if _is_mirror(attempt.obj):
            reason = _reason_to_reject_mirror(spec)
        else:
            account = await self._account_of(attempt, lookup)
            reason = next(_references_not_allowed(account, spec), "")
        if reason:
            raise refused(attempt, reason)

    async def _account_of(self, attempt: Attempt, lookup: Lookup) -> Document:
        assert attempt.obj is not None
        namespace, name = attempt.call.namespace, attempt.obj["spec"].get("serviceAccountName")
        if not name:
            named = f"{namespace}/{attempt.obj['metadata'].get('name', '')}"
            raise refused(attempt, f"no service account specified for pod {named}")
        account = await lookup.get(SERVICE_ACCOUNT, namespace, name)
        if account is None and name == DEFAULT_ACCOUNT:
            account = await self._wait_default_account(namespace, lookup)
        if account is None:
            missing = f'serviceaccount "{name}" not found'
            raise refused(attempt, f"error looking up service account {namespace}/{name}: {missing}")
        return account

    async def _wait_default_account(self, namespace: str, lookup: Lookup) -> Document | None:
        retry_s = self._entropy.uniform(RETRY_S_MIN, RETRY_S_MAX)
        for _ in range(DEFAULT_ACCOUNT_TRIES - 1):
            await self._clock.wait(retry_s)
            account = await lookup.get(SERVICE_ACCOUNT, namespace, DEFAULT_ACCOUNT)
            if account is not None:
                return account
        return None


def _wants_token(account: Document, spec: Document) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(account: Document, spec: Document) -> None:
    volumes = spec.get("volumes") or []
    mounted = next((volume["name"] for volume in volumes if volume["name"].startswith(TOKEN_VOLUME_PREFIX)), None)
    name = mounted or _token_volume_name(account)
    is_needed = False
    for field in _CONTAINERS:
        for container in own_items(spec, field) if spec.get(field) else []:
            mounts = container.get("volumeMounts") or []
            if any(mount.get("mountPath") == TOKEN_PATH for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}]
            is_needed = True
    if is_needed and mounted is None:
        spec["volumes"] = [*volumes, _token_volume(name)]


def _token_volume_name(account: Document) -> str:
    digest = blake2b(account["metadata"]["uid"].encode(), digest_size=SUFFIX_LENGTH).digest()
    return TOKEN_VOLUME_PREFIX + "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest)


def _token_volume(name: str) -> Document:
    namespace_field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources: list[Document] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_VALID_S, "path": "token"}},
        {"configMap": {"name": ROOT_CA_CONFIG_MAP, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace_field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": PROJECTED_MODE}}


# --- mountable secrets ------------------------------------------------------------------------------------------------


def _references_not_allowed(account: Document, spec: Document) -> Iterator[str]:
    if not _limits_secrets(account):
        return
    allowed = {reference.get("name", "") for reference in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is not None and (name := volume["secret"].get("secretName", "")) not in allowed:
            yield _not_allowed(account, f'volume with secret.secretName="{name}"')
    yield from _secrets_not_mountable(account, spec, _CONTAINERS)
    pull_secrets = {reference.get("name", "") for reference in account.get("imagePullSecrets") or ()}
    for index, reference in enumerate(spec.get("imagePullSecrets") or ()):
        if (name := reference.get("name", "")) not in pull_secrets:
            yield _not_allowed(account, f'imagePullSecrets[{index}].name="{name}"', "imagePullSecret")


def _secrets_not_mountable(account: Document, spec: Document, fields: dict[str, str]) -> Iterator[str]:
    """Secrets in the environment of containers; `fields` has what to call the containers of each field."""
    if not _limits_secrets(account):
        return
    allowed = {reference.get("name", "") for reference in account.get("secrets") or ()}
    for field, title in fields.items():
        for container in spec.get(field) or ():
            for variable in container.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if reference is not None and (name := reference.get("name", "")) not in allowed:
                    where = f"{title} {container['name']} with envVar {variable['name']}"
                    yield _not_allowed(account, f'{where} referencing secret.secretName="{name}"')
            for source in container.get("envFrom") or ():
                reference = source.get("secretRef")
                if reference is not None and (name := reference.get("name", "")) not in allowed:
                    where = f"{title} {container['name']} with envFrom"
                    yield _not_allowed(account, f'{where} referencing secret.secretName="{name}"')


def _limits_secrets(account: Document) -> bool:
    annotations = account["metadata"].get("annotations") or {}
    return annotations.get(_ENFORCE_MOUNTABLE_SECRETS) in _TRUE


def _not_allowed(account: Document, what: str, kind: str = "secret") -> str:
    name = account["metadata"]["name"]
    return f"{what} is not allowed because service account {name} does not reference that {kind}"


# --- mirror pods ------------------------------------------------------------------------------------------------------


def _is_mirror(pod: Document) -> bool:
    return MIRROR_POD_ANNOTATION in (pod["metadata"].get("annotations") or {})


def _reason_to_reject_mirror(spec: Document) -> str:
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if any(secret_names(spec)):
        return "a mirror pod may not reference secrets"
    volumes = spec.get("volumes") or ()
    sources = (source for volume in volumes for source in (volume.get("projected") or {}).get("sources") or ())
    if any(source.get("serviceAccountToken") is not None for source in sources):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""
