"""CSINode (storage.k8s.io/v1).

1. Drivers may be added and removed. Of a driver that stays only the number of volumes may change.
2. Errors of a topology key name the whole driver.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.resources import non_negative_faults
from mooring.apiserver.kinds.volume_sources import csi_driver_name_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, integer
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import qualified_name_faults
from mooring.apiserver.validation.values import internal_value

NODE_ID_BYTES_MAX = 256


def csi_node_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, driver in enumerate(spec.get("drivers") or ()):
        faults += _driver_faults(driver, seen, f"{path}.drivers[{index}]")
    return faults


def csi_node_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    """What a change may not touch: drivers that stay."""
    return [
        invalid(f"{path}.drivers", internal_value(_without_count(driver), "CSINodeDriver", "storage"), IMMUTABLE)
        for before in old.get("drivers") or ()
        for driver in spec.get("drivers") or ()
        if driver.get("name") == before.get("name") and _fixed_part(driver) != _fixed_part(before)
    ]


def _driver_faults(driver: Document, seen: set[str], path: str) -> list[Fault]:
    name = driver.get("name", "")
    faults = csi_driver_name_faults(name, f"{path}.name")
    faults += _node_id_faults(driver.get("nodeID", ""), f"{path}.nodeID")
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None:
        faults += non_negative_faults(count, f"{path}.allocatable.count")
    if name in seen:
        faults.append(duplicate(f"{path}.name", name))
    seen.add(name)
    keys = driver.get("topologyKeys") or ()
    for index, key in enumerate(keys):
        if not key:
            faults.append(required(path))
        if key in keys[:index]:
            faults.append(duplicate(path, key))
        faults += [invalid(path, key, text) for text in qualified_name_faults(key)]
    return faults


def _node_id_faults(node_id: str, path: str) -> list[Fault]:
    if not node_id:
        return [required(path)]
    if len(node_id.encode()) > NODE_ID_BYTES_MAX:
        return [invalid(path, node_id, f"must be {NODE_ID_BYTES_MAX} characters or less")]
    return []


def _without_count(driver: Document) -> Document:
    return {field: value for field, value in driver.items() if field != "allocatable"}


def _fixed_part(driver: Document) -> tuple[object, object]:
    return driver.get("nodeID", ""), driver.get("topologyKeys") or []


def _csi_node_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now_s)]


CSI_NODE_TABLE = KindTable((NAME, integer("Drivers", "How many drivers the node has."), AGE), _csi_node_cells)


class CSINodeStrategy(Strategy):
    table = CSI_NODE_TABLE
    allows_unconditional_update = False

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return csi_node_faults(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new object, then as a change."""
        faults = self.meta_faults(obj)
        faults += csi_node_faults(obj["spec"], "spec")
        return faults + csi_node_update_faults(obj["spec"], old["spec"], "spec")


STRATEGY = CSINodeStrategy
