"""What an object is called before it has a name."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import DEPLOYMENT
from mooring.apiserver.admission.forbidding import refused
from mooring.client.errors import Cause
from tests.apiserver.admission.builders import attempt


@pytest.mark.parametrize(
    ("metadata", "name", "called"),
    [
        pytest.param({"name": "a"}, "", "a", id="by its name"),
        pytest.param({"generateName": "a-"}, "", "a-", id="by the prefix of its name"),
        pytest.param({}, "", "Unknown", id="by nothing"),
        pytest.param({"name": "a"}, "b", "b", id="by the name in the address"),
    ],
)
def test_called(metadata: Document, name: str, called: str) -> None:
    refusal = refused(attempt(DEPLOYMENT, {"metadata": metadata}, name=name), "no", [Cause("r", "m", "f")])
    assert refusal.message == f'deployments.apps "{called}" is forbidden: no'
    assert refusal.details == {"name": called, "group": "apps", "kind": "deployments"}
    assert refusal.causes == (Cause("r", "m", "f"),)
