"""What is wrong with a change of ephemeral containers."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_ephemeral import ephemeral_containers_update_faults, is_static, static_faults
from mooring.apiserver.validation.pod_options import STRICT_POD
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import changed, pod, stored

PATH = "spec.ephemeralContainers: Forbidden: existing ephemeral containers"


def debugger(name: str, **fields: object) -> Document:
    made: Document = pod({"ephemeralContainers": [{"name": name, "image": "x"}]})["spec"]["ephemeralContainers"][0]
    return {**made, **fields}


@pytest.mark.parametrize(
    ("containers", "beginnings"),
    [
        pytest.param([debugger("d")], [], id="nothing changes"),
        pytest.param([debugger("e"), debugger("d")], [], id="one more, in any order"),
        pytest.param(None, [f'{PATH} "d" may not be removed\n'], id="one less"),
        pytest.param([debugger("d", image="y")], [f'{PATH} "d" may not be changed\n@@ '], id="another image"),
        pytest.param(
            [debugger("d"), debugger("c")],
            ['spec.ephemeralContainers[1].name: Duplicate value: "c"'],
            id="one named like a container",
        ),
    ],
)
def test_changes(containers: list[Document] | None, beginnings: list[str]) -> None:
    old = stored(pod())
    old["spec"]["ephemeralContainers"] = [debugger("d")]
    new = changed(old, {"ephemeralContainers": containers})
    faults = messages(ephemeral_containers_update_faults(new, old, STRICT_POD))
    assert len(faults) == len(beginnings), faults
    assert all(fault.startswith(beginning) for fault, beginning in zip(faults, beginnings, strict=True)), faults


def test_a_static_pod_is_told_by_its_annotation_and_has_one_fault() -> None:
    assert is_static(pod({"nodeName": "n"}, metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}))
    assert not is_static(pod())
    assert messages(static_faults("no")) == ["[]: Forbidden: no"]
