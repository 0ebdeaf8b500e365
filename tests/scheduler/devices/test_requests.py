"""Selectors: evaluated once for each kind of device."""

from __future__ import annotations

import pytest

from mooring.api import cel
from mooring.api.cel import CompiledSelector, compile_device_selector
from mooring.api.views.devices import DeviceAttribute, DeviceClass, DeviceConstraint
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.pools import DeviceKind, DeviceKinds
from mooring.scheduler.devices.requests import (
    AllocationRequest,
    DeviceAllocationError,
    RequestAlternative,
    attribute_value,
    constraint_of,
    counts_for,
    is_selected,
    matches_class,
)
from tests.device_builders import GPU, asking, device, device_class, first_of, wants

HAS_N = f'device.attributes["{GPU}"].n == 1'


def request(*expressions: str, of_class: tuple[str, ...] = ()) -> RequestAlternative:
    classes: ObjectStore[DeviceClass] = ObjectStore()
    classes.put(device_class("gpu", *of_class))
    return AllocationRequest([asking(wants("gpu", *expressions))], classes).claims[0].requests[0][0]


def test_an_expression_is_evaluated_once_for_devices_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(text: str) -> CompiledSelector:
        asked.append(text)
        return compile_device_selector(text)

    monkeypatch.setattr(cel, "compile_device_selector", counted)
    kinds = DeviceKinds()
    alike = [kinds.of(GPU, device(name, n=1)) for name in "abc"]
    assert all(is_selected(request(HAS_N), kind) for kind in alike for _ in range(2))
    assert asked == [f'device.driver == "{GPU}"', HAS_N]


@pytest.mark.parametrize(
    ("expressions", "of_class", "text"),
    [
        pytest.param((HAS_N,), (), "claim c: selector #0: CEL runtime error: no such key: n", id="of the request"),
        pytest.param((), (HAS_N,), "class gpu: selector #1: CEL runtime error: no such key: n", id="of the class"),
        pytest.param(("true", "1"), (), "claim c: selector #1: CEL compile error: ", id="one that is no question"),
    ],
)
def test_failures_name_the_class_or_request_of_the_expression(
    expressions: tuple[str, ...], of_class: tuple[str, ...], text: str
) -> None:
    with pytest.raises(DeviceAllocationError) as caught:
        is_selected(request(*expressions, of_class=of_class), DeviceKinds().of(GPU, device("d")))
    assert caught.value.text(["c"]).startswith(text)


def test_the_first_no_ends_it() -> None:
    assert not is_selected(request("false", HAS_N), DeviceKinds().of(GPU, device("d")))


def test_expressions_for_counting_have_no_allow_multiple_allocations() -> None:
    unshared = device_class("gpu", "!device.allowMultipleAllocations")
    shared = DeviceKinds().of(GPU, device("d", shared=True))
    assert not matches_class(unshared, shared)
    assert counts_for(unshared, shared)


KINDS = DeviceKinds()
NUMA = f"{GPU}/numa"


def kind(numa: str | int | None) -> DeviceKind:
    return KINDS.of(GPU, device("d", has={"numa": numa} if numa is not None else None))


def requests() -> dict[str, RequestAlternative]:
    """Two requests, and one with an alternative."""
    wanted = AllocationRequest(
        [asking(wants(name="a"), wants(name="b"), first_of(wants(name="x"), name="c"))], _no_classes()
    )
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


def test_distinct_attribute_stores_the_last_value_of_a_request_until_a_release() -> None:
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
def test_which_requests_a_constraint_applies_to(
    concerned: tuple[str, ...], request_name: str, is_concerned: bool
) -> None:
    constraint = constraint_of(DeviceConstraint(match_attribute=NUMA, requests=concerned))
    assert constraint.add(requests()[request_name], kind(None)) is not is_concerned


def test_values_have_types() -> None:
    assert attribute_value(DeviceAttribute(bool_value=True)) != attribute_value(DeviceAttribute(int_value=1))
    assert attribute_value(DeviceAttribute(version="1.0.0")) != attribute_value(DeviceAttribute(string="1.0.0"))
    assert attribute_value(DeviceAttribute()) is None
