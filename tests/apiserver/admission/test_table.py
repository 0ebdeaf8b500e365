"""The plugins stand in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.admission.service_account import ServiceAccount
from mooring.apiserver.admission.table import mutating, validating
from mooring.kit.entropy import Entropy


class NoLedger:
    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        return True


def test_mutating() -> None:
    assert [plugin.name for plugin in mutating()] == [
        "NamespaceLifecycle",
        "LimitRanger",
        "TaintNodesByCondition",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "RuntimeClass",
        "PodTopologyLabels",
    ]


def test_validating() -> None:
    assert [plugin.name for plugin in validating(NoLedger())] == [
        "LimitRanger",
        "PodSecurity",
        "Priority",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "ResourceQuota",
    ]


def test_service_accounts_come_in_where_kubernetes_has_them() -> None:
    plugin = ServiceAccount(Entropy(1))
    assert mutating(plugin)[2] is plugin
    assert validating(NoLedger(), plugin)[1] is plugin
