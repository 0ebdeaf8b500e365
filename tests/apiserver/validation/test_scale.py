"""What is wrong with scales."""

from __future__ import annotations

from mooring.apiserver.validation.scale import scale_faults
from tests.apiserver.field_errors import messages


def test_a_scale_has_a_name_and_no_fewer_than_no_replicas() -> None:
    assert scale_faults({"metadata": {"name": "o", "namespace": "n"}, "spec": {}}) == []
    assert messages(scale_faults({"metadata": {"namespace": "n"}, "spec": {"replicas": -1}})) == [
        "metadata.name: Required value: name or generateName is required",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]
