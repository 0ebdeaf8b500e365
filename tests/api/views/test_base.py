"""What all views have in common."""

from __future__ import annotations

import gc
import inspect
import types

import msgspec
import pytest

from mooring.api.views import base, devices, meta, node, pod, selectors, storage, volumes, workloads
from mooring.api.views.base import View
from mooring.api.views.pod import Pod, Toleration


def views_of(module: types.ModuleType) -> list[type[View]]:
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    return [each for each in classes if issubclass(each, View)]


MODULES = (base, meta, selectors, volumes, pod, node, storage, workloads, devices)
VIEWS = [view for module in MODULES for view in views_of(module)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.__module__.rpartition('.')[2]}.{view.__name__}")
def test_every_view_is_frozen_untracked_lenient_and_complete_without_any_field(view: type[View]) -> None:
    config = view.__struct_config__
    assert (config.frozen, config.gc, config.forbid_unknown_fields) == (True, False, False)
    assert msgspec.convert({"somethingNew": 1}, view) == view()


def test_a_view_cannot_be_changed() -> None:
    toleration = Toleration(key="a")
    with pytest.raises(AttributeError, match="immutable"):
        toleration.key = "b"  # type: ignore[misc]


def test_a_view_is_out_of_the_collectors_sight() -> None:
    assert not gc.is_tracked(Pod())


def test_field_names_are_those_of_kubernetes() -> None:
    read = {field.encode_name for field in msgspec.structs.fields(pod.PodSpec)}
    assert {"nodeName", "schedulerName", "topologySpreadConstraints", "hostNetwork", "resourceClaims"} <= read
    assert {field.encode_name for field in msgspec.structs.fields(pod.ContainerPort)} >= {"hostIP", "hostPort"}
