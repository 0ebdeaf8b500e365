"""The table of admission plugins, the chain that calls them, and helpers of plugins.

The order of the plugins is that of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, POD, Kind
from mooring.apiserver.access.authorization import EverythingAllowed
from mooring.apiserver.admission.interface import (
    Admission,
    AdmissionChain,
    Attempt,
    Lookup,
    own_items,
    own_part,
    refused,
)
from mooring.apiserver.admission.table import AdmissionPlugins, UnknownPluginError, admission_plugins
from mooring.apiserver.call import Operation
from mooring.client.errors import StatusCause
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from tests.apiserver.admission.builders import Known, attempt, pod, wait


class FakeQuotaWriter:
    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        return True


def plugins(*disabled: str) -> AdmissionPlugins:
    return admission_plugins(FakeQuotaWriter(), EverythingAllowed(), VirtualClock(), Entropy(1), disabled)


def test_the_order_of_mutating_plugins() -> None:
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


def test_the_order_of_validating_plugins() -> None:
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


class RecordingPlugin(Admission):
    """Records calls of its methods."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self._notes = notes

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        self._notes.append(f"{self.name} handles?")
        return kind is POD

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        self._notes.append(f"{self.name} admits")

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        self._notes.append(f"{self.name} checks")


def test_plugins_are_called_in_order_and_handles_is_called_once_per_kind() -> None:
    notes: list[str] = []
    chain = AdmissionChain(
        [RecordingPlugin("a", notes), RecordingPlugin("b", notes)], [RecordingPlugin("c", notes)], Known()
    )
    made = attempt(POD, pod())
    for _ in range(2):
        wait(chain.admit(made))
        wait(chain.check(made))
    assert notes == [*(f"{name} handles?" for name in "abc"), *("a admits", "b admits", "c checks") * 2]


def test_check_deletion_calls_admit_and_check() -> None:
    notes: list[str] = []
    chain = AdmissionChain([RecordingPlugin("a", notes)], [RecordingPlugin("b", notes)], Known())
    wait(chain.check_deletion(attempt(POD, None, pod(), operation=Operation.DELETE)))
    assert notes[2:] == ["a admits", "b checks"]


def test_plugins_that_do_not_handle_the_kind_are_not_called() -> None:
    notes: list[str] = []
    wait(AdmissionChain([RecordingPlugin("a", notes)], [], Known()).admit(attempt(CONFIG_MAP, pod())))
    assert notes == ["a handles?"]


# --- The name in the error of a rejected object ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "name", "called"),
    [
        pytest.param({"name": "a"}, "", "a", id="the name"),
        pytest.param({"generateName": "a-"}, "", "a-", id="the name prefix"),
        pytest.param({}, "", "Unknown", id="no name"),
        pytest.param({"name": "a"}, "b", "b", id="the name in the path"),
    ],
)
def test_refused_names_the_object(metadata: Document, name: str, called: str) -> None:
    refusal = refused(attempt(DEPLOYMENT, {"metadata": metadata}, name=name), "no", [StatusCause("r", "m", "f")])
    assert refusal.message == f'deployments.apps "{called}" is forbidden: no'
    assert refusal.details == {"name": called, "group": "apps", "kind": "deployments"}
    assert refusal.causes == (StatusCause("r", "m", "f"),)


# --- Parts are copied before they are changed ------------------------------------------------------------------------


def test_own_part_copies_a_shared_part() -> None:
    shared = {"a": 1}
    document = {"spec": shared}
    own_part(document, "spec")["b"] = 2
    assert (shared, document) == ({"a": 1}, {"spec": {"a": 1, "b": 2}})


def test_own_part_creates_a_missing_part() -> None:
    document: dict[str, object] = {}
    own_part(document, "spec")
    assert document == {"spec": {}}


def test_own_items_copies_shared_items() -> None:
    shared = [{"name": "a"}]
    document = {"items": shared}
    own_items(document, "items")[0]["name"] = "b"
    assert (shared, document) == ([{"name": "a"}], {"items": [{"name": "b"}]})
