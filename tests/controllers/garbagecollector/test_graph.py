"""The graph of owners and dependents, and the nodes to be checked."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ObjectMeta, OwnerReference
from mooring.api.well_known import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from mooring.controllers.garbagecollector.graph import (
    ABSENT_MAX,
    AbsentOwners,
    GraphNode,
    ObjectIdentity,
    OwnershipGraph,
)


class Asked:
    """A collector that only writes down what it is asked for."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def attempt_to_delete(self, node: GraphNode) -> None:
        self.said.append(f"check {node.identity.name}{' (virtual)' if node.is_virtual else ''}")

    def attempt_to_delete_later(self, node: GraphNode) -> None:
        self.said.append(f"check {node.identity.kind} {node.identity.name} later")

    def attempt_to_orphan(self, node: GraphNode) -> None:
        self.said.append(f"orphan {node.identity.name}")

    def report_other_namespace(self, node: GraphNode, owner: ObjectIdentity) -> None:
        self.said.append(f"report {node.identity.name} of {owner}")

    def take(self) -> list[str]:
        said, self.said = self.said, []
        return said


class Story:
    """A graph of ConfigMaps in words: uids are names in capitals."""

    def __init__(self) -> None:
        self.asked = Asked()
        self.graph = OwnershipGraph(self.asked)
        self.seen: dict[str, ObjectMeta] = {}

    def put(
        self,
        name: str,
        *owners: OwnerReference,
        going: bool = False,
        finalizers: tuple[str, ...] = (),
        namespace: str = "ns",
    ) -> list[str]:
        metadata = ObjectMeta(
            name=name,
            namespace=namespace,
            uid=name.upper(),
            owner_references=owners,
            finalizers=finalizers,
            deletion_timestamp="now" if going else None,
        )
        self.graph.observe(identity(name, namespace), metadata, self.seen.get(name))
        self.seen[name] = metadata
        return self.asked.take()

    def gone(self, name: str, namespace: str = "ns") -> list[str]:
        self.graph.forget(identity(name, namespace))
        return self.asked.take()

    def absent(self, name: str, kind: str = "ConfigMap", namespace: str = "ns") -> list[str]:
        self.graph.forget_absent(ObjectIdentity(kind, "v1", namespace, name, name.upper()))
        return self.asked.take()


def identity(name: str, namespace: str = "ns") -> ObjectIdentity:
    return ObjectIdentity("ConfigMap", "v1", namespace, name, name.upper())


def of(name: str, *, blocks: bool = False, kind: str = "ConfigMap") -> OwnerReference:
    return OwnerReference(api_version="v1", kind=kind, name=name, uid=name.upper(), block_owner_deletion=blocks)


def test_dependents_are_checked_when_their_owner_goes() -> None:
    story = Story()
    assert story.put("owner") == []
    assert story.put("x", of("owner")) == []
    assert story.put("y", of("owner")) == []
    assert story.gone("owner") == ["check x", "check y"]
    assert identity("owner") in story.graph.absent


def test_an_owner_that_was_not_observed_is_checked() -> None:
    story = Story()
    assert story.put("x", of("owner")) == ["check owner (virtual)"]
    assert story.put("y", of("owner")) == []
    assert story.absent("owner") == ["check x", "check y"]
    assert story.graph.get("OWNER") is None


def test_an_owner_that_is_seen_later_is_real_then() -> None:
    story = Story()
    story.put("x", of("owner"))
    assert story.put("owner") == []
    node = story.graph.get("OWNER")
    assert node is not None
    assert not node.is_virtual
    assert [dependent.identity.name for dependent in node.dependents] == ["x"]


def test_a_foreground_deletion_checks_the_dependents_and_the_owner() -> None:
    story = Story()
    story.put("owner")
    story.put("x", of("owner", blocks=True))
    assert story.put("owner", going=True, finalizers=(FOREGROUND_FINALIZER,)) == ["check x", "check owner"]
    assert story.put("owner", going=True, finalizers=(FOREGROUND_FINALIZER, "other")) == []
    assert story.gone("x") == ["check owner"]


def test_a_dependent_that_blocks_no_more_frees_its_owner() -> None:
    story = Story()
    story.put("owner", going=True, finalizers=(FOREGROUND_FINALIZER,))
    story.put("x", of("owner", blocks=True))
    assert story.put("x", of("owner")) == ["check owner"]
    story.put("x", of("owner", blocks=True))
    assert story.put("x") == ["check owner"]
    node = story.graph.get("OWNER")
    assert node is not None
    assert not node.dependents


def test_an_orphaning_deletion_asks_for_orphaning_once() -> None:
    story = Story()
    story.put("owner")
    assert story.put("owner", going=True, finalizers=(ORPHAN_FINALIZER,)) == ["orphan owner"]
    assert story.put("owner", going=True, finalizers=(ORPHAN_FINALIZER, "other")) == []


def test_new_owners_are_followed() -> None:
    story = Story()
    story.put("a")
    story.put("b")
    story.put("x", of("a"))
    assert story.put("x", of("b")) == []
    assert story.gone("a") == []
    assert story.gone("b") == ["check x"]


def test_an_owner_in_another_namespace_is_reported_and_checked() -> None:
    story = Story()
    story.put("owner", namespace="elsewhere")
    wanted = "[v1/ConfigMap, namespace: ns, name: owner, uid: OWNER]"
    assert story.put("x", of("owner")) == [f"report x of {wanted}", "check x"]


def test_the_other_way_round_too() -> None:
    story = Story()
    story.put("x", of("owner"))
    said = story.put("owner", namespace="elsewhere")
    assert said == ["report x of [v1/ConfigMap, namespace: ns, name: owner, uid: OWNER]", "check x"]


def test_a_reference_of_another_kind_is_checked_but_keeps_the_owner() -> None:
    story = Story()
    story.put("owner")
    assert story.put("x", of("owner", kind="Secret")) == ["check x"]
    assert story.absent("owner", kind="Secret") == ["check x"]
    assert story.graph.get("OWNER") is not None


def test_when_dependents_disagree_the_other_identity_is_tried() -> None:
    story = Story()
    story.put("x", of("owner"))
    story.put("y", of("owner", kind="Secret"))
    assert story.absent("owner") == ["check x", "check Secret owner later"]
    assert story.absent("owner", kind="Secret") == ["check y", "check ConfigMap owner later"]


@pytest.mark.parametrize(
    ("blocks", "blocking"), [pytest.param(True, ["x"], id="blocks"), pytest.param(False, [], id="does not block")]
)
def test_blocking_dependents(blocks: bool, blocking: list[str]) -> None:
    story = Story()
    story.put("owner")
    story.put("x", of("owner", blocks=blocks), of("other", blocks=True))
    node = story.graph.get("OWNER")
    assert node is not None
    assert [dependent.identity.name for dependent in node.blocking_dependents()] == blocking


def test_absent_owners_are_forgotten_in_the_order_of_their_use() -> None:
    absent = AbsentOwners()
    for number in range(ABSENT_MAX):
        absent.add(identity(f"o{number}"))
    assert identity("o0") in absent
    absent.add(identity("one more"))
    assert identity("o0") in absent
    assert identity("o1") not in absent
