"""Putting right the default roles and bindings, at every start.

Comes in   a role or a binding as it stands in the store, and as it is by default
Goes out   how it should stand there, or that nothing is to be done

 1. What is missing is added, and what users have added is left: a cluster may give more than the defaults, not less.
 2. An object annotated with `autoupdate: "false"` is its owner's business.
 3. A binding cannot be led to another role. One that was is replaced by the default, which has no uid: whoever gets
    such an object deletes the old one and creates this one.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.access.rules import document_of, rules_of, uncovered

AUTOUPDATE_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate"


def reconciled(stored: Document, wanted: Document) -> Document | None:
    """The stored object with what it lacks of the default; None when it lacks nothing or is not to be touched."""
    metadata = stored.get("metadata") or {}
    if (metadata.get("annotations") or {}).get(AUTOUPDATE_ANNOTATION) == "false":
        return None
    if stored.get("roleRef") != wanted.get("roleRef"):
        return wanted
    changed = dict(stored, metadata=dict(metadata))
    for table in ("labels", "annotations"):
        changed["metadata"][table] = {**wanted["metadata"][table], **(metadata.get(table) or {})}
    if "roleRef" in wanted:
        _add_subjects(changed, wanted)
    else:
        _add_rules(changed, wanted)
        _set_right_aggregation(changed, wanted)
    return None if changed == stored else changed


def _add_subjects(changed: Document, wanted: Document) -> None:
    present = changed.get("subjects") or []
    missing = [subject for subject in wanted.get("subjects") or () if subject not in present]
    if missing:
        changed["subjects"] = [*present, *missing]


def _add_rules(changed: Document, wanted: Document) -> None:
    missing = uncovered(rules_of(changed), rules_of(wanted))
    if missing:
        changed["rules"] = [*(changed.get("rules") or ()), *(document_of(rule) for rule in missing)]


def _set_right_aggregation(changed: Document, wanted: Document) -> None:
    if "aggregationRule" not in wanted:
        changed.pop("aggregationRule", None)
        return
    present = (changed.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [selector for selector in wanted["aggregationRule"]["clusterRoleSelectors"] if selector not in present]
    if missing:
        changed["aggregationRule"] = {"clusterRoleSelectors": [*present, *missing]}
