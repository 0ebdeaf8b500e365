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
    failure_policy_faults,
    replacement_policy_faults,
    success_policy_faults,
)
from mooring.apiserver.kinds.job.status import is_condition_true
from mooring.apiserver.kinds.pod_template import pod_template_faults
from mooring.apiserver.kinds.workloads import (
    immutable_selector_faults,
    labels_value,
    mismatch_faults,
    nonnegative_faults,
    selector_matcher,
    selector_value,
    template_labels,
)
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required, too_long
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults, matching_rule
from mooring.apiserver.validation.selectors import label_selector_faults
from mooring.apiserver.validation.values import internal_value, means_the_same

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
MANAGED_BY_BYTES_MAX = 63

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch


def job_faults(job: Document, old: Document | None) -> list[Fault]:
    """A job as a whole, apart from its metadata."""
    metadata, spec = job["metadata"], job["spec"]
    needs_prefixed_labels = True
    if old is not None:
        labels = template_labels(old["spec"]["template"]) or {}
        needs_prefixed_labels = JOB_NAME in labels and CONTROLLER_UID in labels
    faults = _generated_selector_faults(metadata, spec, needs_prefixed_labels)
    faults += _selected_spec_faults(spec, old["spec"] if old is not None else None, "spec")
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        name = metadata.get("name", "")
        last = f"{name}-{completions - 1}"
        if dns_label_faults(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            faults.append(invalid("metadata.name", name, detail))
    return faults


def job_update_faults(job: Document, old: Document) -> list[Fault]:
    """What a change of a job may not do."""
    spec, old_spec = job["spec"], old["spec"]
    faults = _selected_spec_faults(spec, old_spec, "spec")
    faults += _completions_faults(spec, old_spec, "spec.completions")
    faults += immutable_selector_faults(spec.get("selector"), old_spec.get("selector"), "spec.selector")
    faults += _template_update_faults(job, old, "spec")
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(field) != old_spec.get(field):
            faults.append(invalid(f"spec.{field}", capitalised(spec.get(field)), IMMUTABLE))
    return faults


def job_spec_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    """The spec of a job that has no selector yet."""
    faults: list[Fault] = []
    for field in _COUNTS:
        faults += nonnegative_faults(spec.get(field), f"{path}.{field}")
    if (failed_max := spec.get("maxFailedIndexes")) is not None:
        faults += nonnegative_faults(failed_max, f"{path}.maxFailedIndexes")
        if spec.get("backoffLimitPerIndex") is None:
            faults.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (managed_by := spec.get("managedBy")) is not None:
        faults += _managed_by_faults(managed_by, f"{path}.managedBy")
    faults += _completion_mode_faults(spec, path)
    if spec.get("podFailurePolicy") is not None:
        faults += failure_policy_faults(spec, f"{path}.podFailurePolicy")
    if (success := spec.get("successPolicy")) is not None:
        here = f"{path}.successPolicy"
        if spec.get("completionMode") == "Indexed":
            faults += success_policy_faults(spec, here)
        else:
            faults.append(invalid(here, capitalised(success), "requires indexed completion mode"))
    faults += replacement_policy_faults(spec, f"{path}.podReplacementPolicy")
    faults += pod_template_faults(spec["template"], f"{path}.template", old["template"] if old is not None else None)
    faults += _restart_faults(spec, f"{path}.template.spec.restartPolicy")
    return faults


# --- parts of the spec ------------------------------------------------------------------------------------------


def _selected_spec_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = job_spec_faults(spec, old, path)
    selector = spec.get("selector")
    if selector is None:
        faults.append(required(f"{path}.selector"))
    else:
        tolerates = old is not None and bool(label_selector_faults(old.get("selector"), ""))
        faults += label_selector_faults(selector, f"{path}.selector", tolerates_values=tolerates)
    matcher = selector_matcher(selector)
    if matcher is not None:
        faults += mismatch_faults(matcher, spec["template"], f"{path}.template")
    return faults


def _generated_selector_faults(metadata: Document, spec: Document, needs_prefixed_labels: bool) -> list[Fault]:
    """Unless the selector is made by hand, it selects by the job's uid, and the template carries name and uid."""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    faults: list[Fault] = []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    if not uid:
        faults.append(required("metadata.uid"))
    wanted = {LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}
    if needs_prefixed_labels:
        wanted |= {CONTROLLER_UID: uid, JOB_NAME: name}
    labels = template_labels(spec["template"])
    for key, value in wanted.items():
        faults += _job_label_faults(labels, key, value)
    matcher = selector_matcher(selector)
    if matcher is not None and not matcher.matches(wanted):
        faults.append(invalid("spec.selector", selector_value(selector), "`selector` not auto-generated"))
    return faults


def _job_label_faults(labels: Document | None, key: str, wanted: str) -> list[Fault]:
    path, detail = f"spec.template.metadata.labels[{key}]", f"must be '{wanted}'"
    if labels is None or key not in labels:
        return [required(path, detail)]
    return [] if labels[key] == wanted else [invalid(path, labels_value(labels), detail)]


def _managed_by_faults(managed_by: str, path: str) -> list[Fault]:
    faults = _domain_prefixed_path_faults(managed_by, path)
    if len(managed_by.encode()) > MANAGED_BY_BYTES_MAX:
        faults.append(too_long(path, MANAGED_BY_BYTES_MAX))
    return faults


def _domain_prefixed_path_faults(value: str, path: str) -> list[Fault]:
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    faults = [invalid(path, host, text) for text in dns_subdomain_faults(host)]
    if not _is_http_path(rest):
        faults.append(invalid(path, rest, matching_rule("Invalid path", _HTTP_PATH)))
    return faults


def _completion_mode_faults(spec: Document, path: str) -> list[Fault]:
    mode = spec.get("completionMode")
    if mode == "Indexed":
        return _indexed_faults(spec, path)
    faults = []
    if mode not in (None, "NonIndexed"):
        return [not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))]
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(field) is not None:
            faults.append(invalid(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    return faults


def _indexed_faults(spec: Document, path: str) -> list[Fault]:
    faults = []
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed_max = spec.get("maxFailedIndexes")
    if completions is None:
        faults.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > PARALLELISM_INDEXED_MAX:
        detail = f"must be less than or equal to {PARALLELISM_INDEXED_MAX} when completion mode is Indexed"
        faults.append(invalid(f"{path}.parallelism", parallelism, detail))
    here = f"{path}.maxFailedIndexes"
    if completions is not None and failed_max is not None and failed_max > completions:
        faults.append(invalid(here, failed_max, "must be less than or equal to completions"))
    if failed_max is not None and failed_max > FAILED_INDEXES_MAX:
        faults.append(invalid(here, failed_max, f"must be less than or equal to {FAILED_INDEXES_MAX}"))
    if completions is None or completions <= COMPLETIONS_MANY or spec.get("backoffLimitPerIndex") is None:
        return faults
    if failed_max is None:
        faults.append(required(here, f"must be specified when completions is above {COMPLETIONS_MANY}"))
    suffix = f"when completions are above {COMPLETIONS_MANY} and used with backoff limit per index"
    if parallelism is not None and parallelism > PARALLELISM_MANY_MAX:
        detail = f"must be less than or equal to {PARALLELISM_MANY_MAX} {suffix}"
        faults.append(invalid(f"{path}.parallelism", parallelism, detail))
    if failed_max is not None and failed_max > FAILED_INDEXES_MANY_MAX:
        faults.append(invalid(here, failed_max, f"must be less than or equal to {FAILED_INDEXES_MANY_MAX} {suffix}"))
    return faults


def _restart_faults(spec: Document, path: str) -> list[Fault]:
    restart = (spec["template"].get("spec") or {}).get("restartPolicy", "")
    if restart in ("Always", ""):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if restart not in ("OnFailure", "Never"):
        return [not_supported(path, restart, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and restart != "Never":
        return [invalid(path, restart, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


# --- changes ----------------------------------------------------------------------------------------------------


def _completions_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    """Fixed; an indexed job may be grown and shrunk together with its parallelism."""
    new, before = spec.get("completions"), old.get("completions")
    if new == before:
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid(path, new, IMMUTABLE)]
    if new is not None and new != spec.get("parallelism"):
        return [invalid(path, new, "can only be modified in tandem with spec.parallelism")]
    return []


def _template_update_faults(job: Document, old: Document, path: str) -> list[Fault]:
    template, old_template = job["spec"]["template"], old["spec"]["template"]
    if means_the_same(template, old_template, "core", "PodTemplateSpec"):
        return []
    if not _may_change_template(old):
        return [invalid(f"{path}.template", internal_value(template, "PodTemplateSpec"), IMMUTABLE)]
    inside = template.get("spec") or {}
    allowed = _with_new_sizes(_with_new_placement(old_template.get("spec") or {}, inside), inside)
    if means_the_same(inside, allowed, "core", "PodSpec"):
        return []
    return [invalid(f"{path}.template.spec", internal_value(inside, "PodSpec"), IMMUTABLE)]


def _may_change_template(old: Document) -> bool:
    """A suspended job without pods, which was never started or has come to rest."""
    status = old.get("status") or {}
    is_at_rest = status.get("startTime") is None or is_condition_true(status, "Suspended")
    return bool(old["spec"].get("suspend")) and is_at_rest and status.get("active", 0) == 0


def _with_new_placement(old: Document, new: Document) -> Document:
    allowed = dict(old)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        _take_over(allowed, new, field)
    affinity, old_affinity = new.get("affinity"), old.get("affinity")
    if affinity is None:
        rest = {name: value for name, value in (old_affinity or {}).items() if name != "nodeAffinity"}
        if rest:
            allowed["affinity"] = rest
        else:
            allowed.pop("affinity", None)
    else:
        merged = dict(old_affinity or {})
        _take_over(merged, affinity, "nodeAffinity")
        allowed["affinity"] = merged
    return allowed


def _with_new_sizes(old: Document, new: Document) -> Document:
    allowed = dict(old)
    for field in ("containers", "initContainers"):
        before, after = old.get(field) or [], new.get(field) or []
        if len(before) != len(after):
            continue
        resized = []
        for container, wanted in zip(before, after, strict=True):
            if container.get("name") == wanted.get("name"):
                container = dict(container)
                _take_over(container, wanted, "resources")
            resized.append(container)
        if resized:
            allowed[field] = resized
    return allowed


def _take_over(target: Document, source: Document, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)
