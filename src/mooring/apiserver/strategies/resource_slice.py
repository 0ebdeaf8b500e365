"""Slices of drivers' pools of devices.

1. Lists as attributes, and devices that stand for resources of the node, wait behind feature gates: their fields are
   dropped, unless the slice already has such fields.
2. The generation counts every change of what was sent, also of fields that are dropped then.
3. A taint without a time was added now.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.resource_slice import resource_slice_faults
from mooring.apiserver.validation.values import means_the_same

_MAPPINGS = "nodeAllocatableResourceMappings"
_LISTS = ("ints", "bools", "strings", "versions")


class ResourceSliceStrategy(Strategy):
    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        _fill_taint_times(_devices(obj), call.now)
        _drop_disabled(_devices(obj), ())

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _fill_taint_times(_devices(obj), call.now)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceSliceSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        _drop_disabled(_devices(obj), _devices(old))

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return resource_slice_faults(obj["spec"], None, "spec")

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return resource_slice_faults(obj["spec"], old["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        spec = obj["spec"]
        return {"spec.nodeName": spec.get("nodeName") or "", "spec.driver": spec.get("driver", "")}


def _devices(obj: Document) -> Sequence[Document]:
    return obj["spec"].get("devices") or ()


def _fill_taint_times(devices: Sequence[Document], now: str) -> None:
    for device in devices:
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def _drop_disabled(devices: Sequence[Document], old: Sequence[Document]) -> None:
    if not any(_MAPPINGS in device for device in old):
        for device in devices:
            device.pop(_MAPPINGS, None)
    if not any(field in attribute for attribute in _attributes(old) for field in _LISTS):
        for attribute in _attributes(devices):
            for field in _LISTS:
                attribute.pop(field, None)


def _attributes(devices: Sequence[Document]) -> Sequence[Document]:
    return [attribute for device in devices for attribute in (device.get("attributes") or {}).values()]


def _warnings(obj: Document) -> list[str]:
    driver = obj["spec"].get("driver", "")
    if driver == driver.lower():
        return []
    return [f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters"]
