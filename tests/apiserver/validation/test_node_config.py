"""A source of configuration is one ConfigMap: any as long as it is wanted, a certain one once it is found."""

from __future__ import annotations

from mooring.apiserver.validation.node_config import config_source_faults, config_status_faults
from tests.apiserver.field_errors import messages

REFERENCE = {"namespace": "web", "name": "kubelet", "kubeletConfigKey": "config"}


def test_a_source_that_is_wanted_names_no_certain_object() -> None:
    assert config_source_faults({"configMap": REFERENCE}, "c") == []
    assert messages(config_source_faults({"configMap": {**REFERENCE, "uid": "u", "name": ""}}, "c")) == [
        "c.configMap.uid: Forbidden: uid must not be set in spec",
        "c.configMap.name: Required value",
    ]


def test_a_source_that_was_found_names_one() -> None:
    found = {"configMap": {**REFERENCE, "uid": "u", "resourceVersion": "1"}}
    assert config_status_faults({"active": found, "error": "none"}, "c") == []
    assert messages(config_status_faults({"assigned": {}, "active": {"configMap": REFERENCE}}, "c")) == [
        'c.assigned: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil',
        "c.active.configMap.uid: Required value",
        "c.active.configMap.resourceVersion: Required value",
    ]
