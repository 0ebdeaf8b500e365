"""Which claims a pod uses."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.controllers.claim_users import claim_keys
from tests.controllers.network_documents import backend_view


@pytest.mark.parametrize(
    ("volumes", "keys"),
    [
        pytest.param([], [], id="no volumes"),
        pytest.param([{"name": "d", "emptyDir": {}}], [], id="a volume that needs none"),
        pytest.param([{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}], ["default/c"], id="by name"),
        pytest.param([{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}], ["default/p-d"], id="made for it"),
    ],
)
def test_a_pod_uses(volumes: list[Document], keys: list[str]) -> None:
    assert [*claim_keys(backend_view("p", volumes=volumes))] == keys
