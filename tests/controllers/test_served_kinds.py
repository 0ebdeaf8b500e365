"""Which kinds there are to ask for."""

from __future__ import annotations

from mooring.api.kinds import POD
from mooring.api.views.definitions import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    DefinitionNames,
    DefinitionVersion,
)
from mooring.api.views.meta import Condition, ObjectMeta
from mooring.client.cache.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.served_kinds import ServedKinds, kinds_of

NAMES = DefinitionNames(plural="widgets", kind="Widget")


def definition(
    *, accepted: bool = True, scope: str = "Namespaced", versions: str = "v1beta1 v1!", revision: str = "1"
) -> CustomResourceDefinition:
    """Versions: `v2-` is not served, `v1!` is the one that is stored."""
    return CustomResourceDefinition(
        metadata=ObjectMeta(name="widgets.example.com", uid="u", resource_version=revision),
        spec=CustomResourceDefinitionSpec(
            group="example.com",
            scope=scope,
            names=NAMES,
            versions=tuple(
                DefinitionVersion(name=text.rstrip("!-"), served=not text.endswith("-"), storage=text.endswith("!"))
                for text in versions.split()
            ),
        ),
        status=CustomResourceDefinitionStatus(
            conditions=(Condition(type="NamesAccepted", status="True" if accepted else "False"),),
            accepted_names=NAMES if accepted else DefinitionNames(),
        ),
    )


def test_each_served_version_is_a_kind_the_stored_one_first() -> None:
    kinds = kinds_of(definition(versions="v1alpha1- v1beta1 v1!"))
    assert [kind.api_version for kind in kinds] == ["example.com/v1", "example.com/v1beta1"]
    assert (kinds[0].kind, kinds[0].plural, kinds[0].is_namespaced) == ("Widget", "widgets", True)
    assert kinds[0].key("ns", "w") == "/registry/example.com/widgets/ns/w"


def test_a_definition_that_is_not_accepted_has_no_kinds() -> None:
    assert kinds_of(definition(accepted=False)) == ()


def test_a_kind_of_the_cluster_has_no_namespace() -> None:
    assert not kinds_of(definition(scope="Cluster"))[0].is_namespaced


def test_kinds_come_and_go_with_their_definitions() -> None:
    informer: Informer[CustomResourceDefinition] = Informer("definitions")
    kinds = ServedKinds("test", informer)
    changes: list[int] = []
    kinds.on_change(lambda: changes.append(len(list(kinds.custom()))))
    assert kinds.find("v1", "Pod") is POD
    assert kinds.find("example.com/v1", "Widget") is None
    informer.apply(Change.ADDED, definition(accepted=False))
    informer.apply(Change.MODIFIED, definition(revision="2"))
    found = kinds.find("example.com/v1beta1", "Widget")
    assert found is not None
    assert not kinds.is_built_in(found)
    informer.apply(Change.MODIFIED, definition(revision="3"))
    assert kinds.find("example.com/v1beta1", "Widget") is found
    informer.apply(Change.DELETED, definition(revision="4"))
    assert kinds.find("example.com/v1", "Widget") is None
    assert changes == [0, 1, 0]
