"""Whether we can mount."""

from __future__ import annotations

import os

import pytest

from mooring.kubelet.volumes import ability
from mooring.kubelet.volumes.ability import mount_ability
from mooring.kubelet.volumes.entry_command import MountAbility


def test_it_is_found_out_by_trying() -> None:
    found = mount_ability()

    assert found in MountAbility
    assert found is not MountAbility.ROOT or os.geteuid() == 0
    assert not os.path.exists("/.mooring-try")


@pytest.mark.parametrize(
    ("is_root", "works", "wanted"),
    [
        pytest.param(True, {"root", "user namespace"}, MountAbility.ROOT, id="root can"),
        pytest.param(False, {"root", "user namespace"}, MountAbility.USER_NAMESPACE, id="others can in a namespace"),
        pytest.param(True, {"user namespace"}, MountAbility.USER_NAMESPACE, id="a root who may not"),
        pytest.param(False, set(), MountAbility.NONE, id="nobody can"),
    ],
)
def test_the_best_way_is_taken(
    monkeypatch: pytest.MonkeyPatch, is_root: bool, works: set[str], wanted: MountAbility
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    monkeypatch.setattr(ability, "_works", lambda way: way.value in works)

    assert mount_ability() is wanted
