"""Rules of claims and volumes that several components share."""

from __future__ import annotations

import pytest

from mooring.api.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    STORAGE_CLASS_BETA,
    bound_to,
    claim_named_by,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    is_controlled_by_pod,
    is_ephemeral,
    is_fully_bound,
    not_found_text,
    storage_requested,
    volume_mode_of,
    with_selected_node,
)
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, Volume
from tests.builders import claim_volume, pod
from tests.storage_builders import bound, ephemeral, volume, waiting


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(waiting("c", of_class="fast"), "fast", id="the class that it names"),
        pytest.param(waiting("c", of_class=None), "", id="no class"),
        pytest.param(
            waiting("c", of_class="fast", annotations={STORAGE_CLASS_BETA: "old"}),
            "old",
            id="the beta annotation first",
        ),
        pytest.param(
            waiting("c", of_class="fast", annotations={STORAGE_CLASS_BETA: ""}), "", id="even if it says no class"
        ),
    ],
)
def test_the_class_of_a_claim(claim: PersistentVolumeClaim, expected: str) -> None:
    assert class_of_claim(claim) == expected


def test_the_class_of_a_volume() -> None:
    assert class_of_volume(volume("v", of_class="fast")) == "fast"
    assert class_of_volume(volume("v", of_class="fast", annotations={STORAGE_CLASS_BETA: "old"})) == "old"


def test_the_default_volume_mode_is_filesystem() -> None:
    assert (volume_mode_of(None), volume_mode_of("Block")) == ("Filesystem", "Block")


@pytest.mark.parametrize(
    ("source", "name", "is_own"),
    [
        pytest.param(claim_volume("data"), "data", False, id="a claim that it names"),
        pytest.param(ephemeral("scratch"), "web-scratch", True, id="a claim made for the pod"),
        pytest.param(Volume(name="config"), None, False, id="no claim at all"),
    ],
)
def test_the_claim_of_a_volume_of_a_pod(source: Volume, name: str | None, is_own: bool) -> None:
    assert claim_named_by(source, "web") == name
    assert is_ephemeral(source) is is_own


@pytest.mark.parametrize(
    ("claim", "uid", "expected"),
    [
        pytest.param(waiting("c", owner=pod("web", uid="1")), "1", True, id="the pod is its controller"),
        pytest.param(waiting("c", owner=pod("web", uid="2")), "1", False, id="a pod of the same name was before"),
        pytest.param(waiting("c"), "1", False, id="nobody owns it"),
        pytest.param(waiting("c", owner=pod("web")), "default/web", True, id="a pod without a uid"),
        pytest.param(waiting("c", owner=pod("web")), "1", False, id="an owner without a uid is not this pod"),
    ],
)
def test_whether_a_claim_was_made_for_a_pod(claim: PersistentVolumeClaim, uid: str, expected: bool) -> None:
    assert is_controlled_by_pod(claim, "default", "web", uid) is expected
    assert not is_controlled_by_pod(claim, "elsewhere", "web", uid)


def test_is_fully_bound() -> None:
    assert is_fully_bound(bound("c", to="v"))
    assert not is_fully_bound(bound("c", to="v", completed=False))
    assert not is_fully_bound(waiting("c"))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(volume("v"), False, id="a free volume"),
        pytest.param(volume("v", claimed_by="c"), True, id="waits for a claim of this name"),
        pytest.param(volume("v", claimed_by="c", claimed_uid="u"), True, id="waits for this very claim"),
        pytest.param(volume("v", claimed_by="c", claimed_uid="old"), False, id="waits for one that is gone"),
        pytest.param(volume("v", claimed_by="d"), False, id="waits for another"),
    ],
)
def test_is_bound_to(found: PersistentVolume, expected: bool) -> None:
    assert is_bound_to(found, waiting("c", uid="u")) is expected


def test_binding_a_free_volume_sets_reference_and_annotation() -> None:
    claim = waiting("c", uid="u", version="7")
    after = bound_to(volume("v"), claim)
    reference = after.spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.namespace, reference.name, reference.uid, reference.resource_version) == (
        "PersistentVolumeClaim",
        "default",
        "c",
        "u",
        "7",
    )
    assert BOUND_BY_CONTROLLER in after.metadata.annotations
    assert is_bound_to(after, claim)
    assert bound_to(after, claim) is after


def test_binding_a_reserved_volume_sets_only_the_uid() -> None:
    after = bound_to(volume("v", claimed_by="c"), waiting("c", uid="u"))
    assert after.spec.claim_ref is not None
    assert after.spec.claim_ref.uid == "u"
    assert BOUND_BY_CONTROLLER not in after.metadata.annotations


def test_the_selected_node_of_a_claim_is_set_once() -> None:
    marked = with_selected_node(waiting("c"), "n1")
    assert marked.metadata.annotations[SELECTED_NODE] == "n1"
    assert with_selected_node(marked, "n1") is marked


def test_storage_requested() -> None:
    assert storage_requested(waiting("c", size="5Gi").spec) == "5Gi"
    assert storage_requested(waiting("c", size=None).spec) is None


def test_the_message_for_missing_objects() -> None:
    assert not_found_text("persistentvolume", "v") == 'persistentvolume "v" not found'
