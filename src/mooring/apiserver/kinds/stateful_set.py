"""StatefulSet (apps/v1).

1. The controller overwrites hostname and subdomain of its pods and adds the volumes of its claims. The template is
   validated with these changes.
2. An update does not validate immutable fields again, and accepts a template that was invalid before.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.persistent_volume_claim import (
    claim_spec_warnings,
    default_claim,
    validate_persistent_volume_claim_spec,
)
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.spec import validate_pod_annotations
from mooring.apiserver.kinds.pod.update import options_after
from mooring.apiserver.kinds.pod_template import validate_pod_template
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    HISTORY_MAX,
    IMAGES_COLUMN,
    READY_COLUMN,
    WorkloadStrategy,
    int_or_percent,
    name_spec_status,
    selector_matcher,
    selector_value,
    validate_at_most,
    validate_at_most_100_percent,
    validate_int_or_percent,
    validate_not_decremented,
    validate_restart_policy_always,
    validate_selector_matches,
    validate_workload_selector,
)
from mooring.apiserver.strategy import StatusStrategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, containers_and_images, template_spec
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required
from mooring.apiserver.validation.metadata import name_is_dns_label, validate_annotations, validate_labels
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.values import means_the_same

_MANAGEMENT_POLICIES = sorted_enum_values("apps", "PodManagementPolicyType")

MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_SPEC = struct_rules("apps", "StatefulSetSpec")
_COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
_FROZEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)

_KEEPS_ALL = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


# --- validation --------------------------------------------------------------------------------------------------


def validate_stateful_set(spec: Document, path: str) -> list[FieldError]:
    return _validate_stateful_set_spec(spec, None, path, validates_template=True)


def validate_stateful_set_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    validates_template = not _validate_stateful_set_spec(old, old, "", validates_template=True)
    errors = _validate_stateful_set_spec(spec, old, path, validates_template=validates_template)
    frozen, old_frozen = (
        {name: value for name, value in fields.items() if name not in MUTABLE} for fields in (spec, old)
    )
    if not means_the_same(frozen, old_frozen, "apps", "StatefulSetSpec"):
        errors.append(forbidden(path, _FROZEN))
    return errors


def validate_stateful_set_status(status: Document, path: str) -> list[FieldError]:
    errors = struct_rules("apps", "StatefulSetStatus").validate(status, path, *_COUNTS)
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors += validate_at_most(status, parts, "replicas", "cannot be greater than status.replicas", path)
    detail = "cannot be greater than status.readyReplicas"
    errors += validate_at_most(status, ("availableReplicas",), "readyReplicas", detail, path)
    return errors


def validate_stateful_set_collision(status: Document, old: Document, path: str) -> list[FieldError]:
    return validate_not_decremented(status, old, path)


# --- parts of the spec ------------------------------------------------------------------------------------------


def _validate_stateful_set_spec(
    spec: Document, old: Document | None, path: str, *, validates_template: bool
) -> list[FieldError]:
    errors = _validate_management(spec.get("podManagementPolicy", ""), f"{path}.podManagementPolicy")
    errors += _validate_stateful_set_strategy(spec.get("updateStrategy") or {}, f"{path}.updateStrategy")
    errors += _validate_retention(
        spec.get("persistentVolumeClaimRetentionPolicy"), f"{path}.persistentVolumeClaimRetentionPolicy"
    )
    if old is None:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errors += validate_persistent_volume_claim_spec(
                claim.get("spec") or {}, f"{path}.volumeClaimTemplates[{index}].spec"
            )
    errors += _SPEC.validate(spec, path, "replicas", "minReadySeconds")
    if (ordinals := spec.get("ordinals")) is not None:
        errors += struct_rules("apps", "StatefulSetOrdinals").validate(ordinals, f"{path}.ordinals")
    if old is None:
        errors += _SPEC.validate(spec, path, "serviceName")
    errors += _validate_selector_and_template(spec, old, path, validates_template)
    errors += validate_restart_policy_always(spec["template"], "StatefulSet", f"{path}.template")
    return errors


def _validate_management(policy: str, path: str) -> list[FieldError]:
    if not policy:
        return [required(path)]
    known = policy in _MANAGEMENT_POLICIES
    return [] if known else [invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _validate_stateful_set_strategy(strategy: Document, path: str) -> list[FieldError]:
    rolling, rolling_path = strategy.get("rollingUpdate"), f"{path}.rollingUpdate"
    match strategy.get("type", ""):
        case "":
            return [required(path)]
        case "OnDelete":
            if rolling is None:
                return []
            return [invalid(rolling_path, _rolling_value(rolling), "only allowed for updateStrategy 'RollingUpdate'")]
        case "RollingUpdate":
            return _validate_stateful_set_rolling_update(rolling, rolling_path) if rolling is not None else []
        case other:
            shown = {"Type": other, "RollingUpdate": _rolling_value(rolling)}
            return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def _validate_stateful_set_rolling_update(rolling: Document, path: str) -> list[FieldError]:
    errors = struct_rules("apps", "RollingUpdateStatefulSetStrategy").validate(rolling, path)
    unavailable, here = rolling.get("maxUnavailable"), f"{path}.maxUnavailable"
    if unavailable is not None:
        errors += validate_int_or_percent(unavailable, here)
        if int_or_percent(unavailable) == 0:
            errors.append(invalid(here, unavailable, "cannot be 0"))
        errors += validate_at_most_100_percent(unavailable, here)
    return errors


def _rolling_value(rolling: Document | None) -> Document | None:
    if rolling is None:
        return None
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _validate_retention(policy: Document | None, path: str) -> list[FieldError]:
    rules = struct_rules("apps", "StatefulSetPersistentVolumeClaimRetentionPolicy")
    return [] if policy is None else rules.validate(policy, path)


def _validate_selector_and_template(
    spec: Document, old: Document | None, path: str, validates_template: bool
) -> list[FieldError]:
    selector, here = spec.get("selector"), f"{path}.selector"
    errors = validate_workload_selector(selector, here, "statefulset")
    matcher = selector_matcher(selector)
    if matcher is None:
        return [*errors, invalid(here, selector_value(selector), "")]
    template, rolling_path = _as_controlled(spec), f"{path}.template"
    if not matcher.matches_everything:
        errors += validate_selector_matches(matcher, template, rolling_path)
    if validates_template:
        errors += validate_pod_template(template, rolling_path, old["template"] if old is not None else None)
    metadata = template.get("metadata") or {}
    errors += validate_labels(metadata.get("labels") or {}, f"{rolling_path}.labels")
    annotations = metadata.get("annotations") or {}
    errors += validate_annotations(annotations, f"{rolling_path}.annotations")
    options = options_after(old["template"] if old is not None else None, is_pod=False)
    errors += validate_pod_annotations(annotations, template.get("spec") or {}, f"{rolling_path}.annotations", options)
    return errors


def _as_controlled(spec: Document) -> Document:
    """The template as the controller will use it."""
    template: Document = spec["template"]
    claims = spec.get("volumeClaimTemplates") or ()
    rolling_path = template.get("spec") or {}
    if not claims and "subdomain" not in rolling_path and "hostname" not in rolling_path:
        return template
    rolling_path = {name: value for name, value in rolling_path.items() if name not in ("subdomain", "hostname")}
    if claims:
        added = {
            name: {"name": name, "persistentVolumeClaim": {"claimName": name}}
            for name in (claim.get("metadata", {}).get("name", "") for claim in claims)
        }
        others = [volume for volume in rolling_path.get("volumes") or () if volume.get("name", "") not in added]
        rolling_path["volumes"] = [*added.values(), *others]
    return {**template, "spec": rolling_path}


# --- table -------------------------------------------------------------------------------------------------------


def _stateful_set_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    return [
        name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class StatefulSetStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        status, old_status = obj.get("status") or {}, old.get("status") or {}
        errors = validate_stateful_set_status(status, "status")
        errors += self.validate_meta_update(obj, old)
        errors += validate_stateful_set_collision(status, old_status, "status")
        return errors


class StatefulSetStrategy(WorkloadStrategy):
    counts_changes_of_meaning = True
    table = KindTable((NAME, READY_COLUMN, AGE, CONTAINERS_COLUMN, IMAGES_COLUMN), _stateful_set_cells)

    status_strategy = StatefulSetStatusStrategy

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return name_is_dns_label(name, is_prefix)

    def empty_status(self) -> Document:
        return {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if (rolling := strategy.get("rollingUpdate")) is not None:
            rolling.setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not retention.get(field):
                retention[field] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
        default_pod_template(spec["template"])
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            default_claim(claim)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        _drop_disabled_fields(obj, None)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _drop_disabled_fields(obj, old)
        super().prepare_for_update(obj, old, call)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_stateful_set(obj["spec"], "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_stateful_set_update(obj["spec"], old["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return super().warnings_on_create(obj, call) + _own_warnings(obj["spec"], "")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        # kube-apiserver spells the path of a claim's spec with a capital here.
        return super().warnings_on_update(obj, old, call) + _own_warnings(obj["spec"], ".Spec")


def _drop_disabled_fields(obj: Document, old: Document | None) -> None:
    """Drop `maxUnavailable`, which is behind a feature gate, unless the stored object has it."""
    rolling = obj["spec"]["updateStrategy"].get("rollingUpdate")
    if rolling is None or "maxUnavailable" not in rolling:
        return
    had = (old["spec"]["updateStrategy"].get("rollingUpdate") or {}) if old is not None else {}
    if "maxUnavailable" not in had:
        del rolling["maxUnavailable"]


def _own_warnings(spec: Document, suffix: str) -> list[str]:
    warnings: list[str] = []
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{suffix}")
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        warnings.append(_KEEPS_ALL)
    return warnings


STRATEGY = StatefulSetStrategy
