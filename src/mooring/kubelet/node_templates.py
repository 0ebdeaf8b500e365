"""Node templates: nodes of several kinds in one file, for `mooring up` and `mooring nodes`.

Input: the text of a file. Output: `NodeTemplate`s; or a `NodeTemplateError` with the line of each problem.

    nodeTemplates:
      - name: gpu                            # nodes gpu-0, gpu-1, …
        count: 2
        zones: [zone-a, zone-b]              # assigned in turn
        labels: {accelerator: h100}
        taints: [{key: gpu, value: "true", effect: NoSchedule}]
        resources: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
        devices:                             # a ResourceSlice of each driver and node
          - {driver: gpu.example.com, name: gpu, count: 8, attributes: {model: h100}, capacity: {memory: 80Gi}}

 1. Unknown fields are errors, as a typing error would silently change the nodes.
 2. The problems of a file are reported together, up to `PROBLEMS_MAX`.
 3. An attribute is a string, a number or a truth value; or as in a ResourceSlice, such as `{version: 1.2.0}`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.labels import label_key_errors, label_value_errors
from mooring.api.quantity import parse_quantity
from mooring.api.yaml import YamlDocument, load_document
from mooring.kubelet.settings import DeviceTemplate, NodeCapacity, NodeTemplate, is_node_name

TEMPLATES = "nodeTemplates"
NODES_MAX = 100_000
"""Nodes of one template."""
PROBLEMS_MAX = 100
"""Problems of a file that are reported: finding the line of one reads the file again."""
DEVICES_MAX = 128
"""Devices of one ResourceSlice, as in Kubernetes."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TEMPLATE_FIELDS = ("name", "count", "zones", "labels", "taints", "resources", "devices")
_TAINT_FIELDS = ("key", "value", "effect")
_DEVICE_FIELDS = ("driver", "name", "count", "attributes", "capacity")
_TYPED_ATTRIBUTES = ("string", "int", "bool", "version")


