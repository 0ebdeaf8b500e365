"""How the endpoints of a service lie in slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.views.endpoints import Endpoint, EndpointConditions, EndpointSlice
from mooring.api.views.pod import Pod
from mooring.controllers.endpoint.slices_plan import (
    Draft,
    SliceChanges,
    endpoint_of,
    plan_slices,
    slice_document,
)
from tests.controllers.network_documents import backend_view, service_view

LIMIT = 3


def backends(count: int, first: int = 0) -> list[Pod]:
    return [backend_view(f"p{number}", f"10.1.0.{number}") for number in range(first, first + count)]


def written(draft: Draft, name: str, **parts: Any) -> EndpointSlice:
    """A draft as the API would answer it."""
    document = slice_document(draft, service_view(**parts), "IPv4", "")
    document["metadata"] |= {"name": name, "namespace": "default", "resourceVersion": "1"}
    return decode_as(EndpointSlice, msgspec.json.encode(document))


def plan(pods: Sequence[Pod], slices: Sequence[EndpointSlice] = (), **parts: Any) -> SliceChanges:
    return plan_slices(service_view(**parts), "IPv4", pods, slices, lambda name: "z1", LIMIT)


def slices_of(pods: Sequence[Pod]) -> list[EndpointSlice]:
    changes = plan(pods)
    return [written(draft, f"s{number}") for number, draft in enumerate(changes.to_create)]


def sizes(drafts: Sequence[Draft]) -> list[int]:
    return [len(draft.endpoints) for draft in drafts]


@pytest.mark.parametrize(
    ("before", "after", "created", "updated", "deleted"),
    [
        pytest.param([], backends(2), [2], [], 0, id="the first go into a new slice"),
        pytest.param([], backends(7), [3, 3, 1], [], 0, id="many go into several"),
        pytest.param(backends(2), backends(2), [], [], 0, id="nothing changed"),
        pytest.param(backends(2), backends(3), [], [3], 0, id="one more fills up what has room"),
        pytest.param(backends(3), backends(4), [1], [], 0, id="one more than fits gets a new slice"),
        pytest.param(backends(3), backends(2), [], [2], 0, id="one less leaves a gap"),
        pytest.param(backends(6), [*backends(2), *backends(3, 3)], [], [2], 0, id="slices are not packed closer"),
        pytest.param(backends(4), backends(3), [], [], 1, id="a slice that becomes empty goes"),
        pytest.param(backends(6), [*backends(2), *backends(4, 3)], [], [3], 0, id="a gap in a written slice is filled"),
        pytest.param(backends(2), [], [], [0], 0, id="without endpoints one empty slice stays"),
        pytest.param([], [], [0], [], 0, id="or is made"),
    ],
)
def test_slices(before: list[Pod], after: list[Pod], created: list[int], updated: list[int], deleted: int) -> None:
    changes = plan(after, slices_of(before) if before else [])
    assert sizes(changes.to_create) == created
    assert sizes(changes.to_update) == updated
    assert len(changes.to_delete) == deleted


def test_an_empty_slice_is_left_alone() -> None:
    (empty,) = slices_of([])
    changes = plan([], [empty])
    assert (changes.to_create, changes.to_update, changes.to_delete) == ([], [], [])


def test_a_slice_of_a_former_service_of_that_name_goes() -> None:
    (known,) = slices_of(backends(1))
    changes = plan_slices(service_view("web2"), "IPv4", backends(1), [known], lambda name: "z1", LIMIT)
    assert changes.to_delete == [known]
    assert sizes(changes.to_create) == [1]


def test_a_pod_on_a_node_that_nobody_knows_is_told_of() -> None:
    changes = plan_slices(service_view(), "IPv4", backends(1), [], lambda name: None, LIMIT)
    assert changes.errors == ["skipping Pod p0 for Service default/web: Node n1 Not Found"]


def test_pods_with_other_ports_lie_in_other_slices() -> None:
    named = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}
    pods = [
        backend_view(
            f"p{number}",
            f"10.1.0.{number}",
            containers=[{"name": "c", "ports": [{"name": "web", "containerPort": number, "protocol": "TCP"}]}],
        )
        for number in (8080, 8081, 8081)
    ]
    changes = plan(pods, ports=[named])
    assert sorted((draft.ports[0].port, len(draft.endpoints)) for draft in changes.to_create) == [(8080, 1), (8081, 1)]


@pytest.mark.parametrize(
    ("pod", "spec", "conditions"),
    [
        pytest.param({}, {}, (True, True, False), id="ready"),
        pytest.param({"is_ready": False}, {}, (False, False, False), id="not ready"),
        pytest.param({"going": True}, {}, (False, True, True), id="serving while it goes"),
        pytest.param(
            {"is_ready": False},
            {"publishNotReadyAddresses": True},
            (True, False, False),
            id="the service does not mind",
        ),
    ],
)
def test_an_endpoint_is(pod: dict[str, Any], spec: dict[str, Any], conditions: tuple[bool, bool, bool]) -> None:
    ready, serving, terminating = conditions
    endpoint = endpoint_of(backend_view("p", **pod), service_view(**spec), "IPv4", "z1")
    assert endpoint.conditions == EndpointConditions(ready=ready, serving=serving, terminating=terminating)


def hints_of(endpoint: Endpoint) -> tuple[list[str], list[str]] | None:
    hints = endpoint.hints
    return None if hints is None else ([z.name for z in hints.for_zones], [n.name for n in hints.for_nodes])


@pytest.mark.parametrize(
    ("preference", "hints"),
    [
        pytest.param(None, None, id="nothing is said"),
        pytest.param("PreferClose", (["z1"], []), id="close"),
        pytest.param("PreferSameZone", (["z1"], []), id="the same zone"),
        pytest.param("PreferSameNode", (["z1"], ["n1"]), id="the same node"),
    ],
)
def test_traffic_is_hinted(preference: str | None, hints: object) -> None:
    endpoint = endpoint_of(backend_view("p"), service_view(trafficDistribution=preference), "IPv4", "z1")
    assert hints_of(endpoint) == hints
