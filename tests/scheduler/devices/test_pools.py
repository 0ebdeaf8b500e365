"""Pools as nodes see them: generations, completeness, contradictions, order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.devices.pools import Kinds, PooledSlice, PoolView, view_of
from tests.device_builders import GPU, device, slice_of

POOL = (GPU, "pool")


def seen(slices: Sequence[ResourceSlice], reaching: Sequence[str]) -> PoolView | None:
    kinds = Kinds()
    pooled = sorted((PooledSlice(each, kinds) for each in slices), key=lambda each: each.name)
    return view_of(POOL, pooled, dict.fromkeys(reaching))


A, B = device("a"), device("b")


@pytest.mark.parametrize(
    ("slices", "reaching", "names"),
    [
        pytest.param([slice_of(A, name="s")], ["s"], "a", id="one slice is all"),
        pytest.param([slice_of(A, name="s")], [], None, id="what does not reach is not seen"),
        pytest.param([slice_of(B, name="s2", of=2), slice_of(A, name="s1", of=2)], ["s1", "s2"], "ab", id="by name"),
        pytest.param([slice_of(A, name="s", of=2)], ["s"], "incomplete", id="a slice is missing"),
        pytest.param(
            [slice_of(A, name="s1", of=2), slice_of(B, name="s2", of=2)],
            ["s1"],
            "a",
            id="a slice that reaches others makes it whole",
        ),
        pytest.param(
            [slice_of(A, name="old"), slice_of(B, name="new", generation=2)],
            ["old", "new"],
            "b",
            id="the newest generation counts",
        ),
        pytest.param(
            [slice_of(A, name="old", of=2), slice_of(B, name="new", generation=2)],
            ["old"],
            None,
            id="being replaced, by what does not reach",
        ),
        pytest.param(
            [slice_of(A, name="old"), slice_of(B, name="new", generation=2)],
            ["old"],
            "a",
            id="complete: nobody asks for newer ones",
        ),
        pytest.param(
            [slice_of(A, name="s1", of=2), slice_of(A, name="s2", of=2)], ["s1", "s2"], "invalid", id="twice one name"
        ),
        pytest.param(
            [slice_of(device("p", consumes={"m": 1}), name="s")], ["s"], "invalid", id="counters that do not exist"
        ),
        pytest.param(
            [
                slice_of(name="c1", counters={"m": 1}, of=3),
                slice_of(name="c2", counters={"m": 1}, of=3),
                slice_of(A, name="s", of=3),
            ],
            ["c1", "c2", "s"],
            "invalid",
            id="two counter sets of one name",
        ),
        pytest.param(
            [slice_of(name="c", counters={"m": 2}, of=2), slice_of(device("p", consumes={"m": 1}), name="s", of=2)],
            ["c", "s"],
            "p",
            id="counters and their devices",
        ),
        pytest.param(
            [slice_of(name="c", counters={"m": 2}, of=2), slice_of(device("p", consumes={"n": 1}), name="s", of=2)],
            ["c"],
            "invalid",
            id="also devices elsewhere are looked at for counters",
        ),
    ],
)
def test_what_is_seen_of_a_pool(slices: list[ResourceSlice], reaching: list[str], names: str | None) -> None:
    view = seen(slices, reaching)
    if names is None:
        assert view is None
    else:
        assert view is not None
        told = "incomplete" if view.is_incomplete else "invalid" if view.is_invalid else ""
        assert told + "".join(device.id[2] for device in view.devices) == names


def test_devices_elsewhere_are_known_for_their_counters() -> None:
    slices = [
        slice_of(name="c", counters={"m": 2}, of=3),
        slice_of(device("here", consumes={"m": 1}), name="s1", of=3),
        slice_of(device("there", consumes={"m": 1}), name="s2", of=3),
    ]
    view = seen(slices, ["c", "s1"])
    assert view is not None
    assert [each.id[2] for each in view.devices] == ["here"]
    assert [each.id[2] for each in view.others] == ["there"]


def test_devices_that_differ_only_by_name_are_of_one_kind() -> None:
    kinds = Kinds()
    one, same, other = (kinds.of(GPU, each) for each in (device("a", n=1), device("b", n=1), device("c", n=2)))
    assert one is same
    assert one is not other


def test_pools_that_differ_only_by_names_have_the_same_content() -> None:
    kinds = Kinds()
    views = [
        view_of((GPU, node), [PooledSlice(slice_of(device(name), node=node), kinds)], {f"{node}-{GPU}": None})
        for node, name in (("n1", "x"), ("n2", "y"))
    ]
    assert views[0] is not None
    assert views[1] is not None
    assert views[0].content == views[1].content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("gpu.example.com/model", "h", id="the driver's own, without a domain"),
        pytest.param("other.example.com/model", None, id="another domain's"),
        pytest.param("model", "h", id="as it is written"),
    ],
)
def test_attributes_by_full_name(name: str, value: str | None) -> None:
    found = Kinds().of(GPU, device("a", model="h")).attribute(name)
    assert (found.string if found is not None else None) == value
