"""A version of a custom kind, read from its definition."""

from __future__ import annotations

from mooring.apiserver.custom.version import ScalePaths, read_version
from tests.apiserver.custom.definitions import fields, ruled, version


def test_everything_that_a_definition_says() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    raw = fields(spec=ruled(fields(n={"type": "integer"}), "self.n > 1"), status=fields())
    entry = version(raw, subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.n"}])
    found = read_version(entry)
    assert (found.name, found.has_status, found.scale) == ("v1", True, ScalePaths(".spec.n", ".status.n"))
    assert found.selectable_paths == (".spec.n",)
    assert found.rules is not None
    assert found.status_values is not None


def test_a_definition_that_says_little() -> None:
    found = read_version(version())
    assert (found.has_status, found.scale, found.rules, found.status_values) == (False, None, None, None)
