"""The plugins run in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.authorization import EverythingAllowed
from mooring.apiserver.admission.table import Plugins, UnknownPluginError, admission_plugins
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy


class NoLedger:
    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        return True


def plugins(*disabled: str) -> Plugins:
    return admission_plugins(NoLedger(), EverythingAllowed(), VirtualClock(), Entropy(1), disabled)


def test_mutating() -> None:
    assert [plugin.name for plugin in plugins().mutating] == [
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "NodeRestriction",
        "TaintNodesByCondition",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "RuntimeClass",
        "PodTopologyLabels",
    ]


def test_validating() -> None:
    assert [plugin.name for plugin in plugins().validating] == [
        "LimitRanger",
        "ServiceAccount",
        "PodSecurity",
        "Priority",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "ResourceQuota",
    ]


def test_a_disabled_plugin_neither_mutates_nor_validates() -> None:
    enabled = plugins("ServiceAccount", "Priority")
    names = {plugin.name for plugin in (*enabled.mutating, *enabled.validating)}
    assert names.isdisjoint(("ServiceAccount", "Priority"))
    assert "LimitRanger" in names


def test_an_unknown_plugin_cannot_be_disabled() -> None:
    with pytest.raises(UnknownPluginError, match="no admission plugin 'Anchor'; there are DefaultStorageClass, "):
        plugins("Anchor")
