"""Which volume a claim gets."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.controllers.volume.match import best_volume, why_unsuitable
from tests.controllers.storage_documents import claim_view, volume_view

FREE: dict[str, Any] = {"phase": "Available"}


@pytest.mark.parametrize(
    ("claim", "volumes", "best"),
    [
        pytest.param({}, [], None, id="there is none"),
        pytest.param({}, [("a", {"storage": "5Gi"}), ("b", {"storage": "2Gi"})], "b", id="the smallest"),
        pytest.param({}, [("b", {}), ("a", {})], "a", id="of equals the first by name"),
        pytest.param(
            {"storage": "3Gi"}, [("a", {"storage": "2Gi"}), ("b", {"storage": "3Gi"})], "b", id="large enough"
        ),
        pytest.param({}, [("a", {"class_name": "other"})], None, id="another class"),
        pytest.param({"class_name": ""}, [("a", {"class_name": ""})], "a", id="no class and no class"),
        pytest.param({}, [("a", {"phase": "Released"})], None, id="one that is not free"),
        pytest.param({}, [("a", {"going": True})], None, id="one that goes"),
        pytest.param({}, [("a", {"claim": "other"})], None, id="one that names another claim"),
        pytest.param(
            {}, [("a", {}), ("b", {"storage": "9Gi", "claim": "c"})], "b", id="one that names it, though larger"
        ),
        pytest.param({}, [("b", {"claim": "c", "uid": ""})], "b", id="one that names it without a uid"),
        pytest.param({}, [("b", {"claim": "c", "uid": "old"})], None, id="one that names its namesake"),
        pytest.param({}, [("b", {"claim": "c", "class_name": "x"})], "b", id="who names it may be of another class"),
        pytest.param(
            {"storage": "3Gi"},
            [("a", {"storage": "5Gi"}), ("b", {"claim": "c"})],
            "a",
            id="who names it must be large enough",
        ),
        pytest.param({"volumeMode": "Block"}, [("a", {})], None, id="another mode"),
        pytest.param({"volumeMode": "Filesystem"}, [("a", {})], "a", id="a filesystem is what nobody says"),
        pytest.param({"modes": ["ReadOnlyMany"]}, [("a", {})], None, id="an access mode is missing"),
        pytest.param(
            {},
            [("a", {"modes": ["ReadWriteOnce", "ReadOnlyMany"]}), ("b", {"storage": "9Gi"})],
            "b",
            id="fewer access modes come before a smaller size",
        ),
        pytest.param(
            {},
            [("a", {"modes": ["ReadWriteOnce", "ReadOnlyMany"], "claim": "c"}), ("b", {})],
            "b",
            id="and even before one that names it",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"disk": "fast"}}},
            [("a", {}), ("b", {"storage": "9Gi", "labels": {"disk": "fast"}})],
            "b",
            id="by its selector",
        ),
        pytest.param({"volumeAttributesClassName": "gold"}, [("a", {})], None, id="another attributes class"),
    ],
)
def test_a_claim_gets(claim: dict[str, Any], volumes: list[tuple[str, dict[str, Any]]], best: str | None) -> None:
    found = best_volume(
        claim_view(**claim), [volume_view(name, **{**FREE, **parts}) for name, parts in volumes], is_delayed=False
    )
    assert (found.metadata.name if found is not None else None) == best


@pytest.mark.parametrize(
    ("volume", "best"),
    [
        pytest.param({}, None, id="a free one is left to the scheduler"),
        pytest.param({"claim": "c"}, "v", id="one that names it was chosen by the scheduler"),
    ],
)
def test_a_claim_that_waits_for_its_consumer_gets(volume: dict[str, Any], best: str | None) -> None:
    found = best_volume(claim_view(), [volume_view(**{**FREE, **volume})], is_delayed=True)
    assert (found.metadata.name if found is not None else None) == best


@pytest.mark.parametrize(
    ("claim", "volume", "why"),
    [
        pytest.param({}, {}, "", id="it will do"),
        pytest.param({}, {"going": True}, 'the volume is marked for deletion "v"', id="it goes"),
        pytest.param({"storage": "2Gi"}, {}, "requested PV is too small", id="too small"),
        pytest.param({"class_name": "x"}, {}, "storageClassName does not match", id="another class"),
        pytest.param(
            {"volumeAttributesClassName": "gold"}, {}, "volumeAttributesClassName does not match", id="attributes"
        ),
        pytest.param({}, {"volumeMode": "Block"}, "incompatible volumeMode", id="another mode"),
        pytest.param({"modes": ["ReadWriteMany"]}, {}, "incompatible accessMode", id="another access mode"),
    ],
)
def test_a_volume_that_is_asked_for_is_refused_because(claim: dict[str, Any], volume: dict[str, Any], why: str) -> None:
    assert why_unsuitable(volume_view(**volume), claim_view(**claim)) == why
