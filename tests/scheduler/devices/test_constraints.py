"""Constraints between the devices of a claim."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import DeviceAttribute, DeviceClass, DeviceConstraint
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.constraints import attribute_value, constraint_of
from mooring.scheduler.devices.pools import DeviceKind, Kinds
from mooring.scheduler.devices.requests import Request, Wanted
from tests.device_builders import GPU, asking, device, first_of, wants

KINDS = Kinds()
NUMA = f"{GPU}/numa"


def kind(numa: str | int | None) -> DeviceKind:
    return KINDS.of(GPU, device("d", has={"numa": numa} if numa is not None else None))


def requests() -> dict[str, Request]:
    """Two requests, and one with an alternative."""
    wanted = Wanted([asking(wants(name="a"), wants(name="b"), first_of(wants(name="x"), name="c"))], _no_classes())
    return {request.full_name: request for (request,) in wanted.claims[0].requests}


def _no_classes() -> ObjectStore[DeviceClass]:
    return ObjectStore()


def test_the_same_value_for_all() -> None:
    a = requests()["a"]
    constraint = constraint_of(DeviceConstraint(match_attribute=NUMA))
    assert not constraint.add(a, kind(None))
    assert constraint.add(a, kind(0))
    assert constraint.add(a, kind(0))
    assert not constraint.add(a, kind(1))
    assert not constraint.add(a, kind("0")), "a text is no number"
    constraint.remove(a)
    constraint.remove(a)
    assert constraint.add(a, kind(1)), "the first decides again"


def test_different_values() -> None:
    a, b = requests()["a"], requests()["b"]
    constraint = constraint_of(DeviceConstraint(distinct_attribute=NUMA))
    assert constraint.add(a, kind(0))
    assert not constraint.add(b, kind(0))
    assert constraint.add(b, kind(1))
    constraint.remove(b)
    assert not constraint.add(b, kind(0))
    assert not constraint.add(b, kind(None))


def test_of_one_request_the_last_value_is_remembered_until_a_device_of_it_is_given_back() -> None:
    a = requests()["a"]
    constraint = constraint_of(DeviceConstraint(distinct_attribute=NUMA))
    assert [constraint.add(a, kind(value)) for value in (0, 1, 0)] == [True, True, True]
    constraint.remove(a)
    assert constraint.add(a, kind(1))


@pytest.mark.parametrize(
    ("concerned", "request_name", "is_concerned"),
    [
        pytest.param((), "a", True, id="all requests"),
        pytest.param(("b",), "a", False, id="another one"),
        pytest.param(("c",), "c/x", True, id="an alternative by its request"),
        pytest.param(("c/x",), "c/x", True, id="an alternative by its own name"),
        pytest.param(("c/y",), "c/x", False, id="another alternative"),
    ],
)
def test_whom_a_constraint_concerns(concerned: tuple[str, ...], request_name: str, is_concerned: bool) -> None:
    constraint = constraint_of(DeviceConstraint(match_attribute=NUMA, requests=concerned))
    assert constraint.add(requests()[request_name], kind(None)) is not is_concerned


def test_values_have_types() -> None:
    assert attribute_value(DeviceAttribute(bool_value=True)) != attribute_value(DeviceAttribute(int_value=1))
    assert attribute_value(DeviceAttribute(version="1.0.0")) != attribute_value(DeviceAttribute(string="1.0.0"))
    assert attribute_value(DeviceAttribute()) is None
