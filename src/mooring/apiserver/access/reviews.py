"""Reviews: may I, may they, what may I, who am I, whose token is this?

Comes in   a review as it was sent, and who sent it
Goes out   the review with its status; nothing is stored

 1. A review answers for a user as it is described. Whether there is such a user nobody knows.
 2. `metadata` and `spec` come back as they were; reviews of oneself other than SelfSubjectAccessReview come back empty
    but for their status, as in the original.
 3. A refusal is no error: `allowed` is false, and the reason says what could be found out.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import aggregated
from mooring.apiserver.access.authentication import Authenticator
from mooring.apiserver.access.authorization import Authorizer
from mooring.apiserver.access.request import Attributes, path_attributes
from mooring.apiserver.access.review_selectors import selected
from mooring.apiserver.access.review_validation import AUTHORIZATION_GROUP, check_local_review, check_review
from mooring.apiserver.access.rules import document_of
from mooring.apiserver.access.service_account_tokens import InvalidTokenError
from mooring.apiserver.access.users import User
from mooring.client.errors import BadRequestError
from mooring.kit.clock import Clock, format_rfc3339

_AUTHENTICATION_VERSION = "authentication.k8s.io/v1"


def subject_access_review(review: Document, authorizer: Authorizer) -> Document:
    """May they?"""
    check_review(review, is_about_others=True)
    return _reviewed(review, _described_user(review["spec"]), authorizer)


def local_subject_access_review(review: Document, namespace: str, authorizer: Authorizer) -> Document:
    """May they, in this namespace?"""
    check_local_review(review)
    if not namespace:
        raise BadRequestError("namespace is required on this type: ")
    if (review.get("metadata") or {}).get("namespace") != namespace:
        raise BadRequestError(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _reviewed(review, _described_user(review["spec"]), authorizer)


def self_subject_access_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """May I?"""
    check_review(review, is_about_others=False)
    return _reviewed(review, user, authorizer)


def self_subject_rules_review(review: Document, user: User, authorizer: Authorizer) -> Document:
    """What may I, in this namespace?"""
    namespace = (review.get("spec") or {}).get("namespace")
    if not namespace:
        raise BadRequestError("no namespace on request")
    held = authorizer.rules_for(user, namespace)
    status: Document = {"resourceRules": [], "nonResourceRules": [], "incomplete": held.is_incomplete}
    for rule in held.rules:
        written = document_of(rule)
        urls = written.pop("nonResourceURLs", None)
        if rule.resources:
            status["resourceRules"].append(written)
        if urls:
            status["nonResourceRules"].append({"verbs": written["verbs"], "nonResourceURLs": urls})
    if held.errors:
        status["evaluationError"] = aggregated(held.errors)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{AUTHORIZATION_GROUP}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def self_subject_review(user: User, clock: Clock) -> Document:
    """Who am I?"""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": _AUTHENTICATION_VERSION,
        "metadata": {"creationTimestamp": format_rfc3339(clock.wall_s())},
        "status": {"userInfo": user_info(user)},
    }


def token_review(review: Document, authenticator: Authenticator) -> Document:
    """Whose token is this?"""
    spec = review.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise BadRequestError("token is required for TokenReview in authentication")
    try:
        proof = authenticator.proof_of(token, spec.get("audiences") or authenticator.audiences)
    except InvalidTokenError as error:
        return {**review, "status": {"user": {}, "error": str(error)}}
    status = {"authenticated": True, "user": user_info(proof.user), "audiences": list(proof.audiences)}
    return {**review, "status": status}


def user_info(user: User) -> Document:
    """A user as reviews and admission tell of them."""
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _described_user(spec: Document) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _reviewed(review: Document, user: User, authorizer: Authorizer) -> Document:
    spec = review["spec"]
    resource = spec.get("resourceAttributes")
    evaluation_error = ""
    if resource is not None:
        fields_equal, evaluation_error = selected(resource)
        attributes = _resource_attributes(user, resource, fields_equal)
    else:
        path = spec["nonResourceAttributes"]
        attributes = path_attributes(user, path.get("verb") or "", path.get("path") or "")
    decision = authorizer.authorize(attributes)
    status: Document = {"allowed": decision.is_allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if evaluation_error:
        status["evaluationError"] = evaluation_error
    return {**review, "status": status}


def _resource_attributes(user: User, given: Document, fields_equal: tuple[tuple[str, str], ...]) -> Attributes:
    return Attributes(
        user,
        given.get("verb") or "",
        namespace=given.get("namespace") or "",
        api_group=given.get("group") or "",
        api_version=given.get("version") or "*",
        resource=given.get("resource") or "",
        subresource=given.get("subresource") or "",
        name=given.get("name") or "",
        fields_equal=fields_equal,
    )
