"""Whoever writes a status leaves the metadata alone."""

from __future__ import annotations

from mooring.apiserver.strategies.status_metadata import keep_metadata


def test_metadata_stays_but_for_managers() -> None:
    old = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    new = {"metadata": {"name": "a", "finalizers": ["b/c"], "managedFields": [{}]}}
    keep_metadata(new, old)
    assert new == {"metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [{}]}}
