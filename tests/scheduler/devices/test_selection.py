"""Selectors: evaluated once for each kind of device."""

from __future__ import annotations

import pytest

from mooring.api import cel
from mooring.api.cel import DeviceSelector, compile_device_selector
from mooring.api.views.devices import DeviceClass
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.pools import Kinds
from mooring.scheduler.devices.requests import Request, SearchError, Wanted
from mooring.scheduler.devices.selection import counts_for, is_selected, matches_class
from tests.device_builders import GPU, asking, device, device_class, wants

HAS_N = f'device.attributes["{GPU}"].n == 1'


def request(*expressions: str, of_class: tuple[str, ...] = ()) -> Request:
    classes: ObjectStore[DeviceClass] = ObjectStore()
    classes.put(device_class("gpu", *of_class))
    return Wanted([asking(wants("gpu", *expressions))], classes).claims[0].requests[0][0]


def test_an_expression_is_evaluated_once_for_devices_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(text: str) -> DeviceSelector:
        asked.append(text)
        return compile_device_selector(text)

    monkeypatch.setattr(cel, "compile_device_selector", counted)
    kinds = Kinds()
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
def test_failures_name_whose_expression_it_was(
    expressions: tuple[str, ...], of_class: tuple[str, ...], text: str
) -> None:
    with pytest.raises(SearchError) as caught:
        is_selected(request(*expressions, of_class=of_class), Kinds().of(GPU, device("d")))
    assert caught.value.text(["c"]).startswith(text)


def test_the_first_no_ends_it() -> None:
    assert not is_selected(request("false", HAS_N), Kinds().of(GPU, device("d")))


def test_who_only_counts_devices_is_not_told_that_they_may_be_shared() -> None:
    unshared = device_class("gpu", "!device.allowMultipleAllocations")
    shared = Kinds().of(GPU, device("d", shared=True))
    assert not matches_class(unshared, shared)
    assert counts_for(unshared, shared)
