"""Decode DeleteOptions.

Input: a DeleteOptions document, from a body, a query or an Eviction.
Output: `DeleteOptions` and whether it is a dry run; or an `InvalidError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.registry.delete import DeleteOptions
from mooring.apiserver.registry.errors import invalid_object
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported

META_GROUP = "meta.k8s.io"

_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


def checked_delete_options(document: Document) -> tuple[DeleteOptions, bool]:
    """Delete options from a document, and whether they are a dry run. Raises `InvalidError`."""
    check_delete_options(document)
    return delete_options(document), bool(document.get("dryRun"))


def check_delete_options(document: Document) -> None:
    """Raises `InvalidError` if the options mean nothing."""
    orphans, propagation = document.get("orphanDependents"), document.get("propagationPolicy")
    errors: list[FieldError] = []
    if orphans is not None and propagation is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", propagation, detail))
    if propagation is not None and propagation not in _PROPAGATION_POLICIES:
        errors.append(not_supported("propagationPolicy", propagation, (*_PROPAGATION_POLICIES, "nil")))
    errors += validate_dry_run(document.get("dryRun") or [])
    if errors:
        raise invalid_object("DeleteOptions", META_GROUP, "", errors)


def delete_options(document: Document) -> DeleteOptions:
    """The options as they are, unchecked."""
    conditions = document.get("preconditions") or {}
    return DeleteOptions(
        grace_s=document.get("gracePeriodSeconds"),
        uid=conditions.get("uid"),
        revision=conditions.get("resourceVersion"),
        orphans=document.get("orphanDependents"),
        propagation=document.get("propagationPolicy"),
    )


def validate_dry_run(dry_runs: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in dry_runs):
        return []
    return [not_supported("dryRun", list(dry_runs), ("All",))]
