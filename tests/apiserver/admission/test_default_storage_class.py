"""A claim that names no class gets the default one."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from mooring.apiserver.admission.default_storage_class import DefaultStorageClass
from tests.apiserver.admission.builders import NOW, Known, admitted, attempt, named

DEFAULT = {
    "metadata": {
        "name": "std",
        "creationTimestamp": NOW,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
}


@pytest.mark.parametrize(
    ("given", "classes", "expected"),
    [
        pytest.param({}, [DEFAULT], "std", id="the default"),
        pytest.param({"storageClassName": "gold"}, [DEFAULT], "gold", id="its own"),
        pytest.param({"storageClassName": ""}, [DEFAULT], "", id="none on purpose"),
        pytest.param({}, [], None, id="no default"),
    ],
)
def test_class(given: dict[str, Any], classes: list[Any], expected: str | None) -> None:
    made = attempt(PERSISTENT_VOLUME_CLAIM, named("c", spec=given))
    claim = admitted(DefaultStorageClass(), made, Known({STORAGE_CLASS: classes}))
    assert claim["spec"].get("storageClassName") == expected
