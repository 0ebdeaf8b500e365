"""Validation of a Job's spec, in a Job or in a CronJob's template, and of its updates.

1. An update is validated as a new Job and as a change, as in kube-apiserver: a spec error appears twice in the causes.
2. While a Job is suspended and has no pods, the scheduling directives and resources of its template may change.
   Everything else in the template is immutable.
"""

from __future__ import annotations

import re

from mooring.api.document import Document
from mooring.apiserver.kinds.job.policies import (
    capitalised,
    validate_failure_policy,
    validate_replacement_policy,
    validate_success_policy,
)
from mooring.apiserver.kinds.job.status import is_condition_true
from mooring.apiserver.kinds.pod_template import validate_pod_template
from mooring.apiserver.kinds.workloads import (
    labels_value,
    selector_matcher,
    selector_value,
    template_labels,
    validate_immutable_selector,
    validate_selector_matches,
)
from mooring.apiserver.strategy import keep
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors, matching_rule
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules
from mooring.apiserver.validation.selectors import validate_label_selector
from mooring.apiserver.validation.values import internal_value, means_the_same

_JOB_SPEC = struct_rules("batch", "JobSpec")
_COMPLETION_MODES = enum_values("batch", "CompletionMode")

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
LEGACY_JOB_NAME = "job-name"

PARALLELISM_INDEXED_MAX = 100_000
FAILED_INDEXES_MAX = 100_000
COMPLETIONS_MANY = 100_000
"""Above it, an indexed job with a limit for each index has tighter limits."""
PARALLELISM_MANY_MAX = 10_000
FAILED_INDEXES_MANY_MAX = 10_000

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch


