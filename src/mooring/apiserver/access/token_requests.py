"""TokenRequests: a token for a service account (`serviceaccounts/NAME/token`).

Input: a TokenRequest, the account, and a lookup of the bound object. Output: the TokenRequest with its token.

1. A token may be bound to a pod of the account, to a node or to a secret, and ends with it.
2. The usual token of a pod (3607 s, for the API server) is valid for a year, with a time after which its holder
   should have a new one. kube-apiserver does the same for old client libraries.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import invalid_value
from mooring.apiserver.access.service_account_tokens import BoundObject, Lookup, ServiceAccountTokens
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, StatusCause
from mooring.kit.clock import Clock, format_rfc3339

LIFETIME_S_MIN = 10 * 60
LIFETIME_S_MAX = 2**32
LIFETIME_S_DEFAULT = 60 * 60
POD_LIFETIME_S = 60 * 60 + 7
"""The lifetime that kubelets request, by which their requests are recognized."""
POD_LIFETIME_S_EXTENDED = 365 * 24 * 60 * 60

_GROUP = "authentication.k8s.io"
_KIND = "TokenRequest"
_RESOURCES = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


def requested_token(
    request: Document,
    account: Document,
    tokens: ServiceAccountTokens,
    lookup: Lookup,
    clock: Clock,
) -> Document:
    """The TokenRequest of an existing service account with its token. Raises `StatusError`s."""
    metadata = _checked_metadata(request, account)
    spec = dict(request.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or [tokens.audiences[0]]
    wanted_s = spec.get("expirationSeconds")
    lifetime_s = LIFETIME_S_DEFAULT if wanted_s is None else wanted_s
    _check_lifetime(lifetime_s)
    bound = _bound_object(spec.get("boundObjectRef"), account, lookup)
    spec["expirationSeconds"] = lifetime_s
    spec.setdefault("boundObjectRef", None)
    now_s = clock.wall_s()
    is_extended = _is_for_an_old_pod(bound, lifetime_s, spec["audiences"], tokens)
    token = tokens.issue(
        account,
        lifetime_s=POD_LIFETIME_S_EXTENDED if is_extended else lifetime_s,
        audiences=spec["audiences"],
        bound=bound,
        warn_after_s=lifetime_s if is_extended else 0,
    )
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {**metadata, "creationTimestamp": format_rfc3339(now_s)},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": format_rfc3339(now_s + lifetime_s)},
    }


def _checked_metadata(request: Document, account: Document) -> Document:
    given, real = dict(request.get("metadata") or {}), account["metadata"]
    for field in ("name", "namespace"):
        value = given.get(field)
        if value and value != real[field]:
            rule = f"must match the service account {field} if specified"
            raise _invalid(real["name"], f"metadata.{field}", invalid_value(f"metadata.{field}", value, rule))
    if given.get("uid") and given["uid"] != real["uid"]:
        text = (
            f"the UID in the token request ({given['uid']}) "
            f"does not match the UID of the service account ({real['uid']})"
        )
        raise _conflict(_GROUP, _KIND, real["name"], text)
    return {**given, "name": real["name"], "namespace": real["namespace"], "uid": real["uid"]}


def _check_lifetime(lifetime_s: int) -> None:
    field = "spec.expirationSeconds"
    if lifetime_s < LIFETIME_S_MIN:
        text = f"{field}: Invalid value: {lifetime_s}: may not specify a duration less than 10 minutes"
        raise _invalid("", field, text)
    if lifetime_s > LIFETIME_S_MAX:
        text = f"{field}: Invalid value: {lifetime_s}: may not specify a duration larger than 2^32 seconds"
        raise _invalid("", field, text)


def _bound_object(reference: Document | None, account: Document, lookup: Lookup) -> BoundObject | None:
    if not reference:
        return None
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    group, slash, version = (reference.get("apiVersion") or "").rpartition("/")
    if group or slash or kind not in _RESOURCES:
        raise BadRequestError(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    namespace = "" if kind == "Node" else account["metadata"]["namespace"]
    found = lookup(_RESOURCES[kind], namespace, name)
    if found is None:
        raise NotFoundError(f'{_RESOURCES[kind]} "{name}" not found', details={"name": name, "kind": _RESOURCES[kind]})
    bound = _bound_pod(found, account, lookup) if kind == "Pod" else BoundObject(kind, name, found["metadata"]["uid"])
    if reference.get("uid") and reference["uid"] != bound.uid:
        text = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise _conflict("", kind, name, text)
    return bound


def _bound_pod(pod: Document, account: Document, lookup: Lookup) -> BoundObject:
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    name = account["metadata"]["name"]
    if spec.get("serviceAccountName") != name:
        raise BadRequestError(
            f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
        )
    node_name = spec.get("nodeName") or ""
    node = lookup("nodes", "", node_name) if node_name else None
    node_uid = node["metadata"]["uid"] if node is not None else ""
    return BoundObject("Pod", metadata["name"], metadata["uid"], node_name, node_uid)


def _is_for_an_old_pod(
    bound: BoundObject | None, lifetime_s: int, audiences: Sequence[str], tokens: ServiceAccountTokens
) -> bool:
    is_for_us = all(audience in tokens.audiences for audience in audiences)
    return bound is not None and bound.kind == "Pod" and lifetime_s == POD_LIFETIME_S and is_for_us


def _invalid(name: str, field: str, error: str) -> InvalidError:
    body = error.removeprefix(f"{field}: ")
    return InvalidError(
        f'{_KIND}.{_GROUP} "{name}" is invalid: {error}',
        causes=(StatusCause("FieldValueInvalid", body, field),),
        details={key: value for key, value in (("name", name), ("group", _GROUP), ("kind", _KIND)) if value},
    )


def _conflict(group: str, kind: str, name: str, text: str) -> ConflictError:
    qualified = f"{kind}.{group}" if group else kind
    return ConflictError(
        f'Operation cannot be fulfilled on {qualified} "{name}": {text}',
        details={key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value},
    )
