"""NamespaceLifecycle: objects can be created only in existing namespaces that are not terminating."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, NAMESPACE, NODE
from mooring.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError, NotFoundError, StatusCause
from tests.apiserver.admission.builders import NS, Known, admitted, attempt, named, wait

TERMINATING = Known({NAMESPACE: [named(NS, status={"phase": "Terminating"})]})


def test_an_object_is_created_in_an_active_namespace() -> None:
    admitted(NamespaceLifecycle(), attempt(CONFIG_MAP, named("a")))


def test_creation_in_a_missing_namespace_is_rejected() -> None:
    with pytest.raises(NotFoundError, match=f'namespaces "{NS}" not found'):
        admitted(NamespaceLifecycle(), attempt(CONFIG_MAP, named("a")), Known({NAMESPACE: []}))


def test_creation_in_a_terminating_namespace_is_rejected_with_a_cause() -> None:
    with pytest.raises(ForbiddenError) as caught:
        admitted(NamespaceLifecycle(), attempt(CONFIG_MAP, {"metadata": {"generateName": "g-"}}), TERMINATING)
    assert caught.value.message == (
        f'configmaps "g-" is forbidden: unable to create new content in namespace {NS} because it is being terminated'
    )
    assert caught.value.causes == (
        StatusCause("NamespaceTerminating", f"namespace {NS} is being terminated", "metadata.namespace"),
    )


def test_objects_in_a_terminating_namespace_can_be_updated() -> None:
    admitted(NamespaceLifecycle(), attempt(CONFIG_MAP, named("a"), named("a")), TERMINATING)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_cannot_be_deleted(name: str) -> None:
    plugin, made = NamespaceLifecycle(), attempt(NAMESPACE, None, named(name), operation=Operation.DELETE)
    with pytest.raises(ForbiddenError, match="this namespace may not be deleted"):
        wait(plugin.admit(made, Known()))


def test_other_namespaces_can_be_deleted() -> None:
    made = attempt(NAMESPACE, None, named("kube-node-lease"), operation=Operation.DELETE)
    wait(NamespaceLifecycle().admit(made, Known()))


def test_cluster_scoped_kinds_are_not_handled() -> None:
    assert not NamespaceLifecycle().handles(NODE, "", Operation.CREATE)
