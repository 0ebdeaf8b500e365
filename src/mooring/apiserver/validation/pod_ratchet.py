"""What an update of a pod is forgiven, because the stored object already had it.

Comes in   the old spec and the old metadata of a pod or a template
Goes out   `PodOptions`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.api.resource_names import HUGE_PAGES_PREFIX
from mooring.apiserver.validation.affinity import match_label_keys_faults, term_selectors_faults
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.names import unreserved_faults
from mooring.apiserver.validation.pod_annotations import has_valid_deletion_cost
from mooring.apiserver.validation.pod_options import STRICT, STRICT_POD, PodOptions
from mooring.apiserver.validation.resources import is_whole_pages
from mooring.apiserver.validation.security_profiles import host_sysctl_faults
from mooring.apiserver.validation.selectors import label_selector_faults


def options_after(old: Document | None, is_pod: bool) -> PodOptions:
    """What is tolerated in the successor of a pod or a template; nothing if it has no predecessor."""
    if old is None:
        return STRICT_POD if is_pod else STRICT
    spec: Document = old.get("spec") or {}
    context = spec.get("securityContext") or {}
    has_own_users = spec.get("hostUsers") is False
    constraints = spec.get("topologySpreadConstraints") or ()
    return PodOptions(
        is_pod=is_pod,
        tolerates_deletion_cost=not has_valid_deletion_cost(old.get("metadata", {}).get("annotations") or {}),
        tolerates_affinity_selectors=any(term_selectors_faults(term, "") for term in _affinity_terms(spec)),
        tolerates_node_affinity_values=_has_invalid_node_values(spec),
        tolerates_spread_selectors=any(label_selector_faults(each.get("labelSelector"), "") for each in constraints),
        tolerates_spread_label_keys=any(match_label_keys_faults(each, "") for each in constraints),
        tolerates_indivisible_huge_pages=_has_broken_pages(spec),
        tolerates_token_paths=any(unreserved_faults(path, "") for path in _token_paths(spec)),
        tolerates_host_sysctls=any(
            host_sysctl_faults(sysctl.get("name", ""), spec, "") for sysctl in context.get("sysctls") or ()
        ),
        tolerates_any_selinux_change_policy=context.get("seLinuxChangePolicy") is not None,
        tolerates_init_resize_restart=_has_init_resize_restart(spec),
        tolerates_devices_with_user_namespaces=has_own_users
        and any(container.get("volumeDevices") for container, _ in every_container(spec, "")),
        tolerates_host_network_with_user_namespaces=has_own_users and bool(spec.get("hostNetwork")),
        tolerates_comparing_tolerations=any(
            toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ()
        ),
    )


def _affinity_terms(spec: Document) -> Iterator[Document]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _has_invalid_node_values(spec: Document) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return any(
        label_value_faults(value)
        for term in wanted.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        for value in expression.get("values") or ()
    )


def _has_broken_pages(spec: Document) -> bool:
    lists: list[Mapping[str, str]] = [spec.get("overhead") or {}]
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            resources = container.get("resources") or {}
            lists += [resources.get("limits") or {}, resources.get("requests") or {}]
    return any(
        name.startswith(HUGE_PAGES_PREFIX) and not is_whole_pages(name, raw)
        for amounts in lists
        for name, raw in amounts.items()
    )


def _token_paths(spec: Document) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        for projection in (volume.get("projected") or {}).get("sources") or ():
            if projection.get("serviceAccountToken") is not None:
                yield projection["serviceAccountToken"].get("path", "")


def _has_init_resize_restart(spec: Document) -> bool:
    return any(
        policy.get("restartPolicy") == "RestartContainer"
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
        for policy in container.get("resizePolicy") or ()
    )
