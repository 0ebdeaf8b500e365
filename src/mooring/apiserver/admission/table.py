"""The admission plugins of the API server, in kube-apiserver's order.

A new plugin is one file and one line here. These plugins of kube-apiserver's default list are missing, because their
kinds are not served: PodGroupProtection, PodGroupWorkloadExists, DefaultIngressClass, the certificate plugins,
admission policies and webhooks. JobValidation is missing because it reads gangs only, which are off by default.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mooring.apiserver.access.authorization import Authorizer
from mooring.apiserver.admission.default_storage_class import DefaultStorageClass
from mooring.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from mooring.apiserver.admission.interface import Admission, QuotaStatusWriter
from mooring.apiserver.admission.limit_ranger import LimitRanger
from mooring.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from mooring.apiserver.admission.node_declared_features import NodeDeclaredFeatureValidator
from mooring.apiserver.admission.node_restriction import NodeRestriction
from mooring.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from mooring.apiserver.admission.pod_resize_validator import PodResizeValidator
from mooring.apiserver.admission.pod_security import PodSecurity
from mooring.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mooring.apiserver.admission.priority import Priority
from mooring.apiserver.admission.resource_quota import ResourceQuotaAdmission
from mooring.apiserver.admission.runtime_class import RuntimeClass
from mooring.apiserver.admission.service_account import ServiceAccountAdmission
from mooring.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mooring.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy


class UnknownPluginError(Exception):
    """A setting names an admission plugin that does not exist."""


class AdmissionPlugins(NamedTuple):
    """The enabled plugins, in the order in which they run."""

    mutating: Sequence[Admission]
    validating: Sequence[Admission]


def admission_plugins(
    status_writer: QuotaStatusWriter,
    authorizer: Authorizer,
    clock: Clock,
    entropy: Entropy,
    disabled: Collection[str] = (),
) -> AdmissionPlugins:
    """All plugins except the disabled ones. Raises `UnknownPluginError`."""
    service_account = ServiceAccountAdmission(clock, entropy.fork("service accounts"))
    mutating: tuple[Admission, ...] = (
        NamespaceLifecycle(),
        LimitRanger(),
        service_account,
        NodeRestriction(authorizer),
        TaintNodesByCondition(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        RuntimeClass(),
        PodTopologyLabels(),
    )
    validating: tuple[Admission, ...] = (
        LimitRanger(),
        service_account,
        PodSecurity(),
        Priority(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        NodeDeclaredFeatureValidator(),
        PodResizeValidator(),
        ResourceQuotaAdmission(status_writer),  # last: a charge to a quota is not undone
    )
    names = {plugin.name for plugin in (*mutating, *validating)}
    for name in disabled:
        if name not in names:
            raise UnknownPluginError(f"there is no admission plugin {name!r}; there are {', '.join(sorted(names))}")
    return AdmissionPlugins(
        [plugin for plugin in mutating if plugin.name not in disabled],
        [plugin for plugin in validating if plugin.name not in disabled],
    )
