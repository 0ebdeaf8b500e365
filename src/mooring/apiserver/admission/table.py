"""Which admission plugins there are, and their order.

Comes in   what a plugin needs from outside
Goes out   the plugins that change objects, and those that check them, in kube-apiserver's order

 1. A new plugin is one file and one line here.
 2. Missing from kube-apiserver's default list, because nothing of theirs is served: PodGroupProtection,
    PodGroupWorkloadExists, DefaultIngressClass, the certificate plugins, admission policies and webhooks. JobValidation
    is missing because it looks at gangs only, which are off by default there.
 3. ServiceAccount is left out unless somebody asks for it: it refuses every pod as long as no controller makes the
    service account `default` in each namespace.
"""

from __future__ import annotations

from mooring.apiserver.admission.default_storage_class import DefaultStorageClass
from mooring.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from mooring.apiserver.admission.limit_ranger import LimitRanger
from mooring.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from mooring.apiserver.admission.node_declared_features import NodeDeclaredFeatureValidator
from mooring.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from mooring.apiserver.admission.pod_resize_validator import PodResizeValidator
from mooring.apiserver.admission.pod_security import PodSecurity
from mooring.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mooring.apiserver.admission.priority import Priority
from mooring.apiserver.admission.promise import Admission, QuotaLedger
from mooring.apiserver.admission.resource_quota import ResourceQuota
from mooring.apiserver.admission.runtime_class import RuntimeClass
from mooring.apiserver.admission.service_account import ServiceAccount
from mooring.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mooring.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition


def mutating(service_account: ServiceAccount | None = None) -> list[Admission]:
    """Those that change objects, in order."""
    return [
        NamespaceLifecycle(),
        LimitRanger(),
        *([service_account] if service_account is not None else []),
        TaintNodesByCondition(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        RuntimeClass(),
        PodTopologyLabels(),
    ]


def validating(ledger: QuotaLedger, service_account: ServiceAccount | None = None) -> list[Admission]:
    """Those that check objects, in order. Quotas come last: what they charge is not given back."""
    return [
        LimitRanger(),
        *([service_account] if service_account is not None else []),
        PodSecurity(),
        Priority(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        NodeDeclaredFeatureValidator(),
        PodResizeValidator(),
        ResourceQuota(ledger),
    ]