class NodeTemplateError(ValueError):
    """An invalid file. `problems` has the place and the text of each problem."""

    def __init__(self, problems: Collection[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{where}: {text}" for where, text in self.problems))


def load_node_templates(text: str | bytes, file: str) -> tuple[NodeTemplate, ...]:
    """Raises `NodeTemplateError` or `YamlError`."""
    document = load_document(text, file)
    reader = _TemplateReader(document)
    templates = reader.read()
    if reader.problems:
        shown = reader.problems[:PROBLEMS_MAX]
        raise NodeTemplateError([(f"{file}:{document.line_of(path)}", said) for path, said in shown])
    return templates


class _TemplateReader:
    """Reads one file, and collects its problems by path."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self.problems: list[tuple[str, str]] = []

    def read(self) -> tuple[NodeTemplate, ...]:
        data = self._document.data
        if not isinstance(data, dict) or not isinstance(data.get(TEMPLATES), list):
            self._add("", f"wanted a mapping with the list {TEMPLATES}")
            return ()
        self._check_fields(data, "", (TEMPLATES,))
        found = [self._template(item, f"{TEMPLATES}[{index}]") for index, item in enumerate(data[TEMPLATES])]
        templates = [template for template in found if template is not None]
        names: set[str] = set()
        for index, template in enumerate(found):
            if template is not None and template.name in names:
                self._add(f"{TEMPLATES}[{index}].name", f"found {template.name!r} a second time; wanted distinct names")
            names |= {template.name} if template is not None else set()
        return tuple(templates)

    def _template(self, item: object, path: str) -> NodeTemplate | None:
        fields = self._mapping(item, path, TEMPLATE_FIELDS)
        before = len(self.problems)
        name = fields.get("name")
        if not isinstance(name, str) or not is_node_name(f"{name}-0"):
            self._add(f"{path}.name", f"found {name!r}, wanted lower-case letters, digits, - and .")
        count = self._number(fields, "count", path, NODES_MAX)
        zones = self._texts(fields.get("zones", []), f"{path}.zones")
        labels = self._labels(fields.get("labels", {}), f"{path}.labels")
        taints = tuple(self._taints(fields.get("taints", []), f"{path}.taints"))
        shape = self._shape(fields.get("resources", {}), f"{path}.resources")
        devices = tuple(self._devices(fields.get("devices", []), f"{path}.devices"))
        if len(self.problems) > before or not isinstance(name, str):
            return None
        return NodeTemplate(name, count, shape, zones, labels, taints, devices)

    # --- parts of a template ---

    def _shape(self, item: object, path: str) -> NodeCapacity:
        amounts = {name: str(amount) for name, amount in self._mapping(item, path, None).items()}
        for name, amount in amounts.items():
            if not _is_amount(amount):
                self._add(f"{path}.{name}", f"found {amount!r}, wanted an amount such as 4, 500m or 16Gi")
                return NodeCapacity()
        usual = {field: amounts.pop(name) for name, field in _USUAL.items() if name in amounts}
        pods = amounts.pop("pods", "110")
        if not pods.isdecimal():
            self._add(f"{path}.pods", f"found {pods!r}, wanted a whole number")
            return NodeCapacity()
        return NodeCapacity(**usual, pods=int(pods), others=amounts)

    def _labels(self, item: object, path: str) -> dict[str, str]:
        labels = {}
        for key, value in self._mapping(item, path, None).items():
            if not isinstance(value, str):
                self._add(f"{path}.{key}", f"found {value!r}, wanted a text: put it in quotes")
                continue
            for error in (*label_key_errors(key), *label_value_errors(value)):
                self._add(f"{path}.{key}", error)
            labels[key] = value
        return labels

    def _taints(self, item: object, path: str) -> Iterator[Document]:
        for index, entry in enumerate(self._list(item, path)):
            here = f"{path}[{index}]"
            taint = self._mapping(entry, here, _TAINT_FIELDS)
            key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
            if not isinstance(key, str) or not isinstance(value, str):
                self._add(here, "wanted a key and a value that are texts: put them in quotes")
                continue
            for error in (*label_key_errors(key), *label_value_errors(value)):
                self._add(here, error)
            if effect not in _EFFECTS:
                self._add(f"{here}.effect", f"found {effect!r}, wanted {', '.join(_EFFECTS)}")
            yield {"key": key, "effect": effect, **({"value": value} if value else {})}

    def _devices(self, item: object, path: str) -> Iterator[DeviceTemplate]:
        for index, entry in enumerate(self._list(item, path)):
            here = f"{path}[{index}]"
            fields = self._mapping(entry, here, _DEVICE_FIELDS)
            driver, name = fields.get("driver"), fields.get("name", "device")
            if not isinstance(driver, str) or not is_node_name(driver):
                self._add(f"{here}.driver", f"found {driver!r}, wanted a domain such as gpu.example.com")
            if not isinstance(name, str) or not is_node_name(f"{name}-0"):
                self._add(f"{here}.name", f"found {name!r}, wanted lower-case letters, digits and -")
            count = self._number(fields, "count", here, DEVICES_MAX)
            attributes = self._attributes(fields.get("attributes", {}), f"{here}.attributes")
            capacity = {key: str(value) for key, value in self._mapping(fields.get("capacity", {}), here, None).items()}
            for key, amount in capacity.items():
                if not _is_amount(amount):
                    self._add(f"{here}.capacity.{key}", f"found {amount!r}, wanted an amount such as 80Gi")
            if isinstance(driver, str) and isinstance(name, str):
                yield DeviceTemplate(driver, name, count, attributes, capacity)

    def _attributes(self, item: object, path: str) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for key, value in self._mapping(item, path, None).items():
            match value:
                case bool():
                    found[key] = {"bool": value}
                case int():
                    found[key] = {"int": value}
                case str():
                    found[key] = {"string": value}
                case dict() if len(value) == 1 and next(iter(value)) in _TYPED_ATTRIBUTES:
                    found[key] = value
                case _:
                    expected = f"a text, a whole number, true or false, or one of {', '.join(_TYPED_ATTRIBUTES)}"
                    self._add(f"{path}.{key}", f"found {value!r}, wanted {expected}")
        return found

    # --- types ---

    def _number(self, fields: Mapping[str, Any], name: str, path: str, most: int) -> int:
        value = fields.get(name, 1)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value
        self._add(f"{path}.{name}", f"found {value!r}, wanted a whole number from 0 to {most:,}")
        return 0

    def _texts(self, item: object, path: str) -> tuple[str, ...]:
        texts = [text for text in self._list(item, path) if isinstance(text, str) and not label_value_errors(text)]
        if isinstance(item, list) and len(texts) < len(item):
            self._add(path, "wanted a list of names")
        return tuple(texts)

    def _list(self, item: object, path: str) -> list[object]:
        if isinstance(item, list):
            return item
        self._add(path, f"found {item!r}, wanted a list")
        return []

    def _mapping(self, item: object, path: str, known: Collection[str] | None) -> Mapping[str, Any]:
        if not isinstance(item, dict):
            self._add(path, f"found {item!r}, wanted a mapping")
            return {}
        if known is not None:
            self._check_fields(item, path, known)
        return {str(name): value for name, value in item.items()}

    def _check_fields(self, item: Mapping[str, object], path: str, known: Collection[str]) -> None:
        for name in item:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                self._add(f"{path}.{name}" if path else str(name), f"{name!r} is not known here; {advice}")

    def _add(self, path: str, text: str) -> None:
        self.problems.append((path, f"{path}: {text}" if path else text))


_USUAL = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral_storage"}


def _is_amount(text: str) -> bool:
    try:
        return parse_quantity(text).value() >= 0
    except QuantityError:
        return False
