"""The table of the controllers' roles holds together."""

from __future__ import annotations

import pytest

from mooring.apiserver.access.default_controller_roles import CONTROLLER_ROLES


@pytest.mark.parametrize("name", sorted(CONTROLLER_ROLES))
def test_lists_stand_in_the_order_of_the_alphabet(name: str) -> None:
    for rule in CONTROLLER_ROLES[name]:
        for message in ("verbs", "resources", "resourceNames", "nonResourceURLs"):
            assert rule.get(message, []) == sorted(rule.get(message, []))


def test_there_is_one_for_each_controller() -> None:
    assert len(CONTROLLER_ROLES) == 38
    assert {"replicaset-controller", "node-controller", "generic-garbage-collector"} <= set(CONTROLLER_ROLES)
