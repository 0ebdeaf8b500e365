"""Kinds that are never stored: reviews, which answer a question, and bindings, which change a pod.

They can be created and nothing else, so they are no resources with a registry behind them; discovery and OpenAPI know
them from here.
"""

from __future__ import annotations

from mooring.api.kinds import Kind

_AUTHENTICATION = "authentication.k8s.io/v1"
_AUTHORIZATION = "authorization.k8s.io/v1"

BINDING = Kind("v1", "Binding", "bindings")
REVIEWS = tuple(
    Kind(api_version, kind, f"{kind.lower()}s", is_namespaced=kind.startswith("Local"))
    for api_version, kind in (
        (_AUTHENTICATION, "SelfSubjectReview"),
        (_AUTHENTICATION, "TokenReview"),
        (_AUTHORIZATION, "LocalSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectRulesReview"),
        (_AUTHORIZATION, "SubjectAccessReview"),
    )
)
VIRTUAL_KINDS = (BINDING, *REVIEWS)
