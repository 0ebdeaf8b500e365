"""The table of default cluster roles holds together."""

from __future__ import annotations

import pytest

from mooring.apiserver.access.default_cluster_roles import CLUSTER_ROLES


@pytest.mark.parametrize("name", sorted(CLUSTER_ROLES))
def test_lists_stand_in_the_order_of_the_alphabet(name: str) -> None:
    for rule in CLUSTER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert rule.get(message, []) == sorted(rule.get(message, []))


def test_list_implies_watch() -> None:
    for rules in CLUSTER_ROLES.values():
        assert [rule for rule in rules if "list" in rule["verbs"] and "watch" not in rule["verbs"]] == []
