"""A claim waits for a volume with files."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.persistent_volume_claim import default_claim


def test_claims() -> None:
    resources = {"requests": {"storage": "1.0001"}, "limits": {"storage": "2"}}
    claim: Document = {"spec": {"resources": resources}, "status": {"capacity": {"storage": "0.0001"}}}
    default_claim(claim)
    default_claim(claim)
    assert claim["spec"] == {
        "resources": {"requests": {"storage": "1001m"}, "limits": {"storage": "2"}},
        "volumeMode": "Filesystem",
    }
    assert claim["status"] == {"phase": "Pending", "capacity": {"storage": "1m"}}
