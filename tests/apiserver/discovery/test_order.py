from __future__ import annotations

from mooring.apiserver.discovery.order import groups_in_order, versions_in_order


def test_versions_by_maturity_then_number_then_alphabet() -> None:
    given = ["foo1", "v1alpha1", "v1", "v11beta2", "v2", "v10", "v10beta3", "v3beta1", "v12alpha1", "foo10", "v0"]
    assert versions_in_order(given) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v1alpha1",
        "foo1",
        "foo10",
        "v0",
    ]


def test_built_in_groups_come_first() -> None:
    given = ["zoo.example.com", "batch", "ant.example.com", "apps", "resource.k8s.io"]
    assert groups_in_order(given) == ["apps", "batch", "resource.k8s.io", "ant.example.com", "zoo.example.com"]