def validate_job(job: Document, old: Document | None) -> list[FieldError]:
    """A job as a whole, apart from its metadata."""
    metadata, spec = job["metadata"], job["spec"]
    needs_prefixed_labels = True
    if old is not None:
        labels = template_labels(old["spec"]["template"]) or {}
        needs_prefixed_labels = JOB_NAME in labels and CONTROLLER_UID in labels
    errors = _validate_generated_selector(metadata, spec, needs_prefixed_labels)
    errors += _validate_selected_spec(spec, old["spec"] if old is not None else None, "spec")
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        name = metadata.get("name", "")
        last = f"{name}-{completions - 1}"
        if dns_label_errors(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            errors.append(invalid("metadata.name", name, detail))
    return errors


def validate_job_update(job: Document, old: Document) -> list[FieldError]:
    """Field errors of a change of a job."""
    spec, old_spec = job["spec"], old["spec"]
    errors = _validate_selected_spec(spec, old_spec, "spec")
    errors += _validate_completions(spec, old_spec, "spec.completions")
    errors += validate_immutable_selector(spec.get("selector"), old_spec.get("selector"), "spec.selector")
    errors += _validate_template_update(job, old, "spec")
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(field) != old_spec.get(field):
            errors.append(invalid(f"spec.{field}", capitalised(spec.get(field)), IMMUTABLE))
    return errors


def validate_job_spec(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    """The spec of a job that has no selector yet."""
    errors = _JOB_SPEC.validate(spec, path, *_COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (managed_by := spec.get("managedBy")) is not None:
        errors += _validate_domain_prefixed_path(managed_by, f"{path}.managedBy")
        errors += _JOB_SPEC.validate(spec, path, "managedBy")
    errors += _validate_completion_mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if (success := spec.get("successPolicy")) is not None:
        here = f"{path}.successPolicy"
        if spec.get("completionMode") == "Indexed":
            errors += validate_success_policy(spec, here)
        else:
            errors.append(invalid(here, capitalised(success), "requires indexed completion mode"))
    errors += validate_replacement_policy(spec, f"{path}.podReplacementPolicy")
    errors += validate_pod_template(spec["template"], f"{path}.template", old["template"] if old is not None else None)
    errors += _validate_restart(spec, f"{path}.template.spec.restartPolicy")
    return errors


# --- parts of the spec ------------------------------------------------------------------------------------------


def _validate_selected_spec(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    errors = validate_job_spec(spec, old, path)
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
    else:
        tolerates = old is not None and bool(validate_label_selector(old.get("selector"), ""))
        errors += validate_label_selector(selector, f"{path}.selector", tolerates_values=tolerates)
    matcher = selector_matcher(selector)
    if matcher is not None:
        errors += validate_selector_matches(matcher, spec["template"], f"{path}.template")
    return errors


def _validate_generated_selector(metadata: Document, spec: Document, needs_prefixed_labels: bool) -> list[FieldError]:
    """Unless `manualSelector` is set, the selector is the job's uid, and the template has labels with name and uid."""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    errors: list[FieldError] = []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    if not uid:
        errors.append(required("metadata.uid"))
    expected = {LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
    if needs_prefixed_labels:
        expected |= {CONTROLLER_UID: uid, JOB_NAME: name}
    labels = template_labels(spec["template"])
    for key, value in expected.items():
        errors += _validate_job_label(labels, key, value)
    matcher = selector_matcher(selector)
    if matcher is not None and not matcher.matches(expected):
        errors.append(invalid("spec.selector", selector_value(selector), "`selector` not auto-generated"))
    return errors


def _validate_job_label(labels: Document | None, key: str, expected: str) -> list[FieldError]:
    path, detail = f"spec.template.metadata.labels[{key}]", f"must be '{expected}'"
    if labels is None or key not in labels:
        return [required(path, detail)]
    return [] if labels[key] == expected else [invalid(path, labels_value(labels), detail)]


def _validate_domain_prefixed_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, host, text) for text in dns_subdomain_errors(host)]
    if not _is_http_path(rest):
        errors.append(invalid(path, rest, matching_rule("Invalid path", _HTTP_PATH)))
    return errors


def _validate_completion_mode(spec: Document, path: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    if mode == "Indexed":
        return _validate_indexed(spec, path)
    errors = []
    if mode not in (None, "NonIndexed"):
        return [not_supported(f"{path}.completionMode", mode, _COMPLETION_MODES)]
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(field) is not None:
            errors.append(invalid(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    return errors


def _validate_indexed(spec: Document, path: str) -> list[FieldError]:
    errors = []
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed_max = spec.get("maxFailedIndexes")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > PARALLELISM_INDEXED_MAX:
        detail = f"must be less than or equal to {PARALLELISM_INDEXED_MAX} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    here = f"{path}.maxFailedIndexes"
    if completions is not None and failed_max is not None and failed_max > completions:
        errors.append(invalid(here, failed_max, "must be less than or equal to completions"))
    if failed_max is not None and failed_max > FAILED_INDEXES_MAX:
        errors.append(invalid(here, failed_max, f"must be less than or equal to {FAILED_INDEXES_MAX}"))
    if completions is None or completions <= COMPLETIONS_MANY or spec.get("backoffLimitPerIndex") is None:
        return errors
    if failed_max is None:
        errors.append(required(here, f"must be specified when completions is above {COMPLETIONS_MANY}"))
    suffix = f"when completions are above {COMPLETIONS_MANY} and used with backoff limit per index"
    if parallelism is not None and parallelism > PARALLELISM_MANY_MAX:
        detail = f"must be less than or equal to {PARALLELISM_MANY_MAX} {suffix}"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    if failed_max is not None and failed_max > FAILED_INDEXES_MANY_MAX:
        errors.append(invalid(here, failed_max, f"must be less than or equal to {FAILED_INDEXES_MANY_MAX} {suffix}"))
    return errors


def _validate_restart(spec: Document, path: str) -> list[FieldError]:
    restart = (spec["template"].get("spec") or {}).get("restartPolicy", "")
    if restart in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if restart not in ("OnFailure", "Never"):
        return [not_supported(path, restart, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and restart != "Never":
        return [invalid(path, restart, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


# --- changes ----------------------------------------------------------------------------------------------------


def _validate_completions(spec: Document, old: Document, path: str) -> list[FieldError]:
    """Fixed; an indexed job may be grown and shrunk together with its parallelism."""
    new, before = spec.get("completions"), old.get("completions")
    if new == before:
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, new, IMMUTABLE)]
    if new is not None and new != spec.get("parallelism"):
        return [invalid(path, new, "can only be modified in tandem with spec.parallelism")]
    return []


def _validate_template_update(job: Document, old: Document, path: str) -> list[FieldError]:
    template, old_template = job["spec"]["template"], old["spec"]["template"]
    if means_the_same(template, old_template, "core", "PodTemplateSpec"):
        return []
    if not _may_change_template(old):
        return [invalid(f"{path}.template", internal_value(template, "PodTemplateSpec"), IMMUTABLE)]
    pod_spec = template.get("spec") or {}
    allowed = _with_new_sizes(_with_new_placement(old_template.get("spec") or {}, pod_spec), pod_spec)
    if means_the_same(pod_spec, allowed, "core", "PodSpec"):
        return []
    return [invalid(f"{path}.template.spec", internal_value(pod_spec, "PodSpec"), IMMUTABLE)]


def _may_change_template(old: Document) -> bool:
    """A suspended job without pods, which was never started or whose pods have ended."""
    status = old.get("status") or {}
    is_at_rest = status.get("startTime") is None or is_condition_true(status, "Suspended")
    return bool(old["spec"].get("suspend")) and is_at_rest and status.get("active", 0) == 0


def _with_new_placement(old: Document, new: Document) -> Document:
    allowed = dict(old)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        keep(allowed, new, field)
    affinity, old_affinity = new.get("affinity"), old.get("affinity")
    if affinity is None:
        rest = {name: value for name, value in (old_affinity or {}).items() if name != "nodeAffinity"}
        if rest:
            allowed["affinity"] = rest
        else:
            allowed.pop("affinity", None)
    else:
        merged = dict(old_affinity or {})
        keep(merged, affinity, "nodeAffinity")
        allowed["affinity"] = merged
    return allowed


def _with_new_sizes(old: Document, new: Document) -> Document:
    allowed = dict(old)
    for field in ("containers", "initContainers"):
        before, after = old.get(field) or [], new.get(field) or []
        if len(before) != len(after):
            continue
        resized = []
        for container, new_container in zip(before, after, strict=True):
            if container.get("name") == new_container.get("name"):
                container = dict(container)
                keep(container, new_container, "resources")
            resized.append(container)
        if resized:
            allowed[field] = resized
    return allowed
