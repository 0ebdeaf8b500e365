"""The row of a kind is its only registration: the strategy and the table come from the module that it names."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from mooring.api import kinds
from mooring.api.kinds import (
    CONFIG_MAP,
    ENDPOINTS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
)
from mooring.apiserver import kinds as modules
from mooring.apiserver.kinds import strategy_of
from tests.apiserver.core_documents import changed, document

WORKLOADS_AND_SMALL_GROUPS = (
    kinds.DEPLOYMENT,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.CONTROLLER_REVISION,
    kinds.JOB,
    kinds.CRON_JOB,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.PRIORITY_CLASS,
    kinds.LEASE,
    kinds.ENDPOINT_SLICE,
    kinds.RUNTIME_CLASS,
    kinds.ROLE,
    kinds.CLUSTER_ROLE,
    kinds.ROLE_BINDING,
    kinds.CLUSTER_ROLE_BINDING,
)


@pytest.mark.parametrize("kind", [*kinds.all_kinds()], ids=str)
def test_every_kind_has_a_strategy(kind: Kind) -> None:
    found = strategy_of(kind)
    assert found.kind is kind
    assert ("status" in found.subresources) is kind.has_status
    assert type(found).__module__.startswith(f"{modules.__name__}.{kind.module_name}")


def test_subresources_of_namespaces_and_pods_have_strategies() -> None:
    assert set(strategy_of(NAMESPACE).subresources) == {"status", "finalize"}
    assert set(strategy_of(POD).subresources) == {"status", "ephemeralcontainers", "resize"}


@pytest.mark.parametrize("kind", WORKLOADS_AND_SMALL_GROUPS, ids=str)
def test_the_status_subresource_has_its_own_strategy(kind: Kind) -> None:
    strategy = strategy_of(kind)
    for status in strategy.subresources.values():
        assert status.ignored_fields[0] == ("spec",)
        assert status.allows_unconditional_update is strategy.allows_unconditional_update


@pytest.mark.parametrize(
    "kind",
    [CONFIG_MAP, ENDPOINTS, NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SECRET, SERVICE_ACCOUNT],
    ids=str,
)
def test_an_unqualified_finalizer_is_invalid_in_an_update(kind: Kind) -> None:
    old = document(kind, spec={}) if kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, NODE) else document(kind)
    errors, _ = changed(kind, old, metadata={**old["metadata"], "finalizers": ["odd"]})
    expected = "name is neither a standard finalizer name nor is it fully qualified"
    assert f'metadata.finalizers[0]: Invalid value: "odd": {expected}' in errors


def test_functions_and_classes_of_the_package_have_unique_names() -> None:
    paths = Path(modules.__file__).parent.rglob("*.py")
    statements = [node for path in paths for node in ast.parse(path.read_text(encoding="utf-8")).body]
    names = Counter(node.name for node in statements if isinstance(node, ast.FunctionDef | ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
